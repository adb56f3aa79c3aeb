//! Cases of kinds `json`, `print`, `rpc` and `cli`: the program's output, in order.

use pinch_testing::cases::notation;
use pinch_testing::cases::program::{self, ProgramOutput, lines};
use pinch_testing::cases::shape;
use regex::Regex;
use serde_json::{Map, Value, json};

use crate::cases::{Case, CaseOutcome};

/// Runs a case.
pub(super) fn run(case: &Case<'_>) -> CaseOutcome {
    let wanted = if case.case["ours"].is_object() { &case.case["ours"] } else { &case.case["expect"] };
    let ran = match program::run(case.file, &case.case["input"]) {
        Ok(ran) => ran,
        Err(why) => return CaseOutcome::Failed(why),
    };
    // With several runs, the expectations for the last one are separate.
    let wanted = wanted["runs"].as_array().and_then(|runs| runs.last()).unwrap_or(wanted);
    let Some(wanted) = wanted.as_object() else { return CaseOutcome::NotImplemented };
    let what = case.case["valueIs"].as_str();
    for (name, expected) in wanted {
        let mut expected = expected.clone();
        ran.put_in(&mut expected);
        let actual = match (name.as_str(), what) {
            ("output", _) if expected.is_array() => Some(lines::shortened(&ran.lines).into()),
            ("output", _) => Some(ran.stdout.as_str().into()),
            ("stderr", _) => Some(ran.stderr.trim().into()),
            ("exitCode", _) => Some(ran.exit_code.into()),
            ("requestCount", _) => Some(ran.requests.len().into()),
            ("filesAfter", _) => Some(ran.files_after.clone()),
            ("sessions", _) => Some(super::session_file::sessions(&ran)),
            ("toolResults", _) => Some(super::tool::results(&ran.stdout_lines())),
            ("value", Some(what)) => value(what, &expected, &ran, &case.case["input"]),
            _ => None,
        };
        let Some(actual) = actual else { return CaseOutcome::NotImplemented };
        if let Err(why) = compare(&expected, actual) {
            let stderr = ran.stderr.trim();
            let hint = if stderr.is_empty() { String::new() } else { format!("\n  stderr: {stderr}") };
            return CaseOutcome::Failed(format!("{name}{why}{hint}"));
        }
    }
    CaseOutcome::Passed
}

/// Compares with whole-text patterns and the placeholders of files.
fn compare(expected: &Value, actual: Value) -> Result<(), String> {
    if let Some(pattern) = expected.as_str().and_then(|text| text.strip_prefix("$re:")) {
        let regex = Regex::new(pattern).map_err(|why| why.to_string())?;
        let text = actual.as_str().unwrap_or_default();
        return if regex.is_match(text) { Ok(()) } else { Err(format!(": expected {pattern}, got {text}")) };
    }
    let (expected, actual) = shape::compared(expected, actual);
    notation::matches(&expected, &actual, "")
}

/// The value that a case describes in words. Several descriptions are separated by semicolons or `and`, each with its name or in the order
/// of the expected fields. `None` for unknown words.
pub(super) fn value(what: &str, expected: &Value, ran: &ProgramOutput, input: &Value) -> Option<Value> {
    let Some(members) = expected.as_object().filter(|members| !members.contains_key("role")) else {
        return one(what, expected, ran, input);
    };
    let separator = if what.contains(';') { ";" } else { ", and " };
    let parts: Vec<&str> = what.split(separator).map(str::trim).collect();
    let member = |(at, (name, expected)): (usize, (&String, &Value))| {
        let named = parts.iter().find_map(|part| part.strip_prefix(name.as_str())?.strip_prefix(':'));
        Some((name.clone(), one(named.or(parts.get(at).copied()).unwrap_or(name), expected, ran, input)?))
    };
    members.iter().enumerate().map(member).collect::<Option<Map<_, _>>>().map(Value::Object)
}

fn one(what: &str, expected: &Value, ran: &ProgramOutput, input: &Value) -> Option<Value> {
    let has = |word: &str| what.contains(word);
    let request = |last: bool| if last { ran.requests.last() } else { ran.requests.first() };
    let body = |last: bool| request(last).map(|request| request.json()).unwrap_or_default();
    if has("responses, retry events") {
        return Some(story(ran));
    }
    if has("all output lines") {
        return Some(ran.lines.iter().map(|line| only_asked(line, what)).collect());
    }
    if has("for each session file") {
        return super::session_file::value_of(what, expected, ran, input);
    }
    if has("toolsAdded of the first system message") {
        let added = ran.lines.iter().map(|line| &line["message"]).find(|message| message["role"] == "system")?;
        let added = &added["toolsAdded"];
        return Some(match has("names in") {
            true => added.as_array()?.iter().map(|tool| tool["name"].clone()).collect(),
            false => added.clone(),
        });
    }
    if has("tools field of the request") {
        return Some(body(true)["tools"].clone());
    }
    if what == "stdout" || has("standard output") {
        return Some(ran.stdout.as_str().into());
    }
    if has("exit code") {
        return Some(ran.exit_code.into());
    }
    if has("stderr") {
        return Some(ran.stderr.trim().into());
    }
    if has("last message") && has("request") {
        return Some(body(!has("first"))["messages"].as_array()?.last()?.clone());
    }
    if has("messages of the request without the system message") {
        let body = body(true);
        let is_system = |message: &&Value| message["role"] == "system" || message["role"] == "developer";
        return Some(body["messages"].as_array()?.iter().filter(|m| !is_system(m)).cloned().collect());
    }
    if has("block types of the stored user message") {
        let stored = ran.lines.iter().map(|line| &line["message"]).find(|message| message["role"] == "user")?;
        return Some(stored["content"].as_array()?.iter().map(|block| block["type"].clone()).collect());
    }
    if let Some(found) = super::value::of(what, expected, ran) {
        return Some(found);
    }
    if has("responses") {
        return Some(ran.lines.iter().filter(|line| line["type"] == "response").cloned().collect());
    }
    if has("custom") || what == "same" {
        return Some(asks_with_own_prompt(&body(true), input).into());
    }
    super::session_file::value_of(what, expected, ran, input)
}

/// Whether the request's system text comes from a file of the case.
fn asks_with_own_prompt(body: &Value, input: &Value) -> bool {
    let texts = ["files", "agentFiles"].map(|name| input[name].as_object().cloned().unwrap_or_default());
    let mut own = texts.iter().flatten().filter(|(name, _)| name.ends_with("SYSTEM.md"));
    let system = body["messages"].as_array().and_then(|messages| messages.first()).map(Value::to_string);
    let system = system.unwrap_or_default();
    own.any(|(_, text)| text.as_str().is_some_and(|text| system.contains(text.trim())))
}

/// Answers, and how a resumed run continues.
fn story(ran: &ProgramOutput) -> Value {
    let told = |line: &Value| match line["type"].as_str()? {
        "agent_end" => Some(json!({"type": "agent_end", "willRetry": line["willRetry"]})),
        "response" | "auto_retry_start" | "auto_retry_end" | "agent_settled" => Some(line.clone()),
        _ => None,
    };
    ran.lines.iter().filter_map(told).collect()
}

/// Reduces an answer to a single field if only that field is requested.
fn only_asked(line: &Value, what: &str) -> Value {
    let asked = Regex::new(r"of (\w+) only (\w+)").ok().and_then(|asked| {
        let found = asked.captures(what)?;
        Some((found.get(1)?.as_str(), found.get(2)?.as_str()))
    });
    match asked {
        Some((command, member)) if line["command"] == command => json!({member: line["data"][member]}),
        _ => line.clone(),
    }
}
