//! JSON-RPC 2.0 with a process, one JSON message per line, in both directions.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use pinch_agent_core::tool::Progress;
use pinch_stdx::cancel::{Cancel, CancelReason};
use pinch_stdx::json;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinSet;

use super::open_components::OpenComponents;
use super::open_streams::OpenStreams;
use super::output::PendingOutput;
use super::screen;
use super::served::ServedSessions;
use crate::extension::cx::{ExtensionCx, ExtensionHandle};
use crate::extension::error::ExtensionError;
use crate::extension::limit::Stopwatch;
use crate::extension::snapshot::UiSnapshot;
use crate::extension::ui::Dialogs;

/// Maximum bytes of a line; a process that sends a longer one is killed.
pub const MAX_LINE: usize = 16 << 20;
/// Maximum concurrent requests from the process; further ones are rejected.
const MAX_REQUESTS: usize = 128;
/// Maximum bytes of answers that the process has not read.
pub(super) const MAX_UNREAD: usize = 64 << 20;

/// Error code: the request was not performed.
const FAILED: i32 = -32000;
/// Error code: the session was replaced meanwhile.
const STALE: i32 = -32001;

/// Answers a request from the process.
pub(super) type Serve =
    Arc<dyn Fn(Arc<Link>, ProcessRequest) -> BoxFuture<'static, Result<Value, ExtensionError>> + Send + Sync>;

/// A request from the process.
pub(super) struct ProcessRequest {
    pub(super) method: String,
    pub(super) params: Value,
    /// Cancelled when the process no longer needs the answer.
    pub(super) cancel: Cancel,
}

