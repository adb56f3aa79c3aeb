//! One request to a model: conversation, tools, options and credentials.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use http::{HeaderMap, StatusCode};
use pinch_stdx::host::{Env, Host};
use pinch_stdx::secret::Secret;
use serde_json::{Map, Value};

mod tool_choice;

mod response_format;

pub use pinch_http::Timeouts;
pub use response_format::{JsonSchemaFormat, ResponseFormat};
pub use tool_choice::ToolChoice;

use crate::error::LlmError;
use crate::message::{Message, ToolDecl};
use crate::model::Model;
use crate::thinking::ThinkingLevel;

/// One request to a model.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Request {
    /// The model.
    pub model: Arc<Model>,
    /// The system prompt. System messages in `messages` change it.
    pub system: SystemPrompt,
    /// The conversation, oldest first.
    pub messages: Vec<Arc<Message>>,
    /// Tools the model may call from the start. System messages in `messages` add and remove tools.
    pub tools: Arc<[ToolDecl]>,
    /// Settings of the call.
    pub options: CallOptions,
    /// Credentials sent with the request.
    pub auth: Auth,
    /// Environment, clock and ids that the wire format uses.
    pub host: Host,
}

impl Request {
    /// A request to a model, without a prompt, tools, or credentials, with default options, and on a host without environment.
    pub fn new(model: impl Into<Arc<Model>>, messages: Vec<Arc<Message>>) -> Self {
        Self {
            model: model.into(),
            system: SystemPrompt::default(),
            messages,
            tools: Arc::default(),
            options: CallOptions::default(),
            auth: Auth::default(),
            host: Host::builder().build(),
        }
    }

    /// The same request with a prompt.
    #[must_use]
    pub fn with_system(mut self, system: SystemPrompt) -> Self {
        self.system = system;
        self
    }

    /// The same request with tools.
    #[must_use]
    pub fn with_tools(mut self, tools: impl Into<Arc<[ToolDecl]>>) -> Self {
        self.tools = tools.into();
        self
    }

    /// The same request with other options.
    #[must_use]
    pub fn with_options(mut self, options: CallOptions) -> Self {
        self.options = options;
        self
    }

    /// The same request with credentials.
    #[must_use]
    pub fn with_auth(mut self, auth: Auth) -> Self {
        self.auth = auth;
        self
    }

    /// The same request on another host.
    #[must_use]
    pub fn with_host(mut self, host: Host) -> Self {
        self.host = host;
        self
    }

    /// Takes the environment of the credentials for the environment of the request.
    pub(crate) fn with_own_env(mut self) -> Self {
        if let Some(env) = self.auth.env.take() {
            self.host = self.host.with_env(env);
        }
        self
    }
}

/// A system prompt in sections, so that caches can keep what does not change.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SystemPrompt {
    /// The sections in order; empty ones are left out.
    pub sections: Vec<Section>,
}

/// A piece of a system prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// A short name, for reports.
    pub name: String,
    /// The text as it is sent.
    pub text: String,
    /// Whether it stays the same for the whole conversation.
    pub stable: bool,
}

impl SystemPrompt {
    /// A prompt of one stable text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { sections: vec![Section { name: "prompt".into(), text: text.into(), stable: true }] }
    }

    /// The whole prompt: non-empty sections joined by a blank line.
    pub fn render(&self) -> String {
        let texts: Vec<&str> = self.sections.iter().map(|s| s.text.as_str()).filter(|t| !t.is_empty()).collect();
        texts.join("\n\n")
    }

    /// Whether the prompt is empty.
    pub fn is_empty(&self) -> bool {
        self.sections.iter().all(|s| s.text.is_empty())
    }
}

