//! Lines of events as two programs are compared by them.

use pinch_testing::cases::program::lines::shortened;
use serde_json::Value;

/// Shortens lines, and takes out what depends on the hour.
pub(super) fn compared(lines: &[Value]) -> Vec<Value> {
    with_whole_output(shortened(lines)).into_iter().map(begun).collect()
}

/// An answer that begins: how much of it has come by then depends on the hour.
fn begun(mut line: Value) -> Value {
    if line["type"] == "message_start" && line["message"]["role"] == "assistant" {
        line["message"] = "$begun".into();
    }
    line
}

/// Joins what a command said in pieces: where they are cut depends on the hour.
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
