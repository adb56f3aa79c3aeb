//! Conversations and their sockets: which are open, which are busy, which had better not be tried again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pinch_http::websocket::WebSocket;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::continuation::{Continuation, SentRequest};

/// Why a socket is closed that did its work.
const NORMAL: u16 = 1000;
/// How long a socket without a call stays open.
const IDLE_TIME: Duration = Duration::from_secs(300);
/// No call begins on a socket that is older: the server closes them after an hour.
const MAX_AGE: Duration = Duration::from_secs(45 * 60);
/// How long a conversation whose socket failed does without.
const FALLBACK_TIME: Duration = Duration::from_secs(600);
/// Conversations that are remembered.
const MAX_SESSIONS: usize = 1_000;

/// A conversation of an account with a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SessionKey {
    pub(super) session: String,
    pub(super) account: String,
    pub(super) url: String,
}

/// What happened to the sockets of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SocketStats {
    /// Requests over a socket.
    pub requests: u64,
    /// Sockets that were opened.
    pub connections_created: u64,
    /// Requests over a socket that was open already.
    pub connections_reused: u64,
    /// Requests whose context the server keeps for the next one.
    pub cached_context_requests: u64,
    /// Requests that asked the server to store the answer.
    pub store_true_requests: u64,
    /// Requests that were sent whole.
    pub full_context_requests: u64,
    /// Requests of which only the new part was sent.
    pub delta_requests: u64,
    /// Items of the last request, sent or not.
    pub last_input_items: usize,
    /// Items of the last request that was sent in part.
    pub last_delta_input_items: Option<usize>,
    /// The response that request followed.
    pub last_previous_response_id: Option<String>,
    /// Sockets that failed.
    pub websocket_failures: u64,
    /// Calls that went on over server-sent events.
    pub sse_fallbacks: u64,
    /// Whether the conversation does without sockets for now.
    pub websocket_fallback_active: bool,
    /// What the last failure was.
    pub last_web_socket_error: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct Sessions {
    by_key: Mutex<HashMap<SessionKey, SocketSession>>,
    /// What keeps idle sockets alive and closes others; aborted with this value.
    tasks: Mutex<JoinSet<()>>,
}

#[derive(Debug)]
struct SocketSession {
    seat: Seat,
    continuation: Option<Continuation>,
    fallback_until: Option<Instant>,
    stats: SocketStats,
    used: Instant,
}

/// The place of a conversation's one socket.
#[derive(Debug)]
enum Seat {
    Empty,
    Busy,
    Idle(IdleSocket),
}

/// A socket without a call. A task reads from it, so that pings are answered and its end is seen.
#[derive(Debug)]
struct IdleSocket {
    command: oneshot::Sender<IdleCommand>,
    socket: oneshot::Receiver<WebSocket>,
    opened: Instant,
}

#[derive(Debug)]
enum IdleCommand {
    /// Hand the socket over.
    Use,
    Close(&'static str),
}

/// What a call gets.
pub(super) enum SocketSlot {
    /// The conversation's socket, if it is still there.
    Idle(Waking),
    /// The conversation has none: the one that is opened will be its.
    Empty,
    /// Another call uses the conversation's socket.
    Busy,
}

/// An idle socket on its way to a call.
pub(super) struct Waking(oneshot::Receiver<WebSocket>);

impl Waking {
    /// The socket; `None` when it was closed meanwhile.
    pub(super) async fn socket(self) -> Option<WebSocket> {
        self.0.await.ok()
    }
}

impl SocketSession {
    fn new() -> Self {
        let stats = SocketStats::default();
        Self { seat: Seat::Empty, continuation: None, fallback_until: None, stats, used: Instant::now() }
    }

    fn falls_back(&self) -> bool {
        self.fallback_until.is_some_and(|until| Instant::now() < until)
    }
}

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionKey, SocketSession>> {
        self.by_key.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, key: &SessionKey, work: impl FnOnce(&mut SocketSession) -> T) -> T {
        let mut sessions = self.lock();
        if !sessions.contains_key(key) {
            make_room(&mut sessions);
        }
        let session = sessions.entry(key.clone()).or_insert_with(SocketSession::new);
        session.used = Instant::now();
        work(session)
    }

    /// Whether a conversation does without sockets for now.
    pub(super) fn falls_back(&self, key: &SessionKey) -> bool {
        self.lock().get(key).is_some_and(SocketSession::falls_back)
    }

    /// Takes the conversation's seat, where it is free.
    pub(super) fn take(&self, key: &SessionKey) -> SocketSlot {
        self.with(key, |session| match std::mem::replace(&mut session.seat, Seat::Busy) {
            Seat::Busy => SocketSlot::Busy,
            Seat::Empty => SocketSlot::Empty,
            Seat::Idle(idle) => {
                let is_old = idle.opened.elapsed() >= MAX_AGE;
                let command = if is_old { IdleCommand::Close("max_age") } else { IdleCommand::Use };
                let is_there = idle.command.send(command).is_ok();
                if is_there && !is_old { SocketSlot::Idle(Waking(idle.socket)) } else { SocketSlot::Empty }
            }
        })
    }

