//! Gates: everything after a gate waits until the test opens it.

use std::sync::Arc;

use tokio::sync::{Semaphore, watch};

/// Holds a response back until the test opens it. Each opening lets one passage through; clones are the same gate.
#[derive(Clone, Debug)]
pub struct Gate(Arc<GateInner>);

#[derive(Debug)]
struct GateInner {
    passages: Semaphore,
    n_reached: watch::Sender<usize>,
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

impl Gate {
    /// Creates a closed gate.
    pub fn new() -> Self {
        Self(Arc::new(GateInner { passages: Semaphore::new(0), n_reached: watch::Sender::new(0) }))
    }

    /// Lets one passage through, now or when it arrives.
    pub fn open(&self) {
        self.open_times(1);
    }

    /// Lets `n` passages through.
    pub fn open_times(&self, n: usize) {
        self.0.passages.add_permits(n);
    }

    /// Waits until the server has reached the gate for the `n`th time: everything before it has been sent.
    pub async fn reached(&self, n: usize) {
        let mut reached = self.0.n_reached.subscribe();
        // The sender is part of this gate, so it cannot be gone.
        let _result = reached.wait_for(|reached| *reached >= n).await;
    }

    /// Waits until the gate is opened.
    pub(super) async fn pass(&self) {
        self.0.n_reached.send_modify(|n| *n += 1);
        if let Ok(permit) = self.0.passages.acquire().await {
            permit.forget();
        }
    }
}
