//! Requests in the Responses format.

use http::HeaderMap;
use serde_json::{Map, Value, json};

use super::convert::{self, Items};
use super::grammar::GrammarTools;
use super::models::{self, Relative};
use crate::error::{LlmError, LlmErrorKind};
#[cfg(feature = "codex-ws")]
use crate::message::AssistantMessage;
use crate::message::{Message, ToolDecl};
use crate::model::Model;
use crate::model::dialect::PromptCacheKey;
use crate::normalise;
use crate::normalise::system::{self, Conversation};
use crate::request::{CacheRetention, Request};
use crate::wire::headers::{self, AuthKey, HeaderLayers};
use crate::wire::strict::{self, StrictDialect};
use crate::wire::{HttpRequest, WireCall, address, limit, sampling};

/// The minimum limit of an answer that OpenAI accepts.
const LEAST_OUTPUT: u64 = 16;

pub(super) fn encode(call: &WireCall<'_>) -> Result<HttpRequest, LlmError> {
    let request = call.request;
    let key = headers::key(request)?;
    let url = address::url(request, "responses")?;
    let model = request.model.id.as_str();
    let body = body(call, model, Relative::OpenAi)?;
    Ok(HttpRequest { url, headers: all_headers(request, key.as_ref())?, body })
}

/// Builds the body for OpenAI and Azure.
pub(in crate::wire) fn body(call: &WireCall<'_>, model_name: &str, relative: Relative) -> Result<Value, LlmError> {
    let request = call.request;
    let model = &*request.model;
    let wire = &model.dialect.wire;
    let effort = models::effort_of(request);
    let conversation = conversation(request);
    let grammar = GrammarTools::of(request, &conversation.current.tools);
    let mut input = Vec::new();
    let prompt = conversation.head.text();
    if !prompt.trim().is_empty() {
        input.push(json!({"role": prompt_role(model), "content": prompt}));
    }
    let announced = models::announced_effort(request);
    input.append(&mut items(call, &conversation, &grammar, Relaxed::FalseOrOmitted)?);
    input.extend(announced.as_deref().map(models::effort_item));
    let tools = tools(call, listed_tools(request, &conversation), &grammar, Relaxed::FalseOrOmitted)?;

    let mut body = Map::new();
    let mut put = |name: &str, value: Value| drop(body.insert(name.to_owned(), value));
    put("model", model_name.into());
    put("input", input.into());
    put("stream", true.into());
    put_cache(&mut put, request, relative);
    put("store", false.into());
    if let Some(limit) = limit::limit_to_send(request).filter(|_| wire.max_output_tokens) {
        put("max_output_tokens", limit.max(LEAST_OUTPUT).into());
    }
    if let Some(temperature) = request.options.temperature.filter(|_| wire.temperature) {
        put("temperature", json!(temperature));
    }
    if let Some(tier) = models::service_tier(request).filter(|_| relative == Relative::OpenAi) {
        put("service_tier", tier.into());
    }
    if !tools.is_empty() {
        put("tools", tools.into());
    }
    if let Some(choice) = tool_choice(request, &grammar) {
        put("tool_choice", choice);
    }
    if let Some(format) = &request.options.response_format {
        put("text", json!({"format": format.encode_responses(model.dialect.schema.strict)}));
    }
    let sent = announced.map(|_| models::fixed_effort(&effort));
    models::put_thinking(&mut body, model, sent.as_ref().unwrap_or(&effort), relative);
    sampling::put(&mut body, request, effort.level_name());
    Ok(Value::Object(body))
}

fn put_cache(put: &mut impl FnMut(&str, Value), request: &Request, relative: Relative) {
    let wire = &request.model.dialect.wire;
    let retention = headers::retention(request);
    let wanted = retention != CacheRetention::None && wire.prompt_cache_key != PromptCacheKey::Disabled;
    if let Some(session) = headers::session(request).filter(|_| wanted) {
        put("prompt_cache_key", session.into());
    }
    if relative == Relative::Azure {
        return;
    }
    let long = wanted && retention == CacheRetention::Long && wire.long_cache_retention;
    if long && (wire.prompt_cache_options || wire.explicit_cache_mode) {
        put("prompt_cache_options", json!({"ttl": "30m"}));
    } else if long {
        put("prompt_cache_retention", "24h".into());
    } else if retention == CacheRetention::None && wire.explicit_cache_mode {
        // Only marked positions would be cached, and nothing is marked.
        put("prompt_cache_options", json!({"mode": "explicit"}));
    }
}

