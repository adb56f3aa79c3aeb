//! Requests in OpenAI's format.

use std::sync::Arc;

use http::HeaderMap;
use pinch_http::url_parts::host_is;
use serde_json::{Map, Value, json};

use super::{convert, models};
use crate::error::{LlmError, LlmErrorKind};
use crate::message::{Message, SystemMessage, ToolDecl};
use crate::model::Model;
use crate::model::dialect::{PromptCacheKey, SchemaRules};
use crate::normalise;
use crate::normalise::system::{self, Conversation, PromptBlocks};
use crate::request::{CacheRetention, Request, ToolChoice};
use crate::wire::headers::{self, AuthKey, HeaderLayers};
use crate::wire::strict::{self, StrictDialect};
use crate::wire::{Encoding, HttpRequest, WireCall, address, limit, sampling};

pub(super) fn encode(call: &WireCall<'_>) -> Result<HttpRequest, LlmError> {
    let request = call.request;
    let model = &*request.model;
    let wire = &model.dialect.wire;
    let key = headers::key(request)?;
    let url = address::url(request, "chat/completions")?;
    let retention = headers::retention(request);
    let effort = models::effort_of(request);
    let conversation = conversation(request);
    let mut messages = messages(request, &conversation);
    let mut tools = tools(model, &conversation.current.tools, call.encoding)?;
    if wire.cache_markers && retention != CacheRetention::None {
        let prompt = conversation.head.blocks();
        mark_caches(&mut messages, &mut tools, &prompt, retention, wire.long_cache_retention);
    }

    let mut body = Map::new();
    let mut put = |name: &str, value: Value| drop(body.insert(name.to_owned(), value));
    put("model", model.id.as_str().into());
    let has_tool_history = messages.iter().any(|m| m["role"] == "tool" || m.get("tool_calls").is_some());
    put("messages", messages.into());
    put("stream", true.into());
    put_cache_key(&mut put, request, retention);
    if wire.usage_in_streaming {
        put("stream_options", json!({"include_usage": true}));
    }
    if wire.store {
        put("store", false.into());
    }
    let limit = limit::limit_to_send(request);
    if let Some(limit) = limit {
        put(wire.max_tokens_field.as_str(), limit.into());
    }
    if let Some(temperature) = request.options.temperature.filter(|_| wire.temperature) {
        put("temperature", json!(temperature));
    }
    if !tools.is_empty() {
        put("tools", tools.into());
        if wire.zai_tool_stream {
            put("tool_stream", true.into());
        }
    } else if has_tool_history && model.dialect.history.tools_with_tool_history {
        put("tools", json!([]));
    }
    if let Some(choice) = request.options.tool_choice.as_ref().and_then(ToolChoice::encode_openai) {
        put("tool_choice", choice);
    }
    if let Some(format) = &request.options.response_format {
        put("response_format", format.encode_openai(model.dialect.schema.strict));
    }
    if let Some(priority) = wire.vllm_priority {
        put("priority", priority.into());
    }
    let effort = effort.map(|effort| effort.within(limit.unwrap_or(model.max_tokens)));
    models::put_thinking(&mut body, model, effort.as_ref());
    put_routing(&mut body, request);
    let level = effort.as_ref().map_or(Some("off"), |effort| Some(effort.level?.as_str()));
    sampling::put(&mut body, request, level);
    Ok(HttpRequest { url, headers: all_headers(request, key.as_ref())?, body: Value::Object(body) })
}

fn put_cache_key(put: &mut impl FnMut(&str, Value), request: &Request, retention: CacheRetention) {
    let wire = &request.model.dialect.wire;
    let long = retention == CacheRetention::Long && wire.long_cache_retention;
    let wanted = match wire.prompt_cache_key {
        PromptCacheKey::Disabled => false,
        PromptCacheKey::Enabled => retention != CacheRetention::None,
        PromptCacheKey::Auto => long || (retention != CacheRetention::None && is_openai(request)),
    };
    if let Some(session) = headers::session(request).filter(|_| wanted) {
        put("prompt_cache_key", session.into());
    }
    if long && wire.prompt_cache_key != PromptCacheKey::Disabled {
        match wire.prompt_cache_options {
            true => put("prompt_cache_options", json!({"ttl": "30m"})),
            false => put("prompt_cache_retention", "24h".into()),
        }
    }
}

