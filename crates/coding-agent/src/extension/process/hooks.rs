//! Hooks of the program that embeds sessions, which a process may also subscribe to.
//!
//! Sessions have [points](crate::extension::Point); what happens around them belongs to the program. This module only carries its hooks:
//! names, events and answers are the program's.

use std::time::Duration;

use serde_json::{Value, json};

use super::ProcessExtension;
use super::points::{member, needed};
use crate::extension::ExtensionError;

/// A hook that a process subscribes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookSubscription {
    /// Name of the hook.
    pub name: String,
    /// Processes with a higher priority are called first.
    pub priority: i32,
    /// Whether a failure blocks what the hook guards; `None`: as the hook's default says.
    pub blocks_on_error: Option<bool>,
    /// How long it may take, if shorter than the hook's own limit.
    pub time_limit: Option<Duration>,
}

impl HookSubscription {
    /// Parses a name, or `{name, priority, onError, timeoutMs}`.
    fn of(value: &Value) -> Result<Self, ExtensionError> {
        if let Value::String(name) = value {
            return Ok(Self { name: name.clone(), priority: 0, blocks_on_error: None, time_limit: None });
        }
        let blocks_on_error = match member::<String>(value, "onError")?.as_deref() {
            None => None,
            Some("block") => Some(true),
            Some("allow") => Some(false),
            Some(other) => return Err(ExtensionError::new(format!("Unknown \"onError\" of a hook: {other}"))),
        };
        Ok(Self {
            name: needed(value, "name")?,
            priority: member(value, "priority")?.unwrap_or(0),
            blocks_on_error,
            time_limit: member(value, "timeoutMs")?.map(Duration::from_millis),
        })
    }
}

/// Returns the hooks that a process subscribes to.
pub(super) fn hooks(manifest: &Value) -> Result<Vec<HookSubscription>, ExtensionError> {
    let listed: Vec<Value> = member(manifest, "hooks")?.unwrap_or_default();
    listed.iter().map(HookSubscription::of).collect()
}

impl ProcessExtension {
    /// Returns the hooks that the process subscribes to. A program that embeds sessions calls them with [`Self::call_hook`].
    pub fn hooks(&self) -> &[HookSubscription] {
        &self.hooks
    }

    /// Calls a hook and returns the answer of the process; null means no answer. Dropping the future cancels the call.
    ///
    /// # Errors
    /// The error that the process reports, or the reason why it is not running.
    pub async fn call_hook(&self, name: &str, event: Value, cx: Value) -> Result<Value, ExtensionError> {
        self.link.request("hook", json!({"name": name, "event": event, "ctx": cx})).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_is_a_name_or_an_object() {
        let plain = HookSubscription { name: "a".into(), priority: 0, blocks_on_error: None, time_limit: None };
        let full = HookSubscription {
            name: "b".into(),
            priority: -3,
            blocks_on_error: Some(true),
            time_limit: Some(Duration::from_millis(50)),
        };
        let manifest =
            json!({"hooks": ["a", {"name": "b", "priority": -3, "onError": "block", "timeoutMs": 50}, {"name": "a"}]});
        assert_eq!(hooks(&manifest).unwrap(), [plain.clone(), full, plain]);
        assert_eq!(hooks(&json!({})).unwrap(), []);
        for (wrong, why) in [
            (json!([{"priority": 1}]), "\"name\" is missing"),
            (json!([{"name": "a", "onError": "maybe"}]), "Unknown \"onError\" of a hook: maybe"),
            (json!("a"), "Invalid \"hooks\""),
        ] {
            let error = hooks(&json!({"hooks": wrong})).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
