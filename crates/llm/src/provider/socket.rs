//! ChatGPT subscriptions over WebSockets.
//!
//! A conversation has one socket, which stays open between its calls. The server remembers the last answer of a socket, so that the next
//! call sends only new items. If sockets fail, the call continues over server-sent events, and the conversation avoids sockets for a while.
//! The option `transport` of a call selects the mode: `sse`, `websocket`, `websocket-cached`, or `auto`, which is the default.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use http::HeaderMap;
use pinch_http::HttpClient;
use pinch_http::idle::{Interrupted, Watch};
use pinch_http::websocket::{Received, SocketError, WebSocket};
use pinch_stdx::cancel::Cancel;
use pinch_stdx::json::write;
use pinch_stdx::pull::{Pulled, pulled};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

mod continuation;

mod sessions;

use self::continuation::Continuation;
use self::sessions::{Sessions, SocketKey, SocketSlot};
use super::Provider;
use super::budget::ResponseBudget;
use super::http::{HttpProvider, observe_payload, stopped};
use crate::error::{LlmError, LlmErrorKind};
use crate::event::{Emit, EventStream, Finished, StreamEvent};
use crate::frame::Frame;
use crate::ids::ApiId;
use crate::message::AssistantMessage;
use crate::redact::Secrets;
use crate::request::Request;
use crate::wire::codex::{self, Codex};
use crate::wire::{Decoder, Encoding, FrameKind, HttpRequest, WireCall};

pub use self::sessions::SocketStats;

const BAD_JSON: &str = "Invalid Codex WebSocket JSON";
/// Error codes which mean that the server lost its state, or that a socket has expired. They come before any answer.
const LOST: [&str; 2] = ["previous_response_not_found", "websocket_connection_limit_reached"];

/// Serves ChatGPT subscriptions over WebSockets, with a fallback to server-sent events.
#[derive(Clone)]
pub struct SocketProvider(Arc<SocketShared>);

struct SocketShared {
    client: Arc<HttpClient>,
    sse: HttpProvider,
    sessions: Sessions,
}

impl fmt::Debug for SocketProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SocketProvider").finish_non_exhaustive()
    }
}

impl SocketProvider {
    /// Creates a provider with a shared client.
    pub fn new(client: Arc<HttpClient>) -> Self {
        let sse = HttpProvider::new(Box::new(Codex), Arc::clone(&client));
        Self(Arc::new(SocketShared { client, sse, sessions: Sessions::default() }))
    }

    /// Returns statistics about the sockets of a conversation, or `None` if it never had one.
    pub fn stats(&self, session_id: &str) -> Option<SocketStats> {
        self.0.sessions.stats(session_id)
    }
}

impl Provider for SocketProvider {
    fn stream(&self, request: Request, cancel: Cancel) -> EventStream {
        let request = request.with_own_env();
        let timestamp = request.host.now_ms();
        let model = Arc::clone(&request.model);
        EventStream::new(&model, timestamp, run(Arc::clone(&self.0), request, cancel, timestamp))
    }

    fn close_session(&self, session_id: &str) {
        self.0.sessions.close(session_id);
    }
}

/// The WebSocket mode of a call.
#[derive(Clone, Copy, Debug)]
struct SocketTransport {
    name: &'static str,
    /// Whether only new items are sent.
    continues: bool,
}

impl SocketTransport {
    fn of(request: &Request) -> Option<Self> {
        match request.options.native.get("transport").and_then(Value::as_str) {
            _ if request.model.api != *ApiId::CODEX_RESPONSES => None,
            Some("sse") => None,
            Some("websocket") => Some(Self { name: "websocket", continues: false }),
            Some("websocket-cached") => Some(Self { name: "websocket-cached", continues: true }),
            _ => Some(Self { name: "auto", continues: true }),
        }
    }
}

/// A socket that failed.
#[derive(Debug)]
struct SocketFailure {
    name: &'static str,
    text: String,
}

impl From<SocketError> for SocketFailure {
    fn from(error: SocketError) -> Self {
        Self { name: "Error", text: error.to_string() }
    }
}

impl SocketFailure {
    fn closed(code: u16, reason: &str) -> Self {
        let text = match (code, reason) {
            (1000 | 1005, "") => "WebSocket stream closed before response.completed".to_owned(),
            (1009, "") => "WebSocket closed 1009 message too big".to_owned(),
            (code, "") => format!("WebSocket closed {code}"),
            (code, reason) => format!("WebSocket closed {code} {reason}"),
        };
        Self { name: "WebSocketCloseError", text }
    }
}

/// Reasons why there is no socket.
enum NoSocket {
    Failed(SocketFailure),
    Interrupted(Interrupted),
    /// An error without a fallback.
    Error(LlmError),
}