fn is_openai(request: &Request) -> bool {
    host_is(address::base(request), "api.openai.com")
}

fn put_routing(body: &mut Map<String, Value>, request: &Request) {
    let wire = &request.model.dialect.wire;
    if let Some(routing) = &wire.open_router_routing {
        body.insert("provider".into(), Value::Object((**routing).clone()));
    }
    if let Some(routing) = &wire.vercel_routing {
        let known = ["only", "order"].iter().filter_map(|name| Some(((*name).to_owned(), routing.get(*name)?.clone())));
        let known: Map<String, Value> = known.collect();
        if !known.is_empty() {
            body.insert("providerOptions".into(), json!({"gateway": known}));
        }
    }
}

// Messages.

fn conversation(request: &Request) -> Conversation {
    let wire = &request.model.dialect.wire;
    if !wire.mid_convo_system {
        return system::collapse(&request.system, &request.tools, &request.messages);
    }
    let mut split = system::split_at_tools(request, wire.mid_convo_tool_additions);
    if wire.mid_convo_tool_additions {
        split.current = split.head.clone();
    }
    split
}

fn messages(request: &Request, conversation: &Conversation) -> Vec<Value> {
    let model = &*request.model;
    let rules = &model.dialect.history;
    let normalised =
        normalise::transform(&conversation.messages, model, Some(&|id, target, _| convert::normalise_id(id, target)));
    let mut messages = Vec::with_capacity(normalised.len() + 1);
    let prompt = conversation.head.text();
    if !prompt.trim().is_empty() {
        messages.push(json!({"role": prompt_role(model), "content": prompt}));
    }
    let mut after_result = false;
    let mut at = 0;
    while let Some(message) = normalised.get(at) {
        at += 1;
        match &**message {
            Message::System(change) => messages.extend(later_system(change, model)),
            Message::User(user) => {
                let Some(said) = convert::user(user) else { continue };
                bridge(&mut messages, after_result && rules.assistant_after_tool_result);
                messages.push(said);
            }
            Message::Assistant(answer) => {
                let Some(said) = convert::assistant(answer, model) else { continue };
                messages.push(said);
            }
            Message::ToolResult(_) => {
                let run = || normalised[at - 1..].iter().map_while(as_tool_result);
                messages.extend(run().map(|result| convert::tool_result(result, rules)));
                let images = convert::images_of(run()).filter(|_| model.images);
                at += run().count() - 1;
                after_result = images.is_none();
                if let Some(images) = images {
                    bridge(&mut messages, rules.assistant_after_tool_result);
                    messages.push(images);
                }
                continue;
            }
            Message::Other(_) => continue,
        }
        after_result = false;
    }
    messages
}

fn as_tool_result(message: &Arc<Message>) -> Option<&crate::message::ToolResult> {
    match &**message {
        Message::ToolResult(result) => Some(result),
        _ => None,
    }
}

/// Inserts an assistant message between a tool result and a user message, which some servers require.
fn bridge(messages: &mut Vec<Value>, needed: bool) {
    if needed {
        messages.push(json!({"role": "assistant", "content": "I have processed the tool results."}));
    }
}

fn prompt_role(model: &Model) -> &'static str {
    if model.reasoning && model.dialect.history.developer_role { "developer" } else { "system" }
}

