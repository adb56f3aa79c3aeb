//! Cases of kind `tool`: the results of a run's tool calls.

use pinch_testing::cases::notation;
use pinch_testing::cases::program;
use serde_json::{Map, Value};

use crate::cases::{Case, CaseOutcome};

/// Fields of a tool result that are compared.
const MEMBERS: [&str; 4] = ["toolName", "content", "details", "isError"];

/// Runs a case.
pub(super) fn run(case: &Case<'_>) -> CaseOutcome {
    let wanted = if case.case["ours"].is_object() { &case.case["ours"] } else { &case.case["expect"] };
    let what = case.case["valueIs"].as_str();
    let known = |name: &str| {
        matches!(name, "toolResults" | "filesAfter" | "requestCount" | "exitCode" | "stderr")
            || (name == "value" && what.is_some())
    };
    if wanted.as_object().is_none_or(|members| !members.keys().all(|name| known(name))) || !prints_events(case.case) {
        return CaseOutcome::NotImplemented;
    }
    let ran = match program::run(case.file, &case.case["input"]) {
        Ok(ran) => ran,
        Err(why) => return CaseOutcome::Failed(why),
    };
    for (name, expected) in wanted.as_object().into_iter().flatten() {
        let mut expected = expected.clone();
        ran.put_in(&mut expected);
        let actual = match name.as_str() {
            "toolResults" => Some(results(&ran.stdout_lines())),
            "filesAfter" => Some(ran.files_after.clone()),
            "requestCount" => Some(ran.requests.len().into()),
            "exitCode" => Some(ran.exit_code.into()),
            "stderr" => Some(ran.stderr.trim().into()),
            _ => super::output::value(what.unwrap_or_default(), &expected, &ran, &case.case["input"]),
        };
        let Some(actual) = actual else { return CaseOutcome::NotImplemented };
        if let Err(why) = notation::matches(&expected, &actual, "") {
            let stderr = ran.stderr.trim();
            let hint = if stderr.is_empty() { String::new() } else { format!("\n  stderr: {stderr}") };
            return CaseOutcome::Failed(format!("{name}{why}{hint}"));
        }
    }
    CaseOutcome::Passed
}

/// Whether the results are read from the program's events.
fn prints_events(case: &Value) -> bool {
    let args = case["input"]["args"].as_array().map_or(&[][..], Vec::as_slice);
    args.windows(2).any(|pair| pair[0] == "--mode" && pair[1] == "json")
}

/// The tool results among the lines of a run, in the form that cases use.
pub(super) fn results(lines: &[Value]) -> Value {
    let ended = lines.iter().filter(|line| line["type"] == "message_end" && line["message"]["role"] == "toolResult");
    let short = |line: &Value| -> Value {
        let member = |name: &&str| Some(((*name).to_owned(), line["message"].get(*name)?.clone()));
        MEMBERS.iter().filter_map(member).collect::<Map<_, _>>().into()
    };
    ended.map(short).collect()
}