/// Outcome of a step of a turn.
enum TurnStep {
    /// Events are waiting, or the next step is due.
    Go,
    /// The turn continues over server-sent events.
    FallBack(SocketFailure),
}

/// A call over a socket.
struct SocketTurn {
    shared: Arc<SocketShared>,
    transport: SocketTransport,
    made: HttpRequest,
    key: Option<SocketKey>,
    lease: Option<SocketLease>,
    /// Whether the whole request was resent.
    resent: bool,
    /// Number of events that the decoder has seen.
    n_events: usize,
    /// Whether a block was started.
    has_content: bool,
    /// Time of the call, in Unix milliseconds.
    timestamp: i64,
    /// Diagnostic for the answer about a failure.
    diagnostic: Option<Value>,
    budget: ResponseBudget,
}

/// A socket in use. If dropped early, the socket is closed and the conversation's slot becomes free.
struct SocketLease {
    shared: Arc<SocketShared>,
    /// The slot in use.
    seat: Option<SocketKey>,
    socket: Option<WebSocket>,
}

impl Drop for SocketLease {
    fn drop(&mut self) {
        if let Some(seat) = &self.seat {
            self.shared.sessions.leave(seat);
        }
    }
}

impl SocketLease {
    /// Releases the socket after a successful call.
    fn release(mut self, continuation: Option<Continuation>) {
        let Some(socket) = self.socket.take() else { return };
        match self.seat.take() {
            Some(seat) => self.shared.sessions.keep(&seat, socket, continuation),
            None => self.shared.sessions.close_later(socket),
        }
    }
}

/// Runs the call from its start to its only end.
fn run(shared: Arc<SocketShared>, request: Request, cancel: Cancel, timestamp: i64) -> Pulled<'static, StreamEvent> {
    pulled(move |emitter| async move {
        let began = Instant::now();
        let mut watch = Watch::start(request.options.timeouts);
        let call = WireCall { request: &request, timestamp, encoding: Encoding::Usual };
        let mut decoder = codex::decoder(&call, BAD_JSON);
        let mut emit = Emit::default();
        let mut turn = match SocketTurn::prepare(&shared, &call, &watch, &cancel).await {
            Ok(turn) => turn,
            Err(error) => {
                decoder.fail(error, &mut emit);
                None
            }
        };
        let mut started = false;
        let mut fallen = turn.is_none() && emit.is_empty();
        loop {
            let paused = if emit.is_empty() { None } else { watch.pause() };
            while let Some(mut event) = emit.pop() {
                let is_end = match &mut event {
                    // A resent turn has only one start.
                    StreamEvent::Start(_) if std::mem::replace(&mut started, true) => continue,
                    StreamEvent::End(finished) => {
                        finished.hide(&request, Secrets::default());
                        finished.limit_text();
                        end(finished, turn.as_mut(), &request, began);
                        true
                    }
                    _ => false,
                };
                emitter.emit(event).await;
                if is_end {
                    return;
                }
            }
            watch.resume(paused);
            match turn.as_mut() {
                Some(turn) if !fallen => match turn.step(&call, &mut decoder, &mut emit, &mut watch, &cancel).await {
                    TurnStep::Go => {}
                    TurnStep::FallBack(failure) => {
                        turn.note(&failure, true);
                        fallen = true;
                    }
                },
                turn if fallen => {
                    let diagnostic = turn.and_then(|turn| turn.diagnostic.take());
                    let mut request = request.clone();
                    // The limit of the whole call continues; zero would disable it.
                    request.options.timeouts.total = watch.left().map(|left| left.max(Duration::from_nanos(1)));
                    let mut events = shared.sse.stream(request, cancel.clone());
                    while let Some(mut event) = events.next().await {
                        if let (StreamEvent::End(finished), Some(note)) = (&mut event, &diagnostic) {
                            let message = Arc::make_mut(&mut finished.message);
                            add_diagnostic(message, note.clone());
                            message.duration_ms = i64::try_from(began.elapsed().as_millis()).ok();
                        }
                        emitter.emit(event).await;
                    }
                    return;
                }
                // The decoder must emit the end; if it does not, the stream does.
                _ => return,
            }
        }
    })
}

/// Finishes a turn over a socket.
fn end(finished: &mut Finished, turn: Option<&mut SocketTurn>, request: &Request, began: Instant) {
    let message = Arc::make_mut(&mut finished.message);
    message.duration_ms = i64::try_from(began.elapsed().as_millis()).ok();
    let Some(turn) = turn else { return };
    if let Some(note) = turn.diagnostic.take() {
        add_diagnostic(message, note);
    }
    let is_good = finished.error.is_none();
    if let Some(lease) = turn.lease.take().filter(|_| is_good) {
        let continues = turn.transport.continues && lease.seat.is_some();
        let known = continues.then(|| Continuation::after(request, &turn.made.body, message)).flatten();
        lease.release(known);
    }
}

