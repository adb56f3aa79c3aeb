//! Requests in Anthropic's format.

use serde_json::{Map, Value, json};

use super::convert::{self, AnthropicEncoding, Unsigned};
use super::models;
use super::names::{CLAUDE_CODE_IDENTITY, CLAUDE_CODE_VERSION, is_subscription_token, sent_name};
use super::system::{PLACEHOLDER_TOOL, PendingSystem};
use crate::error::{LlmError, LlmErrorKind};
use crate::message::{Message, ToolDecl};
use crate::model::Model;
use crate::model::dialect::KeyHeader;
use crate::model::record::DEFAULT_MAX_TOKENS;
use crate::model::thinking::{LevelRule, clamp};
use crate::normalise;
use crate::normalise::system::{self, Conversation, PromptBlocks};
use crate::request::{BETAS, CacheRetention, NativeThinking, ONE_MILLION_BETA, Request, ThinkingChoice};
use crate::schema::clean::SchemaDialect;
use crate::thinking::ThinkingLevel;
use crate::wire::headers::{self, AuthKey, HeaderLayers};
use crate::wire::strict::{self, StrictDialect};
use crate::wire::{Encoding, HttpRequest, WireCall, address, effort, limit};

/// Anthropic's minimum thinking budget, and the minimum left for the answer beside a budget.
const LEAST_TOKENS: u64 = 1_024;

/// The encoded thinking parameter.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ThinkingParam {
    /// Omitted.
    Omitted,
    Disabled,
    Budget {
        tokens: u64,
        display: String,
    },
    Adaptive {
        effort: Option<String>,
        display: String,
    },
}

pub(super) fn encode(call: &WireCall<'_>) -> Result<HttpRequest, LlmError> {
    let request = call.request;
    let wire = &request.model.dialect.wire;
    let key = headers::key(request)?;
    let subscription = is_subscription(request, key.as_ref());
    let url = format!("{}?beta=true", address::url(request, "v1/messages")?);
    let (thinking, max_tokens) = thinking(request);
    let conversation = conversation(request);
    let tools = Tools::new(call, &conversation, subscription)?;
    let cache = cache_control(request);

    let mut body = Map::new();
    body.insert("model".into(), request.model.id.as_str().into());
    body.insert("messages".into(), messages(request, &conversation, &tools, &thinking, cache.as_ref()).into());
    body.insert("max_tokens".into(), max_tokens.into());
    body.insert("stream".into(), true.into());
    if let Some(system) = system_blocks(&conversation.head.blocks(), subscription, cache.as_ref()) {
        body.insert("system".into(), system);
    }
    let is_thinking = matches!(thinking, ThinkingParam::Budget { .. } | ThinkingParam::Adaptive { .. });
    if let Some(temperature) = request.options.temperature.filter(|_| wire.temperature && !is_thinking) {
        body.insert("temperature".into(), temperature.into());
    }
    if let Some(list) = tools.list(cache.as_ref().filter(|_| wire.cache_control_on_tools)) {
        body.insert("tools".into(), list);
    }
    put_thinking(&mut body, &thinking, wire.mid_convo_effort);
    if let Some(format) = &request.options.response_format {
        let schema = format.require_schema(request)?.encode_anthropic();
        let config = body.entry("output_config").or_insert_with(|| json!({}));
        config["format"] = json!({"type": "json_schema", "schema": schema});
    }
    if let Some(user) = request.options.metadata.as_ref().and_then(|m| m.get("user_id")).filter(|id| id.is_string()) {
        body.insert("metadata".into(), json!({"user_id": user}));
    }
    // Anthropic rejects a choice without tools; other formats send it anyway.
    if let Some(choice) = tool_choice(request, subscription, is_thinking).filter(|_| !tools.initial.is_empty()) {
        body.insert("tool_choice".into(), choice);
    }
    if !wire.fallbacks.is_empty() {
        let list: Vec<Value> = wire.fallbacks.iter().map(|f| json!({"model": f.model})).collect();
        body.insert("fallbacks".into(), list.into());
    }
    if let Some(params) = &request.options.sampling_params {
        body.extend(params.clone());
    }
    let betas = betas(request, &thinking, &tools, subscription);
    Ok(HttpRequest {
        url,
        headers: all_headers(request, key.as_ref(), subscription, &betas)?,
        body: Value::Object(body),
    })
}