/// Credentials of one request.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Auth {
    /// The API key or access token.
    pub key: Option<Secret>,
    /// Headers that belong to the credential, e.g. an account id. `None` removes a header.
    pub headers: Vec<(String, Option<String>)>,
    /// A base URL that belongs to the credential and replaces the model's.
    pub base_url: Option<String>,
    /// The server needs no key, like most local ones: none is looked up.
    pub keyless: bool,
    /// Credentials that sign requests to Amazon.
    pub aws: Option<AwsCredentials>,
    /// The environment of requests, where it belongs to the credential: account, region, address. `None` = that of the request's host.
    pub env: Option<Env>,
}

/// Credentials that sign requests to Amazon.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AwsCredentials {
    /// The keys; without them only the region is known.
    pub keys: Option<AwsKeys>,
    /// The region that the user's profile names.
    pub region: Option<String>,
}

/// A pair of access keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwsKeys {
    /// The name of the key.
    pub access_key_id: String,
    /// The key.
    pub secret_access_key: Secret,
    /// The session token of temporary keys.
    pub session_token: Option<Secret>,
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Headers hold credentials: names only.
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Auth")
            .field("key", &self.key)
            .field("headers", &headers)
            .field("base_url", &self.base_url)
            .field("keyless", &self.keyless)
            .field("aws", &self.aws)
            .field("env", &self.env)
            .finish()
    }
}

impl Auth {
    /// An API key and nothing else.
    pub fn key(key: impl Into<Secret>) -> Self {
        Self { key: Some(key.into()), ..Self::default() }
    }

    /// Fills in missing parts from credentials found elsewhere; headers given here take precedence.
    pub(crate) fn lay_under(&mut self, found: Self) {
        if self.key.as_ref().is_none_or(crate::keys::is_placeholder) {
            self.key = found.key;
        }
        let given = std::mem::replace(&mut self.headers, found.headers);
        self.headers.extend(given);
        self.base_url = self.base_url.take().or(found.base_url);
        self.keyless |= found.keyless;
        self.aws = self.aws.take().or(found.aws);
    }

    /// The same with headers that belong to the credential; `None` removes one.
    #[must_use]
    pub fn with_headers(mut self, headers: Vec<(String, Option<String>)>) -> Self {
        self.headers = headers;
        self
    }

    /// The same with a base URL that replaces the model's.
    #[must_use]
    pub fn with_base_url(mut self, base_url: impl Into<String>) -> Self {
        self.base_url = Some(base_url.into());
        self
    }

    /// The same with credentials for Amazon.
    #[must_use]
    pub fn with_aws(mut self, aws: AwsCredentials) -> Self {
        self.aws = Some(aws);
        self
    }

    /// The same with an environment that belongs to the credential.
    #[must_use]
    pub fn with_env(mut self, env: Env) -> Self {
        self.env = Some(env);
        self
    }

    /// No credentials, for servers that need none.
    pub fn keyless() -> Self {
        Self { keyless: true, ..Self::default() }
    }
}

/// How long the provider should cache the prompt's prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheRetention {
    /// No caching.
    None,
    /// The provider's short time: minutes.
    Short,
    /// The provider's long time: an hour to a day.
    Long,
}

/// The requested thinking.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ThinkingChoice {
    /// Not specified: the provider's default.
    #[default]
    Unset,
    /// A level, clamped to what the model supports; `Off` turns thinking off explicitly.
    Level(ThinkingLevel),
    /// In a wire format's own terms, for callers who know it.
    Native(NativeThinking),
}

/// Thinking in a wire format's own terms. Members that a format does not know are ignored.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NativeThinking {
    /// Turned on or off.
    pub enabled: Option<bool>,
    /// Budget in tokens.
    pub budget: Option<u64>,
    /// The effort's word.
    pub effort: Option<String>,
    /// How the reasoning is shown (`summarized`, `omitted`) or how it is summarised.
    pub display: Option<String>,
}

/// Thinking budgets by level in tokens, for formats that need numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThinkingBudgets {
    /// For `minimal`.
    pub minimal: Option<u64>,
    /// For `low`.
    pub low: Option<u64>,
    /// For `medium`.
    pub medium: Option<u64>,
    /// For `high`.
    pub high: Option<u64>,
}

