//! Events and answers of plugin hooks for runs.

use std::path::PathBuf;
use std::sync::Arc;

use pinch_llm::message::{AssistantMessage, Message, Usage};

use super::answers::{CombineAnswers, FirstAnswer, JoinedText, LastAnswer};
use crate::key::{AgentId, RunId, SessionId, SessionKey};
use crate::prompt::bootstrap::WorkspaceFile;

/// The run that a hook is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HookContext {
    /// The run.
    pub run_id: RunId,
    /// Id of the agent.
    pub agent_id: AgentId,
    /// Routing key of the session.
    pub session_key: Option<SessionKey>,
    /// Id of the session.
    pub session_id: SessionId,
    /// Working directory of the tools, if known.
    pub workspace: Option<PathBuf>,
    /// The channel that the message came through.
    pub channel: Option<String>,
    /// What started the run; see [`RunTrigger::as_str`](crate::run::request::RunTrigger::as_str).
    pub trigger: String,
}

/// A model is about to be looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BeforeModelResolve {
    /// The user's message.
    pub prompt: String,
}

/// Override of the model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelOverride {
    /// Provider to use.
    pub provider: FirstAnswer<String>,
    /// Id of the model to use.
    pub model: FirstAnswer<String>,
}

impl CombineAnswers for ModelOverride {
    fn combine(&mut self, next: Self) {
        self.provider.combine(next.provider);
        self.model.combine(next.model);
    }
}

/// Changes to model and prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentStartChanges {
    /// Override of the model.
    pub model: ModelOverride,
    /// Replaces the system prompt.
    pub system_prompt: LastAnswer<String>,
    /// Prepended to the user's prompt.
    pub prepend_context: JoinedText,
}

impl CombineAnswers for AgentStartChanges {
    fn combine(&mut self, next: Self) {
        self.model.combine(next.model);
        self.system_prompt.combine(next.system_prompt);
        self.prepend_context.combine(next.prepend_context);
    }
}

/// A run is about to begin.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BeforeAgentRun {
    /// The user's message.
    pub prompt: String,
    /// The provider that will be asked first.
    pub provider: String,
    /// The model that will be asked first.
    pub model: String,
}

/// Whether a run proceeds. The first rejection wins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RunVerdict {
    /// The run proceeds.
    #[default]
    Proceed,
    /// The run ends with [`RunErrorKind::HookBlock`](crate::run::RunErrorKind::HookBlock).
    Reject {
        /// The reason, for the result and the log.
        reason: Option<String>,
        /// Shown to the user instead of an answer.
        user_message: Option<String>,
    },
}

/// A prompt is about to be built.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BeforePromptBuild {
    /// The user's message.
    pub prompt: String,
    /// The preceding conversation.
    pub messages: Vec<Arc<Message>>,
}

/// The workspace files of a system prompt were loaded.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AgentBootstrap {
    /// The workspace.
    pub workspace: PathBuf,
    /// The files for this session, in order, including those that are missing.
    pub files: Vec<WorkspaceFile>,
}

/// Changes to the prompts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PromptChanges {
    /// Replaces the system prompt, unless it is blank.
    pub system_prompt: LastAnswer<String>,
    /// Prepended to the user's prompt.
    pub prepend_context: JoinedText,
    /// Prepended to the system prompt.
    pub prepend_system_context: JoinedText,
    /// Appended to the system prompt.
    pub append_system_context: JoinedText,
}

impl CombineAnswers for PromptChanges {
    fn combine(&mut self, next: Self) {
        self.system_prompt.combine(next.system_prompt);
        self.prepend_context.combine(next.prepend_context);
        self.prepend_system_context.combine(next.prepend_system_context);
        self.append_system_context.combine(next.append_system_context);
    }
}

impl PromptChanges {
    /// Adds the changes of older plugins, which have lower precedence.
    pub(super) fn over(mut self, older: AgentStartChanges) -> Self {
        if self.system_prompt.0.is_none() {
            self.system_prompt = older.system_prompt;
        }
        self.prepend_context.combine(older.prepend_context);
        self
    }
}

/// A prompt is about to be sent.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LlmInput {
    /// The provider.
    pub provider: String,
    /// The model.
    pub model: String,
    /// The system prompt, if there is one.
    pub system_prompt: Option<String>,
    /// The prompt as sent.
    pub prompt: String,
    /// The preceding conversation.
    pub history: Vec<Arc<Message>>,
    /// Number of images sent with the prompt.
    pub n_images: usize,
}

/// An attempt has ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LlmOutput {
    /// The provider.
    pub provider: String,
    /// The model.
    pub model: String,
    /// The model's text, one entry per message.
    pub assistant_texts: Vec<String>,
    /// The model's last message.
    pub last_assistant: Option<Arc<AssistantMessage>>,
    /// Token usage of the attempt.
    pub usage: Usage,
}

/// An attempt or a run has ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AgentEnd {
    /// Messages that it added to the conversation.
    pub messages: Vec<Arc<Message>>,
    /// Whether it ended with an answer.
    pub success: bool,
    /// Error message, if it failed.
    pub error: Option<String>,
    /// Duration in milliseconds.
    pub duration_ms: u64,
    /// Number of the attempt with its model, starting at 1; `None` at the end of the run.
    pub attempt: Option<u32>,
    /// Whether the run has ended.
    pub is_final: bool,
    /// Outcome as an identifier: `ok`, `aborted`, `timeout`, `dropped`, or the kind of failure.
    pub outcome: String,
}
