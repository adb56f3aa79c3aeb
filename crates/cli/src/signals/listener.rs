//! A thread that receives signals, so that they have an effect while the program's own thread is blocked: writing to a pipe that nobody
//! reads, or to a terminal that is stopped with Ctrl+S.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, oneshot};

/// How long the program's thread may take to react to a signal before the process exits without it.
const PATIENCE: Duration = Duration::from_secs(2);

/// A signal, and how its receiver says that it is not blocked.
type ReceivedSignal = (i32, oneshot::Sender<()>);

static STATE: Mutex<ListenerState> = Mutex::new(ListenerState { kinds: Vec::new(), guard: None });

struct ListenerState {
    /// UnixSignals that a thread listens for. The system's default action does not return when nobody guards against them any more.
    kinds: Vec<i32>,
    /// Receives the signals. Without it, they end the process.
    guard: Option<mpsc::Sender<ReceivedSignal>>,
}

fn state() -> MutexGuard<'static, ListenerState> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The signals that the process receives until this is dropped. From then on, they end it immediately.
pub(super) struct UnixSignals(mpsc::Receiver<ReceivedSignal>);

impl UnixSignals {
    pub(super) fn all() -> Self {
        Self::of(&[SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()])
    }

    /// UnixSignals that no key sends.
    pub(super) fn ending() -> Self {
        Self::of(&[SignalKind::terminate(), SignalKind::hangup()])
    }

    fn of(kinds: &[SignalKind]) -> Self {
        let (guard, received) = mpsc::channel(1);
        let mut state = state();
        state.guard = Some(guard);
        let new = kinds.iter().filter(|kind| !state.kinds.contains(&kind.as_raw_value()));
        let new: Vec<SignalKind> = new.copied().collect();
        if !new.is_empty() && start(new.clone()).is_ok() {
            state.kinds.extend(new.iter().map(SignalKind::as_raw_value));
        }
        Self(received)
    }

    /// The next signal. Never returns if the process cannot listen for signals.
    pub(super) async fn next(&mut self) -> i32 {
        match self.0.recv().await {
            Some((signal, reacted)) => {
                let _listener_gone = reacted.send(());
                signal
            }
            None => std::future::pending().await,
        }
    }
}

impl Drop for UnixSignals {
    fn drop(&mut self) {
        state().guard = None;
    }
}

/// Starts a thread that listens for these signals. Returns once it does.
fn start(kinds: Vec<SignalKind>) -> std::io::Result<()> {
    let (listening, is_listening) = std::sync::mpsc::sync_channel(1);
    let listen = move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build() else {
            return;
        };
        runtime.block_on(async {
            let listened = |kind: SignalKind| Some((kind.as_raw_value(), signal(kind).ok()?));
            let mut signals: Vec<(i32, Signal)> = kinds.into_iter().filter_map(listened).collect();
            let _starter_gone = listening.send(());
            loop {
                let signal = next(&mut signals).await;
                if !pass_on(signal).await {
                    std::process::exit(128 + signal);
                }
            }
        });
    };
    std::thread::Builder::new().name("signals".into()).spawn(listen)?;
    // The thread is gone if this fails.
    let _listening = is_listening.recv();
    Ok(())
}

async fn next(signals: &mut [(i32, Signal)]) -> i32 {
    std::future::poll_fn(|cx| {
        for (number, signal) in &mut *signals {
            if signal.poll_recv(cx).is_ready() {
                return std::task::Poll::Ready(*number);
            }
        }
        std::task::Poll::Pending
    })
    .await
}

/// Passes a signal on to whoever guards against signals. Returns false if it must end the process instead.
async fn pass_on(signal: i32) -> bool {
    let Some(guard) = state().guard.clone() else {
        return false;
    };
    let (reacted, has_reacted) = oneshot::channel();
    let reaction = async {
        // Fails if the guard ended meanwhile, and with it probably the process.
        guard.send((signal, reacted)).await.is_ok() && has_reacted.await.is_ok()
    };
    tokio::time::timeout(PATIENCE, reaction).await.unwrap_or(false)
}
