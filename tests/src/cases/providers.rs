//! Cases of the suite `llm-providers`.

mod faux;
mod frames;
mod headers;
mod oauth;
mod pure;
mod setup;
mod wire;

mod socket;

use pinch_testing::cases::compare::same;
use serde_json::Value;

use super::{Case, CaseOutcome};

/// Runs a case.
pub(super) fn execute(case: &Case<'_>) -> CaseOutcome {
    match case.kind {
        "cost" if case.case["given"].get("serviceTier").is_some() => wire::run_with_tier(case),
        "env-key" | "catalog" | "thinking-levels" | "cost" => pure::execute(case),
        "headers" => headers::run(case),
        "faux" => faux::run(case),
        "oauth" => oauth::run(case),
        "bedrock-eventstream" => frames::run(case),
        "bedrock-auth" => frames::run_auth(case),
        "registry" => faux::run_registry(case),
        "openai-codex" if setup::is_about_sockets(&case.case["given"]) => socket::run(case),
        "bedrock" | "mistral" | "google-vertex" | "openai-codex" => wire::run(case),
        _ => CaseOutcome::NotImplemented,
    }
}

/// `better` takes precedence over what was recorded.
fn wanted(expect: &Value) -> &Value {
    expect.get("better").unwrap_or(expect)
}

/// Compares the named fields; null means absent.
fn named_members(expect: &Value, actual: &Value) -> Result<(), String> {
    for (name, value) in expect.as_object().into_iter().flatten() {
        if name != "tolerance" {
            same(value, actual.get(name).unwrap_or(&Value::Null)).map_err(|why| format!("/{name}{why}"))?;
        }
    }
    Ok(())
}
