//! Requests in the Converse format.

use serde_json::{Map, Value, json};

use super::{convert, endpoint, models};
use crate::error::{LlmError, LlmErrorKind};
use crate::message::{Block, Message, ToolDecl};
use crate::model::thinking::clamp;
use crate::normalise;
use crate::normalise::system::{self, PromptBlocks, SystemState};
use crate::request::{CacheRetention, JsonSchemaFormat, NativeThinking, Request, ThinkingChoice, ToolChoice};
use crate::thinking::ThinkingLevel;
use crate::wire::anthropic::effort_word;
use crate::wire::headers::{self, HeaderLayers};
use crate::wire::strict::{self, StrictDialect};
use crate::wire::{Encoding, HttpRequest, WireCall, address, effort, limit};

/// The minimum thinking budget, and the minimum left for the answer beside one.
const LEAST_TOKENS: u64 = 1_024;

pub(super) fn encode(call: &WireCall<'_>) -> Result<HttpRequest, LlmError> {
    let request = call.request;
    let conversation = system::collapse(&request.system, &request.tools, &request.messages);
    let (thinking, max_tokens) = thinking(request);
    let cache = cache_point(request);
    let messages = messages(request, &conversation.messages, cache.as_ref())?;

    let mut body = Map::new();
    let holds_calls = holds_calls(&messages);
    body.insert("messages".into(), messages.into());
    if let Some(system) = system_blocks(&conversation.head.blocks(), cache.as_ref()) {
        body.insert("system".into(), system);
    }
    body.insert("inferenceConfig".into(), inference(request, max_tokens, thinking.is_some()));
    if let Some(config) = tool_config(call, &conversation.head, holds_calls, thinking.is_some())? {
        body.insert("toolConfig".into(), config);
    }
    if let Some(fields) = thinking {
        body.insert("additionalModelRequestFields".into(), fields);
    }
    if let Some(format) = &request.options.response_format {
        body.insert("outputConfig".into(), json!({"textFormat": text_format(format.require_schema(request)?)}));
    }
    if let Some(metadata) = request.options.native.get("requestMetadata").filter(|metadata| metadata.is_object()) {
        body.insert("requestMetadata".into(), metadata.clone());
    }
    let base = endpoint::find(request)?.url;
    let url = format!("{base}/model/{}/converse-stream", address::encoded(request.model.id.as_str()));
    Ok(HttpRequest { url, headers: all_headers(request)?, body: Value::Object(body) })
}

/// Encodes the format of the answer. Converse takes the schema as text.
fn text_format(format: &JsonSchemaFormat) -> Value {
    let mut definition = json!({"schema": format.encode_anthropic().to_string(), "name": format.name});
    if let Some(description) = &format.description {
        definition["description"] = description.as_str().into();
    }
    json!({"type": "json_schema", "structure": {"jsonSchema": definition}})
}

fn invalid(request: &Request, text: impl ToString) -> LlmError {
    LlmError::new(request.model.provider.clone(), LlmErrorKind::InvalidRequest, text.to_string())
}

// Thinking and the limit of the answer.

/// Returns the thinking parameters, and the limit of the answer, which depends on them. Only sent to Claude.
fn thinking(request: &Request) -> (Option<Value>, u64) {
    let model = &*request.model;
    let wanted = request.options.max_tokens.filter(|n| *n > 0);
    let limit = limit::output_limit(request, wanted);
    if !model.reasoning || !models::is_claude(model) {
        return (None, limit);
    }
    let is_adaptive = models::is_adaptive(model);
    match &request.options.thinking {
        ThinkingChoice::Unset | ThinkingChoice::Level(ThinkingLevel::Off) => (None, limit),
        ThinkingChoice::Native(native) => (native_thinking(request, native, is_adaptive, limit), limit),
        ThinkingChoice::Level(level) if is_adaptive => {
            (Some(adaptive(Some(effort_word(model, *level)), display(request, None))), limit)
        }
        ThinkingChoice::Level(level) => {
            let budget = effort::budget(&request.options.thinking_budgets, clamp(model, *level));
            let whole = wanted.unwrap_or(model.max_tokens).saturating_add(budget);
            let whole = if model.max_tokens > 0 { whole.min(model.max_tokens) } else { whole };
            let limit = limit::output_limit(request, Some(whole));
            (with_budget(request, budget, display(request, None), limit), limit)
        }
    }
}

fn native_thinking(request: &Request, native: &NativeThinking, is_adaptive: bool, limit: u64) -> Option<Value> {
    if native.enabled != Some(true) {
        return None;
    }
    let display = display(request, native.display.as_deref());
    if is_adaptive {
        return Some(adaptive(native.effort.as_deref(), display));
    }
    with_budget(request, native.budget.unwrap_or(LEAST_TOKENS), display, limit)
}

