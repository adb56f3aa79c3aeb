//! Summaries: where histories are cut, what is added to a summary, which model writes it, and when nothing is compacted.

use std::sync::Arc;

use pinch_coding_agent::compaction::file_list::FileList;
use pinch_embed::compaction::chunks::{
    adaptive_ratio, chunk_by_max, drop_history, is_oversized, split_by_share, tokens_of,
};
use pinch_embed::compaction::model::choose;
use pinch_embed::compaction::pruning::{Shortening, is_due, is_eligible, plan, shorten};
use pinch_embed::compaction::sections::tool_failures;
use pinch_embed::config::pruning::{PruningConfig, PruningSetting};
use pinch_llm::message::{AssistantMessage, Block, Image, Message, ToolCall, ToolResult};
use pinch_llm::model::Model;
use pinch_llm::provider::ProviderRegistry;
use pinch_llm::provider::scripted::{ScriptedProvider, ScriptedReply};
use serde_json::{Map, Value, json};

use super::world::{self, block_on};
use super::{CaseOutcome, NOW, check, config};

pub(super) fn run(area: &str, given: &Value, expect: &Value) -> Option<CaseOutcome> {
    Some(CaseOutcome::from(match area {
        "compaction-math" => check(expect, &math(given)?),
        "compaction-sections" => check(expect, &section(given)),
        "compaction-model" => model(given).and_then(|model| check(expect, &model)),
        "pruning" => compare(expect, &pruned(given)),
        "pruning-gate" => check(expect, &gate(given)),
        "pruning-tools" => check(expect, &filtered(given)),
        "pruning-settings" => check(expect, &settings(&given["raw"]).map_or(Value::Null, |config| to_json(&config))),
        "compaction-guards" => block_on(guarded(given)).and_then(|seen| check(expect, &seen)),
        _ => return None,
    }))
}

/// Messages with this many tokens each.
fn messages(tokens: &Value) -> Vec<Arc<Message>> {
    let one = |tokens: &Value| {
        let n = tokens.as_u64().unwrap_or(0);
        Arc::new(Message::user("x".repeat(usize::try_from(n * 4).unwrap_or(0)), NOW))
    };
    match tokens {
        Value::Array(list) => list.iter().map(one).collect(),
        number => vec![one(number)],
    }
}

fn sizes(messages: &[Arc<Message>]) -> Value {
    messages.iter().map(|message| tokens_of(std::slice::from_ref(message))).collect()
}

fn math(given: &Value) -> Option<Value> {
    let messages = messages(&given["tokens"]);
    let window = given["window"].as_u64().unwrap_or(0);
    let chunks = |chunks: Vec<Vec<Arc<Message>>>| chunks.iter().map(|chunk| sizes(chunk)).collect();
    Some(match given["fn"].as_str()? {
        "adaptive_ratio" => adaptive_ratio(&messages, window).into(),
        "oversized" => is_oversized(given["tokens"].as_u64()?, window).into(),
        "split_by_share" => {
            let parts = given["parts"].as_f64().filter(|parts| *parts >= 1.0).map_or(1, |parts| parts as usize);
            chunks(split_by_share(&messages, parts))
        }
        "chunk_by_max" => chunks(chunk_by_max(&messages, given["max"].as_u64()?)),
        "drop_history" => {
            let history = drop_history(&messages, window, given["share"].as_f64().unwrap_or(0.5));
            json!({
                "kept": sizes(&history.kept), "dropped": sizes(&history.dropped),
                "droppedChunks": history.n_chunks, "budget": history.budget,
            })
        }
        _ => return None,
    })
}

