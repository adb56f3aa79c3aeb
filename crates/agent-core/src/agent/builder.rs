//! Building an agent step by step.

use std::fmt;
use std::sync::Arc;

use pinch_llm::client::Client;
use pinch_llm::message::{Content, Message, SystemMessage};
use pinch_llm::model::Model;
use pinch_llm::provider::{Provider, ProviderRegistry, UnknownApi};
use pinch_llm::request::{Auth, CallOptions};
use pinch_llm::thinking::ThinkingLevel;
use pinch_stdx::host::Host;

use super::Agent;
use crate::declare::Declared;
use crate::hooks::Hooks;
use crate::tool::{Tool, ToolMode, ToolSet};

/// Builds an [`Agent`]; created by [`Agent::builder`].
#[must_use = "nothing is built until `build` is called"]
pub struct AgentBuilder {
    model: Arc<Model>,
    host: Host,
    auth: Auth,
    provider: Option<Arc<dyn Provider>>,
    system: String,
    messages: Vec<Arc<Message>>,
    tools: Vec<Arc<dyn Tool>>,
    thinking: ThinkingLevel,
    execution: ToolMode,
    options: CallOptions,
    hooks: Option<Arc<dyn Hooks>>,
}

impl Agent {
    /// Starts building an agent for a model, with an empty conversation, no tools, no credentials, and a host without environment.
    pub fn builder(model: impl Into<Arc<Model>>) -> AgentBuilder {
        AgentBuilder {
            model: model.into(),
            host: Host::builder().build(),
            auth: Auth::default(),
            provider: None,
            system: String::new(),
            messages: Vec::new(),
            tools: Vec::new(),
            thinking: ThinkingLevel::Off,
            execution: ToolMode::Parallel,
            options: CallOptions::default(),
            hooks: None,
        }
    }
}

impl AgentBuilder {
    /// Uses a client's host, its credentials for the model, and its connections.
    ///
    /// # Errors
    /// Returns an error if the client has no provider for the model's wire format.
    pub fn client(mut self, client: &Client) -> Result<Self, UnknownApi> {
        self.provider = Some(client.provider(&self.model)?);
        self.auth = client.auth(&self.model.provider);
        self.host = client.host().clone();
        Ok(self)
    }

    /// Sets the system prompt.
    pub fn system(mut self, text: impl Into<String>) -> Self {
        self.system = text.into();
        self
    }

    /// Adds a tool.
    pub fn tool(mut self, tool: impl Tool + 'static) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// Adds shared tools.
    pub fn tools(mut self, tools: &ToolSet) -> Self {
        self.tools.extend(tools.iter().cloned());
        self
    }

    /// Sends these credentials with every request.
    pub fn auth(mut self, auth: Auth) -> Self {
        self.auth = auth;
        self
    }

    /// Calls the model through this provider. Without one, the built-in provider of the model's wire format is used.
    pub fn provider(mut self, provider: Arc<dyn Provider>) -> Self {
        self.provider = Some(provider);
        self
    }

    /// Uses this host for clock, ids and environment.
    pub fn host(mut self, host: Host) -> Self {
        self.host = host;
        self
    }

    /// Continues this conversation. Its system messages remain in effect.
    pub fn messages(mut self, messages: Vec<Arc<Message>>) -> Self {
        self.messages = messages;
        self
    }

    /// Sets the thinking level.
    pub fn thinking(mut self, level: ThinkingLevel) -> Self {
        self.thinking = level;
        self
    }

    /// Sets whether the calls of a message run in parallel, which is the default, or one after another.
    pub fn execution(mut self, mode: ToolMode) -> Self {
        self.execution = mode;
        self
    }

    /// Sets the options of every request, except thinking: see [`AgentBuilder::thinking`].
    pub fn options(mut self, options: CallOptions) -> Self {
        self.options = options;
        self
    }

    /// Calls these hooks at fixed points of every run.
    pub fn hooks(mut self, hooks: impl Hooks + 'static) -> Self {
        self.hooks = Some(Arc::new(hooks));
        self
    }

    /// Builds the agent.
    ///
    /// # Errors
    /// Returns an error if no provider was given and none is built in for the model's wire format.
    pub fn build(self) -> Result<Agent, UnknownApi> {
        let provider = match self.provider {
            Some(provider) => provider,
            None => ProviderRegistry::builtin().get(&self.model.api)?,
        };
        let mut agent = Agent::new(self.host, self.model, provider);
        agent.tools = self.tools.into_iter().collect();
        agent.messages = self.messages;
        if !self.system.is_empty() {
            let declared = Declared::replay(&agent.messages);
            let mut prompt = SystemMessage {
                content: Content::Text(self.system),
                timestamp: agent.host.now_ms(),
                ..SystemMessage::default()
            };
            // Declare the tools in the same message instead of letting the loop add a separate one.
            if let Some(difference) = declared.difference(&agent.tools).filter(|_| agent.messages.is_empty()) {
                difference.write_to(&mut prompt);
            }
            agent.messages.insert(0, Arc::new(Message::System(prompt)));
        }
        agent.auth = self.auth;
        agent.thinking = self.thinking;
        agent.execution = self.execution;
        agent.options = self.options.into();
        if let Some(hooks) = self.hooks {
            agent.hooks = hooks;
        }
        Ok(agent)
    }
}

impl fmt::Debug for AgentBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentBuilder")
            .field("model", &self.model.id)
            .field("tools", &self.tools)
            .finish_non_exhaustive()
    }
}
