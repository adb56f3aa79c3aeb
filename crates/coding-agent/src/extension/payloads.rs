//! The payloads of the points, and the answers of extensions.

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
use crate::compaction::{Compacted, CompactionReason};
use crate::entry::{CustomMessage, EntryId};
use crate::event::SessionEvent;
use crate::machine::Machine;
use crate::prompt::PromptSections;
use crate::tools::bash::UserCommand;

/// Why a session begins, or one ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionReason {
    /// The program starts.
    #[default]
    Startup,
    /// Extensions and settings are read anew.
    Reload,
    /// An empty session takes the place of the old one.
    New,
    /// An older session is resumed.
    Resume,
    /// A branch becomes a session of its own.
    Fork,
    /// The program ends.
    Quit,
}

impl SessionReason {
    /// The word used in the protocol.
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

/// How a model came to be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelSource {
    /// It was chosen.
    Set,
    /// It was the next of a list.
    Cycle,
    /// A branch or session that was gone to had it.
    Restore,
}

impl ModelSource {
    /// The word used in the protocol.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Set => "set",
            Self::Cycle => "cycle",
            Self::Restore => "restore",
        }
    }
}

/// Something that happened; nothing is to be answered.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Notification<'a> {
    /// An event that extensions receive before other listeners: those of runs, messages and calls, the end of a run, that all is settled, and that the
    /// session has another name.
    Event(&'a SessionEvent),
    /// A turn begins.
    TurnStart {
        /// Which of its run, counted from 0.
        turn_index: u64,
        /// Unix milliseconds.
        timestamp: i64,
    },
    /// A session begins.
    SessionStart {
        /// Why.
        reason: SessionReason,
        /// The file of the session whose place it takes.
        previous: Option<&'a PathBuf>,
    },
    /// A session ends.
    SessionShutdown {
        /// Why.
        reason: SessionReason,
        /// The file of the session that takes its place, when it is known.
        target: Option<&'a PathBuf>,
    },
    /// The conversation was compacted.
    Compacted(&'a Compacted),
    /// A compaction failed or was cancelled.
    CompactFailed {
        /// Why it had begun.
        reason: CompactionReason,
        /// What went wrong.
        error: &'a str,
    },
    /// The leaf has moved.
    Moved(&'a MovedLeaf),
    /// A provider has answered.
    Response {
        /// The status of HTTP.
        status: u16,
        /// The headers; several of one name come one after another.
        headers: &'a [(String, String)],
    },
    /// Another model is used.
    Model {
        /// The model.
        model: &'a Arc<Model>,
        /// The one before.
        previous: &'a Arc<Model>,
        /// How that came.
        source: ModelSource,
    },
    /// Another thinking level is used.
    Thinking {
        /// The level.
        level: ThinkingLevel,
        /// The one before.
        previous: ThinkingLevel,
    },
    /// A person is asked something.
    DialogStart(&'a Dialog),
    /// The person has answered, or is not asked any more.
    DialogEnd(&'a Dialog),
}

impl Notification<'_> {
    /// The point of the notification; `None` for events without a point.
    pub fn point(&self) -> Option<Point> {
        Some(match self {
            Self::TurnStart { .. } => Point::TurnStart,
            Self::SessionStart { .. } => Point::SessionStart,
            Self::SessionShutdown { .. } => Point::SessionShutdown,
            Self::Compacted(_) => Point::SessionCompact,
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
                // These have points at which there is something to answer, or say more.
                AgentEvent::TurnStart
                | AgentEvent::TurnEnd { .. }
                | AgentEvent::MessageEnd { .. }
                | AgentEvent::AgentEnd(_) => return None,
            },
            Self::Event(_) => return None,
        })
    }
}

/// Directories are looked for.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ResourcesDiscover {
    /// Why: [`SessionReason::Reload`], else [`SessionReason::Startup`].
    pub reason: SessionReason,
}

/// Paths of further resources, absolute or from the working directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourcePaths {
    /// Skills, or directories of them.
    pub skills: Vec<PathBuf>,
    /// Prompt templates, or directories of them.
    pub prompts: Vec<PathBuf>,
    /// Themes, or directories of them.
    pub themes: Vec<PathBuf>,
}

/// The session is about to be replaced.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BeforeSwitch {
    /// By a new one, or one that was kept.
    pub reason: SessionReason,
    /// The file of that one.
    pub target: Option<PathBuf>,
}

/// The session is about to be forked.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BeforeFork {
    /// The entry the fork is cut at.
    pub entry: EntryId,
    /// Whether the entry stays out of it.
    pub before: bool,
}

/// Whether a session may be left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SwitchDecision {
    /// It may.
    #[default]
    Proceed,
    /// It stays.
    Cancel,
}

/// The messages of one request.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum ContextAction {
    /// They are sent.
    #[default]
    Keep,
    /// These are sent in their place; the conversation stays as it is.
    Replace(Vec<Arc<Message>>),
}

/// A prompt is about to be answered.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BeforeAgentStart {
    /// What is said.
    pub prompt: String,
    /// Images with it.
    pub images: Vec<Image>,
    /// The system prompt as it would be.
    pub system: PromptSections,
    /// The type of an extension's message that replaces a prompt of the user.
    pub message_type: Option<String>,
}

/// What a prompt is answered with.
#[derive(Clone, Debug, Default)]
pub struct AgentStartAction {
    /// Messages behind the prompt.
    pub messages: Vec<CustomMessage>,
    /// Another system prompt, for this prompt only.
    pub system: Option<PromptSections>,
}

/// What becomes of a whole message.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum MessageAction {
    /// It is kept.
    #[default]
    Keep,
    /// This one takes its place, in the conversation and in the log. It must have the same role.
    Replace(Arc<Message>),
}

/// What becomes of a request's body.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum PayloadAction {
    /// It is sent.
    #[default]
    Keep,
    /// This one is sent.
    Replace(Value),
}

/// A command the user is about to run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UserBash {
    /// The command.
    pub command: String,
    /// The model is not to see it.
    pub exclude: bool,
}

/// What becomes of the user's command.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum UserBashAction {
    /// It is run.
    #[default]
    Run,
    /// It is run there.
    RunOn(Arc<dyn Machine>),
    /// It is not run; this is its result.
    Instead(UserCommand),
    /// It is not run.
    Block {
        /// Why.
        reason: String,
    },
}

/// Where a prompt comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum InputSource {
    /// The terminal, or the program's arguments.
    #[default]
    Interactive,
    /// A program on the other side of RPC.
    Rpc,
    /// An extension.
    Extension,
}

impl InputSource {
    /// The word used in the protocol.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Interactive => "interactive",
            Self::Rpc => "rpc",
            Self::Extension => "extension",
        }
    }
}

/// Something the user says.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Input {
    /// The text, before templates are expanded.
    pub text: String,
    /// Images with it.
    pub images: Vec<Image>,
    /// Where it comes from.
    pub source: InputSource,
    /// The queue it goes into, when a run is under way.
    pub queue: Option<QueueKind>,
}

/// What becomes of it.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum InputAction {
    /// It is said.
    #[default]
    Continue,
    /// This is said.
    Transform {
        /// The text.
        text: String,
        /// The images; `None`: as they were.
        images: Option<Vec<Image>>,
    },
    /// The extension has dealt with it; the model is not asked.
    Handled,
}
