//! Credentials of versions without an auth.json.

use std::path::Path;

use pinch_stdx::fs::Access;
use pinch_stdx::host::Host;
use serde_json::{Map, Value, json};

use super::{rename, unchanged};
use crate::document::{self, Problem, change_object};

/// Merges `oauth.json` and the `apiKeys` of settings.json into a new auth.json, and returns its providers. Does nothing if auth.json
/// exists. An unreadable part is left in place; problems in the settings are reported by their own reader.
pub(super) fn fold(agent_dir: &Path, host: &Host, problems: &mut Vec<Problem>) -> Result<Vec<String>, Problem> {
    let [auth, oauth, settings] = ["auth.json", "oauth.json", "settings.json"].map(|name| agent_dir.join(name));
    if auth.symlink_metadata().is_ok() {
        return Ok(Vec::new());
    }
    let of_oauth = document::read_object(&oauth).unwrap_or_else(|problem| {
        problems.push(problem);
        Map::new()
    });
    let mut entries = Map::new();
    for (provider, entry) in of_oauth {
        if let Value::Object(mut members) = entry {
            members.insert("type".into(), "oauth".into());
            entries.insert(provider, members.into());
        }
    }
    let has_oauth = !entries.is_empty();
    let of_settings = document::read_object(&settings).unwrap_or_default();
    let keys = of_settings.get("apiKeys").and_then(Value::as_object).cloned().unwrap_or_default();
    for (provider, key) in &keys {
        if let (Some(key), None) = (key.as_str(), entries.get(provider)) {
            entries.insert(provider.clone(), json!({"type": "api_key", "key": key}));
        }
    }
    if entries.is_empty() {
        return Ok(Vec::new());
    }
    let providers = entries.keys().cloned().collect();
    let written = change_object(&auth, Access::Private, host, |object| {
        // Another process may have been faster.
        let is_first = object.is_empty();
        if is_first {
            *object = entries;
        }
        Ok(is_first)
    });
    if !written.map_err(|error| unchanged(&auth, error))? {
        return Ok(Vec::new());
    }
    if has_oauth {
        rename(&oauth, &agent_dir.join("oauth.json.migrated"))?;
    }
    if !keys.is_empty() {
        let cleared =
            change_object(&settings, Access::NewPrivate, host, |object| Ok(object.shift_remove("apiKeys").is_some()));
        cleared.map_err(|error| unchanged(&settings, error))?;
    }
    Ok(providers)
}