/// Returns whether the request belongs to a Claude subscription.
pub(super) fn is_subscription(request: &Request, key: Option<&AuthKey>) -> bool {
    let own = request.model.dialect.wire.key_header == KeyHeader::Usual;
    own && key.is_some_and(|key| is_subscription_token(key.reveal()))
}

fn conversation(request: &Request) -> Conversation {
    let Request { system, tools, messages, .. } = request;
    if request.model.dialect.wire.mid_convo_system {
        system::split(system, tools, messages, 0)
    } else {
        system::collapse(system, tools, messages)
    }
}

// Thinking and the limit of the answer.

/// Returns the encoded thinking parameter, and the limit of the answer, which depends on it.
pub(super) fn thinking(request: &Request) -> (ThinkingParam, u64) {
    let model = &*request.model;
    // The format requires a limit, even for models whose records have none.
    let unknown = || (model.max_tokens == 0).then_some(DEFAULT_MAX_TOKENS);
    let wanted = request.options.max_tokens.filter(|n| *n > 0).or_else(unknown);
    let limit = limit::output_limit(request, wanted);
    if !model.reasoning {
        return (ThinkingParam::Omitted, limit);
    }
    let adaptive = model.dialect.wire.adaptive_thinking || model.dialect.wire.mid_convo_effort;
    let display = || "summarized".to_owned();
    match &request.options.thinking {
        ThinkingChoice::Unset => (ThinkingParam::Omitted, limit),
        ThinkingChoice::Native(native) => (native_thinking(native, adaptive, limit), limit),
        ThinkingChoice::Level(ThinkingLevel::Off) => {
            let no_word = *model.thinking.rule(ThinkingLevel::Off) == LevelRule::Unsupported;
            (if no_word { ThinkingParam::Omitted } else { ThinkingParam::Disabled }, limit)
        }
        ThinkingChoice::Level(level) if adaptive => {
            let effort = Some(models::effort_word(model, *level).to_owned());
            (ThinkingParam::Adaptive { effort, display: display() }, limit)
        }
        ThinkingChoice::Level(level) => {
            let budget = effort::budget(&request.options.thinking_budgets, clamp(model, *level));
            let whole = wanted.unwrap_or(model.max_tokens).saturating_add(budget);
            let whole = if model.max_tokens > 0 { whole.min(model.max_tokens) } else { whole };
            let limit = limit::output_limit(request, Some(whole));
            (budget_thinking(budget, display(), limit), limit)
        }
    }
}

fn native_thinking(native: &NativeThinking, adaptive: bool, limit: u64) -> ThinkingParam {
    let display = native.display.clone().unwrap_or_else(|| "summarized".into());
    match native.enabled {
        None => ThinkingParam::Omitted,
        Some(false) => ThinkingParam::Disabled,
        Some(true) if adaptive => ThinkingParam::Adaptive { effort: native.effort.clone(), display },
        Some(true) => budget_thinking(native.budget.unwrap_or(LEAST_TOKENS), display, limit),
    }
}

/// Returns a budget that leaves the minimum for the answer, or none if Anthropic would reject it.
fn budget_thinking(budget: u64, display: String, limit: u64) -> ThinkingParam {
    let tokens = budget.min(limit.saturating_sub(LEAST_TOKENS));
    if tokens < LEAST_TOKENS { ThinkingParam::Disabled } else { ThinkingParam::Budget { tokens, display } }
}

fn put_thinking(body: &mut Map<String, Value>, thinking: &ThinkingParam, mid_convo_effort: bool) {
    let mut put = |name: &str, value: Value| drop(body.insert(name.into(), value));
    match thinking {
        ThinkingParam::Omitted => {}
        ThinkingParam::Disabled => put("thinking", json!({"type": "disabled"})),
        ThinkingParam::Budget { tokens, display } => {
            put("thinking", json!({"type": "enabled", "budget_tokens": tokens, "display": display}));
        }
        ThinkingParam::Adaptive { effort, display } if mid_convo_effort => {
            let binding = json!({"prefix_mismatch_behavior": "drop_block"});
            put("thinking", json!({"type": "adaptive", "display": display, "block_binding": binding}));
            if effort.is_some() {
                // The same for the whole conversation, so that the prefix stays: each answer has its own effort in the messages.
                put("output_config", json!({"effort": "low"}));
            }
        }
        ThinkingParam::Adaptive { effort, display } => {
            put("thinking", json!({"type": "adaptive", "display": display}));
            if let Some(effort) = effort {
                put("output_config", json!({"effort": effort}));
            }
        }
    }
}

