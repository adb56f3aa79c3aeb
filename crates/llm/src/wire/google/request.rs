//! Requests in Google's format.

use http::{HeaderMap, StatusCode};
use serde_json::{Map, Value, json};

use super::convert::{self, GoogleEncoding};
use super::models;
use crate::error::{LlmError, LlmErrorKind};
use crate::message::ToolDecl;
use crate::model::dialect::GoogleThinking;
use crate::normalise::system;
use crate::request::{Request, ResponseFormat, ToolChoice};
use crate::schema::clean;
use crate::wire::headers::{self, HeaderLayers};
use crate::wire::strict::{self, StrictDialect};
use crate::wire::{Encoding, HttpRequest, WireCall, address, limit};

/// Default address of Google's own models.
const GOOGLE: &str = "https://generativelanguage.googleapis.com/v1beta";

pub(super) fn encode(call: &WireCall<'_>) -> Result<HttpRequest, LlmError> {
    let request = call.request;
    let key = headers::key(request)?;
    let base = Some(address::base(request)).filter(|base| !base.is_empty()).unwrap_or(GOOGLE);
    let id = model_id(request)?;
    let model = if id.starts_with("models/") || id.starts_with("tunedModels/") { "" } else { "models/" };
    let url = address::url_under(request, base, &format!("{model}{id}:streamGenerateContent?alt=sse"))?;
    let headers = all_headers(request, key.as_ref().map(|key| ("x-goog-api-key", key.reveal())))?;
    Ok(HttpRequest { url, headers, body: body(call)? })
}

/// Returns the model's id, if it is valid in a path.
pub(in crate::wire) fn model_id(request: &Request) -> Result<&str, LlmError> {
    let id = request.model.id.as_str();
    let is_fit = |c: char| c.is_ascii_alphanumeric() || "-_./@:".contains(c);
    if id.chars().all(is_fit) && !id.contains("..") {
        return Ok(id);
    }
    let text = format!("Invalid model id: {id}");
    Err(LlmError::new(request.model.provider.clone(), LlmErrorKind::InvalidRequest, text))
}

/// Returns the headers, including the credential.
pub(in crate::wire) fn all_headers(request: &Request, key: Option<(&str, &str)>) -> Result<HeaderMap, LlmError> {
    let mut layers = HeaderLayers::new(&request.model);
    headers::common(&mut layers)?;
    if let Some((name, value)) = key {
        layers.set(name, value)?;
    }
    layers.lay(&request.model.headers)?;
    layers.lay(&request.auth.headers)?;
    headers::provider_quirks(&mut layers, request)?;
    layers.lay(&request.options.headers)?;
    Ok(layers.finish())
}

/// Builds the body.
///
/// # Errors
/// Returns an error if a tool requires a strict schema, and its own has no strict form.
pub(in crate::wire) fn body(call: &WireCall<'_>) -> Result<Value, LlmError> {
    let request = call.request;
    let conversation = system::collapse(&request.system, &request.tools, &request.messages);
    let rules = GoogleEncoding { model: &request.model, mark_calls: call.encoding == Encoding::MarkedCalls };
    let mut body = Map::new();
    let mut put = |name: &str, value: Value| drop(body.insert(name.to_owned(), value));
    put("contents", convert::contents(&conversation.messages, rules).into());
    let prompt = conversation.head.text();
    if !prompt.trim().is_empty() {
        put("systemInstruction", json!({"role": "user", "parts": [{"text": prompt}]}));
    }
    let tools = &conversation.head.tools;
    if !tools.is_empty() {
        let declared = declarations(call, tools)?;
        put("tools", json!([{"functionDeclarations": declared.list}]));
        let config = request.options.tool_choice.as_ref().and_then(calling_config);
        let config = match config {
            // Otherwise the arguments are not held to the schemas.
            None if declared.has_strict => Some(json!({"mode": "VALIDATED"})),
            Some(config) if declared.has_strict && config["mode"] == "AUTO" => Some(json!({"mode": "VALIDATED"})),
            // Google rejects a choice without tools.
            config => config,
        };
        if let Some(config) = config {
            put("toolConfig", json!({"functionCallingConfig": config}));
        }
    }
    put("generationConfig", generation(call));
    Ok(Value::Object(body))
}

