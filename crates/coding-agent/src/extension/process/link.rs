//! JSON-RPC 2.0 with a process, one JSON message per line, in both directions.

use std::collections::HashMap;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use pinch_agent_core::tool::Progress;
use pinch_stdx::cancel::{Cancel, CancelReason};
use pinch_stdx::json;
use pinch_stdx::process::ChildTree;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinSet;

use super::open_components::OpenComponents;
use super::open_streams::OpenStreams;
use super::screen;
use super::served::ServedSessions;
use crate::extension::cx::{ExtensionCx, ExtensionHandle};
use crate::extension::error::ExtensionError;
use crate::extension::limit::Stopwatch;
use crate::extension::snapshot::UiSnapshot;
use crate::extension::ui::Dialogs;

/// Maximum bytes of a line; a process that sends a longer one is killed.
pub const MAX_LINE: usize = 16 << 20;
/// Maximum unread lines to the process; further senders wait.
const MAX_OUTGOING: usize = 64;
/// Maximum concurrent requests from the process; further ones are rejected.
const MAX_REQUESTS: usize = 128;
/// How long the process may leave a line unread.
const MAX_STALL: Duration = Duration::from_secs(30);
/// Number of invalid lines after which the process is killed.
const MAX_GARBAGE: usize = 100;
/// Maximum bytes of its stderr reported with its exit.
const MAX_STDERR: usize = 4096;
/// How long it may run after its stdin was closed, and again after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);

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
    /// Its requests that are being answered.
    answering: Mutex<HashMap<String, Cancel>>,
    /// Number of its running commands.
    pub(super) n_commands: AtomicUsize,
    /// Why it is not running.
    gone: OnceLock<String>,
    closing: Notify,
    ended: Notify,
    /// The sessions it serves.
    sessions: Mutex<ServedSessions>,
    /// The dialogs available before there is a session.
    asker: Mutex<Option<Dialogs>>,
    /// What it knows of the screen.
    screen: Mutex<Option<Arc<UiSnapshot>>>,
    pub(super) components: OpenComponents,
    /// Answers of its providers that are being read.
    pub(super) streams: OpenStreams,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Link {
    /// Starts a process. It lives as long as its tasks.
    pub(super) fn start(
        command: std::process::Command,
        serve: Serve,
    ) -> Result<(Arc<Self>, JoinSet<()>), ExtensionError> {
        let mut command = command;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = ChildTree::spawn_as_is(command).map_err(|error| {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
            ExtensionError::new(format!("{error}{cause}"))
        })?;
        let (out, lines) = mpsc::channel(MAX_OUTGOING);
        let link = Arc::new(Self {
            out,
            next_id: AtomicU64::new(1),
            waiting: Mutex::default(),
            progress: Mutex::default(),
            clocks: Mutex::default(),
            answering: Mutex::default(),
            n_commands: AtomicUsize::new(0),
            gone: OnceLock::new(),
            closing: Notify::new(),
            ended: Notify::new(),
            sessions: Mutex::default(),
            asker: Mutex::default(),
            screen: Mutex::default(),
            components: OpenComponents::default(),
            streams: OpenStreams::default(),
        });
        let pipes = (process.take_stdin(), process.take_stdout(), process.take_stderr());
        let mut tasks = JoinSet::new();
        tasks.spawn(watch(Arc::clone(&link), process, pipes, lines, serve));
        Ok((link, tasks))
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
        locked(&self.sessions).cx_of(generation, within)
    }

    /// Reports a failure of the process to all sessions that it serves.
    fn report(&self, event: &str, error: &ExtensionError) {
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

    /// Sends a line; waits while too many are unread.
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

    /// Ends the process by closing its stdin, then SIGTERM, then SIGKILL. Returns when it has exited.
    pub(super) async fn close(&self) {
        let mut ended = std::pin::pin!(self.ended.notified());
        ended.as_mut().enable();
        self.closing.notify_one();
        if self.gone.get().is_none() {
            ended.await;
        }
    }

    fn end(&self, why: String) {
        // The first reason wins.
        drop(self.gone.set(why));
        locked(&self.waiting).clear();
        self.ended.notify_waiters();
    }

    /// Handles a line. Returns true if it is invalid.
    fn take_in(self: &Arc<Self>, bytes: &[u8], serve: &Serve, requests: &mut JoinSet<()>) -> bool {
        let Ok(Value::Object(mut message)) = json::from_slice::<Value>(bytes) else { return true };
        let id = message.remove("id");
        let Some(Value::String(method)) = message.remove("method") else {
            let Some(reply) = id.and_then(|id| id.as_u64()).and_then(|id| locked(&self.waiting).remove(&id)) else {
                // An answer that is no longer awaited is not an error.
                return !message.contains_key("result") && !message.contains_key("error");
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
            return false;
        };
        while requests.try_join_next().is_some() {}
        let params = message.remove("params").unwrap_or_default();
        if requests.len() >= MAX_REQUESTS {
            let refused = Err(ExtensionError::refused("Too many requests at once"));
            if let Some(id) = id {
                // A full queue means that the process does not read.
                drop(self.out.try_send(line(&response(&id, refused))));
            }
            return false;
        }
        if method == "$/cancel" {
            if let Some(cancel) = params.get("id").and_then(|id| locked(&self.answering).get(&id.to_string()).cloned())
            {
                cancel.cancel(CancelReason::User);
            }
            return false;
        }
        // Requests that complete immediately are handled in order.
        let cancel = Cancel::new();
        let mut served = serve(Arc::clone(self), ProcessRequest { method, params, cancel: cancel.clone() });
        let at_once = (&mut served).now_or_never();
        let link = Arc::clone(self);
        let key = id.as_ref().filter(|_| at_once.is_none()).map(Value::to_string);
        if let Some(key) = &key {
            locked(&self.answering).insert(key.clone(), cancel);
        }
        requests.spawn(async move {
            let answer = match at_once {
                Some(answer) => answer,
                None => served.await,
            };
            if let Some(key) = &key {
                locked(&link.answering).remove(key);
            }
            if let Some(id) = id {
                // An exited process needs no answer.
                drop(link.send(line(&response(&id, answer))).await);
            }
        });
        false
    }
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

type Pipes = (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>);

/// Supervises a process until it has exited.
async fn watch(link: Arc<Link>, mut process: ChildTree, pipes: Pipes, lines: mpsc::Receiver<Vec<u8>>, serve: Serve) {
    let (stdin, stdout, stderr) = pipes;
    let mut tail = Vec::new();
    let mut exit = None;
    // How long it may take to exit.
    let mut patience = GRACE;
    let closed;
    let why = {
        let last_line = Notify::new();
        let mut reading = std::pin::pin!(read(&link, stdout, &serve));
        let mut writing = std::pin::pin!(write(stdin, lines, &last_line));
        let mut noting = std::pin::pin!(keep_tail(stderr, &mut tail));
        let mut is_noted = false;
        loop {
            tokio::select! {
                biased;
                () = link.closing.notified() => {
                    closed = true;
                    last_line.notify_one();
                    // Messages to it may still be in transit; its answers arrive before its output ends.
                    let is_at_end = tokio::select! {
                        rest = last_words(&mut reading, &mut noting, is_noted) => rest.is_some(),
                        _ = &mut writing => false,
                    };
                    patience = if is_at_end { GRACE } else { Duration::ZERO };
                    break None;
                }
                why = &mut reading => {
                    closed = false;
                    if why.is_none() && !is_noted {
                        // Its last output explains why it exited.
                        drop(tokio::time::timeout(GRACE, &mut noting).await);
                    }
                    break why;
                }
                why = &mut writing => { closed = false; break Some(why); }
                ended = process.wait() => {
                    exit = ended.ok();
                    closed = false;
                    break last_words(&mut reading, &mut noting, is_noted).await.flatten();
                }
                () = &mut noting, if !is_noted => is_noted = true,
            }
        }
        // Its input is closed here at the latest, since the writer is dropped.
    };
    if exit.is_none() && why.is_none() {
        exit = tokio::time::timeout(patience, process.wait()).await.ok().and_then(Result::ok);
    }
    if exit.is_none() {
        exit = process.terminate(GRACE).await.ok();
    }
    process.kill();
    if closed {
        link.end("it was closed".to_owned());
        return;
    }
    let how = match exit {
        Some(exit) => exit.signal_name().unwrap_or_else(|| format!("exit code {}", exit.status())),
        None => "unknown end".to_owned(),
    };
    let stderr_suffix = String::from_utf8_lossy(&tail).trim().to_owned();
    let stderr_suffix = if stderr_suffix.is_empty() { String::new() } else { format!(": {stderr_suffix}") };
    let why =
        why.map_or_else(|| format!("it exited ({how}){stderr_suffix}"), |why| format!("{why} ({how}){stderr_suffix}"));
    link.end(why);
    if let Some(error) = link.gone() {
        link.report("process", &error);
    }
}

/// Drains both pipes of a process. Returns `None` if they do not end in time.
async fn last_words<T>(
    reading: impl Future<Output = T>,
    noting: impl Future<Output = ()>,
    is_noted: bool,
) -> Option<T> {
    let noting = async {
        if !is_noted {
            noting.await;
        }
    };
    let rest = async { tokio::join!(reading, noting) };
    tokio::time::timeout(GRACE, rest).await.ok().map(|(read, ())| read)
}

/// Reads messages until the output ends or becomes invalid.
async fn read(link: &Arc<Link>, stdout: Option<ChildStdout>, serve: &Serve) -> Option<String> {
    let mut stdout = BufReader::new(stdout?);
    let mut requests = JoinSet::new();
    let mut n_garbage = 0;
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let limit = MAX_LINE as u64 + 1;
        let n_read = (&mut stdout).take(limit).read_until(b'\n', &mut bytes).await.unwrap_or(0);
        if n_read == 0 {
            return None;
        }
        if bytes.len() > MAX_LINE {
            return Some("it sent a line longer than 16 MiB".to_owned());
        }
        if !bytes.trim_ascii().is_empty() && link.take_in(&bytes, serve, &mut requests) {
            n_garbage += 1;
            let shown: String = String::from_utf8_lossy(&bytes).trim().chars().take(200).collect();
            if n_garbage == 1 {
                let text = format!("stdout is for messages only, but it wrote: {shown}");
                link.report("process", &ExtensionError::new(text));
            }
            if n_garbage >= MAX_GARBAGE {
                return Some(format!("it sent {MAX_GARBAGE} invalid lines"));
            }
        }
    }
}

/// Writes lines until the process stops reading. After `last_line` is notified, writes the queued lines and closes the input.
async fn write(stdin: Option<ChildStdin>, mut lines: mpsc::Receiver<Vec<u8>>, last_line: &Notify) -> String {
    let Some(mut stdin) = stdin else { return "it has no input".to_owned() };
    loop {
        let line = tokio::select! {
            biased;
            () = last_line.notified() => {
                lines.close();
                continue;
            }
            line = lines.recv() => line,
        };
        let Some(line) = line else { break };
        let writing = async {
            stdin.write_all(&line).await?;
            stdin.flush().await
        };
        match tokio::time::timeout(MAX_STALL, writing).await {
            Ok(Ok(())) => {}
            // Its exit is about to be noticed.
            Ok(Err(_)) => std::future::pending::<()>().await,
            Err(_) => return format!("it read nothing for {} s", MAX_STALL.as_secs()),
        }
    }
    drop(stdin);
    std::future::pending().await
}

/// Keeps the last bytes of the error output.
async fn keep_tail(stderr: Option<impl AsyncRead + Unpin>, tail: &mut Vec<u8>) {
    let Some(mut stderr) = stderr else { return };
    let mut buffer = vec![0; MAX_STDERR];
    while let Ok(n_read @ 1..) = stderr.read(&mut buffer).await {
        tail.extend_from_slice(&buffer[..n_read]);
        tail.drain(..tail.len().saturating_sub(MAX_STDERR));
    }
}