/// Returns the effort requested for this answer, if efforts are part of the messages.
pub(super) fn marked_effort<'a>(request: &Request, thinking: &'a ThinkingParam) -> Option<&'a str> {
    match thinking {
        ThinkingParam::Adaptive { effort, .. } if request.model.dialect.wire.mid_convo_effort => effort.as_deref(),
        _ => None,
    }
}

// Prompt, messages and tools.

fn cache_control(request: &Request) -> Option<Value> {
    match headers::retention(request) {
        CacheRetention::None => None,
        CacheRetention::Long if request.model.dialect.wire.long_cache_retention => {
            Some(json!({"type": "ephemeral", "ttl": "1h"}))
        }
        CacheRetention::Short | CacheRetention::Long => Some(json!({"type": "ephemeral"})),
    }
}

/// Encodes the prompt. What changes between conversations follows the marked prefix.
fn system_blocks(prompt: &PromptBlocks, subscription: bool, cache: Option<&Value>) -> Option<Value> {
    let identity = subscription.then_some(CLAUDE_CODE_IDENTITY);
    let texts = identity.into_iter().chain([prompt.stable.as_str()]).map(|text| (text, cache));
    let blocks = texts.chain([(prompt.volatile.as_str(), None)]).filter(|(text, _)| !text.trim().is_empty());
    let blocks: Vec<Value> = blocks
        .map(|(text, cache)| {
            let mut block = convert::text_part(text);
            mark(&mut block, cache);
            block
        })
        .collect();
    (!blocks.is_empty()).then_some(Value::Array(blocks))
}

fn mark(block: &mut Value, cache: Option<&Value>) {
    if let Some(cache) = cache {
        block["cache_control"] = cache.clone();
    }
}

fn messages(
    request: &Request,
    conversation: &Conversation,
    tools: &Tools,
    thinking: &ThinkingParam,
    cache: Option<&Value>,
) -> Vec<Value> {
    let unsigned = match thinking {
        _ if request.model.dialect.history.allow_empty_signature => Unsigned::Thinking,
        ThinkingParam::Disabled => Unsigned::Text,
        ThinkingParam::Omitted | ThinkingParam::Budget { .. } | ThinkingParam::Adaptive { .. } => Unsigned::Nothing,
    };
    let rules = AnthropicEncoding { subscription: tools.subscription, unsigned };
    let normalised = normalise::transform(
        &conversation.messages,
        &request.model,
        Some(&|id, _, _| normalise::ids::anthropic_id(id)),
    );
    let coming_effort = marked_effort(request, thinking);
    let mut messages = Vec::with_capacity(normalised.len());
    let mut pending = PendingSystem::default();
    let mut at = 0;
    while let Some(message) = normalised.get(at) {
        at += 1;
        match &**message {
            Message::System(change) => pending.add(change, tools.declare.as_deref()),
            Message::User(user) => messages.extend(convert::user(user)),
            Message::Assistant(answer) => {
                if let Some(said) = convert::assistant(answer, rules) {
                    let effort = answer.provider_thinking_level.as_deref().filter(|_| coming_effort.is_some());
                    pending.flush(effort, &mut messages);
                    messages.push(said);
                }
            }
            Message::ToolResult(_) => {
                let run = &normalised[at - 1..];
                let n_results = run.iter().take_while(|m| matches!(***m, Message::ToolResult(_))).count();
                messages
                    .push(convert::tool_results(run[..n_results].iter().filter_map(|m| convert::as_tool_result(m))));
                at += n_results - 1;
            }
            Message::Other(_) => {}
        }
    }
    pending.flush(coming_effort, &mut messages);
    mark_last(&mut messages, cache);
    messages
}

