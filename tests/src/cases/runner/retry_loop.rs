//! The retry loop: an engine with a scripted runtime, observed through the run's events and result.

use std::path::Path;
use std::sync::Arc;

use futures::StreamExt;
use pinch_embed::profiles::ProfileId;
use pinch_embed::run::decide::{Mark, Repair, WaitFor};
use pinch_embed::run::request::ProfileSource;
use pinch_embed::run::{FailoverReason, RunError, RunResult};
use pinch_embed::runner::RunEvent;
use pinch_testing::server::{Server, ServerReply};
use pinch_testing::wires::anthropic;
use serde_json::{Map, Value, json};

use super::world;
use super::{CaseOutcome, check};

/// The profile file below the state directory.
const PROFILES: &str = "state/agents/main/agent/auth-profiles.json";

pub(super) fn run(area: &str, group: &Value, given: &Value, expect: &Value) -> Option<CaseOutcome> {
    if area != "retry-loop" {
        return None;
    }
    let mut setup = group["runner"].as_object().cloned().unwrap_or_default();
    setup.extend(given.as_object().cloned().unwrap_or_default());
    let played = match expect.get("promptMustNotContain").and_then(Value::as_str) {
        Some(text) => wire_lacks(&setup, text),
        None => world::block_on(play(&setup, given, expect)),
    };
    Some(CaseOutcome::from(played))
}

fn texts(setup: &Map<String, Value>, name: &str) -> Vec<String> {
    let list = setup.get(name).and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The configuration of a case: its model, its fallback models, and the order of its profiles.
fn document(setup: &Map<String, Value>, url: &str, api: &str) -> Value {
    let provider = setup["provider"].as_str().unwrap_or("openai");
    let model = setup["model"].as_str().unwrap_or("mock-1");
    let fallbacks = texts(setup, "fallbacks");
    let mut providers = json!({provider: {
        "baseUrl": url, "api": api,
        "models": [{"id": model, "contextWindow": setup["window"], "maxTokens": 4_096, "reasoning": true}],
    }});
    for fallback in &fallbacks {
        let (other, id) = fallback.split_once('/').unwrap_or(("x", fallback));
        let entry = &mut providers[other];
        if entry.is_null() {
            *entry = json!({"baseUrl": url, "api": api, "apiKey": "k", "models": []});
        }
        if let Some(models) = entry["models"].as_array_mut() {
            models.push(json!({"id": id, "contextWindow": setup["window"], "maxTokens": 4_096}));
        }
    }
    let order = texts(setup, "order");
    let order = if order.is_empty() { texts(setup, "profiles") } else { order };
    json!({
        "agents": {"defaults": {
            "model": {"primary": format!("{provider}/{model}"), "fallbacks": fallbacks},
            "workspace": "~/workspace",
            "thinkingDefault": setup.get("thinkLevel"),
        }},
        "auth": {"order": if order.is_empty() { json!({}) } else { json!({provider: order}) }},
        "models": {"providers": providers},
    })
}

/// Creates the files of a case.
fn lay_out(dir: &Path, setup: &Map<String, Value>) -> Result<Value, String> {
    let provider = setup["provider"].as_str().unwrap_or("openai");
    let chosen = setup.get("authProfileId").and_then(Value::as_str).map(str::to_owned);
    let ids = texts(setup, "profiles").into_iter().chain(texts(setup, "storeHas")).chain(chosen);
    let reason = setup.get("cooldownReason").and_then(Value::as_str);
    let file = world::profiles_file(provider, ids, &texts(setup, "cooldown"), reason);
    world::write(dir, PROFILES, &file)?;
    let retries = setup.get("transientRetries").and_then(Value::as_u64).unwrap_or(0);
    world::write(dir, "state/agents/main/agent/settings.json", &json!({"retry": {"maxRetries": retries}}))?;
    Ok(file)
}

fn stats(dir: &Path) -> Result<Value, String> {
    let bytes = std::fs::read(dir.join(PROFILES)).map_err(|error| error.to_string())?;
    let file: Value = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
    Ok(file["usageStats"].clone())
}

/// What a run did, in the form that cases use.
#[derive(Default)]
struct RunLog {
    actions: Vec<String>,
    profiles: Vec<String>,
    thinking: Vec<Value>,
    waits: Vec<u64>,
}

impl RunLog {
    fn observe(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Attempt(plan) => {
                let profile = plan.profile.as_ref().map_or("", ProfileId::as_str);
                self.actions.push(format!("attempt:{profile}"));
                self.profiles.push(profile.to_owned());
                self.thinking.push(plan.thinking.as_str().into());
            }
            RunEvent::Repair(Repair::Compact { trigger, .. }) => {
                self.actions.push(format!("compact:{}", trigger.as_str()));
            }
            RunEvent::Repair(Repair::TruncateToolResults) => self.actions.push("truncate".into()),
            RunEvent::Wait(wait) if matches!(wait.before, WaitFor::SameProfile { .. }) => {
                self.actions.push("wait".into());
                self.waits.push(wait.delay.as_millis() as u64);
            }
            RunEvent::Marked(mark) => self.actions.push(match mark {
                Mark::Failure { profile, reason, .. } => format!("mark:failure:{profile}:{}", reason.as_str()),
                Mark::Good { profile } => format!("mark:good:{profile}"),
                Mark::Used { profile } => format!("mark:used:{profile}"),
            }),
            _ => {}
        }
    }
}

