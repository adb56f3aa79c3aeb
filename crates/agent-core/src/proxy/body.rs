//! The request body between client and server.

use std::sync::Arc;

use pinch_llm::http::url_parts;
use pinch_llm::ids::SessionId;
use pinch_llm::message::{Message, ToolDecl};
use pinch_llm::model::Model;
use pinch_llm::model::record::RecordError;
use pinch_llm::request::{
    Auth, CacheRetention, CallOptions, NativeThinking, Request, ResponseFormat, SystemPrompt, ThinkingBudgets,
    ThinkingChoice, ToolChoice,
};
use pinch_llm::thinking::ThinkingLevel;
use pinch_stdx::host::Host;
use pinch_stdx::json::lossy;
use serde_json::{Map, Value, json};

/// Options that are transmitted under their own names among a format's native options.
const NATIVE: [&str; 2] = ["transport", "maxRetryDelayMs"];
const RETENTIONS: [(CacheRetention, &str); 3] =
    [(CacheRetention::None, "none"), (CacheRetention::Short, "short"), (CacheRetention::Long, "long")];

/// Returns the body of a request, which has no credentials: what [`ProxyCall::read`] parses.
pub fn body(request: &Request) -> Value {
    let Request { model, system, messages, tools, options, .. } = request;
    let mut context = Map::new();
    if !system.is_empty() {
        context.insert("systemPrompt".into(), system.render().into());
    }
    context.insert("messages".into(), messages.iter().map(|message| message.to_value()).collect());
    if !tools.is_empty() {
        context.insert("tools".into(), tools.iter().map(|tool| json!(tool)).collect());
    }
    json!({"model": write_model(model), "context": context, "options": write_options(options)})
}

/// Builds the model's record without credentials, as the server has its own: no headers, and no secrets in the URL.
fn write_model(model: &Model) -> Value {
    let mut record = model.to_record();
    if let Some(members) = record.as_object_mut() {
        members.shift_remove("headers");
        if model.base_url.contains(['@', '?']) {
            members.insert("baseUrl".into(), url_parts::without_secrets(&model.base_url).into());
        }
    }
    record
}

fn write_options(options: &CallOptions) -> Value {
    let mut encoded = Map::new();
    let mut put = |name: &str, value: Value| {
        if !value.is_null() {
            encoded.insert(name.to_owned(), value);
        }
    };
    put("temperature", json!(options.temperature));
    put("maxTokens", json!(options.max_tokens));
    match &options.thinking {
        // A missing value means off.
        ThinkingChoice::Level(ThinkingLevel::Off) => {}
        ThinkingChoice::Level(level) => put("reasoning", level.as_str().into()),
        ThinkingChoice::Unset => put("thinking", "unset".into()),
        ThinkingChoice::Native(NativeThinking { enabled, budget, effort, display }) => {
            put("thinking", json!({"enabled": enabled, "budget": budget, "effort": effort, "display": display}))
        }
    }
    let retention = RETENTIONS.iter().find(|(known, _)| Some(*known) == options.cache_retention);
    put("cacheRetention", json!(retention.map(|(_, word)| *word)));
    put("sessionId", json!(options.session_id));
    if !options.headers.is_empty() {
        put("headers", options.headers.iter().map(|(name, value)| (name.clone(), json!(value))).collect());
    }
    put("metadata", json!(options.metadata));
    for name in NATIVE {
        put(name, options.native.get(name).cloned().unwrap_or_default());
    }
    put("toolChoice", options.tool_choice.as_ref().map(ToolChoice::to_value).unwrap_or_default());
    put("responseFormat", options.response_format.as_ref().map(ResponseFormat::to_value).unwrap_or_default());
    if options.thinking_budgets != ThinkingBudgets::default() {
        let ThinkingBudgets { minimal, low, medium, high } = options.thinking_budgets;
        put("thinkingBudgets", json!({"minimal": minimal, "low": low, "medium": medium, "high": high}));
    }
    Value::Object(encoded)
}

/// A request as sent by a client, without observers and timeouts, which the server sets itself.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ProxyCall {
    /// The model as described by the client. Do not trust any of it: neither its URL nor its headers.
    pub model: Model,
    /// The prompt.
    pub system: SystemPrompt,
    /// The conversation.
    pub messages: Vec<Arc<Message>>,
    /// Tools the model may call.
    pub tools: Arc<[ToolDecl]>,
    /// Settings of the call.
    pub options: CallOptions,
}

