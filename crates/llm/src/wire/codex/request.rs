//! Requests of ChatGPT subscriptions.

use http::HeaderMap;
use serde_json::{Map, Value, json};

use super::account::{ACCOUNT_HEADER, account_id};
use crate::error::LlmError;
#[cfg(feature = "codex-ws")]
use crate::message::{AssistantMessage, Block};
use crate::model::thinking::LevelRule;
use crate::request::Request;
use crate::thinking::ThinkingLevel;
use crate::wire::headers::{self, AuthKey, HeaderLayers};
use crate::wire::responses::grammar::GrammarTools;
use crate::wire::responses::models::{self, ReasoningEffort};
use crate::wire::responses::request::{self, Relaxed};
use crate::wire::{HttpRequest, WireCall, address, sampling};

const BASE_URL: &str = "https://chatgpt.com/backend-api";
const DEFAULT_INSTRUCTIONS: &str = "You are a helpful assistant.";

pub(super) fn encode(call: &WireCall<'_>) -> Result<HttpRequest, LlmError> {
    let request = call.request;
    let key = headers::key(request)?;
    let url = url(request)?;
    let body = body(call)?;
    let own = [
        ("accept", "text/event-stream"),
        ("content-type", "application/json"),
        ("openai-beta", "responses=experimental"),
        // If this header is present, the body is compressed when it is sent; a caller may remove it.
        #[cfg(feature = "zstd")]
        ("content-encoding", "zstd"),
    ];
    let session = headers::session(request);
    let headers = all_headers(request, key.as_ref(), &own, session.as_deref())?;
    Ok(HttpRequest { url, headers, body })
}

/// Encodes a request over a WebSocket: URL, headers, and the body that becomes a message. Without a conversation id, the call gets a new
/// one.
#[cfg(feature = "codex-ws")]
pub(crate) fn encode_for_socket(call: &WireCall<'_>) -> Result<HttpRequest, LlmError> {
    let request = call.request;
    let key = headers::key(request)?;
    let session = headers::session(request).unwrap_or_else(|| request.host.ids().uuid_v4().into());
    let own = [("openai-beta", "responses_websockets=2026-02-06")];
    let headers = all_headers(request, key.as_ref(), &own, Some(&session))?;
    Ok(HttpRequest { url: url(request)?, headers, body: body(call)? })
}

/// Returns the items that represent an answer in the next request, or `None` if they are unknown.
#[cfg(feature = "codex-ws")]
pub(crate) fn answer_items(request: &Request, answer: &AssistantMessage) -> Option<Vec<Value>> {
    // A text without an id is named by its position, which is unknown here.
    let is_named = |block: &Block| !matches!(block, Block::Text(text) if text.signature.is_none());
    if !answer.content.iter().all(|block| is_named(block)) {
        return None;
    }
    let grammar = GrammarTools::of_request(request);
    Some(request::answer_items(request, answer, &grammar))
}

/// Returns the URL of requests.
pub(crate) fn url(request: &Request) -> Result<String, LlmError> {
    let base = request.auth.base_url.as_deref().unwrap_or(&request.model.base_url);
    let base = if base.trim().is_empty() { BASE_URL.to_owned() } else { address::filled_base(request)? };
    let base = base.trim_end_matches('/');
    Ok(if base.ends_with("/codex/responses") {
        base.to_owned()
    } else if base.ends_with("/codex") {
        format!("{base}/responses")
    } else {
        format!("{base}/codex/responses")
    })
}

/// Builds the body of a request.
pub(crate) fn body(call: &WireCall<'_>) -> Result<Value, LlmError> {
    let request = call.request;
    let model = &*request.model;
    let effort = models::effort_of(request);
    let conversation = request::conversation(request);
    let grammar = GrammarTools::of(request, &conversation.current.tools);
    let prompt = conversation.head.text();
    let instructions = if prompt.trim().is_empty() { DEFAULT_INSTRUCTIONS } else { &prompt };
    let verbosity = request.options.native.get("textVerbosity").and_then(Value::as_str).unwrap_or("low");
    let tools = request::tools(call, request::listed_tools(request, &conversation), &grammar, Relaxed::Null)?;
    let input = request::items(call, &conversation, &grammar, Relaxed::Null)?;

    let mut body = Map::new();
    let mut put = |name: &str, value: Value| drop(body.insert(name.to_owned(), value));
    put("model", model.id.as_str().into());
    put("store", false.into());
    put("stream", true.into());
    put("instructions", instructions.into());
    put("input", input.into());
    let mut text = json!({"verbosity": verbosity});
    if let Some(format) = &request.options.response_format {
        text["format"] = format.encode_responses(model.dialect.schema.strict);
    }
    put("text", text);
    put("include", json!(["reasoning.encrypted_content"]));
    if let Some(session) = headers::session(request) {
        put("prompt_cache_key", session.into());
    }
    put("tool_choice", request::tool_choice(request, &grammar).unwrap_or_else(|| "auto".into()));
    put("parallel_tool_calls", true.into());
    if let Some(temperature) = request.options.temperature.filter(|_| model.dialect.wire.temperature) {
        put("temperature", json!(temperature));
    }
    if let Some(tier) = models::service_tier(request) {
        put("service_tier", tier.into());
    }
    if !tools.is_empty() {
        put("tools", tools.into());
    }
    if let Some(reasoning) = reasoning(request, &effort) {
        put("reasoning", reasoning);
    }
    sampling::put(&mut body, request, effort.level_name());
    Ok(Value::Object(body))
}

/// Returns the reasoning parameter, or nothing if no effort was requested.
fn reasoning(request: &Request, effort: &ReasoningEffort) -> Option<Value> {
    let model = &request.model;
    let word = effort.word.as_deref()?;
    let level = if word == "none" { Some(ThinkingLevel::Off) } else { effort.level };
    if level.is_some_and(|level| *model.thinking.rule(level) == LevelRule::Unsupported) {
        return None;
    }
    let word = if word == "none" { model.thinking.word(ThinkingLevel::Off).unwrap_or(word) } else { word };
    Some(json!({"effort": word, "summary": effort.summary.as_deref().unwrap_or("auto")}))
}

/// Returns all headers, including those of the transport in `own`. The client and account headers cannot be overridden.
pub(crate) fn all_headers(
    request: &Request,
    key: Option<&AuthKey>,
    own: &[(&str, &str)],
    session: Option<&str>,
) -> Result<HeaderMap, LlmError> {
    let account = account_id(request, key)?;
    let mut layers = HeaderLayers::new(&request.model);
    for (name, value) in own {
        layers.set(name, value)?;
    }
    layers.lay(&request.model.headers)?;
    layers.lay(&request.auth.headers)?;
    if let Some(session) = session {
        layers.set("session-id", session)?;
        layers.set("x-client-request-id", session)?;
    }
    layers.lay(&request.options.headers)?;
    if let Some(key) = key {
        layers.set("authorization", &key.bearer())?;
    }
    layers.set(ACCOUNT_HEADER, &account)?;
    layers.set("originator", "pi")?;
    layers.set("user-agent", &format!("pi ({}; {})", std::env::consts::OS, std::env::consts::ARCH))?;
    Ok(layers.finish())
}
