//! What plugins are told, and what they answer.

use std::path::PathBuf;
use std::sync::Arc;

use pinch_llm::message::{AssistantMessage, Message, Usage};

use super::answers::{CombineAnswers, FirstAnswer, JoinedText, LastAnswer};

/// The run that a hook is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HookContext {
    /// The run.
    pub run_id: String,
    /// The agent.
    pub agent_id: String,
    /// The routing key of the session.
    pub session_key: Option<String>,
    /// The session.
    pub session_id: String,
    /// The directory that tools work in, if it is known.
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
    /// The message of the user.
    pub prompt: String,
}

/// Another model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelOverride {
    /// Its provider.
    pub provider: FirstAnswer<String>,
    /// Its id.
    pub model: FirstAnswer<String>,
}

impl CombineAnswers for ModelOverride {
    fn combine(&mut self, next: Self) {
        self.provider.combine(next.provider);
        self.model.combine(next.model);
    }
}

/// Model and prompt at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentStartChanges {
    /// Another model.
    pub model: ModelOverride,
    /// Replaces the system prompt.
    pub system_prompt: LastAnswer<String>,
    /// Stands before the prompt of the user.
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
    /// The message of the user.
    pub prompt: String,
    /// The provider that will be asked first.
    pub provider: String,
    /// The model that will be asked first.
    pub model: String,
}

/// Whether a run takes place. The first rejection counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RunVerdict {
    /// It does.
    #[default]
    Proceed,
    /// It does not: it ends with [`RunErrorKind::HookBlock`](crate::run::RunErrorKind::HookBlock).
    Reject {
        /// The reason, for the result and the log.
        reason: Option<String>,
        /// What the user reads instead of an answer.
        user_message: Option<String>,
    },
}

/// A prompt is about to be made.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BeforePromptBuild {
    /// The message of the user.
    pub prompt: String,
    /// The conversation before it.
    pub messages: Vec<Arc<Message>>,
}

/// What stands before and around a prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PromptChanges {
    /// Replaces the system prompt; a blank one replaces nothing.
    pub system_prompt: LastAnswer<String>,
    /// Stands before the prompt of the user.
    pub prepend_context: JoinedText,
    /// Stands before the system prompt.
    pub prepend_system_context: JoinedText,
    /// Stands behind the system prompt.
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
    /// With what older plugins say, which counts less.
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
    /// The prompt as it is sent.
    pub prompt: String,
    /// The conversation before it.
    pub history: Vec<Arc<Message>>,
    /// Images that are sent with the prompt.
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
    /// What the model said, an entry for each of its messages.
    pub assistant_texts: Vec<String>,
    /// Its last message.
    pub last_assistant: Option<Arc<AssistantMessage>>,
    /// The tokens of the attempt.
    pub usage: Usage,
}

/// An attempt or a run has ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AgentEnd {
    /// The messages that it added to the conversation.
    pub messages: Vec<Arc<Message>>,
    /// Whether it ended with an answer.
    pub success: bool,
    /// What went wrong.
    pub error: Option<String>,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// The number of the attempt with its model, from 1; `None` at the end of the run.
    pub attempt: Option<u32>,
    /// Whether the run has ended.
    pub is_final: bool,
    /// How it ended, as an identifier: `ok`, `aborted`, `timeout`, `dropped`, or the kind of the failure.
    pub outcome: String,
}
