//! Cases of kind `tool`: one call of a built-in tool in a separate directory.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pinch_agent_core::llm::ids::ToolCallId;
use pinch_agent_core::llm::schema::validate_tool_arguments;
use pinch_agent_core::tool::{Progress, ToolCx, ToolError, ToolOutput};
use pinch_coding_agent::machine::LocalMachine;
use pinch_coding_agent::tools::bash::Shell;
use pinch_coding_agent::tools::path::WorkingDirectory;
use pinch_coding_agent::tools::{ToolParts, all_tools};
use pinch_stdx::cancel::{Cancel, CancelReason};
use pinch_stdx::host::Host;
use pinch_testing::cases::compare::{contains, same};
use regex::Regex;
use serde_json::{Map, Value, json};

use super::{digest, files};
use crate::cases::{Case, CaseOutcome};

/// Runs a case.
pub(super) fn run(case: &Case<'_>) -> CaseOutcome {
    let input = &case.case["input"];
    let wanted = if case.case["ours"].is_object() { &case.case["ours"] } else { &case.case["expect"] };
    let Ok(runtime) = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build() else {
        return CaseOutcome::Failed("no runtime".into());
    };
    match runtime.block_on(call(input, wanted)) {
        Ok(actual) => compare(case.case, wanted, actual).into(),
        Err(why) => CaseOutcome::Failed(why),
    }
}

/// Makes the call and records the result in the form that cases use.
async fn call(input: &Value, wanted: &Value) -> Result<Value, String> {
    let text = |why: std::io::Error| why.to_string();
    let folder = tempfile::tempdir().map_err(text)?;
    let root = folder.path().canonicalize().map_err(text)?;
    let (cwd, temp) = (root.join("cwd"), root.join("temp"));
    std::fs::create_dir(&cwd).and_then(|()| std::fs::create_dir(&temp)).map_err(text)?;
    files::write(&cwd, &input["files"])?;
    if input["setup"].as_str().is_some_and(|what| what.contains("cwd was deleted")) {
        std::fs::remove_dir_all(&cwd).map_err(text)?;
    }
    let (progress, reports) = Progress::kept();
    let output = output(input, &cwd, &temp, &progress).await;
    let mut actual = match &output {
        Ok(output) if !output.failed => shown(output),
        Ok(output) => json!({"ok": false, "error": output.content.first().and_then(|block| block.as_text())}),
        Err(error) => json!({"ok": false, "error": error.text}),
    };
    let updates: Vec<ToolOutput> = std::iter::from_fn(|| reports.take()).collect();
    if wanted.get("firstUpdate").is_some() {
        actual["firstUpdate"] = updates.first().map(shown).unwrap_or_default();
    }
    if wanted.get("lastUpdateText").is_some() {
        let block = updates.last().and_then(|update| update.content.first());
        actual["lastUpdateText"] = block.and_then(|block| block.as_text()).into();
    }
    for name in wanted["filesAfter"].as_object().into_iter().flatten().map(|(name, _)| name) {
        let content = std::fs::read(cwd.join(name)).ok();
        actual["filesAfter"][name] = content.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).into();
    }
    Ok(with_placeholders(actual, &cwd, &temp))
}

async fn output(input: &Value, cwd: &Path, temp: &Path, progress: &Progress) -> Result<ToolOutput, ToolError> {
    let options = &input["toolOptions"];
    let own: Vec<(String, String)> = std::env::vars().collect();
    let place = WorkingDirectory { cwd: cwd.to_owned(), home: std::env::var_os("HOME").map(PathBuf::from) };
    let shell = Shell {
        program: options["shellPath"].as_str().unwrap_or("/bin/bash").into(),
        prefix: options["commandPrefix"].as_str().map(str::to_owned),
        env: Shell::environment(own.iter().map(|(name, value)| (name.as_str(), value.as_str()))),
        temp: temp.to_owned(),
    };
    let parts = ToolParts::new(Arc::new(LocalMachine), place, shell);
    let tools = all_tools(&parts);
    let name = input["tool"].as_str().unwrap_or_default();
    let tool = tools.get(name).ok_or_else(|| ToolError::new(format!("Unknown tool name: {name}")))?;
    let raw = tool.prepare(input["params"].as_object().cloned().unwrap_or_default())?;
    let params = validate_tool_arguments(name, &tool.spec().parameters, &raw);
    let params = params.map_err(|error| ToolError::new(error.to_string()))?;
    let cancel = Cancel::new();
    let (id, host) = (ToolCallId::from("call_1"), Host::builder().build());
    let cx = ToolCx { call: &id, cancel: &cancel, progress, host: &host };
    let abort = async {
        match input["abortAfterMs"].as_u64() {
            Some(0) => cancel.cancel(CancelReason::User),
            Some(ms) => {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                cancel.cancel(CancelReason::User);
            }
            None => {}
        }
    };
    tokio::join!(abort, tool.run(params, &cx)).1
}