/// The state of a process and its requests.
pub(super) struct Link {
    out: mpsc::Sender<Vec<u8>>,
    next_id: AtomicU64,
    waiting: Mutex<HashMap<u64, oneshot::Sender<Result<Value, ExtensionError>>>>,
    progress: Mutex<HashMap<String, Progress>>,
    /// Stopwatches of handlers waiting for the process.
    clocks: Mutex<HashMap<u64, Arc<Stopwatch>>>,
    /// Bytes of answers that wait for room in the queue.
    n_unread: AtomicUsize,
    /// Its requests that are being answered.
    answering: Mutex<HashMap<String, Cancel>>,
    /// Number of its running commands.
    pub(super) n_commands: AtomicUsize,
    /// Whether another process has taken its place.
    is_retired: AtomicBool,
    /// Why it is not running.
    gone: OnceLock<String>,
    pub(super) closing: Notify,
    ended: Notify,
    /// The sessions it serves.
    sessions: Mutex<ServedSessions>,
    /// The dialogs available before there is a session.
    asker: Mutex<Option<Dialogs>>,
    /// What it knows of the screen.
    screen: Mutex<Option<Arc<UiSnapshot>>>,
    pub(super) components: OpenComponents,
    /// What it prints.
    pub(super) output: PendingOutput,
    /// Answers of its providers that are being read.
    pub(super) streams: OpenStreams,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Link {
    /// Creates the state of a process whose input is written from this queue.
    pub(super) fn new(out: mpsc::Sender<Vec<u8>>) -> Arc<Self> {
        Arc::new(Self {
            out,
            next_id: AtomicU64::new(1),
            waiting: Mutex::default(),
            progress: Mutex::default(),
            clocks: Mutex::default(),
            n_unread: AtomicUsize::new(0),
            answering: Mutex::default(),
            n_commands: AtomicUsize::new(0),
            is_retired: AtomicBool::new(false),
            gone: OnceLock::new(),
            closing: Notify::new(),
            ended: Notify::new(),
            sessions: Mutex::default(),
            asker: Mutex::default(),
            screen: Mutex::default(),
            components: OpenComponents::default(),
            output: PendingOutput::default(),
            streams: OpenStreams::default(),
        })
    }

    /// Adds a session that it serves.
    pub(super) fn serve_session(&self, handle: ExtensionHandle) {
        locked(&self.sessions).add(handle);
    }

    /// Returns the number that stands for a context's session in messages.
    pub(super) fn generation(&self, cx: &ExtensionCx) -> u64 {
        locked(&self.sessions).generation(cx)
    }

    /// Returns the context that a request is for. `generation`: its session, which must be the current one of its kind; `within`: the session
    /// of the handler that makes the request, which may have been replaced since.
    pub(super) fn cx_of(&self, generation: Option<u64>, within: Option<u64>) -> Result<ExtensionCx, ExtensionError> {
        // What it keeps of its session is not meant for the next one.
        if generation.is_none() && self.is_retired.load(Ordering::Acquire) {
            return Err(ExtensionError::Stale);
        }
        locked(&self.sessions).cx_of(generation, within)
    }

    /// Reports a failure of the process to all sessions that it serves.
    pub(super) fn report(&self, event: &str, error: &ExtensionError) {
        let handles = locked(&self.sessions).handles();
        handles.iter().for_each(|handle| handle.report(event, error));
    }

    /// Allows or disallows dialogs without a session.
    pub(super) fn lend(&self, asker: Option<Dialogs>) {
        *locked(&self.asker) = asker;
    }

    pub(super) fn asker(&self) -> Option<Dialogs> {
        locked(&self.asker).clone()
    }

    /// Returns the error of a process that is not running.
    pub(super) fn gone(&self) -> Option<ExtensionError> {
        self.gone.get().map(|why| ExtensionError::Gone { reason: why.clone() })
    }

    /// Sends a line; waits while too many are unread. Answers may be longer: they are what the process has asked for.
    pub(super) async fn send(&self, line: Vec<u8>) -> Result<(), ExtensionError> {
        if line.len() > MAX_LINE {
            return Err(ExtensionError::new("The message is longer than 16 MiB"));
        }
        let gone = || self.gone().unwrap_or_else(|| ExtensionError::Gone { reason: "it is shutting down".to_owned() });
        match self.gone() {
            Some(error) => Err(error),
            None => self.out.send(line).await.map_err(|_| gone()),
        }
    }

    /// Sends a notification if there is room in the queue.
    pub(super) fn try_notify(&self, method: &str, params: &Value) {
        // A process that does not read misses it.
        drop(self.out.try_send(line(&json!({"jsonrpc": "2.0", "method": method, "params": params}))));
    }

    /// Tells the process what has changed on the screen since it was last told.
    pub(super) fn tell_screen(&self, ui: &Dialogs) {
        let Some(now) = ui.snapshot() else { return };
        // Locked until it is in the queue, so that changes arrive in order.
        let mut known = locked(&self.screen);
        if known.as_ref().is_some_and(|known| Arc::ptr_eq(known, &now)) {
            return;
        }
        let message = line(&json!({
            "jsonrpc": "2.0", "method": "ui/screen", "params": screen::news(&now, known.as_deref()),
        }));
        // A process that does not read is told later.
        if self.out.try_send(message).is_ok() {
            *known = Some(now);
        }
    }

    /// Sends a request to the process. Dropping the future cancels it.
    pub(super) async fn request(&self, method: &str, params: Value) -> Result<Value, ExtensionError> {
        self.request_with(None, |id| line(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})))
            .await
    }

    /// Like [`Self::request`]; the stopwatch is paused while the process has a dialog open.
    pub(super) async fn request_with(
        &self,
        clock: Option<Arc<Stopwatch>>,
        make: impl FnOnce(u64) -> Vec<u8>,
    ) -> Result<Value, ExtensionError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (reply, answer) = oneshot::channel();
        locked(&self.waiting).insert(id, reply);
        if let Some(clock) = clock {
            locked(&self.clocks).insert(id, clock);
        }
        let mut asked = OutstandingRequest { link: self, id, is_sent: false };
        self.send(make(id)).await?;
        asked.is_sent = true;
        // The process may have exited before the request was registered.
        if let Some(error) = self.gone() {
            return Err(error);
        }
        answer
            .await
            .unwrap_or_else(|_| Err(self.gone().unwrap_or(ExtensionError::Gone { reason: "it ended".to_owned() })))
    }

    /// Pauses the stopwatches of handlers waiting for the process.
    pub(super) fn pause(&self) -> Vec<crate::extension::limit::Paused> {
        locked(&self.clocks).values().map(Stopwatch::pause).collect()
    }

    pub(super) fn watch_progress(&self, call: &str, progress: Option<Progress>) {
        let mut all = locked(&self.progress);
        match progress {
            Some(progress) => drop(all.insert(call.to_owned(), progress)),
            None => drop(all.remove(call)),
        }
    }

    pub(super) fn progress(&self, call: &str) -> Option<Progress> {
        locked(&self.progress).get(call).cloned()
    }

    /// Marks the process as one whose place another one takes; it ends after its last command. Returns whether there is none.
    pub(super) fn retire(&self) -> bool {
        self.is_retired.store(true, Ordering::Release);
        self.n_commands.load(Ordering::Acquire) == 0
    }

    /// Called when one of its commands has ended.
    pub(super) fn command_ended(&self) {
        let was_last = self.n_commands.fetch_sub(1, Ordering::AcqRel) == 1;
        if was_last && self.is_retired.load(Ordering::Acquire) {
            self.closing.notify_one();
        }
    }

    /// Ends the process by closing its stdin, then SIGTERM, then SIGKILL. Returns when it has exited.
    pub(super) async fn close(&self) {
        let mut ended = std::pin::pin!(self.ended.notified());
        ended.as_mut().enable();
        self.closing.notify_one();
        if self.gone.get().is_none() {
            ended.await;
        }
    }

    /// Notes why the process is not running any more.
    pub(super) fn end(&self, why: String) {
        // The first reason wins.
        drop(self.gone.set(why));
        locked(&self.waiting).clear();
        self.ended.notify_waiters();
    }

    /// Handles a line.
    pub(super) fn take_in(self: &Arc<Self>, bytes: &[u8], serve: &Serve, served: &mut Served) -> LineKind {
        let Ok(Value::Object(mut message)) = json::from_slice::<Value>(bytes) else { return LineKind::Invalid };
        let id = message.remove("id");
        let Some(Value::String(method)) = message.remove("method") else {
            let Some(reply) = id.and_then(|id| id.as_u64()).and_then(|id| locked(&self.waiting).remove(&id)) else {
                // An answer that is no longer awaited is not an error.
                let is_answer = message.contains_key("result") || message.contains_key("error");
                return if is_answer { LineKind::Valid } else { LineKind::Invalid };
            };
            let answer = match message.remove("error") {
                None => Ok(message.remove("result").unwrap_or_default()),
                Some(error) => {
                    let text = error.get("message").and_then(Value::as_str).unwrap_or("unknown error");
                    Err(ExtensionError::new(text))
                }
            };
            // The receiver may have been dropped.
            drop(reply.send(answer));
            return LineKind::Valid;
        };
        let Served { requests, answers } = served;
        while requests.try_join_next().is_some() || answers.try_join_next().is_some() {}
        let params = message.remove("params").unwrap_or_default();
        if method == "$/cancel" {
            if let Some(cancel) = params.get("id").and_then(|id| locked(&self.answering).get(&id.to_string()).cloned())
            {
                cancel.cancel(CancelReason::User);
            }
            return LineKind::Valid;
        }
        if requests.len() >= MAX_REQUESTS {
            let refused = Err(ExtensionError::refused("Too many requests at once"));
            return id.map_or(LineKind::Valid, |id| self.answer(&id, refused, answers));
        }
        // Requests that complete immediately are handled in order.
        let cancel = Cancel::new();
        let mut serving = serve(Arc::clone(self), ProcessRequest { method, params, cancel: cancel.clone() });
        let at_once = (&mut serving).now_or_never();
        match (id, at_once) {
            (Some(id), Some(answer)) => return self.answer(&id, answer, answers),
            (Some(id), None) => {
                let (link, key) = (Arc::clone(self), id.to_string());
                locked(&self.answering).insert(key.clone(), cancel);
                requests.spawn(async move {
                    let answer = serving.await;
                    locked(&link.answering).remove(&key);
                    // An exited process needs no answer.
                    drop(link.out.send(line(&response(&id, answer))).await);
                });
            }
            (None, None) => drop(requests.spawn(async { drop(serving.await) })),
            (None, Some(_)) => {}
        }
        LineKind::Valid
    }

    /// Sends an answer without waiting until it is read: the process may be waiting for us to read.
    fn answer(
        self: &Arc<Self>,
        id: &Value,
        answer: Result<Value, ExtensionError>,
        answers: &mut JoinSet<()>,
    ) -> LineKind {
        let Err(mpsc::error::TrySendError::Full(line)) = self.out.try_send(line(&response(id, answer))) else {
            return LineKind::Valid;
        };
        let length = line.len();
        if self.n_unread.fetch_add(length, Ordering::Relaxed) > MAX_UNREAD {
            return LineKind::Flood;
        }
        let link = Arc::clone(self);
        answers.spawn(async move {
            drop(link.out.send(line).await);
            link.n_unread.fetch_sub(length, Ordering::Relaxed);
        });
        LineKind::Valid
    }
}

