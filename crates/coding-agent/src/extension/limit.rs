//! Calling foreign code safely: panics are caught, and time is limited.

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::error::ExtensionError;

/// How long a handler may take, excluding dialogs.
pub const HANDLER_LIMIT: Duration = Duration::from_secs(30);

/// Measures time; paused while a [`Paused`] exists.
#[derive(Debug)]
pub(super) struct Stopwatch {
    state: Mutex<StopwatchState>,
    changed: Notify,
}

#[derive(Debug)]
struct StopwatchState {
    /// When the measured time began, shifted by every pause.
    began: Instant,
    /// Number of pauses, and when the first began.
    holders: usize,
    held_since: Instant,
}

/// Pauses the stopwatch until dropped.
pub(super) struct Paused(Arc<Stopwatch>);

impl Stopwatch {
    pub(super) fn start() -> Arc<Self> {
        let now = Instant::now();
        let state = StopwatchState { began: now, holders: 0, held_since: now };
        Arc::new(Self { state: Mutex::new(state), changed: Notify::new() })
    }

    fn lock(&self) -> MutexGuard<'_, StopwatchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn pause(self: &Arc<Self>) -> Paused {
        let mut state = self.lock();
        if state.holders == 0 {
            state.held_since = Instant::now();
        }
        state.holders += 1;
        Paused(Arc::clone(self))
    }

    /// Returns the deadline if nothing pauses; `None` while paused.
    fn end(&self, limit: Duration) -> Option<Instant> {
        let state = self.lock();
        (state.holders == 0).then(|| state.began + limit)
    }

    /// Waits until `limit` has been measured.
    async fn reaches(&self, limit: Duration) {
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            match self.end(limit) {
                None => changed.await,
                Some(end) if end <= Instant::now() => return,
                // A pause may begin meanwhile and move the deadline.
                Some(end) => tokio::time::sleep_until(end).await,
            }
        }
    }
}

impl Drop for Paused {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.holders -= 1;
        if state.holders == 0 {
            let held = state.held_since.elapsed();
            state.began += held;
        }
        drop(state);
        self.0.changed.notify_waiters();
    }
}

/// Runs foreign code. `make` is called inside, so that a panic before the first await is caught too.
///
/// # Errors
/// Returns the code's error, a panic, or a timeout after `limit`; its future is dropped then.
pub(super) async fn guarded<T, F>(
    make: impl FnOnce() -> F,
    watch: &Stopwatch,
    limit: Option<Duration>,
) -> Result<T, ExtensionError>
where
    F: Future<Output = Result<T, ExtensionError>>,
{
    let work = AssertUnwindSafe(async move { make().await }).catch_unwind();
    let done = match limit {
        None => work.await,
        Some(limit) => tokio::select! {
            biased;
            done = work => done,
            () = watch.reaches(limit) => return Err(ExtensionError::TimedOut { limit }),
        },
    };
    done.unwrap_or_else(|panic| Err(panicked(&*panic)))
}

/// Calls synchronous foreign code.
///
/// # Errors
/// Returns the code's error or a panic.
pub(super) fn guarded_now<T>(call: impl FnOnce() -> Result<T, ExtensionError>) -> Result<T, ExtensionError> {
    std::panic::catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| Err(panicked(&*panic)))
}

fn panicked(panic: &(dyn Any + Send)) -> ExtensionError {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned());
    ExtensionError::Panicked { text }
}
