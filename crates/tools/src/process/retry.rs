//! Recognizing commands that failed because of the sandbox.

use pinch_agent_core::tool::ToolOutput;
use serde_json::Value;

/// Messages that programs print when denied a file, a system call or the network, in lower case.
const DENIALS: [&str; 10] = [
    "operation not permitted",
    "permission denied",
    "read-only file system",
    "network is unreachable",
    "could not resolve host",
    "could not resolve proxy",
    "temporary failure in name resolution",
    "name or service not known",
    "getaddrinfo eai_again",
    "bad system call",
];

/// Bytes at the end of the output that are searched.
const SEARCHED: usize = 8 * 1024;

/// Returns whether a command apparently failed because of the sandbox. Commands that timed out or still run in the background do not count.
pub(super) fn was_denied(output: &ToolOutput) -> bool {
    let Some(details) = &output.details else { return false };
    let has_failed =
        output.failed && details["exitCode"].as_i64() != Some(0) && details["timedOut"] != Value::Bool(true);
    let text = details["aggregated"].as_str().unwrap_or_default();
    let tail = text[text.floor_char_boundary(text.len().saturating_sub(SEARCHED))..].to_lowercase();
    has_failed && DENIALS.iter().any(|denial| tail.contains(denial))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn output(aggregated: &str, exit: Value, failed: bool, timed_out: bool) -> ToolOutput {
        let details = json!({"aggregated": aggregated, "exitCode": exit, "timedOut": timed_out});
        ToolOutput { details: Some(details), failed, ..ToolOutput::text("") }
    }

    #[test]
    fn only_failures_with_a_denial_near_the_end_count() {
        let long = format!("permission denied\n{}", "x".repeat(10_000));
        for (text, exit, failed, timed_out, expect) in [
            ("touch: cannot touch '/x': Permission denied", json!(1), true, false, true),
            ("mkdir: /x: Read-only file system", json!(1), true, false, true),
            ("curl: (6) Could not resolve host: a.test", json!(6), true, false, true),
            ("", json!(null), true, false, false),
            ("error: test failed", json!(101), true, false, false),
            ("Permission denied", json!(0), false, false, false),
            ("Permission denied", json!(null), true, true, false),
            (long.as_str(), json!(1), true, false, false),
        ] {
            assert_eq!(was_denied(&output(text, exit, failed, timed_out)), expect, "{text:.40}");
        }
        assert!(!was_denied(&ToolOutput::text("Permission denied")));
    }
}
