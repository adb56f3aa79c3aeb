//! Isolates plugins: panics are caught, and time is limited.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt as _;
use pinch_coding_agent::extension::{ExtensionError, HandlerFuture};

/// Time limit for hooks that return an answer.
pub const ASK_LIMIT: Duration = Duration::from_secs(10);
/// Time limit for hooks that are asked about every message.
pub const WRITE_LIMIT: Duration = Duration::from_secs(2);
/// Time limit for hooks that only observe.
pub const WATCH_LIMIT: Duration = Duration::from_secs(30);

/// Returns a plugin's answer; `None`, with a log entry, if it fails. `make` is called inside, so that a panic before the first await is
/// also caught.
pub(super) async fn guarded<'a, T>(
    hook: &str,
    plugin: &str,
    limit: Duration,
    make: impl FnOnce() -> HandlerFuture<'a, T>,
) -> Option<T> {
    let work = AssertUnwindSafe(async move { make().await }).catch_unwind();
    match tokio::time::timeout(limit, work).await {
        Ok(Ok(Ok(answer))) => return Some(answer),
        Ok(Ok(Err(error))) => tracing::warn!(hook, plugin, %error, "a hook failed"),
        Ok(Err(_)) => tracing::warn!(hook, plugin, "a hook panicked"),
        Err(_) => {
            let error = ExtensionError::TimedOut { limit };
            tracing::warn!(hook, plugin, %error, "a hook failed");
        }
    }
    None
}

/// Calls a synchronous hook of a plugin.
pub(super) fn guarded_now<T>(hook: &str, plugin: &str, call: impl FnOnce() -> T) -> Option<T> {
    let done = std::panic::catch_unwind(AssertUnwindSafe(call)).ok();
    if done.is_none() {
        tracing::warn!(hook, plugin, "a hook panicked");
    }
    done
}
