//! The hash that detects whether a container was created with the current configuration.

use pinch_stdx::json;
use serde_json::{Map, Value};
use sha1::{Digest as _, Sha1};

use super::arguments::ContainerMounts;
use crate::config::ContainerConfig;

/// Returns the hash of a container's configuration and directories.
pub fn sandbox_hash(config: &ContainerConfig, mounts: &ContainerMounts) -> String {
    config_hash(&serde_json::json!({
        "docker": config.to_section(),
        "workspaceAccess": mounts.access.as_str(),
        "workspaceDir": mounts.workspace.to_string_lossy(),
        "agentWorkspaceDir": mounts.agent_workspace.to_string_lossy(),
    }))
}

/// Returns the hash of a document. Key order is irrelevant, as is the order of lists that contain only scalars.
pub fn config_hash(document: &Value) -> String {
    let text = json::to_string(&sorted(document)).unwrap_or_default();
    Sha1::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<(&String, &Value)> = members.iter().collect();
            members.sort_by_cached_key(|(key, _)| order(key));
            let members: Map<String, Value> =
                members.into_iter().map(|(key, value)| (key.clone(), sorted(value))).collect();
            Value::Object(members)
        }
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(sorted).collect();
            if items.iter().all(|item| !item.is_array() && !item.is_object()) {
                items.sort_by_cached_key(|item| order(&item.as_str().map_or_else(|| item.to_string(), str::to_owned)));
            }
            Value::Array(items)
        }
        plain => plain.clone(),
    }
}

/// Returns a sort key with OpenClaw's order: punctuation before digits before letters, and lower case before upper case as a tie-breaker.
fn order(text: &str) -> (Vec<(u8, char)>, String) {
    let class = |c: char| if c.is_alphabetic() { 2 } else { u8::from(c.is_numeric()) };
    let letters = text.chars().flat_map(char::to_lowercase).map(|c| (class(c), c)).collect();
    let swapped = |c: char| if c.is_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() };
    (letters, text.chars().map(swapped).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_of_sections_keep_their_order() {
        assert_ne!(config_hash(&json!([{"a": 1}, {"b": 1}])), config_hash(&json!([{"b": 1}, {"a": 1}])));
        assert_eq!(config_hash(&json!({"a": [2, 10], "b": null})), config_hash(&json!({"b": null, "a": [10, 2]})));
        assert_ne!(config_hash(&json!({"a": "1"})), config_hash(&json!({"a": 1})));
    }
}
