//! Hashes for comparing calls and results.

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::policy::canonical_name;

/// How a call ended.
#[derive(Clone, Copy, Debug)]
pub enum CallEnd<'a> {
    /// With a result.
    Result {
        /// Its text.
        text: &'a str,
        /// Its details.
        details: &'a Value,
    },
    /// With an error.
    Error(&'a str),
}

/// Returns the hash of a call: the tool's name and its arguments, regardless of key order.
pub fn call_hash(tool: &str, params: &Value) -> String {
    let tool = canonical_name(tool);
    let params = if tool == "update_plan" { outline_of_plan(params) } else { sorted(params) };
    format!("{tool}:{}", digest(&params))
}

/// Reduces a plan to what counts as progress: rewording a step does not.
fn outline_of_plan(params: &Value) -> Value {
    let steps = params["plan"].as_array().map_or(&[][..], Vec::as_slice);
    let statuses: Vec<&Value> = steps.iter().map(|step| &step["status"]).collect();
    let has = |key: &str| params.get(key).is_some_and(|value| !value.is_null());
    json!({"steps": steps.len(), "statuses": statuses, "hasExplanation": has("explanation"), "hasPlan": has("plan")})
}

/// Returns the value with all object keys sorted.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<(&String, &Value)> = members.iter().collect();
            members.sort_by_key(|(key, _)| *key);
            Value::Object(members.into_iter().map(|(key, value)| (key.clone(), sorted(value))).collect())
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