/// Encodes which functions may or must be called.
fn calling_config(choice: &ToolChoice) -> Option<Value> {
    let choice = choice.encode("any", |name| json!({"mode": "ANY", "allowedFunctionNames": [name]}))?;
    Some(match choice.as_str() {
        Some("none") => json!({"mode": "NONE"}),
        Some("any") => json!({"mode": "ANY"}),
        None if choice["mode"].is_string() => choice,
        _ => json!({"mode": "AUTO"}),
    })
}

/// The declarations of tools, and whether one of them has a strict schema.
struct Declarations {
    list: Vec<Value>,
    has_strict: bool,
}

fn declarations(call: &WireCall<'_>, tools: &[ToolDecl]) -> Result<Declarations, LlmError> {
    let model = &call.request.model;
    let mut declared = Declarations { list: Vec::with_capacity(tools.len()), has_strict: false };
    for tool in tools {
        let strict = strict::schema_in(call.encoding, tool, StrictDialect::OpenAi, model.dialect.schema.strict);
        let strict = strict
            .map_err(|why| LlmError::new(model.provider.clone(), LlmErrorKind::InvalidRequest, why.to_string()))?;
        declared.has_strict |= strict.is_some();
        let schema = match strict {
            Some(schema) => clean::without_const(&schema),
            None => tool.parameters.without_const().clone(),
        };
        declared.list.push(json!({"name": tool.name, "description": tool.description, "parametersJsonSchema": schema}));
    }
    Ok(declared)
}

fn generation(call: &WireCall<'_>) -> Value {
    let request = call.request;
    let mut config = Map::new();
    if let Some(temperature) = request.options.temperature.filter(|_| request.model.dialect.wire.temperature) {
        config.insert("temperature".into(), json!(temperature));
    }
    if let Some(limit) = limit::limit_to_send(request) {
        config.insert("maxOutputTokens".into(), limit.into());
    }
    let off_budget = if call.encoding == Encoding::LeastThinking { models::LEAST_BUDGET } else { 0 };
    if let Some(thinking) = models::thinking_config(request, off_budget) {
        config.insert("thinkingConfig".into(), thinking);
    }
    if let Some(format) = &request.options.response_format {
        config.insert("responseMimeType".into(), "application/json".into());
        if let ResponseFormat::JsonSchema(format) = format {
            config.insert("responseJsonSchema".into(), clean::without_const(&format.schema));
        }
    }
    Value::Object(config)
}

/// Returns another encoding of a rejected request: with placeholders for missing signatures, or with minimum thinking instead of none.
pub(in crate::wire) fn reencode(call: &WireCall<'_>, error: &LlmError) -> Option<Encoding> {
    if call.encoding != Encoding::Usual || error.status != Some(StatusCode::BAD_REQUEST) {
        return None;
    }
    let text = error.text.to_lowercase();
    let request = call.request;
    if text.contains("thought_signature") || text.contains("thoughtsignature") {
        let rules = GoogleEncoding { model: &request.model, mark_calls: false };
        let contents = convert::contents(&request.messages, rules);
        return convert::has_unsigned_call(&contents).then_some(Encoding::MarkedCalls);
    }
    let by_tokens = matches!(request.model.dialect.wire.google_thinking, GoogleThinking::Budgets(_));
    let is_off = || models::thinking_config(request, 0).is_some_and(|config| config["thinkingBudget"] == 0);
    (by_tokens && text.contains("budget 0") && is_off()).then_some(Encoding::LeastThinking)
}
