//! Migration of keys with other names or shapes in older files.

use serde_json::{Map, Value, json};

use super::keys::put;

/// Migrates a document to the current format. Values already in it take precedence.
pub(super) fn update(root: &mut Map<String, Value>) {
    if let Some(mode) = root.shift_remove("queueMode") {
        root.entry("steeringMode").or_insert(mode);
    }
    if let Some(&Value::Bool(on)) = root.get("websockets") {
        root.shift_remove("websockets");
        root.entry("transport").or_insert_with(|| json!(if on { "websocket" } else { "sse" }));
    }
    update_skills(root);
    let retry = root.get_mut("retry").and_then(Value::as_object_mut);
    if let Some(limit) = retry.and_then(|retry| retry.shift_remove("maxDelayMs")) {
        let newer = root.get("retry").and_then(|retry| retry.pointer("/provider/maxRetryDelayMs"));
        if newer.is_none() {
            put(root, "retry.provider.maxRetryDelayMs", limit);
        }
    }
}

/// Migrates `skills` from an object with two members to a list of directories.
fn update_skills(root: &mut Map<String, Value>) {
    let Some(Value::Object(skills)) = root.get_mut("skills") else { return };
    let (commands, folders) = (skills.shift_remove("enableSkillCommands"), skills.shift_remove("customDirectories"));
    if let Some(commands) = commands {
        root.entry("enableSkillCommands").or_insert(commands);
    }
    match folders {
        Some(Value::Array(folders)) if !folders.is_empty() => drop(root.insert("skills".into(), folders.into())),
        _ => drop(root.shift_remove("skills")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(old: Value, expected: Value) {
        let Value::Object(mut root) = old else { panic!("no object") };
        update(&mut root);
        assert_eq!(Value::Object(root.clone()), expected);
        update(&mut root);
        assert_eq!(Value::Object(root), expected, "once is enough");
    }

    #[test]
    fn old_formats_are_migrated() {
        check(json!({"queueMode": "all"}), json!({"steeringMode": "all"}));
        check(json!({"queueMode": "all", "steeringMode": "x"}), json!({"steeringMode": "x"}));
        check(json!({"websockets": true}), json!({"transport": "websocket"}));
        check(json!({"websockets": false, "transport": "auto"}), json!({"transport": "auto"}));
        check(json!({"websockets": "?"}), json!({"websockets": "?"}));
        check(json!({"skills": ["a"]}), json!({"skills": ["a"]}));
        check(json!({"skills": {"customDirectories": []}}), json!({}));
        check(json!({"retry": {"maxDelayMs": 1}}), json!({"retry": {"provider": {"maxRetryDelayMs": 1}}}));
        check(
            json!({"retry": {"maxDelayMs": 1, "provider": {"maxRetryDelayMs": 2}}}),
            json!({"retry": {"provider": {"maxRetryDelayMs": 2}}}),
        );
    }
}
