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
use crate::ids::SessionId;
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
    /// Options of the call.
    pub options: CallOptions,
    /// Credentials sent with the request.
    pub auth: Auth,
    /// Environment, clock and ids that the wire format uses.
    pub host: Host,
}

impl Request {
    /// Creates a request to a model, without a prompt, tools, or credentials, with default options, and on a host without environment.
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

    /// Sets the prompt.
    #[must_use]
    pub fn with_system(mut self, system: SystemPrompt) -> Self {
        self.system = system;
        self
    }

    /// Sets the tools.
    #[must_use]
    pub fn with_tools(mut self, tools: impl Into<Arc<[ToolDecl]>>) -> Self {
        self.tools = tools.into();
        self
    }

    /// Sets the options.
    #[must_use]
    pub fn with_options(mut self, options: CallOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets the credentials.
    #[must_use]
    pub fn with_auth(mut self, auth: Auth) -> Self {
        self.auth = auth;
        self
    }

    /// Sets the host.
    #[must_use]
    pub fn with_host(mut self, host: Host) -> Self {
        self.host = host;
        self
    }

    /// Replaces the request's environment with that of its credentials.
    pub(crate) fn with_own_env(mut self) -> Self {
        if let Some(env) = self.auth.env.take() {
            self.host = self.host.with_env(env);
        }
        self
    }
}

/// A system prompt in sections, so that caches can keep the stable parts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SystemPrompt {
    /// The sections: stable ones in order, then the others. Empty ones are skipped.
    pub sections: Vec<Section>,
    /// Names of sections that system messages of the conversation set and that are not stable.
    pub volatile: Arc<[String]>,
}

/// A section of a system prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// A short name, for reports.
    pub name: String,
    /// The text, sent unchanged.
    pub text: String,
    /// Whether it is the same in every conversation of the same kind. Formats with cache markers send the stable sections as a block of
    /// their own and end the cached prefix after it; other formats send one text.
    pub stable: bool,
}

impl SystemPrompt {
    /// Creates a prompt of one stable text.
    pub fn text(text: impl Into<String>) -> Self {
        let section = Section { name: "prompt".into(), text: text.into(), stable: true };
        Self { sections: vec![section], ..Self::default() }
    }

    /// Returns a prompt without text, for a conversation whose system messages set these sections that are not stable.
    pub fn volatile(names: impl Into<Arc<[String]>>) -> Self {
        Self { sections: Vec::new(), volatile: names.into() }
    }

    /// Returns the whole prompt: non-empty sections, the stable ones first, joined by a blank line.
    pub fn render(&self) -> String {
        let texts = |stable: bool| self.sections.iter().filter(move |section| section.stable == stable);
        let texts = texts(true).chain(texts(false)).map(|section| section.text.as_str());
        texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n")
    }

    /// Returns whether the prompt is empty.
    pub fn is_empty(&self) -> bool {
        self.sections.iter().all(|s| s.text.is_empty())
    }
}

/// Credentials of a request.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Auth {
    /// The API key or access token.
    pub key: Option<Secret>,
    /// Headers that belong to the credential, e.g. an account id. `None` removes a header.
    pub headers: Vec<(String, Option<String>)>,
    /// Base URL that belongs to the credential and replaces the model's.
    pub base_url: Option<String>,
    /// Whether the server needs no key, like most local ones: none is looked up.
    pub keyless: bool,
    /// Credentials for signing requests to Amazon.
    pub aws: Option<AwsCredentials>,
    /// Environment that belongs to the credential: account, region, address. `None` uses that of the request's host.
    pub env: Option<Env>,
}

/// Credentials for signing requests to Amazon.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AwsCredentials {
    /// The keys; without them only the region is known.
    pub keys: Option<AwsKeys>,
    /// The region in the user's profile.
    pub region: Option<String>,
}

/// A pair of access keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwsKeys {
    /// The key's id.
    pub access_key_id: String,
    /// The key.
    pub secret_access_key: Secret,
    /// The session token of temporary keys.
    pub session_token: Option<Secret>,
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Headers contain credentials, so show only their names.
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
    /// Creates credentials with only an API key.
    pub fn key(key: impl Into<Secret>) -> Self {
        Self { key: Some(key.into()), ..Self::default() }
    }

    /// Fills in missing parts from credentials found elsewhere; existing headers take precedence.
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

    /// Sets headers that belong to the credential; `None` removes one.
    #[must_use]
    pub fn with_headers(mut self, headers: Vec<(String, Option<String>)>) -> Self {
        self.headers = headers;
        self
    }

    /// Sets a base URL that replaces the model's.
    #[must_use]
    pub fn with_base_url(mut self, base_url: impl Into<String>) -> Self {
        self.base_url = Some(base_url.into());
        self
    }

    /// Sets credentials for Amazon.
    #[must_use]
    pub fn with_aws(mut self, aws: AwsCredentials) -> Self {
        self.aws = Some(aws);
        self
    }

    /// Sets an environment that belongs to the credential.
    #[must_use]
    pub fn with_env(mut self, env: Env) -> Self {
        self.env = Some(env);
        self
    }

    /// Creates credentials for servers that need none.
    pub fn keyless() -> Self {
        Self { keyless: true, ..Self::default() }
    }
}