/// Encodes a change within the conversation, including added tools.
fn later_system(change: &SystemMessage, model: &Model) -> Option<Value> {
    let text = system::change_text(change);
    let adds = model.dialect.wire.mid_convo_tool_additions && !change.tools_added.is_empty();
    if text.is_empty() && !adds {
        return None;
    }
    let mut encoded = json!({"role": prompt_role(model), "content": text});
    if adds {
        let plain = |tool: &ToolDecl| function(tool, None, &model.dialect.schema);
        encoded["tools"] = change.tools_added.iter().map(plain).collect();
    }
    Some(encoded)
}

// Tools and cache markers.

fn tools(model: &Model, tools: &[ToolDecl], encoding: Encoding) -> Result<Vec<Value>, LlmError> {
    let rules = &model.dialect.schema;
    let write = |tool: &ToolDecl| {
        let schema = strict::schema_in(encoding, tool, StrictDialect::OpenAi, rules.strict)?;
        Ok(function(tool, schema, rules))
    };
    let written: Result<Vec<Value>, strict::Inexpressible> = tools.iter().map(write).collect();
    written.map_err(|why| LlmError::new(model.provider.clone(), LlmErrorKind::InvalidRequest, why.to_string()))
}

fn function(tool: &ToolDecl, strict: Option<Value>, rules: &SchemaRules) -> Value {
    let is_strict = strict.is_some();
    let mut function = json!({
        "name": tool.name,
        "description": tool.description,
        "parameters": strict.unwrap_or_else(|| tool.parameters.cleaned(rules.family, rules.hints).clone()),
    });
    if rules.strict {
        function["strict"] = is_strict.into();
    }
    json!({"type": "function", "function": function})
}

/// Sets Anthropic's cache markers: on the stable part of the prompt, on the last tool, and on the last message with text.
fn mark_caches(
    messages: &mut [Value],
    tools: &mut [Value],
    prompt: &PromptBlocks,
    retention: CacheRetention,
    long_supported: bool,
) {
    let mut marker = json!({"type": "ephemeral"});
    if retention == CacheRetention::Long && long_supported {
        marker["ttl"] = "1h".into();
    }
    if let Some(first) = messages.iter_mut().find(|m| m["role"] == "system" || m["role"] == "developer") {
        match (prompt.stable.trim().is_empty(), prompt.volatile.trim().is_empty()) {
            (false, false) => {
                let stable = json!({"type": "text", "text": prompt.stable, "cache_control": marker});
                first["content"] = json!([stable, {"type": "text", "text": prompt.volatile}]);
            }
            (true, false) => {}
            (_, true) => drop(mark_text(first, &marker)),
        }
    }
    if let Some(tool) = tools.last_mut() {
        tool["cache_control"] = marker.clone();
    }
    let _found = messages.iter_mut().rev().any(|message| {
        matches!(message["role"].as_str(), Some("user" | "assistant" | "tool")) && mark_text(message, &marker)
    });
}

/// Marks the last text of a message; returns false if it has none.
fn mark_text(message: &mut Value, marker: &Value) -> bool {
    let content = &mut message["content"];
    if let Some(text) = content.as_str() {
        if text.is_empty() {
            return false;
        }
        *content = json!([{"type": "text", "text": text}]);
    }
    let part = content.as_array_mut().and_then(|parts| parts.iter_mut().rfind(|part| part["type"] == "text"));
    part.map(|part| part["cache_control"] = marker.clone()).is_some()
}

// Headers.

fn all_headers(request: &Request, key: Option<&AuthKey>) -> Result<HeaderMap, LlmError> {
    let mut layers = HeaderLayers::new(&request.model);
    headers::common(&mut layers)?;
    headers::bearer(&mut layers, request, key)?;
    layers.lay(&request.model.headers)?;
    layers.lay(&request.auth.headers)?;
    headers::provider_quirks(&mut layers, request)?;
    headers::affinity(&mut layers, request, &["session_id", "x-client-request-id", "x-session-affinity"])?;
    layers.lay(&request.options.headers)?;
    Ok(layers.finish())
}