fn add_diagnostic(message: &mut AssistantMessage, note: Value) {
    match &mut message.diagnostics {
        Some(Value::Array(notes)) => notes.push(note),
        other => *other = Some(json!([note])),
    }
}

impl SocketTurn {
    /// Prepares a call; returns `None` if it does not use a socket.
    async fn prepare(
        shared: &Arc<SocketShared>,
        call: &WireCall<'_>,
        watch: &Watch,
        cancel: &Cancel,
    ) -> Result<Option<Self>, LlmError> {
        let request = call.request;
        let Some(transport) = SocketTransport::of(request) else { return Ok(None) };
        cancel.check().map_err(|_| stopped(request, Interrupted::Cancelled))?;
        let mut made = codex::request::encode_for_socket(call)?;
        let key = request.options.session_id.as_ref().filter(|id| !id.is_empty()).map(|session| SocketKey {
            session: session.clone(),
            account: text_of(&made.headers, "chatgpt-account-id"),
            url: made.url.clone(),
        });
        if key.as_ref().is_some_and(|key| shared.sessions.falls_back(key)) {
            return Ok(None);
        }
        observe_payload(call, &mut made, watch, cancel).await?;
        Ok(Some(Self {
            shared: Arc::clone(shared),
            transport,
            made,
            key,
            lease: None,
            resent: false,
            n_events: 0,
            has_content: false,
            timestamp: call.timestamp,
            diagnostic: None,
            budget: ResponseBudget::of(request),
        }))
    }

    /// Opens the socket, or processes the next message.
    async fn step(
        &mut self,
        call: &WireCall<'_>,
        decoder: &mut Box<dyn Decoder>,
        emit: &mut Emit,
        watch: &mut Watch,
        cancel: &Cancel,
    ) -> TurnStep {
        let request = call.request;
        let Some(socket) = self.lease.as_mut().and_then(|lease| lease.socket.as_mut()) else {
            let opened = match watch.for_headers(cancel, self.open(call, watch, cancel)).await {
                Ok(opened) => opened,
                Err(why) => Err(NoSocket::Interrupted(why)),
            };
            match opened {
                Ok(()) => watch.headers_arrived(),
                Err(NoSocket::Interrupted(why)) => decoder.fail(stopped(request, why), emit),
                Err(NoSocket::Error(error)) => decoder.fail(error, emit),
                Err(NoSocket::Failed(failure)) => return self.failed(request, failure, &mut **decoder, emit),
            }
            return TurnStep::Go;
        };
        let failure = match watch.for_body(cancel, socket.next()).await {
            Err(why) => {
                decoder.fail(stopped(request, why), emit);
                return TurnStep::Go;
            }
            Ok(Ok(Received::Text(text))) if !self.has_content && !self.resent && is_lost(&text) => {
                // Another form of the same turn: the whole request, on a new socket.
                self.resent = true;
                self.lease = None;
                *decoder = codex::decoder(call, BAD_JSON);
                return TurnStep::Go;
            }
            Ok(Ok(Received::Text(text))) => {
                self.n_events += 1;
                let frame = Frame { event: "", data: &text, raw: text.as_bytes() };
                let n_before = emit.len();
                if decoder.push(frame, emit) == FrameKind::Content {
                    watch.content_arrived();
                    if let Err(too_large) = self.budget.take(request, text.len(), emit, n_before) {
                        decoder.fail(too_large, emit);
                    }
                }
                self.has_content |= emit.iter().any(|event| matches!(event, StreamEvent::BlockStart { .. }));
                return TurnStep::Go;
            }
            Ok(Ok(Received::Closed { code, reason })) => SocketFailure::closed(code, &reason),
            Ok(Err(error)) => error.into(),
        };
        self.failed(request, failure, &mut **decoder, emit)
    }

    /// Handles a failed socket: before the first event there is a fallback, later the call fails.
    fn failed(
        &mut self,
        request: &Request,
        failure: SocketFailure,
        decoder: &mut dyn Decoder,
        emit: &mut Emit,
    ) -> TurnStep {
        self.lease = None;
        if self.n_events == 0 {
            return TurnStep::FallBack(failure);
        }
        self.note(&failure, false);
        decoder.fail(LlmError::new(request.model.provider.clone(), LlmErrorKind::StreamCut, failure.text), emit);
        TurnStep::Go
    }

