//! An engine for a case: a state directory, a configuration, profiles, and a scripted runtime.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use pinch_embed::Engine;
use pinch_embed::engine::EngineBuilder;
use pinch_embed::run::decide::{Repair, RepairOutcome};
use pinch_embed::run::outcome::{ClientToolCall, FailureStage, ToolRun};
use pinch_embed::run::{AttemptEnd, AttemptOutcome};
use pinch_embed::runtime::scripted::{ScriptedAttempt, ScriptedRuntime};
use pinch_llm::error::LlmError;
use pinch_llm::message::{AssistantMessage, Block, StopReason, Usage};
use pinch_llm::model::Model;
use pinch_stdx::cancel::CancelReason;
use pinch_stdx::fs::{Access, write_atomic};
use pinch_stdx::host::Host;
use serde_json::{Value, json};

use super::{NOW, config};

/// Writes a file below a directory, creating parent directories.
pub(super) fn write(dir: &Path, path: &str, content: &Value) -> Result<(), String> {
    let path = dir.join(path);
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(|error| error.to_string())?;
    }
    write_atomic(&path, content.to_string().as_bytes(), Access::Private).map_err(|error| error.to_string())
}

/// Starts building the engine of a case, with a stopped clock.
pub(super) fn builder(dir: &Path, document: Value) -> EngineBuilder {
    let host = Host::builder().clock(NOW, 0).home(dir).temp(dir).build();
    Engine::builder(dir.join("state")).host(host).config(config(document))
}

/// Runs a case on a runtime whose clock advances whenever nothing else can run.
pub(super) fn block_on<T>(work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.map_err(|error| error.to_string())?.block_on(work)
}

/// Creates a runtime that plays the outcomes of a case, one per attempt.
pub(super) fn scripted(given: Value) -> ScriptedRuntime {
    let repairs = given.clone();
    let (n_compactions, n_truncations) = (AtomicUsize::new(0), AtomicUsize::new(0));
    ScriptedRuntime::with(move |place| {
        let script = &given["attempts"];
        let script = script.get("always").unwrap_or(&script[place.n_before]);
        (!script.is_null()).then(|| ScriptedAttempt::with_outcome(outcome(script, place.model, place.now)))
    })
    .repairs(move |repair| match repair {
        Repair::Compact { .. } => {
            let script = &repairs["compactions"][n_compactions.fetch_add(1, Ordering::Relaxed)];
            let why = script["reason"].as_str().or_else(|| script["throws"].as_str()).unwrap_or("");
            match script["compacted"] == true {
                true => RepairOutcome::Compacted,
                false => RepairOutcome::NotCompacted { reason: why.to_owned() },
            }
        }
        Repair::TruncateToolResults => {
            let script = &repairs["truncations"][n_truncations.fetch_add(1, Ordering::Relaxed)];
            match script["truncated"] == true {
                true => RepairOutcome::Truncated { count: script["count"].as_u64().unwrap_or(1) as usize },
                false => RepairOutcome::NotTruncated,
            }
        }
    })
}

fn outcome(script: &Value, model: &Model, now: i64) -> AttemptOutcome {
    let failed = |stage, text: &str| {
        let mut error = LlmError::refused(model.provider.clone(), None, None, text);
        error.retry_after = script["retryAfterMs"].as_u64().map(Duration::from_millis);
        AttemptEnd::Failed { stage, error: Arc::new(error) }
    };
    let assistant_error = script["assistantError"].as_str();
    let end = if let Some(text) = script["promptError"].as_str() {
        failed(FailureStage::Prompt, text)
    } else if let Some(text) = assistant_error {
        failed(FailureStage::Answer, text)
    } else if script["timedOut"] == true {
        AttemptEnd::TimedOut { during_compaction: script["timedOutDuringCompaction"] == true }
    } else if script["aborted"] == true {
        AttemptEnd::Aborted(CancelReason::User)
    } else {
        AttemptEnd::Good
    };
    let text = script["assistant"].as_str();
    let mut outcome = AttemptOutcome::new(end);
    outcome.last_assistant = (text.is_some() || assistant_error.is_some()).then(|| {
        let (api, provider, id) = (model.api.clone(), model.provider.clone(), model.id.clone());
        let mut answer = AssistantMessage::pending(api, provider, id, now);
        answer.content = text.filter(|text| !text.is_empty()).map(Block::text).map(Arc::new).into_iter().collect();
        answer.error_message = assistant_error.map(str::to_owned);
        answer.stop_reason = match (assistant_error, script["stopReason"].as_str()) {
            (Some(_), _) | (None, Some("error")) => StopReason::Error,
            (None, Some("toolUse")) => StopReason::ToolUse,
            (None, Some("length")) => StopReason::Length,
            (None, _) => StopReason::Stop,
        };
        Arc::new(answer)
    });
    outcome.compactions = script["compactionCount"].as_u64().unwrap_or(0) as u32;
    outcome.has_payload = text.is_some_and(|text| !text.is_empty());
    let tools = script["tools"].as_array().into_iter().flatten().filter_map(Value::as_str);
    outcome.tools = tools
        .map(|name| ToolRun {
            name: name.into(),
            mutates: matches!(name, "write" | "edit" | "bash" | "exec"),
            failed: false,
            duration_ms: 0,
        })
        .collect();
    // The largest result allowed in a context window according to the specification.
    let most = (model.context_window * 3 / 10 * 4).min(400_000);
    let sizes = script["toolResultChars"].as_array().into_iter().flatten().filter_map(Value::as_u64);
    outcome.oversized_tool_results = sizes.max().unwrap_or(0) > most;
    let call = &script["clientToolCall"];
    let call = call["name"].as_str().map(|name| ClientToolCall {
        id: "call1".into(),
        name: name.to_owned(),
        params: call["params"].clone(),
    });
    outcome.client_tool_calls = call.into_iter().collect();
    outcome.last_call_usage = script["lastCallPromptTokens"].as_u64().map(|input| Usage { input, ..Usage::default() });
    let tokens = |name: &str| script["usage"][name].as_u64().unwrap_or(0);
    outcome.usage = Usage {
        input: tokens("input"),
        output: tokens("output"),
        cache_read: tokens("cacheRead"),
        cache_write: tokens("cacheWrite"),
        total_tokens: tokens("total"),
        ..Usage::default()
    };
    outcome
}

/// The profiles of a case in the format of an agent's file, including those in cooldown.
pub(super) fn profiles_file(
    provider: &str,
    ids: impl IntoIterator<Item = String>,
    resting: &[String],
    reason: Option<&str>,
) -> Value {
    let owner = |id: &str| id.split_once(':').map_or(provider, |(owner, _)| owner).to_owned();
    let entries: HashMap<String, Value> = ids
        .into_iter()
        .map(|id| {
            let entry = json!({"type": "api_key", "provider": owner(&id), "key": "k"});
            (id, entry)
        })
        .collect();
    let stats: HashMap<&String, Value> = resting
        .iter()
        .map(|id| {
            let mut stats = json!({"errorCount": 1, "lastFailureAt": NOW - 1, "cooldownUntil": NOW + 600_000});
            if let Some(reason) = reason {
                stats["failureCounts"] = json!({reason: 1});
            }
            (id, stats)
        })
        .collect();
    json!({"version": 1, "profiles": entries, "usageStats": stats})
}