/// Returns how much of the reasoning is shown; government regions do not support this member.
fn display<'a>(request: &'a Request, wanted: Option<&'a str>) -> Option<&'a str> {
    let known = !models::is_in_gov_cloud(&request.model, endpoint::configured_region(request));
    let shown = wanted.or_else(|| endpoint::option(request, "thinkingDisplay")).unwrap_or("summarized");
    known.then_some(shown)
}

fn adaptive(effort: Option<&str>, display: Option<&str>) -> Value {
    let mut fields = json!({"thinking": {"type": "adaptive"}});
    if let Some(display) = display {
        fields["thinking"]["display"] = display.into();
    }
    if let Some(effort) = effort {
        fields["output_config"] = json!({ "effort": effort });
    }
    fields
}

/// Returns a budget that leaves the minimum for the answer, or none if it would be rejected.
fn with_budget(request: &Request, budget: u64, display: Option<&str>, limit: u64) -> Option<Value> {
    let tokens = budget.min(limit.saturating_sub(LEAST_TOKENS));
    if tokens < LEAST_TOKENS {
        return None;
    }
    let mut fields = json!({"thinking": {"type": "enabled", "budget_tokens": tokens}});
    if let Some(display) = display {
        fields["thinking"]["display"] = display.into();
    }
    if request.options.native.get("interleavedThinking").is_none_or(|on| on != false) {
        fields["anthropic_beta"] = json!(["interleaved-thinking-2025-05-14"]);
    }
    Some(fields)
}

fn inference(request: &Request, max_tokens: u64, is_thinking: bool) -> Value {
    let mut config = Map::new();
    if max_tokens > 0 {
        config.insert("maxTokens".into(), max_tokens.into());
    }
    let takes = request.model.dialect.wire.temperature && !is_thinking;
    if let Some(temperature) = request.options.temperature.filter(|_| takes) {
        config.insert("temperature".into(), temperature.into());
    }
    Value::Object(config)
}

// Prompt, messages and tools.

fn cache_point(request: &Request) -> Option<Value> {
    let retention = headers::retention(request);
    let forced = request.host.env().get("AWS_BEDROCK_FORCE_CACHE") == Some("1");
    if retention == CacheRetention::None || !models::takes_cache_points(&request.model, forced) {
        return None;
    }
    let mut point = json!({"cachePoint": {"type": "default"}});
    if retention == CacheRetention::Long && request.model.dialect.wire.long_cache_retention {
        point["cachePoint"]["ttl"] = "1h".into();
    }
    Some(point)
}

/// Encodes the prompt. What changes between conversations follows the cache point.
fn system_blocks(prompt: &PromptBlocks, cache: Option<&Value>) -> Option<Value> {
    let block = |text: &str| (!text.trim().is_empty()).then(|| convert::text_block(text));
    let stable = block(&prompt.stable);
    let point = cache.filter(|_| stable.is_some()).cloned();
    let blocks: Vec<Value> = stable.into_iter().chain(point).chain(block(&prompt.volatile)).collect();
    (!blocks.is_empty()).then_some(Value::Array(blocks))
}

/// Encodes the conversation. Consecutive messages of one side become one, because roles must alternate.
fn messages(
    request: &Request,
    messages: &[std::sync::Arc<Message>],
    cache: Option<&Value>,
) -> Result<Vec<Value>, LlmError> {
    let model = &request.model;
    let is_claude = models::is_claude(model);
    let normalised = normalise::transform(messages, model, Some(&|id, _, _| normalise::ids::anthropic_id(id)));
    let mut out: Vec<(&str, Vec<Value>)> = Vec::with_capacity(normalised.len());
    let mut at = 0;
    while let Some(message) = normalised.get(at) {
        at += 1;
        let (role, mut blocks) = match &**message {
            Message::User(user) => ("user", convert::user(user).map_err(|why| invalid(request, why))?),
            Message::Assistant(answer) => ("assistant", convert::assistant(answer, is_claude)),
            Message::ToolResult(_) => {
                let run = normalised[at - 1..].iter().map_while(|message| match &**message {
                    Message::ToolResult(result) => Some(result),
                    _ => None,
                });
                let run: Vec<_> = run.collect();
                at += run.len() - 1;
                let blocks = convert::tool_results(run.into_iter(), is_claude);
                ("user", blocks.map_err(|why| invalid(request, why))?)
            }
            // System messages were collapsed before; unknown roles are not for models.
            Message::System(_) | Message::Other(_) => continue,
        };
        match out.last_mut() {
            _ if blocks.is_empty() => {}
            Some((before, last)) if *before == role => last.append(&mut blocks),
            _ => out.push((role, blocks)),
        }
    }
    if let (Some(("user", last)), Some(cache)) = (out.last_mut(), cache) {
        last.push(cache.clone());
    }
    Ok(out.into_iter().map(|(role, content)| json!({"role": role, "content": content})).collect())
}

/// Returns whether the conversation contains tool calls or results: Converse then requires the tools.
fn holds_calls(messages: &[Value]) -> bool {
    let blocks = messages.iter().filter_map(|message| message["content"].as_array()).flatten();
    blocks.into_iter().any(|block| block.get("toolUse").is_some() || block.get("toolResult").is_some())
}