/// Sets the conversation's cache marker on the last block of the last message, unless that is the model's.
fn mark_last(messages: &mut [Value], cache: Option<&Value>) {
    let (Some(cache), Some(last)) = (cache, messages.iter_mut().rfind(|m| m.get("output_config").is_none())) else {
        return;
    };
    if last["role"] == "assistant" {
        return;
    }
    if let Some(text) = last["content"].as_str() {
        last["content"] = json!([convert::text_part(text)]);
    }
    if let Some(block) = last["content"].as_array_mut().and_then(|blocks| blocks.last_mut()) {
        mark(block, Some(cache));
    }
}

type Declare = dyn Fn(&ToolDecl) -> Value;

/// The encoded tools of a request.
struct Tools {
    subscription: bool,
    /// The initial tools of the list.
    initial: Vec<Value>,
    /// Encodes a tool that is added within the conversation; `None` if additions only appear in the list of tools.
    declare: Option<Box<Declare>>,
}

impl Tools {
    fn new(call: &WireCall<'_>, conversation: &Conversation, subscription: bool) -> Result<Self, LlmError> {
        let model = &call.request.model;
        let wire = &model.dialect.wire;
        let in_place = changes_in_place(model, conversation);
        let style = ToolStyle {
            subscription,
            eager: wire.eager_tool_input,
            strict: model.dialect.schema.strict,
            encoding: call.encoding,
            family: model.dialect.schema.family,
            hints: model.dialect.schema.hints,
        };
        let written = listed(model, conversation).iter().map(|tool| style.write(tool)).collect::<Result<Vec<_>, _>>();
        let initial = written
            .map_err(|why| LlmError::new(model.provider.clone(), LlmErrorKind::InvalidRequest, why.to_string()))?;
        let plain = ToolStyle { strict: false, ..style };
        let declare = in_place.then(|| -> Box<Declare> {
            Box::new(move |tool| style.write(tool).or_else(|_| plain.write(tool)).unwrap_or(Value::Null))
        });
        Ok(Self { subscription, initial, declare })
    }

    /// Returns the list of tools, or `None` if it is empty.
    fn list(&self, cache: Option<&Value>) -> Option<Value> {
        if self.initial.is_empty() {
            return None;
        }
        let mut list = self.initial.clone();
        if let Some(last) = list.last_mut() {
            mark(last, cache);
        }
        if self.declare.is_some() {
            list.push(json!({
                "name": PLACEHOLDER_TOOL,
                "description": "Stands for tools that may be added later. Never call it.",
                "input_schema": {"type": "object", "properties": {}, "required": []},
                "defer_loading": true,
            }));
        }
        Some(Value::Array(list))
    }
}

/// Returns whether the request would differ without the strict schemas that tools merely prefer.
pub(super) fn can_relax(call: &WireCall<'_>) -> bool {
    let model = &call.request.model;
    let conversation = conversation(call.request);
    let added = conversation.messages.iter().filter_map(|message| match &**message {
        Message::System(change) => Some(&change.tools_added),
        _ => None,
    });
    let added = added.flatten().filter(|_| changes_in_place(model, &conversation));
    let tools = listed(model, &conversation).iter().chain(added);
    call.encoding == Encoding::Usual && strict::can_relax(tools, StrictDialect::Anthropic, model.dialect.schema.strict)
}

/// Returns whether messages of the conversation add and remove tools, so that the list stays unchanged.
fn changes_in_place(model: &Model, conversation: &Conversation) -> bool {
    let wire = &model.dialect.wire;
    wire.mid_convo_system && wire.mid_convo_tools && !conversation.head.tools.is_empty()
}

/// Returns the tools in the request's list.
fn listed<'a>(model: &Model, conversation: &'a Conversation) -> &'a [ToolDecl] {
    if changes_in_place(model, conversation) { &conversation.head.tools } else { &conversation.current.tools }
}

/// How a tool is encoded.
#[derive(Clone, Copy)]
struct ToolStyle {
    subscription: bool,
    eager: bool,
    strict: bool,
    encoding: Encoding,
    family: SchemaDialect,
    hints: bool,
}

impl ToolStyle {
    fn write(self, tool: &ToolDecl) -> Result<Value, strict::Inexpressible> {
        let strict = strict::schema_in(self.encoding, tool, StrictDialect::Anthropic, self.strict)?;
        let mut written = Map::new();
        written.insert("name".into(), sent_name(&tool.name, self.subscription).into());
        written.insert("description".into(), tool.description.as_str().into());
        if self.eager {
            written.insert("eager_input_streaming".into(), true.into());
        }
        if strict.is_some() {
            written.insert("strict".into(), true.into());
        }
        written.insert(
            "input_schema".into(),
            strict.unwrap_or_else(|| input_schema(tool.parameters.cleaned(self.family, self.hints))),
        );
        Ok(Value::Object(written))
    }
}

