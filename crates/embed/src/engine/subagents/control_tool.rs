//! `subagents`: lists, awaits, stops and redirects the sub-agents of a session.

use std::sync::{LazyLock, Weak};
use std::time::Duration;

use futures::future::BoxFuture;
use pinch_agent_core::tool::{JsonObject, Tool, ToolCx, ToolError, ToolOutput, ToolSpec};
use pinch_llm::schema::Schema;
use pinch_stdx::cancel::{Cancel, CancelReason};
use pinch_tools::waiting::time_to_wait;
use serde_json::{Value, json};

use super::super::inbound;
use super::open;
use crate::parts::Parts;
use crate::parts::background::BackgroundTasks;
use crate::parts::toolbox::SUBAGENTS;
use crate::run::RunRequest;
use crate::subagents::record::{SubagentRecord, SubagentStatus, shortened};
use crate::subagents::registry::SteerOutcome;

/// Maximum length of a message, in characters.
const MAX_MESSAGE: usize = 4000;
/// Seconds to wait: default and maximum.
const WAIT: (f64, f64) = (30.0, 60.0);
/// How far back ended sub-agents are listed, in minutes: default and maximum.
const RECENT: (f64, f64) = (30.0, 1440.0);

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    let parameters = Schema::new(json!({
        "type": "object",
        "required": ["action"],
        "properties": {
            "action": {"type": "string", "enum": ["list", "wait", "kill", "steer"], "description": "wait: until it ends; steer: stop its run and start it again with a message"},
            "target": {"type": "string", "description": "Number in the list, label, session key or run id; for wait and kill also all"},
            "message": {"type": "string", "description": "For steer"},
            "timeoutSeconds": {"type": "number", "description": "For wait: 0 to 60 (30)"},
            "recentMinutes": {"type": "number", "description": "List those that ended this long ago (30)"},
        },
    }))
    .lenient();
    ToolSpec::new(SUBAGENTS, "Lists, awaits, stops or redirects the sub-agents of this session.", parameters)
});

/// The tool, for one run.
pub(super) struct SubagentsTool {
    background: Weak<BackgroundTasks>,
    key: String,
}

impl SubagentsTool {
    pub(super) fn new(background: Weak<BackgroundTasks>, request: &RunRequest) -> Self {
        Self { background, key: request.session_key.as_deref().unwrap_or_default().to_owned() }
    }

    async fn act(&self, input: &JsonObject, cancel: &Cancel) -> Result<Value, String> {
        let background = self.background.upgrade().ok_or("the program is ending")?;
        let parts = background.parts().ok_or("the program is ending")?;
        open(&background, &parts).await.map_err(|error| error.to_string())?;
        let key = inbound::canonical(&parts, &self.key).map_err(|error| error.to_string())?;
        let recent = input.get("recentMinutes").and_then(Value::as_f64).unwrap_or(RECENT.0).clamp(1.0, RECENT.1);
        let listed = listed(&parts, &key, recent);
        let text = |name: &str| input.get(name).and_then(Value::as_str).map(str::trim).unwrap_or_default();
        let target = || match input.get("target") {
            Some(Value::Number(n)) => n.to_string(),
            _ => text("target").to_owned(),
        };
        match text("action") {
            "" | "list" => Ok(list(&parts, &key, &listed)),
            "wait" => {
                wait(&parts, &listed, &target(), input.get("timeoutSeconds").and_then(Value::as_f64), cancel).await
            }
            "kill" => kill(&parts, &key, &listed, &target()),
            "steer" => steer(&parts, &listed, &target(), text("message")),
            other => Err(format!("unknown action {other:?}. Use list, wait, kill or steer")),
        }
    }
}

/// Returns the sub-agents of a session: first the active ones, then those that ended lately.
fn listed(parts: &Parts, key: &str, recent_minutes: f64) -> Vec<SubagentRecord> {
    let since = parts.host.now_ms().saturating_sub((recent_minutes * 60_000.0) as i64);
    let fits = |record: &SubagentRecord| {
        record.requester_session_key == key && record.ended_at.is_none_or(|ended| ended >= since)
    };
    let (active, ended): (Vec<_>, Vec<_>) = parts.subagents.find(fits).into_iter().partition(is_active);
    active.into_iter().chain(ended.into_iter().rev()).collect()
}

fn is_active(record: &SubagentRecord) -> bool {
    record.ended_at.is_none()
}

/// Returns how a sub-agent is doing, in a word.
fn status(record: &SubagentRecord) -> &'static str {
    match record.outcome.as_ref().map(|outcome| outcome.status) {
        _ if is_active(record) && record.started_at.is_none() => "queued",
        _ if is_active(record) => "running",
        Some(SubagentStatus::Ok) => "done",
        Some(SubagentStatus::Error) => "failed",
        Some(SubagentStatus::Timeout) => "timeout",
        Some(SubagentStatus::Unknown) | None => "unknown",
    }
}

fn list(parts: &Parts, key: &str, listed: &[SubagentRecord]) -> Value {
    let now = parts.host.now_ms();
    let entry = |(at, record): (usize, &SubagentRecord)| {
        json!({
            "index": at + 1,
            "runId": record.run_id.as_str(),
            "sessionKey": record.child_session_key.as_str(),
            "label": record.name(),
            "task": shortened(&record.task, 120),
            "status": status(record),
            "runtimeMs": record.ended_at.unwrap_or(now) - record.started_at.unwrap_or(record.created_at),
        })
    };
    let entries: Vec<Value> = listed.iter().enumerate().map(entry).collect();
    let n_active = listed.iter().filter(|record| is_active(record)).count();
    let line = |entry: &Value| {
        let label = entry["label"].as_str().unwrap_or_default();
        format!("{}. {label}: {}", entry["index"], entry["status"].as_str().unwrap_or_default())
    };
    let lines: Vec<String> = entries.iter().map(line).collect();
    let text = if lines.is_empty() { "There are no sub-agents.".to_owned() } else { lines.join("\n") };
    let (active, recent) = entries.split_at(n_active);
    json!({
        "status": "ok", "action": "list", "requesterSessionKey": key, "total": entries.len(), "active": active, "recent": recent,
        "text": text,
    })
}