async fn play(setup: &Map<String, Value>, given: &Value, expect: &Value) -> Result<(), String> {
    let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
    let before = lay_out(dir.path(), setup)?["usageStats"].clone();
    let runtime = world::scripted(given.clone());
    let document = document(setup, "http://127.0.0.1:9/v1", "openai-completions");
    let engine = world::builder(dir.path(), document).runtime("native", Arc::new(runtime)).build();
    let mut request = engine.request("s1", None, None, setup.get("prompt").and_then(Value::as_str).unwrap_or("hi"));
    if let Some(id) = given["authProfileId"].as_str() {
        let source = match given["authProfileIdSource"].as_str() {
            Some("user") => ProfileSource::User,
            _ => ProfileSource::Auto,
        };
        request = request.auth_profile(id, source);
    }
    if given["allowTransientCooldownProbe"] == true {
        request = request.allow_cooldown_probe();
    }
    let mut run = engine.run(request);
    let mut log = RunLog::default();
    let mut failed_over = None;
    while let Some(event) = run.next().await {
        log.observe(&event);
        // Expectations about a failure with failover apply only to the first model.
        if let RunEvent::FailedOver { error, .. } = event {
            failed_over = Some(error);
            break;
        }
    }
    let mut actual = match failed_over.map_or_else(|| run.result(), Err) {
        Ok(result) => json!({"result": result_value(&result)}),
        Err(RunError::Failover(error)) if !texts(setup, "fallbacks").is_empty() && !is_plain(expect) => {
            json!({"throwsFailover": {
                "message": error.message, "reason": error.reason.map(FailoverReason::as_str), "status": error.status,
                "provider": error.provider, "model": error.model,
            }})
        }
        Err(error) => json!({"throws": error.to_string()}),
    };
    let after = stats(dir.path())?;
    let changed = |id: &str| after[id] != before[id];
    let ids: Vec<String> = texts(setup, "profiles");
    actual["after"] = ids
        .iter()
        .map(|id| (id.clone(), if changed(id) { after[id].clone() } else { json!("unchanged") }))
        .collect::<Map<_, _>>()
        .into();
    let untouched = expect["untouched"].as_array().into_iter().flatten().filter_map(Value::as_str);
    if let Some(id) = untouched.into_iter().find(|id| changed(id)) {
        return Err(format!("/untouched: {id} has changed"));
    }
    actual["untouched"] = expect["untouched"].clone();
    actual["rotated"] = log.profiles.windows(2).any(|pair| pair[0] != pair[1]).into();
    actual["actions"] = json!(log.actions);
    actual["attemptProfiles"] = json!(log.profiles);
    actual["attemptThinking"] = json!(log.thinking);
    actual["waitsMs"] = json!(log.waits);
    compare(expect, &actual, log.profiles.len() as u64)
}

/// Whether a case expects an error without failover.
fn is_plain(expect: &Value) -> bool {
    expect.get("throws").is_some()
}

/// Compares, supporting fields that are text checks instead of values.
fn compare(expect: &Value, actual: &Value, n_attempts: u64) -> Result<(), String> {
    let mut expect = expect.clone();
    if let Some(most) = expect.as_object_mut().and_then(|expect| expect.remove("attemptsAtMost"))
        && most.as_u64().is_some_and(|most| n_attempts > most)
    {
        return Err(format!("{n_attempts} attempts, at most {most} expected"));
    }
    for (owner, member, whole, at_start) in [
        ("throwsFailover", "messageContains", "message", false),
        ("result", "textContains", "firstText", false),
        ("result", "textPrefix", "firstText", true),
    ] {
        let named = expect.get_mut(owner).and_then(Value::as_object_mut);
        let Some(wanted) = named.and_then(|named| named.remove(member)) else { continue };
        let text = actual[owner][whole].as_str().unwrap_or("");
        let wanted = wanted.as_str().unwrap_or("");
        if !(if at_start { text.starts_with(wanted) } else { text.contains(wanted) }) {
            return Err(format!("/{owner}/{member}: expected {wanted:?} in {text:?}; actual {actual}"));
        }
    }
    check(&expect, actual)
}

/// A result in the form that cases use.
fn result_value(result: &RunResult) -> Value {
    let value = result.clone().into_json();
    let payloads = value["payloads"].as_array().cloned().unwrap_or_default();
    let first = payloads.first().cloned().unwrap_or(Value::Null);
    let text = payloads.iter().rev().find(|payload| payload["isError"] != true).map(|payload| payload["text"].clone());
    let agent = &value["meta"]["agentMeta"];
    json!({
        "text": text,
        "firstText": first["text"],
        "isError": first["isError"] == true,
        "error": value["meta"]["error"]["kind"],
        "aborted": value["meta"]["aborted"],
        "payloads": value["payloads"],
        "compactionCount": agent["compactionCount"].as_u64().unwrap_or(0),
        "usage": agent["usage"],
        "promptTokens": agent["promptTokens"],
        "stopReason": value["meta"]["stopReason"],
        "pendingToolCalls": value["meta"]["pendingToolCalls"],
    })
}

/// Runs the prompt of a case against a server, and checks that no request contains a text.
fn wire_lacks(setup: &Map<String, Value>, text: &str) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| error.to_string())?.block_on(async {
        let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
        lay_out(dir.path(), setup)?;
        let server = Server::start().await.map_err(|error| error.to_string())?;
        server.reply(ServerReply::sse(anthropic::AnthropicResponse::new("m1").text("ok").stop("end_turn").concat()));
        let engine = world::builder(dir.path(), document(setup, &server.url(), "anthropic-messages")).build();
        let prompt = setup.get("prompt").and_then(Value::as_str).unwrap_or("hi");
        let result = engine.run(engine.request("s1", None, None, prompt)).finish().await;
        result.map_err(|error| error.to_string())?;
        match server.requests().iter().find(|request| request.json().to_string().contains(text)) {
            Some(request) => Err(format!("/promptMustNotContain: {}", request.json())),
            None => Ok(()),
        }
    })
}