fn digest(value: &Value) -> String {
    let digest = Sha256::digest(value.to_string().as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the hash of a result, or `None` if loop detection blocked the call, which reveals nothing about progress.
pub(super) fn outcome_hash(tool: &str, params: &Value, outcome: CallEnd<'_>) -> Option<String> {
    let (text, details) = match outcome {
        CallEnd::Error(text) => return Some(format!("error:{}", digest(&text.into()))),
        CallEnd::Result { text, details } => (text, details),
    };
    let word = |key: &str| details[key].as_str();
    if word("status") == Some("blocked") && word("deniedReason") == Some("tool-loop") {
        return None;
    }
    let tool = canonical_name(tool);
    let action = params["action"].as_str().unwrap_or_default();
    let picked = |keys: &[&str]| -> Map<String, Value> {
        keys.iter().map(|key| ((*key).to_owned(), sorted(&details[*key]))).collect()
    };
    let relevant = match (tool.as_str(), word("status"), action) {
        ("exec", Some("running"), _) => picked(&["status", "tail"]),
        ("exec", Some("completed" | "failed"), _) => {
            let mut relevant = picked(&["status", "exitCode", "timedOut"]);
            let output = details["aggregated"].as_str().unwrap_or(text);
            relevant.insert("output".to_owned(), output.into());
            relevant
        }
        ("exec", Some("approval-pending" | "approval-unavailable"), _) => {
            picked(&["status", "reason", "host", "command", "warningText"])
        }
        ("process", _, "poll") => {
            let mut relevant = picked(&["status", "exitCode", "exitSignal", "aggregated"]);
            relevant.insert("text".to_owned(), text.into());
            relevant
        }
        ("process", _, "log") => {
            let mut relevant = picked(&["status", "totalLines", "totalChars", "truncated", "exitCode", "exitSignal"]);
            relevant.insert("text".to_owned(), text.into());
            relevant
        }
        (name, _, action) if is_send(name, action) => {
            Map::from_iter([("details".to_owned(), sorted(&without_ids(details, false)))])
        }
        _ => Map::from_iter([("details".to_owned(), sorted(details)), ("text".to_owned(), text.into())]),
    };
    Some(digest(&Value::Object(relevant)))
}

/// Returns whether a call sends a message: its result has new ids every time.
fn is_send(tool: &str, action: &str) -> bool {
    const ACTIONS: [&str; 9] = [
        "send",
        "broadcast",
        "reply",
        "thread-reply",
        "sendWithEffect",
        "sendAttachment",
        "upload-file",
        "sticker",
        "poll",
    ];
    match tool {
        "sessions_send" => true,
        "message" => ACTIONS.contains(&action),
        _ => tool.ends_with("_send") || tool.ends_with("_send_message"),
    }
}

/// Members that differ with every message.
const FRESH: [&str; 18] = [
    "messageId",
    "message_id",
    "messageIds",
    "platformMessageId",
    "platformMessageIds",
    "fileId",
    "file_id",
    "fileKey",
    "pollId",
    "poll_id",
    "receipt",
    "runId",
    "idempotencyKey",
    "ts",
    "timestamp",
    "sentAt",
    "deliveredAt",
    "createdAt",
];

fn without_ids(value: &Value, is_message: bool) -> Value {
    match value {
        Value::Object(members) => {
            let is_kept = |key: &str| !(FRESH.contains(&key) || (is_message && key == "id"));
            let kept = members.iter().filter(|(key, _)| is_kept(key));
            kept.map(|(key, value)| (key.clone(), without_ids(value, matches!(key.as_str(), "message" | "messages"))))
                .collect()
        }
        Value::Array(items) => items.iter().map(|item| without_ids(item, is_message)).collect(),
        other => other.clone(),
    }
}

/// Extracts the tool name from an error about a nonexistent tool.
pub(super) fn unknown_tool(error: &str) -> Option<String> {
    let lower = error.to_lowercase();
    let name = |text: &str| {
        let text = text.trim().trim_matches(|c: char| matches!(c, '"' | '\'' | '`' | ':' | '.' | ','));
        let is_name =
            !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':'));
        is_name.then(|| text.to_owned())
    };
    if let Some(at) = lower.find("unknown tool") {
        return name(lower[at + "unknown tool".len()..].trim_start_matches([':', ' ']).split_whitespace().next()?);
    }
    let rest = &lower[lower.find("tool ")? + "tool ".len()..];
    [" not found", " is not available"].iter().find_map(|end| name(&rest[..rest.find(end)?]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn argument_order_does_not_matter() {
        let a = json!({"b": {"y": 1, "x": [1, 2]}, "a": null});
        let b = json!({"a": null, "b": {"x": [1, 2], "y": 1}});
        assert_eq!(call_hash("Bash", &a), call_hash("exec", &b));
        assert_ne!(call_hash("exec", &a), call_hash("exec", &json!({"b": {"x": [2, 1], "y": 1}, "a": null})));
        let plan = |step: &str, status: &str| json!({"plan": [{"step": step, "status": status}]});
        assert_eq!(call_hash("update_plan", &plan("a", "done")), call_hash("update_plan", &plan("b", "done")));
        assert_ne!(call_hash("update_plan", &plan("a", "done")), call_hash("update_plan", &plan("a", "open")));
    }

    #[test]
    fn unknown_tools_are_recognized_in_errors() {
        for (text, expect) in [
            ("Tool exec not found", Some("exec")),
            ("unknown tool: \"Web.run\"", Some("web.run")),
            ("Tool lobster is not available", Some("lobster")),
            ("tool chain broken, file not found", None),
            ("file not found", None),
        ] {
            assert_eq!(unknown_tool(text).as_deref(), expect, "{text}");
        }
    }

    #[test]
    fn fresh_ids_are_not_progress() {
        let hash = |details: &Value| {
            outcome_hash("message", &json!({"action": "send"}), CallEnd::Result { text: &details.to_string(), details })
        };
        let sent = |n: u32| json!({"ok": true, "messageId": n, "message": {"id": n, "text": "x"}, "user": {"id": 1}});
        assert_eq!(hash(&sent(1)), hash(&sent(2)));
        assert_ne!(hash(&json!({"ok": true})), hash(&json!({"ok": false})));
        let blocked = json!({"status": "blocked", "deniedReason": "tool-loop"});
        assert_eq!(hash(&blocked), None);
    }
}
