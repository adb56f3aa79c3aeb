//! Requests in Mistral's format.

use std::cell::RefCell;

use http::HeaderMap;
use serde_json::{Map, Value, json};

use super::convert;
use super::ids::CallIds;
use crate::error::{LlmError, LlmErrorKind};
use crate::message::{AssistantMessage, Message, ToolDecl};
use crate::model::Model;
use crate::model::thinking::clamp;
use crate::normalise;
use crate::normalise::system::{self, Conversation};
use crate::request::{CacheRetention, Request, ThinkingChoice, ToolChoice};
use crate::thinking::ThinkingLevel;
use crate::wire::headers::{self, AuthKey, HeaderLayers};
use crate::wire::strict::{self, StrictDialect};
use crate::wire::{HttpRequest, WireCall, address, limit};

/// The header that keeps a conversation on one machine.
const AFFINITY: &str = "x-affinity";

pub(super) fn encode(call: &WireCall<'_>) -> Result<HttpRequest, LlmError> {
    let request = call.request;
    let key = headers::key(request)?;
    let url = address::url(request, "v1/chat/completions")?;
    let conversation = conversation(request);
    let tools = tools(&request.model, &conversation.current.tools)?;

    let mut body = Map::new();
    let mut put = |name: &str, value: Value| drop(body.insert(name.to_owned(), value));
    put("model", request.model.id.as_str().into());
    put("stream", true.into());
    put("messages", messages(request, &conversation).into());
    if !tools.is_empty() {
        put("tools", tools.into());
    }
    if let Some(choice) = request.options.tool_choice.as_ref().and_then(ToolChoice::encode_openai) {
        put("tool_choice", choice);
    }
    if let Some(format) = &request.options.response_format {
        put("response_format", format.encode_openai(true));
    }
    if let Some(temperature) = request.options.temperature.filter(|_| request.model.dialect.wire.temperature) {
        put("temperature", json!(temperature));
    }
    if let Some(limit) = limit::limit_to_send(request) {
        put("max_tokens", limit.into());
    }
    if let Some((name, word)) = thinking(request) {
        put(name, word.into());
    }
    if let Some(session) = headers::session(request).filter(|_| headers::retention(request) != CacheRetention::None) {
        put("prompt_cache_key", session.into());
    }
    Ok(HttpRequest { url, headers: all_headers(request, key.as_ref())?, body: Value::Object(body) })
}

/// Returns the thinking parameter: the member and its value. Older models have a mode for it, newer ones an effort.
fn thinking(request: &Request) -> Option<(&'static str, String)> {
    let model = &*request.model;
    let wire = &model.dialect.wire;
    let by_effort = wire.reasoning_effort || (!wire.prompt_mode && !model.thinking.is_empty());
    match &request.options.thinking {
        ThinkingChoice::Native(native) => {
            let mode = request.options.native.get("promptMode").and_then(Value::as_str);
            let effort = native.effort.as_ref().map(|word| ("reasoning_effort", word.clone()));
            effort.or_else(|| Some(("prompt_mode", mode?.to_owned())))
        }
        ThinkingChoice::Unset => {
            let mode = request.options.native.get("promptMode").and_then(Value::as_str)?;
            Some(("prompt_mode", mode.to_owned()))
        }
        _ if !model.reasoning => None,
        ThinkingChoice::Level(level) => match clamp(model, *level) {
            // Models with an effort option beside the mode do not think unless requested.
            ThinkingLevel::Off if by_effort && !wire.reasoning_effort => {
                Some(("reasoning_effort", model.thinking.word(ThinkingLevel::Off)?.to_owned()))
            }
            _ if *level == ThinkingLevel::Off => None,
            level if by_effort => Some(("reasoning_effort", model.thinking.word(level).unwrap_or("high").to_owned())),
            _ => Some(("prompt_mode", "reasoning".to_owned())),
        },
    }
}

fn conversation(request: &Request) -> Conversation {
    if request.model.dialect.wire.mid_convo_system {
        system::split_at_tools(request, false)
    } else {
        system::collapse(&request.system, &request.tools, &request.messages)
    }
}

fn messages(request: &Request, conversation: &Conversation) -> Vec<Value> {
    let ids = RefCell::new(CallIds::default());
    let rule = |id: &str, _: &Model, _: &AssistantMessage| ids.borrow_mut().rename(id);
    let normalised = normalise::transform(&conversation.messages, &request.model, Some(&rule));
    let prompt = conversation.head.text();
    let system = |text: String| (!text.trim().is_empty()).then(|| json!({"role": "system", "content": text}));
    let rest = normalised.iter().filter_map(|message| match &**message {
        Message::System(change) => system(system::change_text(change)),
        Message::User(message) => convert::user(message),
        Message::Assistant(answer) => convert::assistant(answer),
        Message::ToolResult(result) => Some(convert::tool_result(result)),
        Message::Other(_) => None,
    });
    system(prompt).into_iter().chain(rest).collect()
}

fn tools(model: &Model, tools: &[ToolDecl]) -> Result<Vec<Value>, LlmError> {
    let rules = &model.dialect.schema;
    let write = |tool: &ToolDecl| {
        let schema = strict::schema_for(tool, StrictDialect::OpenAi, rules.strict)?;
        let is_strict = schema.is_some();
        let function = json!({
            "name": tool.name,
            "description": tool.description,
            "parameters": schema.unwrap_or_else(|| tool.parameters.cleaned(rules.family, rules.hints).clone()),
            "strict": is_strict,
        });
        Ok(json!({"type": "function", "function": function}))
    };
    let written: Result<Vec<Value>, strict::Inexpressible> = tools.iter().map(write).collect();
    written.map_err(|why| LlmError::new(model.provider.clone(), LlmErrorKind::InvalidRequest, why.to_string()))
}

fn all_headers(request: &Request, key: Option<&AuthKey>) -> Result<HeaderMap, LlmError> {
    let mut layers = HeaderLayers::new(&request.model);
    headers::common(&mut layers)?;
    layers.set("accept", "text/event-stream")?;
    if let Some(key) = key {
        layers.set("authorization", &key.bearer())?;
    }
    if let Some(session) = headers::session(request) {
        layers.set(AFFINITY, &session)?;
    }
    layers.lay(&request.model.headers)?;
    layers.lay(&request.auth.headers)?;
    layers.lay(&request.options.headers)?;
    Ok(layers.finish())
}
