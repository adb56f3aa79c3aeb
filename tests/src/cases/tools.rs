//! Executors for the embed-tools suite: one per area. They use the content of a case, never its ID.

use serde_json::Value;

use super::{Case, CaseOutcome, llm_pure, only};

mod arguments;
mod exec;
mod files;
mod jobs;
mod loops;
mod policy;
mod processes;
mod prompts;
mod sandbox;
mod skills;
mod web;

/// Runs a case.
pub(super) fn execute(case: &Case<'_>) -> CaseOutcome {
    let input = &case.case["input"];
    let run: fn(&Value, &Case<'_>) -> Result<Value, String> = match case.kind {
        "schema" => return llm_pure::execute_schema(case),
        "policy" => policy::decide,
        "subagent-depth" => return policy::subagent(input, wanted(case)).into(),
        "sandbox-tools" => policy::sandbox,
        "tool-params" => return arguments::file_arguments(input, wanted(case)).into(),
        "loop" => return loops::detect(input, wanted(case)).into(),
        "apply_patch" => return files::patch(input, wanted(case)).into(),
        "path-containment" => files::contain,
        "exec-analysis" => exec::analysis,
        "exec-allowlist" => exec::allowlist,
        "exec-safebins" => exec::safe_bins,
        "exec-approval" => exec::approval,
        "exec-env" => exec::environment,
        "ssrf" => web::address,
        "external-content" => web::external,
        "html-markdown" => web::page,
        "web-search" => web::freshness,
        "cron-normalize" => jobs::normalized,
        "cron-schedule" => return jobs::schedule(case),
        "cron-delivery" => jobs::delivery,
        "announce-target" => jobs::announce,
        "a2a" => jobs::turns,
        "pty-keys" => processes::keys,
        "process-log" => processes::log,
        "process-name" => processes::name,
        "workspace-paths" => return processes::workspace(input, wanted(case)).into(),
        "sandbox-args" => sandbox::arguments,
        "sandbox-config" => sandbox::config,
        "sandbox-name" => sandbox::name,
        "sandbox-hash" => sandbox::hash,
        "sandbox-security" => sandbox::security,
        "sandbox-mode" => sandbox::mode,
        "skills-frontmatter" => skills::head,
        "skills-eligibility" => skills::eligible,
        "skills-command" => skills::command,
        "prompt" => return prompts::sections(input, wanted(case)).into(),
        "prompt-runtime" => prompts::runtime,
        "bootstrap" => prompts::bootstrap,
        "tool-adapter" => arguments::reported,
        "tool-split" => arguments::offered,
        _ => return CaseOutcome::NotImplemented,
    };
    run(input, case).and_then(|actual| check(wanted(case), &actual)).into()
}

/// The expected result: `better` if present.
fn wanted<'a>(case: &Case<'a>) -> &'a Value {
    case.case.get("better").unwrap_or(&case.case["expect"])
}

/// Compares as the file prescribes: named fields only, null means absent, arrays entirely.
fn check(expect: &Value, actual: &Value) -> Result<(), String> {
    lacks("", expect, actual).map_or(Ok(()), |at| Err(format!("{at}\n  expected {expect}\n  actual   {actual}")))
}

fn lacks(at: &str, expect: &Value, actual: &Value) -> Option<String> {
    match (expect, actual) {
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

/// The texts in a list; null counts as an empty list.
fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn block_on<T>(future: impl Future<Output = T>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.map(|runtime| runtime.block_on(future)).map_err(|error| error.to_string())
}
