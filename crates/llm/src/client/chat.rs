//! One request, built step by step.

use std::sync::Arc;

use pinch_stdx::cancel::Cancel;

use super::{Client, Reply};
use crate::error::{LlmError, LlmErrorKind};
use crate::event::EventStream;
use crate::message::{AssistantMessage, Block, Message, StopReason, ToolDecl};
use crate::model::Model;
use crate::provider::Provider;
use crate::request::{Auth, CallOptions, Request, ResponseFormat, SystemPrompt, ThinkingChoice, Timeouts, ToolChoice};
use crate::thinking::ThinkingLevel;

/// A request to one model: conversation, tools and options. Created by [`Client::chat`].
///
/// Sending does not consume it: to continue the conversation, add the reply and the next message, and send it again.
#[derive(Clone, Debug)]
#[must_use = "nothing is sent until `send` or `stream` is called"]
pub struct Chat {
    client: Client,
    model: String,
    system: SystemPrompt,
    turns: Vec<ChatTurn>,
    tools: Vec<ToolDecl>,
    options: CallOptions,
    auth: Option<Auth>,
    cancel: Cancel,
}

/// A message; texts get a timestamp and a model when the request is built.
#[derive(Clone, Debug)]
enum ChatTurn {
    User(String),
    Assistant(String),
    Message(Arc<Message>),
}

impl Chat {
    pub(super) fn new(client: Client, model: String) -> Self {
        Self {
            client,
            model,
            system: SystemPrompt::default(),
            turns: Vec::new(),
            tools: Vec::new(),
            options: CallOptions::default(),
            auth: None,
            cancel: Cancel::new(),
        }
    }

    /// Sets the system prompt.
    pub fn system(mut self, text: impl Into<String>) -> Self {
        self.system = SystemPrompt::text(text);
        self
    }

    /// Adds a user message.
    pub fn user(mut self, text: impl Into<String>) -> Self {
        self.turns.push(ChatTurn::User(text.into()));
        self
    }

    /// Adds an assistant message, e.g. as an example answer. To add a received answer, use [`Chat::message`].
    pub fn assistant(mut self, text: impl Into<String>) -> Self {
        self.turns.push(ChatTurn::Assistant(text.into()));
        self
    }

    /// Adds a message of any kind: a reply, a tool result, an image.
    pub fn message(mut self, message: impl Into<Message>) -> Self {
        self.turns.push(ChatTurn::Message(Arc::new(message.into())));
        self
    }

    /// Adds messages of any kind, oldest first.
    pub fn messages<M: Into<Arc<Message>>>(mut self, messages: impl IntoIterator<Item = M>) -> Self {
        self.turns.extend(messages.into_iter().map(|message| ChatTurn::Message(message.into())));
        self
    }

    /// Declares a tool that the model may call. Running it is up to the caller; pinch-agent-core has the tool loop.
    pub fn tool(mut self, tool: ToolDecl) -> Self {
        self.tools.push(tool);
        self
    }

    /// Sets which tools may or must be called.
    pub fn tool_choice(mut self, choice: ToolChoice) -> Self {
        self.options.tool_choice = Some(choice);
        self
    }

    /// Sets the required format of the answer.
    pub fn response_format(mut self, format: impl Into<ResponseFormat>) -> Self {
        self.options.response_format = Some(format.into());
        self
    }

    /// Sets the thinking level, clamped to what the model supports. Without it the provider's default applies.
    pub fn thinking(mut self, level: ThinkingLevel) -> Self {
        self.options.thinking = ThinkingChoice::Level(level);
        self
    }

    /// Sets the sampling temperature. It is not sent to models that reject it.
    pub fn temperature(mut self, temperature: f64) -> Self {
        self.options.temperature = Some(temperature);
        self
    }

    /// Limits the answer to this many tokens, including thinking.
    pub fn max_tokens(mut self, max_tokens: u64) -> Self {
        self.options.max_tokens = Some(max_tokens);
        self
    }

    /// Sets the timeouts of the call.
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.options.timeouts = timeouts;
        self
    }

    /// Replaces all options of the call: caching, headers, observers and those above. Call it before the methods that set single options.
    pub fn options(mut self, options: CallOptions) -> Self {
        self.options = options;
        self
    }

    /// Uses these credentials instead of the client's.
    pub fn auth(mut self, auth: Auth) -> Self {
        self.auth = Some(auth);
        self
    }

    /// Aborts the call when this token is cancelled; it then fails with [`LlmErrorKind::Aborted`](crate::error::LlmErrorKind::Aborted).
    pub fn cancel(mut self, cancel: Cancel) -> Self {
        self.cancel = cancel;
        self
    }

    /// Sends the request and waits for the whole answer. Never retries. Dropping the future closes the connection.
    ///
    /// # Errors
    /// Returns the failure, with its kind, the HTTP status and the delay to wait if the provider sent them.
    pub async fn send(&self) -> Result<Reply, LlmError> {
        let (provider, request) = self.prepare()?;
        Reply::from_finished(provider.stream(request, self.cancel.clone()).collect_end().await)
    }

    /// Sends the request and streams the answer. Nothing is sent before the stream is polled; every failure is the stream's last event.
    /// [`Reply::from_finished`] converts that event to a [`Reply`].
    pub fn stream(&self) -> EventStream {
        match self.prepare() {
            Ok((provider, request)) => provider.stream(request, self.cancel.clone()),
            Err(error) => EventStream::failed_early(&self.model, self.client.host().now_ms(), error),
        }
    }

    /// Builds the request for the layer below.
    ///
    /// # Errors
    /// Returns [`LlmErrorKind::ModelNotFound`](crate::error::LlmErrorKind::ModelNotFound) if the model is unknown.
    pub fn to_request(&self) -> Result<Request, LlmError> {
        let client = &self.client;
        let model = client.model(&self.model)?;
        let mut options = self.options.clone();
        // Nothing is known about models of custom servers, including their limits.
        options.omit_output_limit |= client.is_custom_server(&model.provider);
        Ok(Request {
            system: self.system.clone(),
            messages: self.turns.iter().map(|turn| turn.message(&model, client.host().now_ms())).collect(),
            tools: self.tools.iter().cloned().collect(),
            options,
            auth: self.auth.clone().unwrap_or_else(|| client.auth(&model.provider)),
            host: client.host().clone(),
            model,
        })
    }

    fn prepare(&self) -> Result<(Arc<dyn Provider>, Request), LlmError> {
        let request = self.to_request()?;
        let provider = self.client.provider(&request.model).map_err(|why| {
            LlmError::new(request.model.provider.clone(), LlmErrorKind::InvalidRequest, why.to_string())
        })?;
        Ok((provider, request))
    }
}

impl ChatTurn {
    fn message(&self, model: &Model, now_ms: i64) -> Arc<Message> {
        match self {
            Self::User(text) => Arc::new(Message::user(text.as_str(), now_ms)),
            Self::Assistant(text) => {
                let (api, provider, id) = (model.api.clone(), model.provider.clone(), model.id.clone());
                let mut answer = AssistantMessage::pending(api, provider, id, now_ms);
                answer.content.push(Arc::new(Block::text(text.as_str())));
                answer.stop_reason = StopReason::Stop;
                Arc::new(Message::Assistant(Arc::new(answer)))
            }
            Self::Message(message) => Arc::clone(message),
        }
    }
}