/// Returns the complete schema, with Anthropic's required root members filled in.
fn input_schema(cleaned: &Value) -> Value {
    let mut schema = cleaned.as_object().cloned().unwrap_or_default();
    schema.insert("type".into(), "object".into());
    schema.entry("properties").or_insert_with(|| json!({}));
    schema.entry("required").or_insert_with(|| json!([]));
    Value::Object(schema)
}

fn tool_choice(request: &Request, subscription: bool, is_thinking: bool) -> Option<Value> {
    let mut choice = match request.options.tool_choice.as_ref()?.encode_anthropic()? {
        Value::String(kind) => json!({"type": kind}),
        other => other,
    };
    if is_thinking && matches!(choice["type"].as_str(), Some("any" | "tool")) {
        return Some(json!({"type": "auto"}));
    }
    if let Some(name) = choice["name"].as_str() {
        choice["name"] = sent_name(name, subscription).to_owned().into();
    }
    Some(choice)
}

// Headers.

fn betas<'a>(request: &'a Request, thinking: &ThinkingParam, tools: &Tools, subscription: bool) -> Vec<&'a str> {
    let wire = &request.model.dialect.wire;
    let mut betas = Vec::new();
    if !tools.initial.is_empty() && !wire.eager_tool_input {
        betas.push("fine-grained-tool-streaming-2025-05-14");
    }
    let interleaved = request.options.native.get("interleavedThinking").is_none_or(|on| on != false);
    if matches!(thinking, ThinkingParam::Budget { .. }) && interleaved {
        betas.push("interleaved-thinking-2025-05-14");
    }
    if tools.declare.is_some() && !tools.initial.is_empty() {
        betas.push("inline-tools-2026-09-15");
    }
    if marked_effort(request, thinking).is_some() {
        betas.extend(["mid-conversation-output-config-2026-07-01", "thinking-binding-controls-2026-08-01"]);
    }
    if !wire.fallbacks.is_empty() {
        betas.push("server-side-fallback-2026-07-01");
    }
    let requested = request.options.native.get(BETAS).and_then(Value::as_array).into_iter().flatten();
    for beta in requested.filter_map(Value::as_str).filter(|beta| !(subscription && *beta == ONE_MILLION_BETA)) {
        if !betas.contains(&beta) {
            betas.push(beta);
        }
    }
    betas
}

fn all_headers(
    request: &Request,
    key: Option<&AuthKey>,
    subscription: bool,
    betas: &[&str],
) -> Result<http::HeaderMap, LlmError> {
    let mut layers = HeaderLayers::new(&request.model);
    headers::common(&mut layers)?;
    layers.set("anthropic-version", "2023-06-01")?;
    layers.set("anthropic-dangerous-direct-browser-access", "true")?;
    let mut betas = betas.to_vec();
    if let Some(key) = key {
        match request.model.dialect.wire.key_header {
            KeyHeader::CloudflareGateway | KeyHeader::Bearer => headers::bearer(&mut layers, request, Some(key))?,
            KeyHeader::Usual if subscription => {
                layers.set("authorization", &key.bearer())?;
                layers.set("user-agent", CLAUDE_CODE_VERSION)?;
                layers.set("x-app", "cli")?;
                betas.splice(0..0, ["claude-code-20250219", "oauth-2025-04-20"]);
            }
            KeyHeader::Usual if key.is_bearer => layers.set("authorization", &key.bearer())?,
            KeyHeader::Usual => layers.set("x-api-key", key.reveal())?,
        }
    }
    if !betas.is_empty() {
        layers.set("anthropic-beta", &betas.join(","))?;
    }
    layers.lay(&request.model.headers)?;
    layers.lay(&request.auth.headers)?;
    headers::provider_quirks(&mut layers, request)?;
    headers::affinity(&mut layers, request, &["x-session-affinity"])?;
    layers.lay(&request.options.headers)?;
    Ok(layers.finish())
}
