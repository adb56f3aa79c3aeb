//! Cases of kinds `rpc`, `rpc_extension_ui` and `print`: the program, run the way users run it.

use pinch_testing::cases::notation;
use pinch_testing::cases::program::{self, ProgramOutput};
use regex::Regex;
use serde_json::{Value, json};

use crate::cases::{Case, CaseOutcome};

/// Fields that are ignored if a case does not have them.
const LATER: [&str; 6] =
    ["structuredContent", "disposition", "aborted", "durationMs", "thinkingLevel", "totalFromProvider"];

/// Runs a case.
pub(super) fn run(case: &Case<'_>) -> CaseOutcome {
    let ours = &case.case["ours"];
    let wanted = if ours.is_null() { &case.case["expect"] } else { ours };
    let ran = match program::run(case.file, &case.case["input"]) {
        Ok(ran) => ran,
        Err(why) => return CaseOutcome::Failed(why),
    };
    match wanted.as_object() {
        Some(members) => members.iter().try_for_each(|(name, expected)| check(name, expected, &ran)).into(),
        None => CaseOutcome::NotImplemented,
    }
}

fn check(name: &str, expected: &Value, ran: &ProgramOutput) -> Result<(), String> {
    let mut expected = expected.clone();
    ran.put_in(&mut expected);
    let stderr = ran.stderr.trim();
    let done = match name {
        "output" => compare(&shown(expected.as_array().map_or(&[], Vec::as_slice)).into(), shown(&ran.lines).into()),
        "stdout" => text(&expected, &ran.stdout),
        "stderr" => text(&expected, stderr),
        "exitCode" => compare(&expected, ran.exit_code.into()),
        _ => Err(format!(": nobody here knows {name}")),
    };
    let hint = if stderr.is_empty() { String::new() } else { format!("\n  stderr: {stderr}") };
    done.map_err(|why| format!("{name}{why}{hint}"))
}

/// Compares texts, ignoring trailing blanks on lines and line feeds at the end.
fn text(expected: &Value, actual: &str) -> Result<(), String> {
    let trimmed = |text: &str| text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim_end().to_owned();
    let expected = expected.as_str().unwrap_or_default();
    let is_same = match expected.strip_prefix("$re:") {
        Some(pattern) => Regex::new(pattern).map_err(|why| why.to_string())?.is_match(actual),
        None => trimmed(expected) == trimmed(actual),
    };
    if is_same { Ok(()) } else { Err(format!(": expected {expected:?}, got {actual:?}")) }
}

/// The lines that are compared.
fn shown(lines: &[Value]) -> Vec<Value> {
    let is_system = |message: &Value| message["role"] == "system";
    let counts = |line: &&Value| match line["type"].as_str().unwrap_or_default() {
        "message_update" | "agent_settled" | "entry_appended" => false,
        "message_start" | "message_end" => !is_system(&line["message"]),
        _ => true,
    };
    let without_system = |line: &Value| {
        let mut line = line.clone();
        if let Some(messages) = line["messages"].as_array_mut() {
            messages.retain(|message| !is_system(message));
        }
        line
    };
    lines.iter().filter(counts).map(without_system).collect()
}

fn compare(expected: &Value, mut actual: Value) -> Result<(), String> {
    let mut expected = expected.clone();
    align(&mut expected, &mut actual);
    notation::matches(&expected, &actual, "")
}

/// Removes what may differ from both sides.
fn align(expected: &mut Value, actual: &mut Value) {
    match (expected, actual) {
        (Value::Object(expected), Value::Object(actual)) => {
            actual.retain(|name, _| expected.contains_key(name) || !LATER.contains(&name.as_str()));
            if !expected.contains_key("data") && actual.get("data").is_some_and(only_later) {
                actual.remove("data");
            }
            if let (Some(wanted), Some(got)) = (expected.get("errorMessage"), actual.get("errorMessage"))
                && same_failure(wanted, got)
            {
                let got = got.clone();
                expected.insert("errorMessage".to_owned(), got);
            }
            for (name, value) in actual {
                if let Some(expected) = expected.get_mut(name) {
                    align(expected, value);
                }
            }
        }
        (Value::Array(expected), Value::Array(actual)) => {
            expected.iter_mut().zip(actual).for_each(|(expected, actual)| align(expected, actual));
        }
        (Value::String(expected), Value::String(actual)) => {
            if let Some(filled) = in_own_words(expected, actual) {
                *expected = filled;
            }
        }
        _ => {}
    }
}

fn only_later(data: &Value) -> bool {
    data.as_object().is_some_and(|data| data.keys().all(|name| LATER.contains(&name.as_str())))
}

/// Two errors that begin with the same status and contain the same message.
fn same_failure(expected: &Value, actual: &Value) -> bool {
    let (Some(expected), Some(actual)) = (expected.as_str(), actual.as_str()) else { return false };
    // Upstream has four messages for an abort, pinch has one.
    if expected.ends_with("aborted") && actual.ends_with("aborted") {
        return true;
    }
    let status = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>();
    let rest = expected.split_once(' ').map_or(expected, |(_, rest)| rest);
    let message =
        serde_json::from_str::<Value>(rest).ok().and_then(|error| error["message"].as_str().map(str::to_owned));
    status(expected) == status(actual) && message.is_some_and(|message| actual.contains(&message))
}

/// Returns the actual text if it matches a text with `{{WORDING}}`.
fn in_own_words(expected: &str, actual: &str) -> Option<String> {
    if !expected.contains("{{") {
        return None;
    }
    let wording = Regex::new(r"\\\{\\\{[A-Z_]+\\\}\\\}").ok()?;
    let pattern = wording.replace_all(&regex::escape(expected), "(?s:.+)").into_owned();
    Regex::new(&format!("^{pattern}$")).ok()?.is_match(actual).then(|| actual.to_owned())
}

/// Converts a case of kind `rpc_extension_ui` into the form of kind `rpc`.
pub(super) fn with_probe(case: &Value) -> Value {
    let mut case = case.clone();
    case["input"]["args"] = json!(["--mode", "rpc", "--no-session", "--offline"]);
    case["input"]["lines"] = json!([case["input"]["line"]]);
    case["input"]["agentFiles"] = json!({"extensions/ui-probe.js": PROBE});
    case
}

/// The extension that the recordings call `ui-probe`.
const PROBE: &str = "export default function (pi) {
  pi.registerCommand('ask', { description: 'asks', handler: async (args, ctx) => {
    const answer = await ctx.ui.confirm('T', 'M');
    ctx.ui.notify('confirmed=' + answer, 'info');
    const picked = await ctx.ui.select('Pick', ['a', 'b'], { timeout: 60000 });
    ctx.ui.notify('picked=' + picked);
    ctx.ui.setStatus('k', 's');
    ctx.ui.setWidget('w', ['l1'], { placement: 'belowEditor' });
    ctx.ui.setTitle('tt');
    ctx.ui.setEditorText('et');
  } });
  pi.registerCommand('boom', { handler: async () => { throw new Error('kaput'); } });
}
";