    /// What the server of the conversation's socket holds. It is recorded anew, whatever the outcome of the call.
    pub(super) fn take_continuation(&self, key: &SessionKey) -> Option<Continuation> {
        self.with(key, |session| session.continuation.take())
    }

    /// Gives the seat back without a socket.
    pub(super) fn leave(&self, key: &SessionKey) {
        if let Some(session) = self.lock().get_mut(key) {
            session.seat = Seat::Empty;
            session.continuation = None;
        }
    }

    /// Gives the seat back with its socket, which waits for the next call.
    pub(super) fn keep(&self, key: &SessionKey, socket: WebSocket, continuation: Option<Continuation>) {
        let mut sessions = self.lock();
        let Some(session) = sessions.get_mut(key) else {
            // The conversation was closed during the call.
            return self.close_later(socket);
        };
        if continuation.is_some() {
            session.stats.cached_context_requests += 1;
        }
        session.continuation = continuation;
        let (command, commanded) = oneshot::channel();
        let (give, given) = oneshot::channel();
        session.seat = Seat::Idle(IdleSocket { command, socket: given, opened: socket.opened() });
        self.spawn(wait_idle(socket, commanded, give));
    }

    /// Closes a socket that no one will use.
    pub(super) fn close_later(&self, socket: WebSocket) {
        self.spawn(socket.close(NORMAL, "done"));
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    /// Counts a request.
    pub(super) fn sent(&self, key: &SessionKey, sent: &SentRequest, reused: bool) {
        self.with(key, |session| {
            let stats = &mut session.stats;
            stats.requests += 1;
            if reused {
                stats.connections_reused += 1;
            } else {
                stats.connections_created += 1;
            }
            if sent.body["store"] == true {
                stats.store_true_requests += 1;
            }
            stats.last_input_items = sent.n_items;
            match &sent.delta {
                None => stats.full_context_requests += 1,
                Some((n_items, response_id)) => {
                    stats.delta_requests += 1;
                    stats.last_delta_input_items = Some(*n_items);
                    stats.last_previous_response_id = Some(response_id.clone());
                }
            }
        });
    }

    /// Records that a socket failed, and whether the call continues without one.
    pub(super) fn failed(&self, key: &SessionKey, error: &str, goes_on: bool) {
        self.with(key, |session| {
            session.stats.websocket_failures += 1;
            session.stats.sse_fallbacks += u64::from(goes_on);
            session.stats.last_web_socket_error = Some(error.to_owned());
            session.fallback_until = Instant::now().checked_add(FALLBACK_TIME);
        });
    }

    /// What happened in a conversation; of the last one used, when accounts share its name.
    pub(super) fn stats(&self, session_id: &str) -> Option<SocketStats> {
        let sessions = self.lock();
        let named = sessions.iter().filter(|(key, _)| key.session == session_id);
        let (_, session) = named.max_by_key(|(_, session)| session.used)?;
        let active = session.falls_back();
        Some(SocketStats { websocket_fallback_active: active, ..session.stats.clone() })
    }

    /// Forgets a conversation and closes its socket, unless a call uses it: that one is closed after the call.
    pub(super) fn close(&self, session_id: &str) {
        self.lock().retain(|key, session| {
            if key.session != session_id {
                return true;
            }
            if let Seat::Idle(idle) = std::mem::replace(&mut session.seat, Seat::Empty) {
                // The task may be gone already.
                let _result = idle.command.send(IdleCommand::Close("debug_close"));
            }
            false
        });
    }
}

/// Forgets the conversation that was used least recently.
fn make_room(sessions: &mut HashMap<SessionKey, SocketSession>) {
    if sessions.len() < MAX_SESSIONS {
        return;
    }
    let free = sessions.iter().filter(|(_, session)| !matches!(session.seat, Seat::Busy));
    let oldest = free.min_by_key(|(_, session)| session.used).map(|(key, _)| key.clone());
    if let Some(oldest) = oldest {
        sessions.remove(&oldest);
    }
}

/// Keeps a socket alive until it is wanted, or was idle for too long.
async fn wait_idle(mut socket: WebSocket, commanded: oneshot::Receiver<IdleCommand>, give: oneshot::Sender<WebSocket>) {
    let command = tokio::select! {
        biased;
        command = commanded => command.unwrap_or(IdleCommand::Close("done")),
        // Nothing may come now: a text would belong to no call.
        _ = socket.next() => return,
        () = sleep(IDLE_TIME) => IdleCommand::Close("idle_timeout"),
    };
    match command {
        // Whoever wanted it may be gone: then it is dropped, that is closed.
        IdleCommand::Use => drop(give.send(socket)),
        IdleCommand::Close(reason) => socket.close(NORMAL, reason).await,
    }
}