/// What is being done for the process.
#[derive(Default)]
pub(super) struct Served {
    requests: JoinSet<()>,
    /// Answers that wait until there is room for them.
    answers: JoinSet<()>,
}

/// What a line of the process was.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LineKind {
    Valid,
    Invalid,
    /// A request of too many whose answers it has not read.
    Flood,
}

/// A pending request.
struct OutstandingRequest<'a> {
    link: &'a Link,
    id: u64,
    is_sent: bool,
}

impl Drop for OutstandingRequest<'_> {
    fn drop(&mut self) {
        locked(&self.link.clocks).remove(&self.id);
        let was_waiting = locked(&self.link.waiting).remove(&self.id).is_some();
        if was_waiting && self.is_sent {
            // A full queue means that the process does not read.
            let cancel = json!({"jsonrpc": "2.0", "method": "$/cancel", "params": {"id": self.id}});
            drop(self.link.out.try_send(line(&cancel)));
        }
    }
}

/// Builds the response to a request.
fn response(id: &Value, answer: Result<Value, ExtensionError>) -> Value {
    match answer {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(error) => {
            let code = if error == ExtensionError::Stale { STALE } else { FAILED };
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": error.to_string()}})
        }
    }
}

/// Serializes a message as a line. U+2028 and U+2029 are escaped, because many programs treat them as line breaks.
pub(super) fn line(message: &Value) -> Vec<u8> {
    let mut line = message.to_string();
    if line.contains(['\u{2028}', '\u{2029}']) {
        line = line.replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029");
    }
    let mut line = line.into_bytes();
    line.push(b'\n');
    line
}