fn tool_config(
    call: &WireCall<'_>,
    head: &SystemState,
    holds_calls: bool,
    is_thinking: bool,
) -> Result<Option<Value>, LlmError> {
    let request = call.request;
    let choice = tool_choice(request, is_thinking);
    let may_call = !matches!(choice, ConverseToolChoice::None);
    let mut tools = Vec::new();
    if may_call || holds_calls {
        for tool in &head.tools {
            tools.push(tool_spec(call, tool).map_err(|why| invalid(request, why))?);
        }
    }
    if tools.is_empty() && holds_calls {
        tools = names_in_history(request).into_iter().map(stand_in).collect();
    }
    // Converse cannot express a choice without tools.
    if tools.is_empty() {
        return Ok(None);
    }
    let mut config = json!({ "tools": tools });
    if let (ConverseToolChoice::Is(choice), false) = (choice, head.tools.is_empty()) {
        config["toolChoice"] = choice;
    }
    Ok(Some(config))
}

/// Returns whether the request would differ without the strict schemas that tools merely prefer.
pub(super) fn can_relax(call: &WireCall<'_>) -> bool {
    let Request { system, tools, messages, model, .. } = call.request;
    let head = system::collapse(system, tools, messages).head;
    call.encoding == Encoding::Usual
        && strict::can_relax(&head.tools, StrictDialect::Anthropic, model.dialect.schema.strict)
}

fn tool_spec(call: &WireCall<'_>, tool: &ToolDecl) -> Result<Value, strict::Inexpressible> {
    let rules = &call.request.model.dialect.schema;
    let held = strict::schema_in(call.encoding, tool, StrictDialect::Anthropic, rules.strict)?;
    let mut spec = Map::new();
    spec.insert("name".into(), tool.name.as_str().into());
    // Converse rejects an empty description.
    if !tool.description.is_empty() {
        spec.insert("description".into(), tool.description.as_str().into());
    }
    if held.is_some() {
        spec.insert("strict".into(), true.into());
    }
    let schema = held.unwrap_or_else(|| tool.parameters.cleaned(rules.family, rules.hints).clone());
    spec.insert("inputSchema".into(), json!({ "json": schema }));
    Ok(json!({ "toolSpec": spec }))
}

/// Creates a tool that exists only because the conversation refers to it.
fn stand_in(name: &str) -> Value {
    json!({"toolSpec": {
        "name": name,
        "description": "Was called earlier in this conversation and cannot be called any more.",
        "inputSchema": {"json": {"type": "object", "properties": {}}},
    }})
}

fn names_in_history(request: &Request) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for message in &request.messages {
        let Message::Assistant(answer) = &**message else { continue };
        let calls = answer.content.iter().filter_map(|block| match &**block {
            Block::ToolCall(call) => Some(call.name.as_str()),
            _ => None,
        });
        for name in calls {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

/// Which tools may or must be called.
enum ConverseToolChoice {
    Omitted,
    None,
    Is(Value),
}

fn tool_choice(request: &Request, is_thinking: bool) -> ConverseToolChoice {
    let choice = request.options.tool_choice.as_ref().and_then(ToolChoice::encode_anthropic);
    let Some(choice) = &choice else { return ConverseToolChoice::Omitted };
    let kind = choice.as_str().or_else(|| choice["type"].as_str());
    match (kind, choice["name"].as_str()) {
        (Some("none"), _) => ConverseToolChoice::None,
        (Some("auto"), _) => ConverseToolChoice::Is(json!({"auto": {}})),
        // A thinking model cannot be forced.
        (Some("any" | "required" | "tool"), _) if is_thinking => ConverseToolChoice::Is(json!({"auto": {}})),
        (Some("any" | "required"), _) => ConverseToolChoice::Is(json!({"any": {}})),
        (Some("tool"), Some(name)) => ConverseToolChoice::Is(json!({"tool": {"name": name}})),
        _ => ConverseToolChoice::Omitted,
    }
}

// Headers.

/// Headers of the signature or the connection, which others cannot set.
const RESERVED: [&str; 4] = ["authorization", "host", "content-type", "content-length"];

fn all_headers(request: &Request) -> Result<http::HeaderMap, LlmError> {
    let mut layers = HeaderLayers::new(&request.model);
    headers::common(&mut layers)?;
    layers.set("accept", "application/vnd.amazon.eventstream")?;
    for list in [&request.model.headers, &request.auth.headers, &request.options.headers] {
        let is_free = |name: &str| {
            let name = name.to_ascii_lowercase();
            !name.starts_with("x-amz-") && !RESERVED.contains(&name.as_str())
        };
        let free: Vec<_> = list.iter().filter(|(name, _)| is_free(name)).cloned().collect();
        layers.lay(&free)?;
    }
    Ok(layers.finish())
}
