//! An agent: a conversation, a model, tools and two queues.

use std::fmt;
use std::sync::Arc;

use pinch_llm::message::Message;
use pinch_llm::model::Model;
use pinch_llm::provider::Provider;
use pinch_llm::request::CallOptions;
use pinch_llm::thinking::ThinkingLevel;
use pinch_stdx::cancel::Cancel;
use pinch_stdx::host::Host;

use crate::hooks::{Hooks, NoHooks};
use crate::queue::{QueueKind, Queues};
use crate::run::{Pending, Run};
use crate::tool::{ToolMode, ToolSet};

/// A conversation with a model that may call tools.
pub struct Agent {
    /// The conversation, oldest first. System messages in it are the prompt and the declared tools.
    pub messages: Vec<Arc<Message>>,
    /// The model.
    pub model: Arc<Model>,
    /// How hard it thinks.
    pub thinking: ThinkingLevel,
    /// The tools that can be run.
    pub tools: ToolSet,
    /// Whether calls of one message run side by side. A sequential tool among them overrules it.
    pub execution: ToolMode,
    /// Settings of every request; thinking is set by the agent.
    pub options: CallOptions,
    /// Who answers.
    pub provider: Arc<dyn Provider>,
    /// Where the owner steps in.
    pub hooks: Arc<dyn Hooks>,
    /// Clock, ids and environment.
    pub host: Host,
    /// The text of the last failed answer of the last run.
    pub error_message: Option<String>,
    queues: Queues,
}

impl Agent {
    /// An agent with an empty conversation, no tools and no hooks.
    pub fn new(host: Host, model: Arc<Model>, provider: Arc<dyn Provider>) -> Self {
        Self {
            messages: Vec::new(),
            model,
            thinking: ThinkingLevel::Off,
            tools: ToolSet::new(),
            execution: ToolMode::Parallel,
            options: CallOptions::default(),
            provider,
            hooks: Arc::new(NoHooks),
            host,
            error_message: None,
            queues: Queues::default(),
        }
    }

    /// The queues; they can be filled while a run is under way.
    pub fn queues(&self) -> Queues {
        self.queues.clone()
    }

    /// Starts a run with new messages, or continues the conversation when `input` is empty. Nothing happens until the run is polled.
    ///
    /// A conversation that ends with an answer is continued by what waits in the queues.
    ///
    /// # Errors
    /// When there is nothing to continue from.
    pub fn run(&mut self, input: Vec<Arc<Message>>, cancel: Cancel) -> Result<Run<'_>, CannotContinue> {
        let mut pending: Vec<Pending> = input.into_iter().map(Pending::from).collect();
        let mut skip_first_poll = false;
        if pending.is_empty() {
            match self.messages.iter().rev().find(|message| !matches!(***message, Message::System(_))) {
                None => return Err(CannotContinue::Empty),
                Some(last) if matches!(**last, Message::Assistant(_)) => {
                    pending = self.drain(QueueKind::Steering);
                    skip_first_poll = !pending.is_empty();
                    if pending.is_empty() {
                        pending = self.drain(QueueKind::FollowUp);
                    }
                    if pending.is_empty() {
                        return Err(CannotContinue::Role { role: last.role().to_owned() });
                    }
                }
                Some(_) => {}
            }
        }
        Ok(Run::new(self, pending, skip_first_poll, cancel))
    }

    pub(crate) fn drain(&self, kind: QueueKind) -> Vec<Pending> {
        self.queues.poll(kind).into_iter().map(Pending::from).collect()
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent")
            .field("messages", &self.messages.len())
            .field("model", &self.model.id)
            .field("thinking", &self.thinking)
            .field("tools", &self.tools)
            .finish_non_exhaustive()
    }
}

/// There is nothing to continue from.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotContinue {
    /// The conversation is empty.
    #[error("No messages to continue from")]
    Empty,
    /// The last message asks for nothing and nothing waits.
    #[error("Cannot continue from message role: {role}")]
    Role {
        /// Role of the last message.
        role: String,
    },
}
