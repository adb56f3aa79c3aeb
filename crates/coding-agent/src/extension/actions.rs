//! Actions that extensions may request of a session. The session implements [`SessionActions`]; extensions use the methods of their
//! contexts.

use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;
use pinch_agent_core::ToolSet;
use pinch_agent_core::queue::QueueKind;
use pinch_llm::event::EventStream;
use pinch_llm::ids::{ModelId, ProviderId, SessionId};
use pinch_llm::message::Content;
use pinch_llm::model::Model;
use pinch_llm::request::{CallOptions, Request};
use pinch_llm::thinking::ThinkingLevel;
use pinch_stdx::cancel::Cancel;

use super::error::ExtensionError;
use super::models::KnownModels;
use crate::compaction::Compacted;
use crate::compaction::estimate::ContextUsage;
use crate::entry::{CustomMessage, Entry, EntryBody, EntryId, Header};
use crate::prompt::PromptSections;
use crate::session_log::Context;
use crate::tools::facts::SessionDetails;

/// The state of a session at one moment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SessionSnapshot {
    /// Id of the session.
    pub session_id: SessionId,
    /// Its file, if it has one.
    pub session_file: Option<PathBuf>,
    /// Its name.
    pub session_name: Option<String>,
    /// Working directory.
    pub cwd: PathBuf,
    /// The model.
    pub model: Arc<Model>,
    /// The thinking level.
    pub thinking: ThinkingLevel,
    /// The tools that the model may call.
    pub active_tools: ToolSet,
    /// All tools.
    pub all_tools: ToolSet,
    /// The system prompt.
    pub system: PromptSections,
    /// Whether resources of the project are used.
    pub is_project_trusted: bool,
}

impl SessionSnapshot {
    /// Returns the details that tools may see.
    pub(crate) fn facts(&self) -> SessionDetails {
        SessionDetails {
            session_id: self.session_id.clone(),
            session_file: self.session_file.clone(),
            model: Arc::clone(&self.model),
            thinking: self.thinking,
        }
    }
}

/// When a message is delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeliverAs {
    /// At the next turn of the current run.
    #[default]
    Steer,
    /// When the current run would end.
    FollowUp,
    /// With the next prompt of the user.
    NextPrompt,
}

impl DeliverAs {
    /// Parses the name used in the protocol.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "steer" => Some(Self::Steer),
            "followUp" => Some(Self::FollowUp),
            "nextTurn" => Some(Self::NextPrompt),
            _ => None,
        }
    }

    /// Returns the corresponding queue of a run.
    pub(crate) fn queue(self) -> QueueKind {
        if self == Self::FollowUp { QueueKind::FollowUp } else { QueueKind::Steering }
    }
}

/// Where to move in the session's tree, and what to do with the branch left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NavigateTree {
    /// The entry to move to.
    pub target: EntryId,
    /// Whether to summarise the branch left behind.
    pub summarise: bool,
    /// What the summary should focus on.
    pub focus: Option<String>,
    /// Whether `focus` replaces the default instructions.
    pub replace_instructions: bool,
    /// Label for the target.
    pub label: Option<String>,
}

/// An action that an extension requests.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SessionAction {
    /// Send a message as the extension.
    SendMessage {
        /// The message.
        message: CustomMessage,
        /// When to deliver it, if a run is active.
        delivery: DeliverAs,
        /// Whether to call the model if no run is active.
        trigger: bool,
    },
    /// Send a message as the user: calls the model, or waits in a queue.
    SendUserMessage {
        /// The message. Templates are not expanded.
        content: Content,
        /// When to deliver it, if a run is active.
        delivery: DeliverAs,
    },
    /// Append an entry that is not a message.
    Append(Box<EntryBody>),
    /// Rename the session.
    Name(String),
    /// Set the tools that the model may call; unknown names are ignored.
    ActiveTools(Vec<String>),
    /// Pick up tools that extensions have registered since.
    ToolsChanged,
    /// Switch to another model. Answered with [`ActionOutcome::Found`].
    Model(ProviderId, ModelId),
    /// Switch to another thinking level.
    Thinking(ThinkingLevel),
    /// Cancel the current prompt.
    Abort,
    /// Exit the program once the session is idle.
    Shutdown,
    /// Reload extensions once the session is idle.
    Reload,
    /// Wait until no prompt is running.
    WaitForIdle,
    /// List all entries. Answered with [`ActionOutcome::Entries`].
    Entries,
    /// List the entries of the active branch. Answered with [`ActionOutcome::Entries`].
    Branch,
    /// Return the messages of the active branch. Answered with [`ActionOutcome::Context`].
    Context,
    /// Return the header. Answered with [`ActionOutcome::Header`].
    Header,
    /// Report the context usage. Answered with [`ActionOutcome::Usage`].
    ContextUsage,
    /// Compact the conversation once the session is idle. With `wait`, answered with [`ActionOutcome::Compacted`] afterwards, otherwise
    /// immediately.
    Compact {
        /// What the summary should focus on.
        focus: Option<String>,
        /// Whether to wait until it is done.
        wait: bool,
    },
    /// Start a new session. Answered with [`ActionOutcome::Replaced`], like the following actions.
    NewSession {
        /// The parent session.
        parent: Option<String>,
        /// The entries that it begins with.
        entries: Vec<EntryBody>,
    },
    /// Fork a branch into a new session.
    Fork {
        /// The entry to fork at.
        entry: EntryId,
        /// Whether to exclude the entry, which must be a user message.
        before: bool,
    },
    /// Move to another entry in the tree.
    Navigate(NavigateTree),
    /// Switch to another session.
    Switch {
        /// Its file.
        path: PathBuf,
    },
}

/// The result of a [`SessionAction`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ActionOutcome {
    /// The action was performed or scheduled.
    Done,
    /// Whether the requested item was found and could be used.
    Found(bool),
    /// Entries, oldest first.
    Entries(Vec<Arc<Entry>>),
    /// The messages that a branch gives the model.
    Context(Box<Context>),
    /// The header of the session.
    Header(Box<Header>),
    /// Usage of the context window.
    Usage(Option<ContextUsage>),
    /// The conversation was compacted.
    Compacted(Box<Compacted>),
    /// The session or position was replaced, unless cancelled.
    Replaced {
        /// Whether an extension cancelled it.
        cancelled: bool,
        /// Text of the user message moved to, for editing.
        text: Option<String>,
    },
}

/// A session as seen by its extensions.
pub trait SessionActions: Send + Sync {
    /// Returns the current state.
    fn now(&self) -> Arc<SessionSnapshot>;

    /// Returns whether no prompt is running or waiting.
    fn is_idle(&self) -> bool;

    /// Returns the number of queued messages.
    fn n_waiting(&self) -> usize;

    /// Returns the models that can be used.
    fn models(&self) -> Arc<dyn KnownModels>;

    /// Returns the options of calls, without those of the conversation: timeouts, budgets, the transport.
    fn call_options(&self) -> CallOptions;

    /// Calls a model, apart from the conversation, with the session's credentials.
    fn call(&self, request: Request, cancel: Cancel) -> EventStream;

    /// Performs an action. An action that needs an idle session waits for that, and requires that the session is polled.
    ///
    /// # Errors
    /// Fails if the action was not performed.
    fn act(&self, act: SessionAction) -> BoxFuture<'_, Result<ActionOutcome, ExtensionError>>;
}