/// How long the provider caches the prompt's prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheRetention {
    /// No caching.
    None,
    /// The provider's short retention: minutes.
    Short,
    /// The provider's long retention: an hour to a day.
    Long,
}

/// The requested amount of thinking.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ThinkingChoice {
    /// Not specified: the provider's default.
    #[default]
    Unset,
    /// A level, clamped to what the model supports; `Off` explicitly disables thinking.
    Level(ThinkingLevel),
    /// Native values of a wire format.
    Native(NativeThinking),
}

/// Thinking in a wire format's native terms. Members that a format does not support are ignored.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NativeThinking {
    /// Whether thinking is enabled.
    pub enabled: Option<bool>,
    /// Budget in tokens.
    pub budget: Option<u64>,
    /// The effort.
    pub effort: Option<String>,
    /// How the reasoning is shown (`summarized`, `omitted`) or summarized.
    pub display: Option<String>,
}

/// Thinking budgets by level in tokens, for formats with token budgets.
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

/// Option of the Anthropic format in [`CallOptions::native`]: a list of beta features, added to the header `anthropic-beta`.
pub const BETAS: &str = "anthropicBeta";
/// The beta feature with a context window of a million tokens. Subscriptions do not have it, and their requests are sent without it. Source:
/// Anthropic's documentation of context windows.
pub const ONE_MILLION_BETA: &str = "context-1m-2025-08-07";

/// Options of a call.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct CallOptions {
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Limit of the answer in tokens; the default is the model's own limit, clamped to what is left of the context window.
    pub max_tokens: Option<u64>,
    /// Leaves the limit to the provider if `max_tokens` is not set, in formats that do not require one.
    pub omit_output_limit: bool,
    /// Requested thinking.
    pub thinking: ThinkingChoice,
    /// Budgets for formats with token budgets.
    pub thinking_budgets: ThinkingBudgets,
    /// Caching of the prompt's prefix; the default is long if the environment has `PI_CACHE_RETENTION=long`, else short.
    pub cache_retention: Option<CacheRetention>,
    /// Id of the conversation for the provider: cache key and affinity.
    pub session_id: Option<SessionId>,
    /// Which tools may or must be called; the default is the provider's, which is [`ToolChoice::Auto`] everywhere.
    pub tool_choice: Option<ToolChoice>,
    /// Required format of the answer; the default is free text.
    pub response_format: Option<ResponseFormat>,
    /// Headers merged last. `None` removes a header.
    pub headers: Vec<(String, Option<String>)>,
    /// Opaque metadata for the provider; `user_id` is forwarded where the format supports it.
    pub metadata: Option<Map<String, Value>>,
    /// Members merged into the body last, in the formats of Anthropic and OpenAI.
    pub sampling_params: Option<Map<String, Value>>,
    /// Further options of one wire format, by their names in its documentation (`serviceTier`, `azureBaseUrl`, …).
    pub native: Map<String, Value>,
    /// Limit of an answer in bytes, including hidden parts; a longer one fails and keeps what has arrived. 0 means no limit, `None` 64 MiB.
    pub max_answer_bytes: Option<usize>,
    /// Timeouts.
    pub timeouts: Timeouts,
    /// Observes the call, and may change the request.
    pub observer: Option<Arc<dyn CallObserver>>,
}

impl CallOptions {
    /// Sets the limit of the answer, in tokens.
    #[must_use]
    pub fn with_max_tokens(mut self, max_tokens: u64) -> Self {
        self.max_tokens = Some(max_tokens);
        self
    }

    /// Sets the thinking budgets.
    #[must_use]
    pub fn with_thinking_budgets(mut self, budgets: ThinkingBudgets) -> Self {
        self.thinking_budgets = budgets;
        self
    }

    /// Sets the timeouts.
    #[must_use]
    pub fn with_timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// Sets further options of one wire format.
    #[must_use]
    pub fn with_native(mut self, native: Map<String, Value>) -> Self {
        self.native = native;
        self
    }
}

impl fmt::Debug for CallOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Headers may contain credentials, so show only their names.
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("CallOptions")
            .field("max_tokens", &self.max_tokens)
            .field("thinking", &self.thinking)
            .field("session_id", &self.session_id)
            .field("headers", &headers)
            .finish_non_exhaustive()
    }
}

/// Observes a call. By default all methods do nothing; an error from any of them ends the call.
pub trait CallObserver: Send + Sync {
    /// Called with the body before it is sent; a returned body replaces it.
    fn on_payload<'a>(&'a self, body: &'a Value, model: &'a Model) -> BoxFuture<'a, Result<Option<Value>, LlmError>> {
        let _ = (body, model);
        Box::pin(async { Ok(None) })
    }

    /// Called with the headers, including credentials, before they are signed and sent, and may change them. Restrictions on reserved
    /// headers do not apply here.
    fn on_headers<'a>(&'a self, headers: &'a mut HeaderMap, model: &'a Model) -> BoxFuture<'a, Result<(), LlmError>> {
        let _ = (headers, model);
        Box::pin(async { Ok(()) })
    }

    /// Called with the response's status and headers, even for failures, before the first event.
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
