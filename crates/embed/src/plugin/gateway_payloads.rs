//! What plugins are told of messages, sessions and the gateway, and what they answer.

use std::path::PathBuf;
use std::sync::Arc;

use pinch_llm::message::Message;
use pinch_ports::Caller;

use super::answers::{CombineAnswers, LastAnswer};

/// The place that a message comes from or goes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MessageContext {
    /// The channel, such as `telegram`.
    pub channel: Option<String>,
    /// The account of the channel.
    pub account: Option<String>,
    /// The group or thread within the channel; in a direct conversation, the person.
    pub conversation: Option<String>,
    /// The routing key of the session.
    pub session_key: Option<String>,
    /// The run whose reply it is; `None` for messages that arrive.
    pub run_id: Option<String>,
}

impl MessageContext {
    pub(crate) fn new(caller: &Caller, session_key: Option<&str>, run_id: Option<&str>) -> Self {
        Self {
            channel: caller.channel.clone(),
            account: caller.account.clone(),
            conversation: caller.thread.clone().or_else(|| caller.group.clone()).or_else(|| caller.sender.id.clone()),
            session_key: session_key.map(str::to_owned),
            run_id: run_id.map(str::to_owned),
        }
    }
}

/// A message has arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MessageReceived {
    /// The channel's id of its sender.
    pub from: Option<String>,
    /// Its text.
    pub content: String,
    /// How many images it has.
    pub n_images: usize,
    /// When it arrived, in milliseconds since 1970.
    pub timestamp_ms: i64,
    /// Everything that is known about its sender.
    pub caller: Caller,
}

/// A message is about to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MessageSending {
    /// Where it goes within the channel, if the request says so.
    pub to: Option<String>,
    /// Its text, before it is split to fit the channel.
    pub content: String,
    /// Media that go with it: URLs or paths.
    pub media: Vec<String>,
}

/// What becomes of a message that is about to be sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageChanges {
    /// Replaces the text.
    pub content: LastAnswer<String>,
    /// Whether it is not sent at all.
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
    /// Where it went within the channel, if the request says so.
    pub to: Option<String>,
    /// Its text.
    pub content: String,
    /// Whether the channel took it.
    pub success: bool,
    /// Why it did not.
    pub error: Option<String>,
}

/// The session that a hook is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionContext {
    /// The agent.
    pub agent_id: String,
    /// The routing key.
    pub session_key: String,
    /// The session.
    pub session_id: String,
}

/// A session key got a new session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionStart {
    /// The session that it takes the place of.
    pub resumed_from: Option<String>,
}

/// A session key got another session: this one is not continued.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionEnd {
    /// How many messages its transcript has.
    pub n_messages: usize,
    /// From its first message to its last one, in milliseconds; `None` if it has none.
    pub duration_ms: Option<u64>,
}

/// Why a session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResetReason {
    /// A message began with `/new` or `/reset`, or the host asked for it.
    Asked,
    /// The reset rules of the configuration.
    Rules,
}

/// A session is about to be left for a new one. Its transcript stays where it is.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BeforeReset {
    /// The transcript, where sessions are files.
    pub session_file: Option<PathBuf>,
    /// The conversation as the model would have read it.
    pub messages: Vec<Arc<Message>>,
    /// Why.
    pub reason: ResetReason,
}

/// The gateway takes messages from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GatewayStart {
    /// The port that it listens on, if it does.
    pub port: Option<u16>,
}

/// The gateway takes no messages any more.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GatewayStop {
    /// Why, if that is known.
    pub reason: Option<String>,
}
