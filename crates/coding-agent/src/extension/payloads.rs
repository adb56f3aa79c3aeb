//! Payloads of the points, and answers of extensions.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use pinch_agent_core::event::AgentEvent;
use pinch_agent_core::queue::QueueKind;
use pinch_llm::message::{Image, Message};
use pinch_llm::model::Model;
use pinch_llm::thinking::ThinkingLevel;
use serde_json::Value;

use super::points::Point;
use super::ui::Dialog;
use crate::compaction::hooks::MovedLeaf;
use crate::compaction::{CompactError, Compacted, CompactionReason};
use crate::entry::{CustomMessage, Entry, EntryId};
use crate::event::SessionEvent;
use crate::machine::Machine;
use crate::prompt::PromptSections;
use crate::tools::bash::UserCommand;

/// Why a session starts or ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionReason {
    /// The program started.
    #[default]
    Startup,
    /// Extensions and settings were reloaded.
    Reload,
    /// A new session replaces the old one.
    New,
    /// An older session is resumed.
    Resume,
    /// A branch is forked into a new session.
    Fork,
    /// The program exits.
    Quit,
}

impl SessionReason {
    /// Returns the name used in the protocol.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Startup => "startup",
            Self::Reload => "reload",
            Self::New => "new",
            Self::Resume => "resume",
            Self::Fork => "fork",
            Self::Quit => "quit",
        }
    }
}

/// How a model was selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelSource {
    /// Explicitly.
    Set,
    /// By cycling through a list.
    Cycle,
    /// Restored from a branch or session.
    Restore,
}

impl ModelSource {
    /// Returns the name used in the protocol.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Set => "set",
            Self::Cycle => "cycle",
            Self::Restore => "restore",
        }
    }
}

/// A notification, which has no answer.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Notification<'a> {
    /// An event that extensions receive before other listeners: those of runs, messages and calls, the end of a run, idle, and a new
    /// session name.
    Event(&'a SessionEvent),
    /// A turn started.
    TurnStart {
        /// Index of the turn in its run, starting at 0.
        turn_index: u64,
        /// Unix time in milliseconds.
        timestamp: i64,
    },
    /// A session started.
    SessionStart {
        /// The reason.
        reason: SessionReason,
        /// File of the session it replaces.
        previous: Option<&'a PathBuf>,
    },
    /// A session ended.
    SessionShutdown {
        /// The reason.
        reason: SessionReason,
        /// File of the session that replaces it, if known.
        target: Option<&'a PathBuf>,
    },
    /// The conversation was compacted.
    Compacted {
        /// What was done.
        done: &'a Compacted,
        /// The entry of the summary.
        entry: &'a Arc<Entry>,
        /// Whether a failed prompt is retried now.
        will_retry: bool,
    },
    /// A compaction failed or was cancelled.
    CompactFailed {
        /// What triggered it.
        reason: CompactionReason,
        /// The error.
        error: &'a CompactError,
        /// The error message for people, which says what failed.
        message: &'a str,
        /// Whether an extension made the summary.
        from_extension: bool,
    },
    /// The leaf moved.
    Moved(&'a MovedLeaf),
    /// A provider responded.
    Response {
        /// HTTP status.
        status: u16,
        /// Headers; repeated ones are adjacent.
        headers: &'a [(String, String)],
    },
    /// The model changed.
    Model {
        /// The new model.
        model: &'a Arc<Model>,
        /// The previous model.
        previous: &'a Arc<Model>,
        /// How it was selected.
        source: ModelSource,
    },
    /// The thinking level changed.
    Thinking {
        /// The new level.
        level: ThinkingLevel,
        /// The previous level.
        previous: ThinkingLevel,
    },
    /// A dialog was opened.
    DialogStart(&'a Dialog),
    /// A dialog was answered or closed.
    DialogEnd(&'a Dialog),
}

impl Notification<'_> {
    /// Returns the point of the notification, or `None` for events without one.
    pub fn point(&self) -> Option<Point> {
        Some(match self {
            Self::TurnStart { .. } => Point::TurnStart,
            Self::SessionStart { .. } => Point::SessionStart,
            Self::SessionShutdown { .. } => Point::SessionShutdown,
            Self::Compacted { .. } => Point::SessionCompact,
            Self::CompactFailed { .. } => Point::SessionCompactFailed,
            Self::Moved(_) => Point::SessionTree,
            Self::Response { .. } => Point::AfterProviderResponse,
            Self::Model { .. } => Point::ModelSelect,
            Self::Thinking { .. } => Point::ThinkingLevelSelect,
            Self::DialogStart(_) => Point::UiPromptStart,
            Self::DialogEnd(_) => Point::UiPromptEnd,
            Self::Event(SessionEvent::RunEnd { .. }) => Point::AgentEnd,
            Self::Event(SessionEvent::Settled { .. }) => Point::AgentSettled,
            Self::Event(SessionEvent::InfoChanged { .. }) => Point::SessionInfoChanged,
            Self::Event(SessionEvent::Agent(event)) => match event {
                AgentEvent::AgentStart => Point::AgentStart,
                AgentEvent::MessageStart(_) => Point::MessageStart,
                AgentEvent::MessageUpdate(_) => Point::MessageUpdate,
                AgentEvent::ToolStart(_) => Point::ToolExecutionStart,
                AgentEvent::ToolUpdate { .. } => Point::ToolExecutionUpdate,
                AgentEvent::ToolEnd { .. } => Point::ToolExecutionEnd,
                // The others have separate points with an answer or more data.
                _ => return None,
            },
            Self::Event(_) => return None,
        })
    }
}

/// A request for additional resources.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ResourcesDiscover {
    /// The reason: [`SessionReason::Reload`] or [`SessionReason::Startup`].
    pub reason: SessionReason,
}

/// Paths of additional resources, absolute or relative to the working directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourcePaths {
    /// Skills, or directories with skills.
    pub skills: Vec<PathBuf>,
    /// Prompt templates, or directories with templates.
    pub prompts: Vec<PathBuf>,
    /// Themes, or directories with themes.
    pub themes: Vec<PathBuf>,
}

