//! What reaches a provider call, and what is truncated or stripped from texts.

use std::sync::{Arc, Mutex, PoisonError};

use pinch_embed::history::{first_kept, limit_for};
use pinch_embed::replies::tokens::{HeartbeatMode, MAX_ACK_CHARS, strip_heartbeat};
use pinch_embed::run::tool_results::{per_result_limit, shortened};
use pinch_llm::error::{LlmError, LlmErrorKind};
use pinch_llm::event::EventStream;
use pinch_llm::message::{AssistantMessage, Block, Image, Message, ToolCall, ToolResult};
use pinch_llm::provider::{Provider, ProviderRegistry};
use pinch_llm::request::{CacheRetention, CallOptions, Request};
use pinch_stdx::cancel::Cancel;
use serde_json::{Map, Value, json};

use super::world::{self, block_on};
use super::{CaseOutcome, check, config};

pub(super) fn run(area: &str, group: &Value, given: &Value, expect: &Value) -> Option<CaseOutcome> {
    Some(CaseOutcome::from(match area {
        "extra-params" => block_on(options(given)).and_then(|options| compare_options(expect, options)),
        "tool-result-limits" => check(expect, &per_result_limit(given["window"].as_u64().unwrap_or(0)).into()),
        "tool-result-truncation" => truncation(given, expect),
        "history-limit-lookup" => {
            let channels = config(group["config"].clone()).channels;
            check(expect, &json!(limit_for(&channels, given["key"].as_str().unwrap_or(""), None)))
        }
        "history-limit-cut" => check(expect, &kept(given)),
        "heartbeat-token" => check(expect, &heartbeat(given)),
        _ => return None,
    }))
}

/// Indexes of the messages that a limit keeps.
fn kept(given: &Value) -> Value {
    let roles = given["roles"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let message = |role: &str| {
        Arc::new(match role {
            "user" => Message::user("u", super::NOW),
            "toolResult" => {
                Message::ToolResult(ToolResult::text(&ToolCall::new("c1", "read", Map::new()), "r", false, super::NOW))
            }
            _ => {
                Message::Assistant(Arc::new(AssistantMessage::pending("a".into(), "p".into(), "m".into(), super::NOW)))
            }
        })
    };
    let messages: Vec<Arc<Message>> = roles.map(message).collect();
    let limit = given["limit"].as_i64().and_then(|limit| u64::try_from(limit).ok()).unwrap_or(0);
    (first_kept(&messages, limit)..messages.len()).collect()
}

/// Records the options of the first call, and fails it.
struct Capture(Arc<Mutex<Option<CallOptions>>>);

impl Provider for Capture {
    fn stream(&self, request: Request, _: Cancel) -> EventStream {
        let provider = request.model.provider.clone();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(request.options);
        EventStream::failed(
            &request.model,
            super::NOW,
            LlmError::new(provider, LlmErrorKind::InvalidRequest, "captured"),
        )
    }
}

async fn options(given: &Value) -> Result<CallOptions, String> {
    let (provider, model) = (given["provider"].as_str().unwrap_or("openai"), given["model"].as_str().unwrap_or("m"));
    let name = format!("{provider}/{model}");
    // Which options a server accepts depends on its wire format.
    let api = if provider == "anthropic" { "anthropic-messages" } else { "openai-completions" };
    let params = given.get("params").cloned().unwrap_or_else(|| json!({}));
    let document = json!({
        "agents": {"defaults": {"model": {"primary": name}, "models": {name: {"params": params}}, "workspace": "~/w"}},
        "models": {"providers": {provider: {
            "baseUrl": "http://127.0.0.1:9/v1", "api": api, "apiKey": "k",
            "models": [{"id": model, "contextWindow": 200_000, "maxTokens": 8_192}],
        }}},
    });
    let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
    let captured = Arc::default();
    let mut providers = ProviderRegistry::new();
    providers.register(api, Arc::new(Capture(Arc::clone(&captured))));
    let engine = world::builder(dir.path(), document).providers(providers).build();
    let mut request = engine.request("s1", None, None, "hi");
    // Where a request and its caller both set an option, the later one wins.
    for name in ["streamParams", "callOptions"] {
        let given = &given[name];
        let params = &mut request.stream_params;
        params.temperature = given["temperature"].as_f64().or(params.temperature);
        params.max_tokens = given["maxTokens"].as_u64().or(params.max_tokens);
        params.cache_retention = given["cacheRetention"].as_str().and_then(retention).or(params.cache_retention);
    }
    drop(engine.run(request).finish().await);
    let options = captured.lock().unwrap_or_else(PoisonError::into_inner).take();
    options.ok_or_else(|| "no call was made".to_owned())
}

fn retention(word: &str) -> Option<CacheRetention> {
    [CacheRetention::None, CacheRetention::Short, CacheRetention::Long].into_iter().find(|known| name(*known) == word)
}

fn name(retention: CacheRetention) -> &'static str {
    match retention {
        CacheRetention::None => "none",
        CacheRetention::Short => "short",
        CacheRetention::Long => "long",
    }
}