/// A request body that is invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyBodyError {
    /// The body is not JSON.
    #[error("the body is not JSON")]
    NotJson {
        /// The parser's error.
        #[source]
        source: serde_json::Error,
    },
    /// There is no valid model.
    #[error("the body has no model")]
    Model {
        /// What is wrong with the record.
        #[source]
        source: RecordError,
    },
    /// There is no list of messages, or `tools` is not a list.
    #[error("the body has no {what} list")]
    NoList {
        /// The name of the list.
        what: &'static str,
    },
    /// A message or tool cannot be read.
    #[error("{what} {idx} of the body cannot be read")]
    Item {
        /// Kind of the item: a message or a tool.
        what: &'static str,
        /// Its index in the list.
        idx: usize,
        /// The parser's error.
        #[source]
        source: serde_json::Error,
    },
}

impl ProxyCall {
    /// Parses the body of a request. The server must limit its size beforehand. Options of a wrong type count as missing.
    ///
    /// # Errors
    /// Returns [`ProxyBodyError`] for an invalid body; respond with status 400 and `{"error": text}`.
    pub fn read(body: &[u8]) -> Result<Self, ProxyBodyError> {
        let body: Value = lossy::from_slice(body).map_err(|source| ProxyBodyError::NotJson { source })?;
        let model = Model::from_record(&body["model"]).map_err(|source| ProxyBodyError::Model { source })?;
        let context = &body["context"];
        let messages = context["messages"].as_array().ok_or(ProxyBodyError::NoList { what: "messages" })?;
        let messages = messages.iter().enumerate().map(|(idx, message)| match Message::from_value(message) {
            Ok(message) => Ok(Arc::new(message)),
            Err(source) => Err(ProxyBodyError::Item { what: "message", idx, source }),
        });
        let tools = match &context["tools"] {
            Value::Null => &Vec::new(),
            tools => tools.as_array().ok_or(ProxyBodyError::NoList { what: "tools" })?,
        };
        let tools = tools.iter().enumerate().map(|(idx, tool)| {
            serde_json::from_value(tool.clone()).map_err(|source| ProxyBodyError::Item { what: "tool", idx, source })
        });
        Ok(Self {
            model,
            system: context["systemPrompt"].as_str().map(SystemPrompt::text).unwrap_or_default(),
            messages: messages.collect::<Result<_, _>>()?,
            tools: tools.collect::<Result<_, _>>()?,
            options: read_options(&body["options"]),
        })
    }

    /// Builds the request for the server's own model, with the server's own credentials.
    pub fn into_request(self, model: Arc<Model>, auth: Auth, host: Host) -> Request {
        let Self { system, messages, tools, options, .. } = self;
        Request::new(model, messages)
            .with_system(system)
            .with_tools(tools)
            .with_options(options)
            .with_auth(auth)
            .with_host(host)
    }
}

fn read_options(encoded: &Value) -> CallOptions {
    let retention = RETENTIONS.iter().find(|(_, word)| encoded["cacheRetention"] == *word);
    let headers = encoded["headers"].as_object().into_iter().flatten();
    let native = NATIVE.iter().filter_map(|name| Some(((*name).to_owned(), encoded.get(*name)?.clone())));
    let budget = |level: &str| encoded["thinkingBudgets"][level].as_u64();
    let mut options = CallOptions::default();
    options.temperature = encoded["temperature"].as_f64();
    options.max_tokens = encoded["maxTokens"].as_u64();
    options.thinking = read_thinking(encoded);
    options.thinking_budgets = ThinkingBudgets {
        minimal: budget("minimal"),
        low: budget("low"),
        medium: budget("medium"),
        high: budget("high"),
    };
    options.cache_retention = retention.map(|(retention, _)| *retention);
    options.tool_choice = ToolChoice::from_value(&encoded["toolChoice"]);
    options.response_format = ResponseFormat::from_value(&encoded["responseFormat"]);
    options.session_id = encoded["sessionId"].as_str().map(SessionId::from);
    options.headers = headers
        .filter(|(_, value)| value.is_string() || value.is_null())
        .map(|(name, value)| (name.clone(), value.as_str().map(str::to_owned)))
        .collect();
    options.metadata = encoded["metadata"].as_object().cloned();
    options.native = native.collect();
    options
}

fn read_thinking(encoded: &Value) -> ThinkingChoice {
    match &encoded["thinking"] {
        Value::String(word) if word == "unset" => ThinkingChoice::Unset,
        Value::Object(native) => {
            let text = |name: &str| native.get(name).and_then(Value::as_str).map(str::to_owned);
            ThinkingChoice::Native(NativeThinking {
                enabled: native.get("enabled").and_then(Value::as_bool),
                budget: native.get("budget").and_then(Value::as_u64),
                effort: text("effort"),
                display: text("display"),
            })
        }
        _ => ThinkingChoice::Level(encoded["reasoning"].as_str().and_then(ThinkingLevel::parse).unwrap_or_default()),
    }
}
