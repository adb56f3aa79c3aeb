//! The one message type of all layers.
//!
//! A conversation is a list of [`Message`]s. They are plain data with public fields; their serialized form in session files and events is
//! in [`json`]. Unknown roles are preserved unchanged ([`Message::Other`]).

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::schema::Schema;

pub mod block;
mod image_type;
pub mod usage;
pub mod json;

pub use block::{Block, Image, RawBlock, Text, Thinking, ToolCall};
pub use image_type::image_type;
pub use usage::{Cost, Usage};

use crate::ids::{ApiId, ModelId, ProviderId, SessionId, ToolCallId};
use crate::thinking::ThinkingLevel;

/// One message of a conversation, of any role.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// Prompt sections and tool declarations.
    System(SystemMessage),
    /// A user message.
    User(UserMessage),
    /// An answer of the model.
    Assistant(Arc<AssistantMessage>),
    /// The result of a tool call.
    ToolResult(ToolResult),
    /// A message of an unknown role; never sent to a model as it is.
    Other(OtherMessage),
}

impl Message {
    /// Returns the role as written in JSON.
    pub fn role(&self) -> &str {
        match self {
            Self::System(_) => "system",
            Self::User(_) => "user",
            Self::Assistant(_) => "assistant",
            Self::ToolResult(_) => "toolResult",
            Self::Other(other) => other.role(),
        }
    }

    /// Returns the Unix time in milliseconds; 0 for a foreign message without one.
    pub fn timestamp(&self) -> i64 {
        match self {
            Self::System(m) => m.timestamp,
            Self::User(m) => m.timestamp,
            Self::Assistant(m) => m.timestamp,
            Self::ToolResult(m) => m.timestamp,
            Self::Other(m) => m.raw.get("timestamp").and_then(Value::as_i64).unwrap_or(0),
        }
    }

    /// Returns the text of a user message, an answer or a tool result, with `separator` between its blocks. Other messages have none.
    pub fn text(&self, separator: &str) -> String {
        match self {
            Self::User(user) => user.content.text(separator),
            Self::Assistant(answer) => answer.text(separator),
            Self::ToolResult(result) => block::join_text(&result.content, separator),
            Self::System(_) | Self::Other(_) => String::new(),
        }
    }

    /// Creates a user message of one text block.
    pub fn user(text: impl Into<String>, timestamp: i64) -> Self {
        Self::User(UserMessage::new(Content::Blocks(vec![Block::text(text)]), timestamp))
    }

    /// Returns the assistant message, if it is one.
    pub fn as_assistant(&self) -> Option<&Arc<AssistantMessage>> {
        match self {
            Self::Assistant(message) => Some(message),
            _ => None,
        }
    }
}

impl From<Arc<AssistantMessage>> for Message {
    fn from(message: Arc<AssistantMessage>) -> Self {
        Self::Assistant(message)
    }
}

impl From<ToolResult> for Message {
    fn from(result: ToolResult) -> Self {
        Self::ToolResult(result)
    }
}

impl From<UserMessage> for Message {
    fn from(message: UserMessage) -> Self {
        Self::User(message)
    }
}

/// Content as stored in files: a bare string or a list of blocks. Both mean the same.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// One text.
    Text(String),
    /// Text and image blocks.
    Blocks(Vec<Block>),
}

impl Default for Content {
    fn default() -> Self {
        Self::Blocks(Vec::new())
    }
}

impl Content {
    /// Returns all text of the content, joined with `separator`.
    pub fn text(&self, separator: &str) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Blocks(blocks) => block::join_text(blocks, separator),
        }
    }

    /// Returns the images of the content.
    pub fn images(&self) -> impl Iterator<Item = &Image> {
        let blocks = match self {
            Self::Text(_) => &[][..],
            Self::Blocks(blocks) => blocks,
        };
        blocks.iter().filter_map(|block| match block {
            Block::Image(image) => Some(image),
            _ => None,
        })
    }

    /// Returns whether the content has an image.
    pub fn has_image(&self) -> bool {
        self.images().next().is_some()
    }
}

/// Prompt and tool declarations as a message: the first one is the prompt, later ones change it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SystemMessage {
    /// Free text of the prompt, before all sections.
    pub content: Content,
    /// Named sections in order. `None` removes a section that an earlier message set. The texts are shared, since a prompt is long and is
    /// kept by everything that knows the conversation.
    pub sections: Vec<(Arc<str>, Option<Arc<str>>)>,
    /// Tools the model may call from here on.
    pub tools_added: Vec<ToolDecl>,
    /// Names of tools that are unavailable from here on; applied before `tools_added`.
    pub tools_removed: Vec<String>,
    /// Unix time in milliseconds.
    pub timestamp: i64,
}

/// The declaration of a tool to a model.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ToolDecl {
    /// The name the model uses.
    pub name: String,
    /// What the tool does, for the model.
    pub description: String,
    /// JSON Schema of the arguments. Whether it is lenient does not make declarations differ.
    pub parameters: Schema,
    /// Constrained sampling settings, as written (see `wire`): strict JSON Schema or a grammar.
    pub constrained_sampling: Option<Value>,
}

impl ToolDecl {
    /// Creates a tool with the JSON Schema of its arguments.
    pub fn new(name: impl Into<String>, description: impl Into<String>, parameters: impl Into<Schema>) -> Self {
        let (name, description) = (name.into(), description.into());
        Self { name, description, parameters: parameters.into(), constrained_sampling: None }
    }
}

#[cfg(feature = "schemars")]
impl ToolDecl {
    /// Creates a tool whose arguments deserialize to a `T`.
    pub fn of<T: schemars::JsonSchema>(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self::new(name, description, crate::schema::derived::schema_of::<T>())
    }
}