/// Returns the sub-agent that a target names.
fn find<'a>(listed: &'a [SubagentRecord], target: &str) -> Result<&'a SubagentRecord, String> {
    if target.is_empty() {
        return Err("target is missing: give the number in the list, a label, a session key or a run id".to_owned());
    }
    let by_number = target.parse::<usize>().ok().and_then(|n| listed.get(n.checked_sub(1)?));
    let fits = |record: &&SubagentRecord| {
        let is_label = record.name().eq_ignore_ascii_case(target);
        is_label || record.run_id == target || record.child_session_key.eq_ignore_ascii_case(target)
    };
    let mut fitting = listed.iter().filter(fits);
    let found = fitting.next();
    if by_number.is_none() && found.is_some() && fitting.next().is_some() {
        return Err(format!("several sub-agents are named {target:?}. Give a run id"));
    }
    found.or(by_number).ok_or_else(|| format!("this session has no sub-agent {target:?}. List them first"))
}

/// Waits until sub-agents have ended. Their reports follow as usual.
async fn wait(
    parts: &Parts,
    listed: &[SubagentRecord],
    target: &str,
    seconds: Option<f64>,
    cancel: &Cancel,
) -> Result<Value, String> {
    let awaited = match target {
        "" | "all" | "*" => listed.iter().filter(|record| is_active(record)).collect(),
        target => vec![find(listed, target)?],
    };
    let ids: Vec<&str> = awaited.iter().map(|record| record.run_id.as_str()).collect();
    let limit = Duration::from_secs_f64(seconds.unwrap_or(WAIT.0).clamp(0.0, WAIT.1));
    let ended = parts.subagents.wait_until_none(|record| is_active(record) && ids.contains(&record.run_id.as_str()));
    let in_time = cancel.run(tokio::time::timeout(time_to_wait(cancel, limit), ended)).await;
    let in_time = in_time.map_err(|_| "the run was stopped".to_owned())?.is_ok();
    let entry = |id: &&str| {
        let record = parts.subagents.get(id)?;
        let (name, status) = (record.name(), status(&record));
        let result = record.frozen_result_text.filter(|_| record.ended_at.is_some());
        Some(json!({"runId": id, "label": name, "status": status, "result": result}))
    };
    let entries: Vec<Value> = ids.iter().filter_map(entry).collect();
    let text = match in_time {
        true => "All of them have ended.",
        false => "Some have not ended. They report by themselves.",
    };
    let status = if in_time { "ok" } else { "timeout" };
    Ok(json!({"status": status, "action": "wait", "subagents": entries, "text": text}))
}

fn kill(parts: &Parts, key: &str, listed: &[SubagentRecord], target: &str) -> Result<Value, String> {
    if matches!(target, "all" | "*") {
        let n = parts.subagents.stop_of(key, CancelReason::User);
        let text = format!("Stopped {n} sub-agents.");
        return Ok(json!({"status": "ok", "action": "kill", "target": "all", "killed": n, "text": text}));
    }
    let record = find(listed, target)?;
    let n_nested = parts.subagents.stop_of(&record.child_session_key, CancelReason::User);
    let was_running = parts.subagents.stop(&record.run_id, CancelReason::User);
    let (status, text) = match was_running {
        true => ("ok", format!("Stopped \"{}\".", record.name())),
        false => ("done", format!("\"{}\" has already ended.", record.name())),
    };
    Ok(json!({
        "status": status, "action": "kill", "target": target, "runId": record.run_id.as_str(),
        "sessionKey": record.child_session_key.as_str(), "killed": n_nested + usize::from(was_running), "text": text,
    }))
}

fn steer(parts: &Parts, listed: &[SubagentRecord], target: &str, message: &str) -> Result<Value, String> {
    if message.is_empty() || message.chars().count() > MAX_MESSAGE {
        return Err(format!("message must have 1 to {MAX_MESSAGE} characters"));
    }
    let record = find(listed, target)?;
    let name = record.name();
    let (status, text) = match parts.subagents.steer(&record.run_id, message.to_owned()) {
        SteerOutcome::Accepted => ("accepted", format!("\"{name}\" starts again with the message.")),
        SteerOutcome::TooSoon => ("rate_limited", format!("\"{name}\" has just got a message. Wait two seconds.")),
        SteerOutcome::Ended => ("done", format!("\"{name}\" has already ended.")),
    };
    Ok(json!({
        "status": status, "action": "steer", "target": target, "runId": record.run_id.as_str(),
        "sessionKey": record.child_session_key.as_str(), "mode": "restart", "text": text,
    }))
}

impl Tool for SubagentsTool {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn run<'a>(&'a self, input: JsonObject, cx: &'a ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            cx.cancel.check().map_err(|_| ToolError::aborted())?;
            let (result, failed) = match self.act(&input, cx.cancel).await {
                Ok(result) => (result, false),
                Err(error) => (json!({"status": "error", "error": error}), true),
            };
            let text = serde_json::to_string_pretty(&result).unwrap_or_default();
            Ok(ToolOutput { details: Some(result), failed, ..ToolOutput::text(text) })
        })
    }
}
