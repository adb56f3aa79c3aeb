//! One session to talk to: a conversation with a model, its log, and what keeps both going.
//!
//! An [`AgentSession`] is owned by one caller. [`AgentSession::prompt`] gives a [`SessionRun`], a stream of events that the caller pulls; what
//! an event tells is in the log before the event is given. Others steer through a [`SessionControl`].

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use pinch_agent_core::Agent;
use pinch_agent_core::hooks::Hooks;
use pinch_agent_core::tool::ToolSet;
use pinch_llm::message::{Block, Content, Image, Message, UserMessage};
use pinch_llm::model::{Model, thinking};
use pinch_llm::provider::Provider;
use pinch_llm::request::CallOptions;
use pinch_llm::thinking::ThinkingLevel;
use pinch_stdx::cancel::Cancel;
use pinch_stdx::host::Host;

use crate::compaction::{CompactError, Compacted, CompactionReason, CompactionSettings};
use crate::entry::{EntryBody, EntryId};
use crate::event::SessionEvent;
use crate::prompt::Prompt as SystemPrompt;
use crate::recovery::{RecoveryPlan, RecoveryState};
use crate::session_log::{SessionLog, roles};
use crate::store::StoreError;
use crate::tools::facts::Facts;

mod compacting;
pub mod control;
mod hooks;
mod run;

pub use control::SessionControl;
pub use run::SessionRun;

/// A conversation with its log.
pub struct AgentSession {
    log: SessionLog,
    agent: Agent,
    system: SystemPrompt,
    compaction: CompactionSettings,
    plan: RecoveryPlan,
    state: RecoveryState,
    control: SessionControl,
    host: Host,
}

/// What a session is made of.
pub struct SessionParts {
    /// Clock, ids and environment.
    pub host: Host,
    /// The log, new or opened.
    pub log: SessionLog,
    /// The model.
    pub model: Arc<Model>,
    /// How hard it thinks; clamped to what the model can. `None`: as the log says, else `off`.
    pub thinking: Option<ThinkingLevel>,
    /// Who answers; credentials are its business.
    pub provider: Arc<dyn Provider>,
    /// What the model may have done.
    pub tools: ToolSet,
    /// What the model is told first.
    pub system: SystemPrompt,
    /// Where the owner steps in.
    pub hooks: Arc<dyn Hooks>,
    /// When the conversation is compacted.
    pub compaction: CompactionSettings,
    /// What is repeated beneath the caller.
    pub plan: RecoveryPlan,
    /// Settings of every request.
    pub options: CallOptions,
}

/// What a user says.
#[derive(Clone, Debug, Default)]
pub struct Prompt {
    /// The text.
    pub text: String,
    /// Images behind the text.
    pub images: Vec<Image>,
    /// Stops the whole prompt with its retries and compactions.
    pub cancel: Cancel,
}

impl Prompt {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    fn into_message(self, now: i64) -> Message {
        Message::User(UserMessage { content: user_content(self.text, self.images), timestamp: now })
    }
}

fn user_content(text: String, images: Vec<Image>) -> Content {
    let text = (!text.is_empty() || images.is_empty()).then(|| Block::text(text));
    Content::Blocks(text.into_iter().chain(images.into_iter().map(Block::Image)).collect())
}

/// Why a session could not go on. Failures of a provider are no such errors: they are answers.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The log could not be written or read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is nothing to continue from.
    #[error(transparent)]
    CannotContinue(#[from] pinch_agent_core::CannotContinue),
}

impl AgentSession {
    /// Starts a session on a log. A new log gets the model and the thinking level as its first entries; one that is continued gets what has
    /// changed.
    ///
    /// # Errors
    /// When the log cannot be written.
    pub async fn start(parts: SessionParts) -> Result<Self, SessionError> {
        let SessionParts { host, mut log, model, thinking, provider, tools, system, hooks, compaction, plan, options } =
            parts;
        let context = log.context();
        let is_new = context.messages.is_empty();
        let wanted = thinking.or_else(|| ThinkingLevel::parse(&context.thinking_level)).unwrap_or_default();
        let thinking = thinking::clamp(&model, wanted);
        // A conversation in which no model has answered yet, as old files can be, names one with the first answer.
        let is_other = match &context.model {
            Some(of_branch) => of_branch.provider != model.provider || of_branch.model_id != model.id,
            None => is_new,
        };
        if is_other {
            log.append(EntryBody::ModelChange { provider: model.provider.clone(), model_id: model.id.clone() }).await?;
        }
        let has_level = log.active_branch().entries().any(|e| matches!(e.body, EntryBody::ThinkingLevelChange { .. }));
        if is_new || !has_level || context.thinking_level != thinking.as_str() {
            log.append(EntryBody::ThinkingLevelChange { thinking_level: thinking.as_str().to_owned() }).await?;
        }
        let mut agent = Agent::new(host.clone(), model, provider);
        agent.messages = context.messages;
        agent.thinking = thinking;
        agent.tools = tools;
        agent.options = options;
        agent.options.session_id.get_or_insert_with(|| log.id().to_owned());
        agent.hooks = Arc::new(hooks::SessionHooks::new(hooks));
        let control = SessionControl::new(agent.queues(), host.clone());
        Ok(Self { log, agent, system, compaction, plan, state: RecoveryState::default(), control, host })
    }