fn section(given: &Value) -> Value {
    if !given["fileOps"].is_null() {
        let mut files = FileList::default();
        for (kind, tool) in [("read", "read"), ("written", "write"), ("edited", "edit")] {
            for path in given["fileOps"][kind].as_array().into_iter().flatten() {
                let arguments = json!({"path": path}).as_object().cloned().unwrap_or_default();
                let mut answer = pinch_llm::message::AssistantMessage::pending("a".into(), "p".into(), "m".into(), NOW);
                answer.content = vec![Arc::new(Block::ToolCall(ToolCall::new("c", tool, arguments)))];
                files.add_calls(&Message::Assistant(Arc::new(answer)));
            }
        }
        return json!({"readFiles": files.read(), "modifiedFiles": files.modified(), "section": files.text()});
    }
    let results = given["toolResults"].as_array().into_iter().flatten().map(|result| {
        let name = result["toolName"].as_str().unwrap_or("tool");
        let call = ToolCall::new(result["id"].as_str().unwrap_or(""), name, Map::new());
        let text = result["text"].as_str().unwrap_or("");
        let mut made = ToolResult::text(&call, text, result["isError"] == true, NOW);
        made.details = result.get("details").filter(|details| !details.is_null()).cloned();
        Arc::new(Message::ToolResult(made))
    });
    let section = tool_failures(&results.collect::<Vec<_>>()).unwrap_or_default();
    let lines: Vec<&str> = section.lines().filter(|line| line.starts_with("- ")).collect();
    json!({"section": section, "lines": lines, "lineCount": lines.len(), "last": lines.last()})
}

fn model(given: &Value) -> Result<Value, String> {
    let setting = json!({"agents": {"defaults": {"compaction": {"model": given["setting"]}}}});
    let setting = config(setting).agents.defaults.compaction.model;
    let authed = |model: &Model| {
        given["authed"].as_array().is_none_or(|names| names.iter().any(|name| name == model.provider.as_str()))
    };
    let records = given["catalog"].as_array().into_iter().flatten();
    let models = records.map(|record| {
        let mut record = record.clone();
        record["api"] = "openai-completions".into();
        Model::from_record(&record).map(Arc::new).map_err(|error| error.to_string())
    });
    let models = models.collect::<Result<Vec<Arc<Model>>, String>>()?;
    let of_run = |model: &&Arc<Model>| {
        given["run"]["provider"] == model.provider.as_str() && given["run"]["id"] == model.id.as_str()
    };
    let run = models.iter().find(of_run).ok_or("the run's model is not in the catalog")?;
    let usable: Vec<Arc<Model>> = models.iter().filter(|model| authed(model)).cloned().collect();
    let chosen = choose(&setting, run, &usable).unwrap_or_else(|| Arc::clone(run));
    Ok(format!("{}/{}", chosen.provider, chosen.id).into())
}

/// Compares a shortened text by its prefix and by what it contains.
fn compare(expect: &Value, actual: &Value) -> Result<(), String> {
    let text = actual["text"].as_str().unwrap_or("");
    if let Some(start) = expect["textStartsWith"].as_str().filter(|start| !text.starts_with(start)) {
        return Err(format!("/textStartsWith: expected {start:?}, got {text:?}"));
    }
    let mentions = expect["mentions"].as_array().into_iter().flatten().filter_map(Value::as_str);
    if let Some(missing) = mentions.into_iter().find(|word| !text.contains(word)) {
        return Err(format!("/mentions: {missing:?} is not in {text:?}"));
    }
    let mut rest = expect.clone();
    if let Some(rest) = rest.as_object_mut() {
        rest.retain(|name, _| !matches!(name.as_str(), "textStartsWith" | "mentions"));
    }
    check(&rest, actual)
}

/// The settings that apply to all eligible providers; `None` if disabled.
fn settings(raw: &Value) -> Option<PruningConfig> {
    match config(json!({"agents": {"defaults": {"contextPruning": raw}}})).agents.defaults.pruning {
        PruningSetting::On(config) => Some(config),
        _ => None,
    }
}

fn to_json(config: &PruningConfig) -> Value {
    let soft = config.soft_trim;
    json!({
        "mode": "cache-ttl", "ttlMs": config.ttl.as_millis() as u64, "keepLastAssistants": config.keep_last_assistants,
        "softTrimRatio": config.soft_trim_ratio, "hardClearRatio": config.hard_clear_ratio,
        "minPrunableToolChars": config.min_prunable_chars,
        "softTrim": {"maxChars": soft.max_chars, "headChars": soft.head_chars, "tailChars": soft.tail_chars},
        "hardClear": {"enabled": config.placeholder.is_some(), "placeholder": config.placeholder},
        "tools": {"allow": config.tools.allow, "deny": config.tools.deny},
    })
}