/// The session is about to be replaced.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BeforeSwitch {
    /// Whether the new session is empty or resumed.
    pub reason: SessionReason,
    /// File of a resumed session.
    pub target: Option<PathBuf>,
}

/// The session is about to be forked.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BeforeFork {
    /// The entry to fork at.
    pub entry: EntryId,
    /// Whether the entry is excluded.
    pub before: bool,
}

/// Whether to leave a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SwitchDecision {
    /// Leave it.
    #[default]
    Proceed,
    /// Stay.
    Cancel,
}

/// What to do with the messages of a request.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum ContextAction {
    /// Send them unchanged.
    #[default]
    Keep,
    /// Send these instead; the conversation is unchanged.
    Replace(Vec<Arc<Message>>),
}

/// A prompt about to be processed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BeforeAgentStart {
    /// Text of the prompt.
    pub prompt: String,
    /// Attached images.
    pub images: Vec<Image>,
    /// The current system prompt.
    pub system: PromptSections,
    /// Type of the extension message that replaces a user's prompt.
    pub message_type: Option<String>,
}

/// Changes to the processing of a prompt.
#[derive(Clone, Debug, Default)]
pub struct AgentStartAction {
    /// Messages to add after the prompt.
    pub messages: Vec<CustomMessage>,
    /// Another system prompt, for this prompt only.
    pub system: Option<PromptSections>,
    /// Sections to add to the system prompt, by name, for this prompt only. Those of the same name are replaced.
    pub sections: BTreeMap<String, String>,
}

/// What to do with a complete message.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum MessageAction {
    /// Keep it.
    #[default]
    Keep,
    /// Replace it in the conversation and the log. The role must be the same.
    Replace(Arc<Message>),
}

/// What to do with a request's body.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum PayloadAction {
    /// Send it unchanged.
    #[default]
    Keep,
    /// Send this instead.
    Replace(Value),
}

/// A shell command that the user is about to run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UserBash {
    /// The command.
    pub command: String,
    /// Whether to hide it from the model.
    pub exclude: bool,
}

/// What to do with the user's command.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum UserBashAction {
    /// Run it.
    #[default]
    Run,
    /// Run it on this machine.
    RunOn(Arc<dyn Machine>),
    /// Do not run it; this is its result.
    Instead(UserCommand),
    /// Do not run it.
    Block {
        /// The reason.
        reason: String,
    },
}

/// The origin of a prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum InputSource {
    /// The terminal, or the command line.
    #[default]
    Interactive,
    /// An RPC client.
    Rpc,
    /// An extension.
    Extension,
}

impl InputSource {
    /// Returns the name used in the protocol.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Interactive => "interactive",
            Self::Rpc => "rpc",
            Self::Extension => "extension",
        }
    }
}

/// Input from the user.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Input {
    /// The text, before templates are expanded.
    pub text: String,
    /// Attached images.
    pub images: Vec<Image>,
    /// Origin of the input.
    pub source: InputSource,
    /// The queue for it, if a run is active.
    pub queue: Option<QueueKind>,
}

/// What to do with the input.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum InputAction {
    /// Continue unchanged.
    #[default]
    Continue,
    /// Continue with this input.
    Transform {
        /// The text.
        text: String,
        /// The images; `None` keeps them.
        images: Option<Vec<Image>>,
    },
    /// The extension handled it; the model is not called.
    Handled,
}
