//! What extensions may ask of a session. The session implements [`SessionActions`]; extensions use the methods of their contexts.

use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;
use pinch_agent_core::ToolSet;
use pinch_agent_core::queue::QueueKind;
use pinch_llm::ids::{ModelId, ProviderId};
use pinch_llm::message::Content;
use pinch_llm::model::Model;
use pinch_llm::thinking::ThinkingLevel;

use super::error::ExtensionError;
use crate::compaction::estimate::ContextUsage;
use crate::entry::{CustomMessage, Entry, EntryBody, EntryId};
use crate::prompt::PromptSections;
use crate::tools::facts::SessionDetails;

/// What is known of a session without asking it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SessionSnapshot {
    /// Its id.
    pub session_id: String,
    /// Its file, when it has one.
    pub session_file: Option<PathBuf>,
    /// Its name.
    pub session_name: Option<String>,
    /// Its working directory.
    pub cwd: PathBuf,
    /// The model.
    pub model: Arc<Model>,
    /// How hard it thinks.
    pub thinking: ThinkingLevel,
    /// The tools that the model may call.
    pub active_tools: ToolSet,
    /// All tools.
    pub all_tools: ToolSet,
    /// The system prompt.
    pub system: PromptSections,
}

impl SessionSnapshot {
    /// What tools may know of it.
    pub(crate) fn facts(&self) -> SessionDetails {
        SessionDetails {
            session_id: self.session_id.clone(),
            session_file: self.session_file.clone(),
            model: Arc::clone(&self.model),
            thinking: self.thinking,
        }
    }
}

/// When a message is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeliverAs {
    /// At the next turn of the run under way.
    #[default]
    Steer,
    /// When that run would be done.
    FollowUp,
    /// With the next prompt of the user.
    NextPrompt,
}

impl DeliverAs {
    /// Reads the word used in the protocol.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "steer" => Some(Self::Steer),
            "followUp" => Some(Self::FollowUp),
            "nextTurn" => Some(Self::NextPrompt),
            _ => None,
        }
    }

    /// The queue of a run it means.
    pub(crate) fn queue(self) -> QueueKind {
        if self == Self::FollowUp { QueueKind::FollowUp } else { QueueKind::Steering }
    }
}

/// Where to go in the session's tree, and what becomes of the branch that is left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NavigateTree {
    /// The entry to go to.
    pub target: EntryId,
    /// The branch that is left is summarised.
    pub summarise: bool,
    /// What the summary is to look at in particular.
    pub focus: Option<String>,
    /// Replaces the default instructions.
    pub replace_instructions: bool,
    /// The mark of the new place.
    pub label: Option<String>,
}

/// Something an extension wants a session to do.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SessionAction {
    /// Say something as the extension.
    SendMessage {
        /// What.
        message: CustomMessage,
        /// When it is read, if a run is under way.
        delivery: DeliverAs,
        /// The model is asked, if no run is under way.
        trigger: bool,
    },
    /// Say something as the user: the model is asked, or it waits in a queue.
    SendUserMessage {
        /// What. Templates are not expanded.
        content: Content,
        /// When it is read, if a run is under way.
        delivery: DeliverAs,
    },
    /// Append an entry that is not a message.
    Append(Box<EntryBody>),
    /// Name the session.
    Name(String),
    /// Let the model call these tools; names of no tool are passed over.
    ActiveTools(Vec<String>),
    /// Take in tools that extensions have brought since.
    ToolsChanged,
    /// Use another model. Answered with [`ActionOutcome::Found`].
    Model(ProviderId, ModelId),
    /// Use another thinking level.
    Thinking(ThinkingLevel),
    /// Stop the prompt under way.
    Abort,
    /// End the program, when it comes to rest.
    Shutdown,
    /// Load extensions anew, when the session comes to rest.
    Reload,
    /// Wait until no prompt is under way.
    WaitForIdle,
    /// List all entries. Answered with [`ActionOutcome::Entries`].
    Entries,
    /// List the entries of the active branch. Answered with [`ActionOutcome::Entries`].
    Branch,
    /// Report the context usage. Answered with [`ActionOutcome::Usage`].
    ContextUsage,
    /// Compact the conversation, when the session is at rest. Answered with [`ActionOutcome::Compacted`] when `wait` is set, at once when it is not.
    Compact {
        /// What the summary is to look at in particular.
        focus: Option<String>,
        /// The asker waits for the end.
        wait: bool,
    },
    /// Begin a new session. Answered with [`ActionOutcome::Replaced`], as what follows.
    NewSession {
        /// The session it follows.
        parent: Option<String>,
    },
    /// Make a session of its own out of a branch.
    Fork {
        /// The entry it is cut at.
        entry: EntryId,
        /// Whether the entry, a message of the user, stays out of it.
        before: bool,
    },
    /// Go to another place in the tree.
    Navigate(NavigateTree),
    /// Switch to another session.
    Switch {
        /// Its file.
        path: PathBuf,
    },
}

/// The outcome.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ActionOutcome {
    /// It was done, or will be.
    Done,
    /// Whether what was named could be used.
    Found(bool),
    /// Entries, oldest first.
    Entries(Vec<Arc<Entry>>),
    /// How full the window is.
    Usage(Option<ContextUsage>),
    /// The summary.
    Compacted {
        /// Its text.
        summary: String,
        /// Tokens before.
        tokens_before: u64,
    },
    /// The place or session was left, or not.
    Replaced {
        /// An extension did not want that.
        cancelled: bool,
        /// The text of the message that was gone before.
        text: Option<String>,
    },
}

/// A session as its extensions use it.
pub trait SessionActions: Send + Sync {
    /// What is known without asking.
    fn now(&self) -> Arc<SessionSnapshot>;

    /// Whether no prompt is under way and none waits.
    fn is_idle(&self) -> bool;

    /// How many messages wait in the queues.
    fn n_waiting(&self) -> usize;

    /// Does an action. One that needs an idle session waits for that, and the session must be polled.
    ///
    /// # Errors
    /// Why it was not done.
    fn act(&self, act: SessionAction) -> BoxFuture<'_, Result<ActionOutcome, ExtensionError>>;
}