fn shown(output: &ToolOutput) -> Value {
    let mut shown = Map::new();
    shown.insert("ok".into(), true.into());
    shown.insert("content".into(), serde_json::to_value(&output.content).unwrap_or_default());
    if let Some(details) = &output.details {
        shown.insert("details".into(), details.clone());
    }
    shown.into()
}

/// Replaces the case's directories in a text with placeholders.
fn with_placeholders(value: Value, cwd: &Path, temp: &Path) -> Value {
    match value {
        Value::String(text) => {
            let text = text.replace(&*cwd.to_string_lossy(), "$CWD").replace(&*temp.to_string_lossy(), "$TMP");
            let Ok(log) = Regex::new(r"\$TMP/pinch-bash-[0-9A-Za-z_-]+\.log") else { return text.into() };
            log.replace_all(&text, "$$TMP/pi-bash-<16 hex>.log").into_owned().into()
        }
        Value::Array(list) => list.into_iter().map(|value| with_placeholders(value, cwd, temp)).collect(),
        Value::Object(map) => {
            map.into_iter().map(|(name, value)| (name, with_placeholders(value, cwd, temp))).collect()
        }
        other => other,
    }
}

fn compare(case: &Value, wanted: &Value, actual: Value) -> Result<(), String> {
    let mut wanted = wanted.clone();
    let mut actual = digest::like(&wanted, actual);
    if let Some(prefix) = only_prefix(case)
        && actual["error"].as_str().is_some_and(|error| error.starts_with(&prefix))
    {
        actual["error"] = wanted["error"].clone();
    }
    allow_any_order(case["order"].as_str(), &mut wanted, &mut actual)?;
    for block in wanted.get_mut("content").and_then(Value::as_array_mut).into_iter().flatten() {
        if block["data"] == "<base64>" {
            block["data"] = "$re:^[A-Za-z0-9+/]+=*$".into();
        }
    }
    // Cases name the details that they compare; truncated text is already in the content.
    let details = |side: &mut Value| -> Option<Value> {
        let mut details = side.as_object_mut()?.shift_remove("details")?;
        if let Some(truncation) = details.get_mut("truncation").and_then(Value::as_object_mut) {
            truncation.shift_remove("content");
        }
        Some(details)
    };
    match (details(&mut wanted), details(&mut actual)) {
        (None, None) => {}
        (Some(wanted), Some(actual)) => contains(&wanted, &actual).map_err(|why| format!("details{why}"))?,
        (wanted, actual) => return Err(format!("details: expected {wanted:?}, got {actual:?}")),
    }
    if let Some(update) = wanted.get("firstUpdate") {
        contains(update, &actual["firstUpdate"]).map_err(|why| format!("firstUpdate{why}"))?;
        actual["firstUpdate"] = update.clone();
    }
    same(&wanted, &actual)
}

/// The prefix to compare, if the case says that only a prefix matters.
fn only_prefix(case: &Value) -> Option<String> {
    let pattern = Regex::new("compare prefix '([^']+)' only").ok()?;
    Some(pattern.captures(case["note"].as_str()?)?[1].to_owned())
}

/// Sorts the lines of unordered lists on both sides.
fn allow_any_order(order: Option<&str>, wanted: &mut Value, actual: &mut Value) -> Result<(), String> {
    let Some(order) = order else { return Ok(()) };
    let text = |side: &Value| side["content"][0]["text"].as_str().map(str::to_owned);
    let (Some(expected), Some(found)) = (text(wanted), text(actual)) else { return Ok(()) };
    let split = |text: &str| -> (Vec<String>, String) {
        let (list, notice) = text.find("\n\n[").map_or((text, ""), |at| text.split_at(at));
        (list.split('\n').map(str::to_owned).collect(), notice.to_owned())
    };
    let ((mut expected, notice), (mut found, found_notice)) = (split(&expected), split(&found));
    match order {
        "any-line-order" => {
            expected.sort();
            found.sort();
        }
        "any-subset" => {
            let distinct: BTreeSet<&String> = found.iter().collect();
            if distinct.len() == expected.len() && found.len() == expected.len() {
                expected.clone_from(&found);
            }
        }
        other => return Err(format!("no such order: {other}")),
    }
    wanted["content"][0]["text"] = (expected.join("\n") + &notice).into();
    actual["content"][0]["text"] = (found.join("\n") + &found_notice).into();
    Ok(())
}