    /// Records a failure for the conversation and for the answer.
    fn note(&mut self, failure: &SocketFailure, continues: bool) {
        if let Some(key) = &self.key {
            self.shared.sessions.failed(key, &failure.text, continues);
        }
        let phase = if continues { "before_message_stream_start" } else { "after_message_stream_start" };
        let mut details = json!({
            "configuredTransport": self.transport.name,
            "eventsEmitted": !continues,
            "phase": phase,
            "requestBytes": write::to_vec(&self.made.body).map_or(0, |bytes| bytes.len()),
        });
        if continues {
            details["fallbackTransport"] = "sse".into();
        }
        self.diagnostic = Some(json!({
            "type": "provider_transport_failure",
            "timestamp": self.timestamp,
            "error": {"name": failure.name, "message": failure.text},
            "details": details,
        }));
    }

    /// Finds or opens a socket and sends the request.
    async fn open(&mut self, call: &WireCall<'_>, watch: &Watch, cancel: &Cancel) -> Result<(), NoSocket> {
        let (mut lease, reused) = self.acquire(call, watch, cancel).await?;
        let known = match &lease.seat {
            Some(seat) if reused => self.shared.sessions.take_continuation(seat).filter(|_| self.transport.continues),
            _ => None,
        };
        let mut sent = continuation::to_send(&self.made.body, known.as_ref());
        if let Some(key) = &self.key {
            self.shared.sessions.sent(key, &sent, reused);
        }
        sent.body["type"] = "response.create".into();
        let text = write::to_string(&sent.body).map_err(|why| {
            let text = format!("Invalid request: {why}");
            NoSocket::Error(LlmError::new(call.request.model.provider.clone(), LlmErrorKind::InvalidRequest, text))
        })?;
        if let Some(socket) = &mut lease.socket {
            socket.send(&text).await.map_err(|error| NoSocket::Failed(error.into()))?;
        }
        self.lease = Some(lease);
        Ok(())
    }

    /// Returns a socket, and whether it was already open.
    async fn acquire(
        &mut self,
        call: &WireCall<'_>,
        watch: &Watch,
        cancel: &Cancel,
    ) -> Result<(SocketLease, bool), NoSocket> {
        let mut lease = SocketLease { shared: Arc::clone(&self.shared), seat: None, socket: None };
        if let Some(key) = &self.key {
            let place = self.shared.sessions.take(key);
            if !matches!(place, SocketSlot::Busy) {
                lease.seat = Some(key.clone());
            }
            if let SocketSlot::Idle(waking) = place {
                lease.socket = waking.socket().await;
            }
        }
        let reused = lease.socket.is_some();
        if !reused {
            lease.socket = Some(self.connect(call, watch, cancel).await?);
        }
        Ok((lease, reused))
    }

    async fn connect(&mut self, call: &WireCall<'_>, watch: &Watch, cancel: &Cancel) -> Result<WebSocket, NoSocket> {
        let request = call.request;
        let late = || SocketFailure { name: "Error", text: "WebSocket connect timeout".into() };
        let opening = async {
            let made = &self.made;
            let limit = watch.connect();
            let asking = self.shared.client.upgrade(&made.url, made.headers.clone(), &request.host, limit);
            let answer = asking.await.map_err(|error| NoSocket::Failed(SocketError::from(error).into()))?;
            if let Some(observer) = &request.options.observer {
                let seeing = observer.on_response(answer.status(), answer.headers(), &request.model);
                watch.for_other(cancel, seeing).await.map_err(NoSocket::Interrupted)?.map_err(NoSocket::Error)?;
            }
            answer.into_socket(request.host.clone()).await.map_err(|error| NoSocket::Failed(error.into()))
        };
        match watch.socket() {
            Some(limit) => timeout(limit, opening).await.unwrap_or_else(|_| Err(NoSocket::Failed(late()))),
            None => opening.await,
        }
    }
}

fn text_of(headers: &HeaderMap, name: &str) -> String {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("").to_owned()
}

/// Returns whether a message reports that the server lost its state.
fn is_lost(text: &str) -> bool {
    #[derive(Deserialize)]
    struct SocketEvent {
        #[serde(rename = "type")]
        kind: String,
        #[serde(default)]
        code: Option<String>,
        #[serde(default)]
        error: Option<SocketEventBody>,
    }
    #[derive(Deserialize)]
    struct SocketEventBody {
        #[serde(default)]
        code: Option<String>,
    }
    // Most messages can be ruled out without parsing them.
    if !LOST.iter().any(|code| text.contains(code)) {
        return false;
    }
    let Ok(event) = serde_json::from_str::<SocketEvent>(text) else { return false };
    let code = event.code.or_else(|| event.error?.code);
    event.kind == "error" && code.is_some_and(|code| LOST.contains(&code.as_str()))
}