fn filtered(given: &Value) -> Value {
    let config = settings(&json!({"mode": "cache-ttl", "tools": {"allow": given["allow"], "deny": given["deny"]}}));
    let names = given["names"].as_array().into_iter().flatten().filter_map(Value::as_str);
    names.map(|name| config.as_ref().is_some_and(|config| config.tools.allows(name))).collect()
}

fn gate(given: &Value) -> Value {
    if let Some(pairs) = given["eligible"].as_array() {
        let eligible = |pair: &Value| {
            is_eligible(pair[0].as_str().unwrap_or(""), pair[1].as_str().unwrap_or(""), pair[2].as_str().unwrap_or(""))
        };
        return pairs.iter().map(eligible).collect();
    }
    let touched = given["lastTouchAgoMs"].as_i64().map(|ago| NOW - ago);
    is_due(touched, given["ttlMs"].as_i64().unwrap_or(0), NOW).into()
}

/// The pruned results; for a single one, its text.
fn pruned(given: &Value) -> Value {
    let mut raw = given["settings"].as_object().cloned().unwrap_or_default();
    raw.insert("mode".into(), "cache-ttl".into());
    if !given["softTrim"].is_null() {
        raw.insert("softTrim".into(), given["softTrim"].clone());
    }
    let Some(config) = settings(&Value::Object(raw)) else { return Value::Null };
    let result = |id: &str, blocks: Vec<Block>| {
        let mut result = ToolResult::text(&ToolCall::new(id, "exec", Map::new()), "", false, NOW);
        result.content = blocks;
        result
    };
    let blocks = match (&given["blocks"], super::calls::text(&given["text"])) {
        (Value::Array(blocks), _) => Some(blocks.iter().map(|text| Block::text(text.as_str().unwrap_or(""))).collect()),
        (_, text) if !given["text"].is_null() => Some(vec![Block::text(text)]),
        _ => None,
    };
    if let Some(blocks) = blocks {
        let short = shorten(&result("t", blocks), Shortening::Trimmed, &config);
        return short.map_or(Value::Null, |short| json!({"text": short.content[0].as_text()}));
    }
    let messages: Vec<Arc<Message>> = given["messages"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|message| {
            let text = "x".repeat(message["chars"].as_u64().unwrap_or(0) as usize);
            let images = message["images"].as_u64().unwrap_or(0);
            let image = || Block::Image(Image { data: "aGk=".into(), mime_type: "image/png".into() });
            Arc::new(match (message.as_str(), message["toolResult"].as_str()) {
                (_, Some(id)) => {
                    let content = std::iter::once(Block::text(text)).chain((0..images).map(|_| image())).collect();
                    Message::ToolResult(result(id, content))
                }
                (Some("assistant"), _) => {
                    Message::Assistant(Arc::new(AssistantMessage::pending("a".into(), "p".into(), "m".into(), NOW)))
                }
                _ => Message::user(text, NOW),
            })
        })
        .collect();
    let planned = plan(&messages, &config, given["window"].as_u64().unwrap_or(0));
    let ids = messages.iter().filter_map(|message| match &**message {
        Message::ToolResult(result) => Some(result.tool_call_id.as_str()),
        _ => None,
    });
    let word = |id: &str| match planned.get(id) {
        None => "kept",
        Some(Shortening::Trimmed) => "soft",
        Some(Shortening::Cleared) => "cleared",
    };
    ids.map(|id| (id.to_owned(), Value::from(word(id)))).collect::<Map<String, Value>>().into()
}