/// Settings of one call.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct CallOptions {
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Limit of the answer in tokens; without it the model's own limit, clamped to what is left of the context window.
    pub max_tokens: Option<u64>,
    /// Leaves the limit to the provider when `max_tokens` is not set, in formats that do not require one.
    pub omit_output_limit: bool,
    /// Thinking.
    pub thinking: ThinkingChoice,
    /// Budgets for formats that need numbers.
    pub thinking_budgets: ThinkingBudgets,
    /// Caching of the prompt's prefix; without it `PI_CACHE_RETENTION=long` of the environment, else short.
    pub cache_retention: Option<CacheRetention>,
    /// Id of the conversation for the provider: cache key and affinity.
    pub session_id: Option<String>,
    /// Which tools may or must be called; without it the provider's default, which is [`ToolChoice::Auto`] everywhere.
    pub tool_choice: Option<ToolChoice>,
    /// The form in which the model has to answer; without it free text.
    pub response_format: Option<ResponseFormat>,
    /// Headers merged last. `None` removes a header.
    pub headers: Vec<(String, Option<String>)>,
    /// Opaque metadata for the provider; `user_id` is forwarded where the format supports it.
    pub metadata: Option<Map<String, Value>>,
    /// Members merged into the body last, in the formats of Anthropic and OpenAI.
    pub sampling_params: Option<Map<String, Value>>,
    /// Further settings of one wire format, by the name its part of the documentation gives (`serviceTier`, `azureBaseUrl`, …).
    pub native: Map<String, Value>,
    /// Limit of an answer in bytes, including parts that are not shown; a longer one fails with what had arrived. 0 = no limit, `None` = 64 MiB.
    pub max_answer_bytes: Option<usize>,
    /// Time limits.
    pub timeouts: Timeouts,
    /// Observes the call; may change the request.
    pub observer: Option<Arc<dyn CallObserver>>,
}

impl CallOptions {
    /// The same with a limit of the answer, in tokens.
    #[must_use]
    pub fn with_max_tokens(mut self, max_tokens: u64) -> Self {
        self.max_tokens = Some(max_tokens);
        self
    }

    /// The same with other budgets of thinking.
    #[must_use]
    pub fn with_thinking_budgets(mut self, budgets: ThinkingBudgets) -> Self {
        self.thinking_budgets = budgets;
        self
    }

    /// The same with other timeouts.
    #[must_use]
    pub fn with_timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// The same with further settings of one wire format.
    #[must_use]
    pub fn with_native(mut self, native: Map<String, Value>) -> Self {
        self.native = native;
        self
    }
}

impl fmt::Debug for CallOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Headers may carry credentials: names only.
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("CallOptions")
            .field("max_tokens", &self.max_tokens)
            .field("thinking", &self.thinking)
            .field("session_id", &self.session_id)
            .field("headers", &headers)
            .finish_non_exhaustive()
    }
}

/// Observes one call. All methods default to doing nothing; an error of any ends the call.
pub trait CallObserver: Send + Sync {
    /// Called with the body before it is sent; a returned body replaces it.
    fn on_payload<'a>(&'a self, body: &'a Value, model: &'a Model) -> BoxFuture<'a, Result<Option<Value>, LlmError>> {
        let _ = (body, model);
        Box::pin(async { Ok(None) })
    }

    /// Called with the headers before they are signed and sent, credentials included, and may change them. Restrictions on reserved headers do not
    /// apply here.
    fn on_headers<'a>(&'a self, headers: &'a mut HeaderMap, model: &'a Model) -> BoxFuture<'a, Result<(), LlmError>> {
        let _ = (headers, model);
        Box::pin(async { Ok(()) })
    }

    /// Called with status and headers of the response, failures included, before the first event.
    fn on_response<'a>(
        &'a self,
        status: StatusCode,
        headers: &'a HeaderMap,
        model: &'a Model,
    ) -> BoxFuture<'a, Result<(), LlmError>> {
        let _ = (status, headers, model);
        Box::pin(async { Ok(()) })
    }
}