    /// Asks the model. Nothing happens until the run is polled; dropping it stops everything.
    pub fn prompt(&mut self, prompt: Prompt) -> SessionRun<'_> {
        let cancel = prompt.cancel.child();
        let message = prompt.into_message(self.host.now_ms());
        SessionRun::new(self, Some(message), cancel)
    }

    /// Goes on from where the log stands without a new message: after a failed answer, which is left out of the context from then on, or
    /// with what waits in the queues.
    pub fn resume(&mut self, cancel: &Cancel) -> SessionRun<'_> {
        SessionRun::new(self, None, cancel.child())
    }

    /// Compacts the conversation now, whatever the settings say.
    ///
    /// # Errors
    /// [`CompactError`]; the log is as it was then.
    pub async fn compact(
        &mut self,
        reason: CompactionReason,
        focus: Option<String>,
        cancel: &Cancel,
    ) -> Result<Compacted, CompactError> {
        let summariser = compacting::Summariser::of(&self.agent);
        let done = summariser.compact(&mut self.log, &self.compaction, reason, focus, cancel).await?;
        self.agent.messages = self.log.context().messages;
        Ok(done)
    }

    /// Steers the session while a run has it borrowed.
    pub fn control(&self) -> SessionControl {
        self.control.clone()
    }

    /// The log.
    pub fn log(&self) -> &SessionLog {
        &self.log
    }

    /// The log, to append entries that are not part of the conversation.
    pub fn log_mut(&mut self) -> &mut SessionLog {
        &mut self.log
    }

    /// The conversation as the model is shown it, before roles are converted.
    pub fn messages(&self) -> &[Arc<Message>] {
        &self.agent.messages
    }

    /// The model.
    pub fn model(&self) -> &Arc<Model> {
        &self.agent.model
    }

    /// The thinking level.
    pub fn thinking(&self) -> ThinkingLevel {
        self.agent.thinking
    }

    /// Takes another thinking level from the next request on, clamped to what the model can.
    ///
    /// # Errors
    /// When the change cannot be written.
    pub async fn set_thinking(&mut self, level: ThinkingLevel) -> Result<ThinkingLevel, SessionError> {
        let level = thinking::clamp(&self.agent.model, level);
        if level != self.agent.thinking {
            self.agent.thinking = level;
            self.log.append(EntryBody::ThinkingLevelChange { thinking_level: level.as_str().to_owned() }).await?;
        }
        Ok(level)
    }

    /// Asks another provider from the next request on: other credentials, say.
    pub fn set_provider(&mut self, provider: Arc<dyn Provider>) {
        self.agent.provider = provider;
    }

    /// Changes settings of the requests that follow.
    pub fn options_mut(&mut self) -> &mut CallOptions {
        &mut self.agent.options
    }

    /// Leaves a failed last answer out of the context from now on; it stays in the log.
    ///
    /// # Errors
    /// When the edit cannot be written.
    pub async fn omit_failed(&mut self) -> Result<(), SessionError> {
        self.omit_failed_answer().await?;
        Ok(())
    }

    /// Takes the conversation from the log again, after entries were appended to it by hand.
    pub fn reload(&mut self) {
        self.agent.messages = self.log.context().messages;
    }

    /// The text of the last answer; empty answers that were cancelled are passed over.
    pub fn last_text(&self) -> Option<String> {
        let answer = self.agent.messages.iter().rev().find_map(|message| {
            message.as_assistant().filter(|a| !(a.content.is_empty() && a.stop_reason.is_failure()))
        })?;
        let text = answer.text("").trim().to_owned();
        (!text.is_empty()).then_some(text)
    }

    /// What tools may know of the session as it is now.
    pub fn facts(&self) -> Facts {
        Facts {
            session_id: self.log.id().to_owned(),
            session_file: self.path(),
            model: Arc::clone(&self.agent.model),
            thinking: self.agent.thinking,
        }
    }

    /// The session's file, when it has one.
    pub fn path(&self) -> Option<PathBuf> {
        self.log.path().map(PathBuf::from)
    }

    /// Leaves a failed last answer out of the context from now on; it stays in the log. Answers with the entry that says so.
    async fn omit_failed_answer(&mut self) -> Result<Option<EntryId>, StoreError> {
        let context = self.log.context();
        let failed = context.messages.last().and_then(|m| m.as_assistant()).is_some_and(|a| a.stop_reason.is_failure());
        let Some(target) = context.entry_ids.last().filter(|_| failed) else { return Ok(None) };
        let edit = EntryBody::ContextEdit { target_id: target.clone(), replacement: None };
        let id = self.log.append(edit).await?;
        self.agent.messages = self.log.context().messages;
        Ok(Some(id))
    }
}

impl fmt::Debug for AgentSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentSession").field("log", &self.log).field("agent", &self.agent).finish_non_exhaustive()
    }
}

/// Messages of roles that only this layer knows become the user's.
fn to_llm(messages: &[Arc<Message>]) -> Vec<Arc<Message>> {
    roles::convert_to_llm(messages)
}

/// What a stream of session events yields.
type SessionItem = Result<SessionEvent, SessionError>;
