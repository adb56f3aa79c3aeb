//! The grace period for work of a cancelled run.

use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use pinch_stdx::cancel::Cancel;
use tokio::time::Instant;

/// Time after which the work of a cancelled run is dropped.
const GRACE: Duration = Duration::from_secs(5);

/// The grace period of one run: it starts when the cancellation is first seen. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Grace {
    cancel: Cancel,
    until: Arc<OnceLock<Instant>>,
}

impl Grace {
    pub(super) fn new(cancel: Cancel) -> Self {
        Self { cancel, until: Arc::default() }
    }

    /// Returns the token that cancels the run.
    pub(super) fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// Runs work to its end; returns `None` if the run is cancelled and the work does not end within the grace period.
    pub(super) async fn run<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let too_late = async {
            self.cancel.cancelled().await;
            tokio::time::sleep_until(*self.until.get_or_init(|| Instant::now() + GRACE)).await;
        };
        tokio::select! {
            biased;
            output = work => Some(output),
            () = too_late => None,
        }
    }
}
