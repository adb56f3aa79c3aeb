//! Which tool calls have side effects, and on what: a later success on the same target resolves a failure.

use pinch_agent_core::tool::JsonObject;
use serde_json::Value;

const ALWAYS: &[&str] = &["write", "edit", "apply_patch", "exec", "bash", "sessions_send"];

const PROCESS_ACTIONS: &[&str] = &["write", "send_keys", "submit", "paste", "kill"];

const MESSAGE_ACTIONS: &[&str] =
    &["send", "reply", "thread_reply", "threadreply", "edit", "delete", "react", "pin", "unpin"];

const READING_ACTIONS: &[&str] = &[
    "get", "list", "read", "status", "show", "fetch", "search", "query", "view", "poll", "log", "inspect", "check",
    "probe",
];

/// Returns whether a tool has side effects, judging only by its name.
pub fn is_mutating_name(name: &str) -> bool {
    ALWAYS.contains(&name)
        || matches!(name, "process" | "message" | "cron" | "gateway" | "canvas" | "nodes" | "session_status")
        || name.starts_with("message_")
        || name.ends_with("_actions")
        || name.contains("send")
}

/// Returns whether a call has side effects.
pub fn is_mutating(name: &str, args: &JsonObject) -> bool {
    let action = action_of(args);
    let action = action.as_deref();
    let has_text = |key: &str| args.get(key).and_then(Value::as_str).is_some_and(|text| !text.trim().is_empty());
    match name {
        _ if ALWAYS.contains(&name) => true,
        "process" => action.is_some_and(|action| PROCESS_ACTIONS.contains(&action)),
        "message" => {
            action.is_some_and(|action| MESSAGE_ACTIONS.contains(&action))
                || ["content", "message"].iter().any(|key| args.get(*key).is_some_and(Value::is_string))
        }
        "session_status" => has_text("model"),
        "nodes" => action != Some("list"),
        "cron" | "gateway" | "canvas" => action.is_none_or(|action| !READING_ACTIONS.contains(&action)),
        _ if name.ends_with("_actions") => action.is_none_or(|action| !READING_ACTIONS.contains(&action)),
        _ => name.starts_with("message_") || name.contains("send"),
    }
}

fn action_of(args: &JsonObject) -> Option<String> {
    let action = args.get("action").and_then(Value::as_str)?.trim().to_lowercase();
    (!action.is_empty()).then(|| action.replace([' ', '-'], "_"))
}

/// Target of a call's side effects: calls with equal fingerprints change the same thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint(String);

/// Kinds of targets, and the arguments that may name them. Paths keep their case.
const TARGETS: &[(&str, &[&str])] = &[
    ("path", &["path", "file_path", "filePath", "filepath", "file"]),
    ("oldpath", &["oldPath", "old_path"]),
    ("newpath", &["newPath", "new_path"]),
    ("to", &["to", "target"]),
    ("messageid", &["messageId", "message_id"]),
    ("sessionkey", &["sessionKey", "session_key"]),
    ("jobid", &["jobId", "job_id"]),
    ("id", &["id"]),
    ("model", &["model"]),
];

impl Fingerprint {
    /// Returns the fingerprint of a call.
    pub fn of(name: &str, args: &JsonObject, meta: Option<&str>) -> Self {
        let mut parts = vec![format!("tool={name}")];
        if let Some(action) = action_of(args) {
            parts.push(format!("action={action}"));
        }
        let n_before = parts.len();
        for (label, names) in TARGETS {
            let value = names.iter().find_map(|name| match args.get(*name)? {
                Value::String(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
                Value::Number(number) => Some(number.to_string()),
                _ => None,
            });
            if let Some(value) = value {
                let value = if label.ends_with("path") { value } else { value.to_lowercase() };
                parts.push(format!("{label}={value}"));
            }
        }
        if parts.len() == n_before
            && let Some(meta) = meta
        {
            let words: Vec<&str> = meta.split_whitespace().collect();
            parts.push(format!("meta={}", words.join(" ").to_lowercase()));
        }
        Self(parts.join("|"))
    }

    /// Returns the fingerprint as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn args(value: Value) -> JsonObject {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn calls_with_side_effects_are_known_by_tool_and_action() {
        for (name, value, expected) in [
            ("write", json!({}), true),
            ("exec", json!({"command": "ls"}), true),
            ("read", json!({"path": "a"}), false),
            ("process", json!({"action": "Send-Keys"}), true),
            ("process", json!({"action": "poll"}), false),
            ("process", json!({}), false),
            ("message", json!({"action": "send"}), true),
            ("message", json!({"action": "thread reply"}), true),
            ("message", json!({"action": "search"}), false),
            ("message", json!({"content": "hi"}), true),
            ("message", json!({"message": "hi", "action": "read"}), true),
            ("message", json!({"message": 1}), false),
            ("session_status", json!({"model": "m"}), true),
            ("session_status", json!({"model": " "}), false),
            ("session_status", json!({}), false),
            ("nodes", json!({"action": "list"}), false),
            ("nodes", json!({"action": "run"}), true),
            ("nodes", json!({}), true),
            ("cron", json!({"action": "list"}), false),
            ("cron", json!({"action": "add"}), true),
            ("gateway", json!({"action": " "}), true),
            ("canvas", json!({"action": "show"}), false),
            ("canvas", json!({}), true),
            ("discord_actions", json!({"action": "fetch"}), false),
            ("discord_actions", json!({"action": "ban"}), true),
            ("discord_actions", json!({}), true),
            ("message_later", json!({}), true),
            ("resend_mail", json!({}), true),
            ("weather", json!({"action": "delete"}), false),
        ] {
            assert_eq!(is_mutating(name, &args(value.clone())), expected, "{name} {value}");
        }
    }

    #[test]
    fn calls_on_the_same_target_have_equal_fingerprints() {
        for (name, value, meta, expected) in [
            ("write", json!({"path": " A.txt "}), None, "tool=write|path=A.txt"),
            ("write", json!({"path": " ", "file_path": "b"}), None, "tool=write|path=b"),
            ("move", json!({"oldPath": "A", "new_path": "B"}), None, "tool=move|oldpath=A|newpath=B"),
            ("message", json!({"action": "Send", "to": "Ada"}), Some("x"), "tool=message|action=send|to=ada"),
            ("cron", json!({"action": "run", "jobId": 7}), None, "tool=cron|action=run|jobid=7"),
            ("cron", json!({"action": "add", "id": null}), Some(" A  b "), "tool=cron|action=add|meta=a b"),
            ("exec", json!({"command": "ls"}), None, "tool=exec"),
        ] {
            assert_eq!(Fingerprint::of(name, &args(value.clone()), meta).as_str(), expected, "{name} {value}");
        }
    }

    #[test]
    fn some_tools_have_side_effects_by_their_name_alone() {
        for (name, expected) in [
            ("write", true),
            ("process", true),
            ("message", true),
            ("message_later", true),
            ("discord_actions", true),
            ("resend_mail", true),
            ("read", false),
            ("actions", false),
            ("my_message", false),
        ] {
            assert_eq!(is_mutating_name(name), expected, "{name}");
        }
    }
}