impl PartialEq for ToolDecl {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
            && self.description == other.description
            && self.parameters.raw() == other.parameters.raw()
            && self.constrained_sampling == other.constrained_sampling
    }
}

/// A user message.
#[derive(Clone, Debug, PartialEq)]
pub struct UserMessage {
    /// Text and images.
    pub content: Content,
    /// Unix time in milliseconds.
    pub timestamp: i64,
    /// Its origin, if it is not from the user of the conversation.
    pub provenance: Option<Arc<Provenance>>,
}

impl UserMessage {
    /// Creates a message from the user of the conversation.
    pub fn new(content: Content, timestamp: i64) -> Self {
        Self { content, timestamp, provenance: None }
    }
}

/// Origin of a message sent in the user's name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Provenance {
    /// `external_user`, `inter_session` or `internal_system`.
    pub kind: String,
    /// The session it originated in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin_session_id: Option<SessionId>,
    /// The session that sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_session_key: Option<String>,
    /// The channel it came through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_channel: Option<String>,
    /// The tool that sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_tool: Option<String>,
}

impl Provenance {
    /// Returns whether another session sent the message.
    pub fn is_inter_session(&self) -> bool {
        self.kind == "inter_session"
    }
}

/// Why a model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StopReason {
    /// It finished.
    Stop,
    /// It reached its output limit.
    Length,
    /// It called tools.
    ToolUse,
    /// The request failed; `error_message` says why.
    Error,
    /// The caller cancelled; `error_message` says so.
    Aborted,
    /// Not known yet: only in messages that are still being streamed.
    Pending,
    /// The provider will answer later. Read from files of newer pi versions, never written.
    Deferred,
}

impl StopReason {
    /// Returns the word used in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolUse => "toolUse",
            Self::Error => "error",
            Self::Aborted => "aborted",
            Self::Pending => "pending",
            Self::Deferred => "deferred",
        }
    }

    /// Returns whether the message is a failure: an error or an abort.
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Error | Self::Aborted)
    }
}

/// A model's answer.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct AssistantMessage {
    /// Text, thinking and tool calls in the order the model made them.
    pub content: Vec<Arc<Block>>,
    /// Wire format of the answer.
    pub api: ApiId,
    /// Provider that was called.
    pub provider: ProviderId,
    /// Requested model.
    pub model: ModelId,
    /// Tokens and cost.
    pub usage: Usage,
    /// Why the model stopped.
    pub stop_reason: StopReason,
    /// The error's text; always set for `Error` and `Aborted`.
    pub error_message: Option<String>,
    /// Start of the request, as Unix time in milliseconds.
    pub timestamp: i64,
    /// The provider's id of this answer.
    pub response_id: Option<String>,
    /// Model that answered, if the provider reports it.
    pub response_model: Option<String>,
    /// The provider's own stop reason.
    pub raw_stop_reason: Option<String>,
    /// Requested thinking level.
    pub thinking_level: Option<ThinkingLevel>,
    /// Exact native effort of this reply.
    pub provider_thinking_level: Option<String>,
    /// Monotonic time from `timestamp` to the end of the reply, in milliseconds.
    pub duration_ms: Option<i64>,
    /// Notes of the adapter about the exchange, as written.
    pub diagnostics: Option<Value>,
}

impl AssistantMessage {
    /// Creates an empty answer whose end is not known yet.
    pub fn pending(api: ApiId, provider: ProviderId, model: ModelId, timestamp: i64) -> Self {
        Self {
            content: Vec::new(),
            api,
            provider,
            model,
            usage: Usage::default(),
            stop_reason: StopReason::Pending,
            error_message: None,
            timestamp,
            response_id: None,
            response_model: None,
            raw_stop_reason: None,
            thinking_level: None,
            provider_thinking_level: None,
            duration_ms: None,
            diagnostics: None,
        }
    }

    /// Returns the tool calls in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content.iter().filter_map(|block| match &**block {
            Block::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// Returns the text blocks, joined with `separator`.
    pub fn text(&self, separator: &str) -> String {
        let texts: Vec<&str> = self.content.iter().filter_map(|block| block.as_text()).collect();
        texts.join(separator)
    }
}

/// The result of a tool call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResult {
    /// The call.
    pub tool_call_id: ToolCallId,
    /// The tool's name.
    pub tool_name: String,
    /// Text and images for the model.
    pub content: Vec<Block>,
    /// Data for programs; never sent to a model.
    pub details: Option<Value>,
    /// Whether the call failed.
    pub is_error: bool,
    /// Unix time in milliseconds.
    pub timestamp: i64,
    /// Usage of models inside the tool: it adds to the cost, but not to the context.
    pub usage: Option<Usage>,
    /// How long the tool ran, in milliseconds.
    pub duration_ms: Option<i64>,
    /// Calls made by the tool itself, as written.
    pub nested_calls: Option<Value>,
}

impl ToolResult {
    /// Creates a result of one text block, without details.
    pub fn text(call: &ToolCall, text: impl Into<String>, is_error: bool, timestamp: i64) -> Self {
        Self {
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            content: vec![Block::text(text)],
            details: None,
            is_error,
            timestamp,
            usage: None,
            duration_ms: None,
            nested_calls: None,
        }
    }
}

/// A message of an unknown role: the unchanged JSON object.
#[derive(Clone, Debug, PartialEq)]
pub struct OtherMessage {
    /// The whole object, including `role`.
    pub raw: Map<String, Value>,
}

impl OtherMessage {
    /// Returns the role; empty if the object has none.
    pub fn role(&self) -> &str {
        self.raw.get("role").and_then(Value::as_str).unwrap_or("")
    }
}
