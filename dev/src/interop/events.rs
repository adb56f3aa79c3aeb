//! Normalises event lines so that two programs can be compared.

use pinch_testing::cases::program::lines::shortened;
use serde_json::Value;

/// Shortens lines and removes what depends on timing.
pub(super) fn compared(lines: &[Value]) -> Vec<Value> {
    with_whole_output(shortened(lines)).into_iter().map(begun).collect()
}

/// The start of an answer: how much of it has arrived by then depends on timing.
fn begun(mut line: Value) -> Value {
    if line["type"] == "message_start" && line["message"]["role"] == "assistant" {
        line["message"] = "$begun".into();
    }
    line
}

/// Joins a command's output chunks: where they are split depends on timing.
fn with_whole_output(lines: Vec<Value>) -> Vec<Value> {
    let mut joined: Vec<Value> = Vec::new();
    for line in lines {
        if line["type"] == "bash_execution_update"
            && let Some(before) = joined
                .iter_mut()
                .rev()
                .find(|before| before["type"] == "bash_execution_update" && before["id"] == line["id"])
        {
            let both = format!("{}{}", before["delta"].as_str().unwrap_or(""), line["delta"].as_str().unwrap_or(""));
            before["delta"] = both.into();
            continue;
        }
        joined.push(line);
    }
    joined
}
