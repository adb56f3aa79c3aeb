//! Conversations and their sockets: which are open, busy, or avoided after a failure.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pinch_http::websocket::WebSocket;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::continuation::{Continuation, SentRequest};
use crate::ids::SessionId;

/// Close code of a socket that is no longer needed.
const NORMAL: u16 = 1000;
/// How long an idle socket stays open.
const IDLE_TIME: Duration = Duration::from_secs(300);
/// Maximum age of a socket at the start of a call: the server closes sockets after an hour.
const MAX_AGE: Duration = Duration::from_secs(45 * 60);
/// How long a conversation avoids sockets after a failure.
const FALLBACK_TIME: Duration = Duration::from_secs(600);
/// Maximum number of remembered conversations.
const MAX_SESSIONS: usize = 1_000;

/// A conversation of an account with a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SocketKey {
    pub(super) session: SessionId,
    pub(super) account: String,
    pub(super) url: String,
}

/// Statistics about the sockets of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SocketStats {
    /// Requests over a socket.
    pub requests: u64,
    /// Sockets opened.
    pub connections_created: u64,
    /// Requests over a socket that was already open.
    pub connections_reused: u64,
    /// Requests whose context the server keeps for the next one.
    pub cached_context_requests: u64,
    /// Requests that asked the server to store the answer.
    pub store_true_requests: u64,
    /// Requests that were sent whole.
    pub full_context_requests: u64,
    /// Requests of which only new items were sent.
    pub delta_requests: u64,
    /// Number of items in the last request, sent or not.
    pub last_input_items: usize,
    /// Number of items sent in the last partial request.
    pub last_delta_input_items: Option<usize>,
    /// The response that the last partial request followed.
    pub last_previous_response_id: Option<String>,
    /// Sockets that failed.
    pub websocket_failures: u64,
    /// Calls that continued over server-sent events.
    pub sse_fallbacks: u64,
    /// Whether the conversation currently avoids sockets.
    pub websocket_fallback_active: bool,
    /// The last failure.
    pub last_web_socket_error: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct Sessions {
    by_key: Mutex<HashMap<SocketKey, SocketSession>>,
    /// Tasks that keep idle sockets alive and close others; aborted when this value is dropped.
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

/// The slot for a conversation's only socket.
#[derive(Debug)]
enum Seat {
    Empty,
    Busy,
    Idle(IdleSocket),
}

/// An idle socket. A task reads from it, so that pings are answered and its end is noticed.
#[derive(Debug)]
struct IdleSocket {
    command: oneshot::Sender<IdleCommand>,
    socket: oneshot::Receiver<WebSocket>,
    opened: Instant,
}

#[derive(Debug)]
enum IdleCommand {
    /// Hand over the socket.
    Use,
    Close(&'static str),
}

/// Result of taking a slot.
pub(super) enum SocketSlot {
    /// The conversation's socket, if it is still open.
    Idle(Waking),
    /// The conversation has no socket; the caller opens one.
    Empty,
    /// Another call is using the conversation's socket.
    Busy,
}

/// An idle socket being handed over to a call.
pub(super) struct Waking(oneshot::Receiver<WebSocket>);

impl Waking {
    /// Returns the socket, or `None` if it was closed meanwhile.
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
    fn lock(&self) -> MutexGuard<'_, HashMap<SocketKey, SocketSession>> {
        self.by_key.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, key: &SocketKey, work: impl FnOnce(&mut SocketSession) -> T) -> T {
        let mut sessions = self.lock();
        if !sessions.contains_key(key) {
            make_room(&mut sessions);
        }
        let session = sessions.entry(key.clone()).or_insert_with(SocketSession::new);
        session.used = Instant::now();
        work(session)
    }

    /// Returns whether a conversation currently avoids sockets.
    pub(super) fn falls_back(&self, key: &SocketKey) -> bool {
        self.lock().get(key).is_some_and(SocketSession::falls_back)
    }

    /// Takes the conversation's slot, if it is free.
    pub(super) fn take(&self, key: &SocketKey) -> SocketSlot {
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

    /// Takes the server's state for the conversation's socket. It is recorded again after every successful call.
    pub(super) fn take_continuation(&self, key: &SocketKey) -> Option<Continuation> {
        self.with(key, |session| session.continuation.take())
    }

    /// Frees the slot without a socket.
    pub(super) fn leave(&self, key: &SocketKey) {
        if let Some(session) = self.lock().get_mut(key) {
            session.seat = Seat::Empty;
            session.continuation = None;
        }
    }

    /// Frees the slot and keeps its socket for the next call.
    pub(super) fn keep(&self, key: &SocketKey, socket: WebSocket, continuation: Option<Continuation>) {
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

    /// Closes an unused socket in the background.
    pub(super) fn close_later(&self, socket: WebSocket) {
        self.spawn(socket.close(NORMAL, "done"));
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    /// Counts a request.
    pub(super) fn sent(&self, key: &SocketKey, sent: &SentRequest, reused: bool) {
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
    pub(super) fn failed(&self, key: &SocketKey, error: &str, continues: bool) {
        self.with(key, |session| {
            session.stats.websocket_failures += 1;
            session.stats.sse_fallbacks += u64::from(continues);
            session.stats.last_web_socket_error = Some(error.to_owned());
            session.fallback_until = Instant::now().checked_add(FALLBACK_TIME);
        });
    }

    /// Returns the statistics of a conversation; if several accounts share its id, of the last one used.
    pub(super) fn stats(&self, session_id: &str) -> Option<SocketStats> {
        let sessions = self.lock();
        let named = sessions.iter().filter(|(key, _)| key.session == session_id);
        let (_, session) = named.max_by_key(|(_, session)| session.used)?;
        let active = session.falls_back();
        Some(SocketStats { websocket_fallback_active: active, ..session.stats.clone() })
    }

    /// Forgets a conversation and closes its socket; a socket in use is closed after the call.
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

/// Forgets the least recently used conversation.
fn make_room(sessions: &mut HashMap<SocketKey, SocketSession>) {
    if sessions.len() < MAX_SESSIONS {
        return;
    }
    let free = sessions.iter().filter(|(_, session)| !matches!(session.seat, Seat::Busy));
    let oldest = free.min_by_key(|(_, session)| session.used).map(|(key, _)| key.clone());
    if let Some(oldest) = oldest {
        sessions.remove(&oldest);
    }
}

/// Keeps a socket alive until it is needed, or has been idle for too long.
async fn wait_idle(mut socket: WebSocket, commanded: oneshot::Receiver<IdleCommand>, give: oneshot::Sender<WebSocket>) {
    let command = tokio::select! {
        biased;
        command = commanded => command.unwrap_or(IdleCommand::Close("done")),
        // Nothing may arrive now: a message would belong to no call.
        _ = socket.next() => return,
        () = sleep(IDLE_TIME) => IdleCommand::Close("idle_timeout"),
    };
    match command {
        // If the receiver is gone, the socket is dropped, and thereby closed.
        IdleCommand::Use => drop(give.send(socket)),
        IdleCommand::Close(reason) => socket.close(NORMAL, reason).await,
    }
}
