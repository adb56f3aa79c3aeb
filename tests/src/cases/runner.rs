//! Executors for the embed-runner suite: one per area. Each uses what a case and its group contain, never an ID.

use std::path::Path;

use pinch_embed::config::Config;
use serde_json::Value;

use super::{Case, CaseOutcome};

mod attempts;
mod bootstrap;
mod calls;
mod cli;
mod compaction;
pub(super) mod engine;
mod flush;
mod hooks;
mod keys;
mod lanes;
mod models;
mod profiles;
mod repairs;
mod sandbox;
mod sessions;
mod subagents;
mod transcripts;
mod world;
mod retry_loop;

/// The default clock.
const NOW: i64 = 1_767_225_600_000;

/// Runs a case.
pub(super) fn execute(case: &Case<'_>) -> CaseOutcome {
    let group = group_of(case);
    let target = case.case.get("target").or_else(|| group.get("target"));
    if target == Some(&Value::Bool(false)) {
        return CaseOutcome::Reference;
    }
    let (area, given, expect) = (case.kind, &case.case["given"], &case.case["expect"]);
    let run = retry_loop::run(area, group, given, expect)
        .or_else(|| engine::run(area, given, expect))
        .or_else(|| flush::run(area, given, expect))
        .or_else(|| hooks::run(area, given, expect))
        .or_else(|| cli::run(area, given, expect))
        .or_else(|| transcripts::run(area, given, expect))
        .or_else(|| calls::run(area, group, given, expect))
        .or_else(|| compaction::run(area, given, expect));
    if let Some(outcome) = run {
        return outcome;
    }
    keys::run(area, given, expect)
        .or_else(|| lanes::run(area, given, expect))
        .or_else(|| profiles::run(area, group, given, expect))
        .or_else(|| sessions::run(area, given, expect))
        .or_else(|| repairs::run(area, given, expect))
        .or_else(|| sandbox::run(area, given, expect))
        .or_else(|| subagents::run(area, given, expect))
        .or_else(|| bootstrap::run(area, given, expect))
        .or_else(|| models::run(area, given, expect))
        .or_else(|| attempts::run(area, given, expect))
        .map_or(CaseOutcome::NotImplemented, CaseOutcome::from)
}

/// The group of a case.
fn group_of<'a>(case: &Case<'a>) -> &'a Value {
    let groups = case.file["groups"].as_array().map_or(&[][..], Vec::as_slice);
    let holds = |group: &&Value| {
        group["cases"].as_array().is_some_and(|cases| cases.iter().any(|c| std::ptr::eq(c, case.case)))
    };
    groups.iter().find(holds).unwrap_or(&Value::Null)
}

/// What a case calls null: absent, or false.
fn is_nothing(value: &Value) -> bool {
    matches!(value, Value::Null | Value::Bool(false))
}

/// Compares as the file prescribes: named fields only, null means absent, arrays entirely.
fn check(expect: &Value, actual: &Value) -> Result<(), String> {
    lacks("", expect, actual).map_or(Ok(()), |at| Err(format!("{at}\n  expected {expect}\n  actual   {actual}")))
}

fn lacks(at: &str, expect: &Value, actual: &Value) -> Option<String> {
    match (expect, actual) {
        (Value::Null, actual) => (!is_nothing(actual)).then(|| format!("{at}: expected nothing, got {actual}")),
        (Value::Object(e), Value::Object(_)) => {
            e.iter().find_map(|(key, value)| lacks(&format!("{at}/{key}"), value, &actual[key]))
        }
        (Value::Array(e), Value::Array(a)) if e.len() == a.len() => {
            e.iter().zip(a).enumerate().find_map(|(i, (e, a))| lacks(&format!("{at}/{i}"), e, a))
        }
        (Value::Number(e), Value::Number(a)) if e.as_f64() == a.as_f64() => None,
        _ => (expect != actual).then(|| format!("{at}: expected {expect}, got {actual}")),
    }
}

/// A configuration assembled from its parts.
fn config(document: Value) -> Config {
    let document = document.as_object().cloned().unwrap_or_default();
    Config::from_document(document, Path::new("pinch.json")).0
}
