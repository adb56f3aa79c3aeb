//! Ctrl+C and termination signals: the first one cancels gracefully, the second one exits immediately.

#[cfg(unix)]
mod listener;

use std::process::ExitCode;

use pinch_embed::stdx::cancel::{Cancel, CancelReason};

#[cfg(unix)]
use listener::UnixSignals as Signals;

/// Runs `work` and cancels `cancel` if a signal arrives; returns the signal's exit code in that case.
pub(crate) async fn guard<T>(cancel: &Cancel, work: impl Future<Output = T>) -> (T, Option<ExitCode>) {
    guard_against(Signals::all(), || false, cancel, work).await
}

/// Like [`guard`], except that Ctrl+C is ignored while it is for another program on the terminal.
pub(crate) async fn guard_unless<T>(
    is_ignored: impl Fn() -> bool,
    cancel: &Cancel,
    work: impl Future<Output = T>,
) -> (T, Option<ExitCode>) {
    guard_against(Signals::all(), is_ignored, cancel, work).await
}

/// Like [`guard`], except that Ctrl+C is a key for `work`.
pub(crate) async fn guard_without_interrupt<T>(
    cancel: &Cancel,
    work: impl Future<Output = T>,
) -> (T, Option<ExitCode>) {
    guard_against(Signals::ending(), || false, cancel, work).await
}

async fn guard_against<T>(
    mut signals: Signals,
    ignores_interrupt: impl Fn() -> bool,
    cancel: &Cancel,
    work: impl Future<Output = T>,
) -> (T, Option<ExitCode>) {
    let mut work = std::pin::pin!(work);
    let mut code = None;
    loop {
        tokio::select! {
            biased;
            done = &mut work => return (done, code),
            signal = signals.next() => {
                if signal == INTERRUPT && ignores_interrupt() {
                    continue;
                }
                if code.is_some() {
                    std::process::exit(128 + signal);
                }
                code = Some(ExitCode::from(u8::try_from(128 + signal).unwrap_or(1)));
                cancel.cancel(if signal == INTERRUPT { CancelReason::User } else { CancelReason::Shutdown });
            }
        }
    }
}

const INTERRUPT: i32 = 2;

#[cfg(not(unix))]
struct Signals {
    has_interrupt: bool,
}

#[cfg(not(unix))]
impl Signals {
    fn all() -> Self {
        Self { has_interrupt: true }
    }

    fn ending() -> Self {
        Self { has_interrupt: false }
    }

    async fn next(&mut self) -> i32 {
        match tokio::signal::ctrl_c().await {
            Ok(()) if self.has_interrupt => INTERRUPT,
            _ => std::future::pending().await,
        }
    }
}