/// The outcome for a session that its host compacts.
async fn guarded(given: &Value) -> Result<Value, String> {
    let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
    let answers = given["summaries"].as_array().into_iter().flatten().map(|answer| match answer.as_str() {
        Some("error") | None => ScriptedReply::error("the summary failed"),
        Some(text) => ScriptedReply::text(text),
    });
    let provider = Arc::new(ScriptedProvider::new(answers).when_exhausted("no answer is left"));
    let mut providers = ProviderRegistry::new();
    providers.register("openai-completions", provider.clone());
    let mut document = json!({"agents": {"defaults": {"workspace": "~/w"}}});
    let is_null = |name: &str| given.get(name).is_some_and(Value::is_null);
    if !is_null("model") {
        document["agents"]["defaults"]["model"] = json!({"primary": "mock/m"});
        let mut entry = json!({
            "baseUrl": "http://127.0.0.1:9/v1", "api": "openai-completions", "apiKey": "k",
            "models": [{"id": "m", "contextWindow": 200_000, "maxTokens": 8_192}],
        });
        if is_null("apiKey") {
            entry.as_object_mut().and_then(|entry| entry.remove("apiKey"));
        }
        document["models"] = json!({"providers": {"mock": entry}});
    }
    if let Some(guard) = given.get("qualityGuard") {
        document["agents"]["defaults"]["compaction"] = json!({"qualityGuard": guard});
    }
    let settings = json!({"compaction": {"keepRecentTokens": 300}});
    world::write(dir.path(), "state/agents/main/agent/settings.json", &settings)?;
    let file = dir.path().join("state/agents/main/sessions/s1.jsonl");
    let before = transcript(given);
    std::fs::create_dir_all(dir.path().join("state/agents/main/sessions")).map_err(|error| error.to_string())?;
    std::fs::write(&file, &before).map_err(|error| error.to_string())?;
    let engine = world::builder(dir.path(), document).providers(providers).build();
    let mut request = engine.request("s1", None, None, "");
    request.provider = given["direct"]["provider"].as_str().map(str::to_owned);
    request.model = given["direct"]["model"].as_str().map(str::to_owned);
    let mut seen = engine.compact(request, None).await.to_json();
    let after = std::fs::read_to_string(&file).map_err(|error| error.to_string())?;
    let summary = seen["result"]["summary"].as_str().unwrap_or("").to_owned();
    let boundary = after.lines().any(|line| line.contains(r#""type":"compaction""#));
    seen["cancel"] = (seen["compacted"] == false).into();
    seen["historyUnchanged"] = (!boundary && after.starts_with(&before)).into();
    seen["boundaryWritten"] = boundary.into();
    seen["summaryHasHeadings"] = summary.lines().any(|line| line.starts_with("## ")).into();
    seen["summaryCalls"] = provider.n_calls().into();
    Ok(seen)
}

/// A session file with messages of the kinds that a case lists, or a long conversation.
fn transcript(given: &Value) -> String {
    let usual = [json!("user"), json!("assistant"), json!("user"), json!("assistant")];
    let kinds = given["messages"].as_array().map_or(&usual[..], Vec::as_slice);
    let time = "2026-01-01T00:00:00.000Z";
    let mut text =
        format!("{}\n", json!({"type": "session", "version": 3, "id": "s1", "timestamp": time, "cwd": "/work"}));
    let mut parent = Value::Null;
    let words = "Something was said here. ".repeat(40);
    for (n, kind) in kinds.iter().enumerate() {
        let id = format!("{n:08x}");
        let content = json!([{"type": "text", "text": words}]);
        let mut entry = match kind.as_str().unwrap_or("user") {
            "assistant" => json!({"type": "message", "message": {
                "role": "assistant", "api": "openai-completions", "provider": "mock", "model": "m", "stopReason": "stop",
                "usage": {}, "content": content, "timestamp": NOW,
            }}),
            "toolResult" => json!({"type": "message", "message": {
                "role": "toolResult", "toolCallId": "c1", "toolName": "read", "isError": false, "content": content,
                "timestamp": NOW,
            }}),
            "user" => json!({"type": "message", "message": {"role": "user", "content": content, "timestamp": NOW}}),
            kind => json!({"type": "custom_message", "customType": kind, "content": words, "display": false}),
        };
        entry["id"] = id.as_str().into();
        entry["parentId"] = parent;
        entry["timestamp"] = time.into();
        text.push_str(&format!("{entry}\n"));
        parent = id.into();
    }
    text
}