/// Checks that the named options are set, and no others of the three.
fn compare_options(expect: &Value, options: CallOptions) -> Result<(), String> {
    let mut actual = Map::new();
    if let Some(temperature) = options.temperature {
        actual.insert("temperature".into(), temperature.into());
    }
    if let Some(tokens) = options.max_tokens {
        actual.insert("maxTokens".into(), tokens.into());
    }
    if let Some(retention) = options.cache_retention {
        actual.insert("cacheRetention".into(), name(retention).into());
    }
    let is_more = actual.keys().find(|key| expect["options"].get(key.as_str()).is_none());
    match is_more {
        Some(key) => Err(format!("/options/{key}: expected nothing, got {}", actual[key])),
        None => check(expect, &json!({"options": actual})),
    }
}

/// A text of a case: `{"repeat": [text, times]}` is a repeated text, a list is joined.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(text).collect(),
        _ => {
            let times = value["repeat"][1].as_u64().and_then(|n| usize::try_from(n).ok());
            value["repeat"][0].as_str().unwrap_or("").repeat(times.unwrap_or(0))
        }
    }
}

fn truncation(given: &Value, expect: &Value) -> Result<(), String> {
    let blocks: Vec<Block> = match given["blocks"].as_array() {
        Some(blocks) => blocks
            .iter()
            .map(|block| match block.as_str() {
                Some("image") => Block::Image(Image { data: "aGk=".into(), mime_type: "image/png".into() }),
                _ => Block::text(text(block)),
            })
            .collect(),
        None => vec![Block::text(text(&given["text"]))],
    };
    let limit = usize::try_from(given["maxChars"].as_u64().unwrap_or(0)).map_err(|error| error.to_string())?;
    let cut = shortened(&blocks, limit);
    let is_unchanged = cut.is_none();
    let out = cut.unwrap_or(blocks);
    // The text before the notice.
    let heads: Vec<&str> =
        out.iter().filter_map(Block::as_text).map(|text| text.split("\n\n[… ").next().unwrap_or(text)).collect();
    let first = heads.first().copied().unwrap_or("");
    let fails = |what: &str| {
        Err(format!(
            "/{what}: heads of {:?} characters",
            heads.iter().map(|head| head.chars().count()).collect::<Vec<_>>()
        ))
    };
    if expect.get("unchanged").is_some_and(|wanted| *wanted != is_unchanged) {
        return fails("unchanged");
    }
    if expect["keptHeadAtLeast"].as_u64().is_some_and(|least| (first.chars().count() as u64) < least) {
        return fails("keptHeadAtLeast");
    }
    if expect.get("headEquals").is_some_and(|wanted| text(wanted) != first) {
        return fails("headEquals");
    }
    let most = expect["headAtMost"].as_array().into_iter().flatten().filter_map(Value::as_u64);
    if most.zip(&heads).any(|(most, head)| head.chars().count() as u64 > most) {
        return fails("headAtMost");
    }
    if expect["imageKept"] == true && !out.iter().any(|block| matches!(block, Block::Image(_))) {
        return fails("imageKept");
    }
    Ok(())
}

fn heartbeat(given: &Value) -> Value {
    let mode = match given["mode"].as_str() {
        Some("heartbeat") => HeartbeatMode::Heartbeat {
            max_ack_chars: given["maxAckChars"].as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(MAX_ACK_CHARS),
        },
        _ => HeartbeatMode::Message,
    };
    let stripped = strip_heartbeat(given["text"].as_str().unwrap_or(""), mode);
    match stripped.skip {
        true => json!({"skip": true}),
        false => json!({"skip": false, "text": stripped.text}),
    }
}
