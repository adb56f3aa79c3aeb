//! An agent: a conversation, a model, tools and two queues.

use std::fmt;
use std::sync::Arc;

use futures::StreamExt;
use pinch_llm::client::Reply;
use pinch_llm::error::{LlmError, LlmErrorKind};
use pinch_llm::event::Finished;
use pinch_llm::message::Message;
use pinch_llm::model::Model;
use pinch_llm::provider::Provider;
use pinch_llm::request::{Auth, CallOptions};
use pinch_llm::thinking::ThinkingLevel;
use pinch_stdx::cancel::Cancel;
use pinch_stdx::copy_on_write::CopyOnWrite;
use pinch_stdx::host::Host;

mod builder;

pub use builder::AgentBuilder;

use crate::event::AgentEvent;
use crate::hooks::{Hooks, NoHooks};
use crate::queue::MessageQueues;
use crate::tool::{ToolMode, ToolSet};

/// A conversation with a model that may call tools.
pub struct Agent {
    /// The conversation, oldest first. Its system messages contain the prompt and the declared tools.
    pub messages: Vec<Arc<Message>>,
    /// The model.
    pub model: Arc<Model>,
    /// The thinking level.
    pub thinking: ThinkingLevel,
    /// The tools that can be run.
    pub tools: ToolSet,
    /// Whether the calls of a message run in parallel. A sequential tool among them overrides it.
    pub execution: ToolMode,
    /// Options of every request; the agent sets the thinking level.
    pub options: CopyOnWrite<CallOptions>,
    /// The provider that the model is called through.
    pub provider: Arc<dyn Provider>,
    /// Credentials sent with every request. If there are none, the provider looks them up in the host's environment.
    pub auth: Auth,
    /// Called at fixed points of every run.
    pub hooks: Arc<dyn Hooks>,
    /// Clock, ids and environment.
    pub host: Host,
    /// Error text of the last failed answer in the last run.
    pub error_message: Option<String>,
    queues: MessageQueues,
}

impl Agent {
    /// Creates an agent with an empty conversation, no tools and no hooks.
    pub fn new(host: Host, model: Arc<Model>, provider: Arc<dyn Provider>) -> Self {
        Self {
            messages: Vec::new(),
            model,
            thinking: ThinkingLevel::Off,
            tools: ToolSet::new(),
            execution: ToolMode::Parallel,
            options: CopyOnWrite::default(),
            provider,
            auth: Auth::default(),
            hooks: Arc::new(NoHooks),
            host,
            error_message: None,
            queues: MessageQueues::default(),
        }
    }

    /// Adds a user message, runs the agent to its end, and returns the model's last answer; its usage covers only the last turn. Use
    /// [`Agent::run`](Self::run) for the events in between. Dropping the future stops the run, including running tools; the conversation
    /// keeps what was finished.
    ///
    /// # Errors
    /// Returns the failure of the answer that ended the run. Failing tools do not end it: the model sees their errors.
    pub async fn prompt(&mut self, text: impl Into<String>) -> Result<Reply, LlmError> {
        let provider = self.model.provider.clone();
        let missing = |text: String| LlmError::new(provider, LlmErrorKind::Protocol, text);
        let message = Arc::new(Message::user(text, self.host.now_ms()));
        let mut run = match self.run(vec![message], Cancel::new()) {
            Ok(run) => run,
            Err(why) => return Err(missing(why.to_string())),
        };
        let mut last = None;
        while let Some(event) = run.next().await {
            if let AgentEvent::TurnEnd { message, .. } = event {
                last = Some(message);
            } else if let AgentEvent::AgentEnd(end) = event
                && let Some(message) = last.take()
            {
                return Reply::from_finished(Finished { message, error: end.error });
            }
        }
        Err(missing("the run ended without an answer".to_owned()))
    }

    /// Returns the queues, which can be filled while a run is active.
    pub fn queues(&self) -> MessageQueues {
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

/// A run could not start because there is nothing to continue from.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContinueError {
    /// The conversation is empty.
    #[error("No messages to continue from")]
    Empty,
    /// The last message needs no answer and the queues are empty.
    #[error("Cannot continue from message role: {role}")]
    Role {
        /// Role of the last message.
        role: String,
    },
}