/// Encodes which tools may or must be called. The form of Chat Completions is accepted, too.
pub(in crate::wire) fn tool_choice(request: &Request, grammar: &GrammarTools) -> Option<Value> {
    let choice = request.options.tool_choice.as_ref()?.encode_openai()?;
    let name = choice["name"].as_str().or_else(|| choice["function"]["name"].as_str());
    match name {
        Some(name) if choice["type"] == "function" => {
            let kind = if grammar.has(name) { "custom" } else { "function" };
            Some(json!({"type": kind, "name": name}))
        }
        _ => Some(choice),
    }
}

// Messages.

/// Returns the initial prompt and tools, and the rest.
pub(in crate::wire) fn conversation(request: &Request) -> Conversation {
    let Request { system, tools, messages, .. } = request;
    if !request.model.dialect.wire.mid_convo_system {
        return system::collapse(system, tools, messages);
    }
    match Additions::of(&request.model) {
        Additions::Listed => system::split(system, tools, messages, 0),
        Additions::Declared | Additions::Found => system::split_at_tools(request, true),
    }
}

/// How tools are declared to a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Additions {
    /// All of them in the separate list, in their current state.
    Listed,
    /// Each by an item at the position where it was added.
    Declared,
    /// The first ones in the list, later ones as search results.
    Found,
}

impl Additions {
    fn of(model: &Model) -> Self {
        let wire = &model.dialect.wire;
        match (wire.mid_convo_system, wire.additional_tools, wire.tool_search) {
            (true, true, _) => Self::Declared,
            (true, false, true) => Self::Found,
            _ => Self::Listed,
        }
    }
}

/// Returns the tools in the separate list.
pub(in crate::wire) fn listed_tools<'c>(request: &Request, conversation: &'c Conversation) -> &'c [ToolDecl] {
    match Additions::of(&request.model) {
        Additions::Listed => &conversation.current.tools,
        Additions::Declared => &[],
        Additions::Found => &conversation.head.tools,
    }
}

/// Returns the items that declare tools at their position in the conversation; none if tools are listed. `place` distinguishes several
/// additions.
fn added_tools(
    call: &WireCall<'_>,
    added: &[ToolDecl],
    grammar: &GrammarTools,
    relaxed: Relaxed,
    place: usize,
) -> Result<Vec<Value>, LlmError> {
    let additions = Additions::of(&call.request.model);
    if added.is_empty() || additions == Additions::Listed {
        return Ok(Vec::new());
    }
    let mut tools = tools(call, added, grammar, relaxed)?;
    if additions == Additions::Declared {
        return Ok(vec![json!({"type": "additional_tools", "role": "developer", "tools": tools})]);
    }
    tools.iter_mut().for_each(|tool| tool["defer_loading"] = true.into());
    let names: Vec<&str> = added.iter().map(|tool| tool.name.as_str()).collect();
    // The same in every request of a conversation.
    let id = format!("tool_load_{place}");
    let asked = json!({"query": names.join(" "), "limit": names.len()});
    let (call_id, execution, status) = (id.as_str(), "client", "completed");
    Ok(vec![
        json!({"type": "tool_search_call", "call_id": call_id, "execution": execution, "status": status, "arguments": asked}),
        json!({"type": "tool_search_output", "call_id": call_id, "execution": execution, "status": status, "tools": tools}),
    ])
}

fn prompt_role(model: &Model) -> &'static str {
    if model.reasoning && model.dialect.history.developer_role { "developer" } else { "system" }
}

