//! An agent: a conversation, a model, tools and two queues.

use std::fmt;
use std::sync::Arc;

use pinch_llm::message::Message;
use pinch_llm::model::Model;
use pinch_llm::provider::Provider;
use pinch_llm::request::CallOptions;
use pinch_llm::thinking::ThinkingLevel;
use pinch_stdx::host::Host;

use crate::hooks::{Hooks, NoHooks};
use crate::queue::Queues;
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
pub enum ContinueError {
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
