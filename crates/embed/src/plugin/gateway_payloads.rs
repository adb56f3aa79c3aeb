//! Events and answers of plugin hooks for messages, sessions and the gateway.

use std::path::PathBuf;
use std::sync::Arc;

use pinch_llm::message::Message;
use pinch_ports::Caller;

use super::answers::{CombineAnswers, LastAnswer};
use crate::key::{AgentId, RunId, SessionId, SessionKey};

/// Origin or destination of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MessageContext {
    /// The channel, such as `telegram`.
    pub channel: Option<String>,
    /// The account of the channel.
    pub account: Option<String>,
    /// Group or thread within the channel; in a direct conversation, the person.
    pub conversation: Option<String>,
    /// Routing key of the session.
    pub session_key: Option<SessionKey>,
    /// The run that the reply belongs to; `None` for incoming messages.
    pub run_id: Option<RunId>,
}

impl MessageContext {
    pub(crate) fn new(caller: &Caller, session_key: Option<&str>, run_id: Option<&str>) -> Self {
        Self {
            channel: caller.channel.clone(),
            account: caller.account.clone(),
            conversation: caller.thread.clone().or_else(|| caller.group.clone()).or_else(|| caller.sender.id.clone()),
            session_key: session_key.map(Into::into),
            run_id: run_id.map(Into::into),
        }
    }
}

/// A message has arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MessageReceived {
    /// The channel's id of the sender.
    pub from: Option<String>,
    /// Its text.
    pub content: String,
    /// Number of images.
    pub n_images: usize,
    /// Time of arrival, in milliseconds since the epoch.
    pub timestamp_ms: i64,
    /// Everything known about the sender.
    pub caller: Caller,
}

/// A message is about to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MessageSending {
    /// Target within the channel, if the request names one.
    pub to: Option<String>,
    /// Its text, before it is split to fit the channel.
    pub content: String,
    /// Media in the message: URLs or paths.
    pub media: Vec<String>,
}

/// Changes to a message that is about to be sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageChanges {
    /// Replaces the text.
    pub content: LastAnswer<String>,
    /// Whether to withhold the message.
    pub cancel: LastAnswer<bool>,
}

impl CombineAnswers for MessageChanges {
    fn combine(&mut self, next: Self) {
        self.content.combine(next.content);
        self.cancel.combine(next.cancel);
    }
}

/// A message has been sent, or could not be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MessageSent {
    /// Target within the channel, if the request names one.
    pub to: Option<String>,
    /// Its text.
    pub content: String,
    /// Whether the channel accepted it.
    pub success: bool,
    /// Why it was not sent.
    pub error: Option<String>,
}

/// The session that a hook is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionContext {
    /// The agent.
    pub agent_id: AgentId,
    /// Routing key, if the session has one.
    pub session_key: Option<SessionKey>,
    /// Id of the session.
    pub session_id: SessionId,
}

/// A session has been created.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionStart {
    /// Id of the session of its key that it replaces, if any.
    pub resumed_from: Option<SessionId>,
}

/// A session key has got another session; this one is not continued.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionEnd {
    /// Number of messages in its transcript.
    pub n_messages: usize,
    /// Time from its first message to its last, in milliseconds; `None` if it has none.
    pub duration_ms: Option<u64>,
}

/// Why a session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResetReason {
    /// A message began with `/new` or `/reset`, or the host requested it.
    Asked,
    /// The configured reset rules.
    Rules,
}

/// A session is about to be replaced by a new one. Its transcript stays in place.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BeforeReset {
    /// Transcript, if sessions are files.
    pub session_file: Option<PathBuf>,
    /// The conversation as the model would have read it.
    pub messages: Vec<Arc<Message>>,
    /// Reason for the reset.
    pub reason: ResetReason,
}

/// The gateway starts to accept messages.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GatewayStart {
    /// Port it listens on, if any.
    pub port: Option<u16>,
}

/// The gateway no longer accepts messages.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GatewayStop {
    /// Reason, if known.
    pub reason: Option<String>,
}