/// Encodes the messages of a conversation as items, without its head.
///
/// # Errors
/// Returns an error if a tool declared in them cannot be encoded.
pub(in crate::wire) fn items(
    call: &WireCall<'_>,
    conversation: &Conversation,
    grammar: &GrammarTools,
    relaxed: Relaxed,
) -> Result<Vec<Value>, LlmError> {
    let model = &*call.request.model;
    let normalised = normalise::transform(&conversation.messages, model, Some(&convert::normalise_id));
    let mut items = Items::new(model, grammar);
    if Additions::of(model) == Additions::Declared {
        items.items.append(&mut added_tools(call, &conversation.head.tools, grammar, relaxed, 0)?);
    }
    // Changes of the prompt are not counted, because they are absent for models without support for them.
    let mut number = 0;
    let mut n_changes = 0;
    let announces = models::announced_effort(call.request).is_some();
    for message in &normalised {
        match &**message {
            Message::System(change) => {
                n_changes += 1;
                items.items.append(&mut added_tools(call, &change.tools_added, grammar, relaxed, n_changes)?);
                let text = system::change_text(change);
                if !text.is_empty() {
                    items.items.push(json!({"role": prompt_role(model), "content": text}));
                }
                continue;
            }
            Message::User(user) => items.user(user),
            Message::Assistant(answer) => {
                let at = items.items.len();
                items.assistant(answer, number);
                // The same model was told its effort before it answered.
                if let Some(effort) = &answer.provider_thinking_level
                    && announces
                    && items.items.len() > at
                    && convert::is_own(answer, model)
                {
                    items.items.insert(at, models::effort_item(effort));
                }
            }
            Message::ToolResult(result) => items.tool_result(result),
            Message::Other(_) => {}
        }
        number += 1;
    }
    Ok(items.items)
}

/// Encodes the items of one answer of the model itself.
#[cfg(feature = "codex-ws")]
pub(in crate::wire) fn answer_items(
    request: &Request,
    answer: &AssistantMessage,
    grammar: &GrammarTools,
) -> Vec<Value> {
    let mut items = Items::new(&request.model, grammar);
    items.assistant(answer, 0);
    items.items
}

// Tools.

/// Encoding of `strict` for a tool that is not held to its schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::wire) enum Relaxed {
    /// `strict: false` if the server supports the member, else omitted.
    FalseOrOmitted,
    /// `strict: null`.
    Null,
}

pub(in crate::wire) fn tools(
    call: &WireCall<'_>,
    tools: &[ToolDecl],
    grammar: &GrammarTools,
    relaxed: Relaxed,
) -> Result<Vec<Value>, LlmError> {
    let model = &*call.request.model;
    let rules = &model.dialect.schema;
    let write = |tool: &ToolDecl| {
        if let Some(custom) = grammar.write(tool) {
            return Ok(custom);
        }
        let schema = strict::schema_in(call.encoding, tool, StrictDialect::OpenAi, rules.strict)?;
        let is_strict = schema.is_some();
        let mut encoded = json!({
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": schema.unwrap_or_else(|| tool.parameters.cleaned(rules.family, rules.hints).clone()),
        });
        match (is_strict, relaxed) {
            (true, _) => encoded["strict"] = true.into(),
            (false, Relaxed::Null) => encoded["strict"] = Value::Null,
            (false, Relaxed::FalseOrOmitted) if rules.strict => encoded["strict"] = false.into(),
            (false, Relaxed::FalseOrOmitted) => {}
        }
        Ok(encoded)
    };
    let written: Result<Vec<Value>, strict::Inexpressible> = tools.iter().map(write).collect();
    written.map_err(|why| LlmError::new(model.provider.clone(), LlmErrorKind::InvalidRequest, why.to_string()))
}

// Headers.

fn all_headers(request: &Request, key: Option<&AuthKey>) -> Result<HeaderMap, LlmError> {
    let mut layers = HeaderLayers::new(&request.model);
    headers::common(&mut layers)?;
    headers::bearer(&mut layers, request, key)?;
    layers.lay(&request.model.headers)?;
    layers.lay(&request.auth.headers)?;
    headers::provider_quirks(&mut layers, request)?;
    headers::affinity(&mut layers, request, &["session-id", "x-client-request-id"])?;
    layers.lay(&request.options.headers)?;
    Ok(layers.finish())
}
