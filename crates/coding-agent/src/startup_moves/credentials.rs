//! Credentials of versions without an auth.json.

use std::path::Path;

use pinch_stdx::fs::atomic::Access;
use pinch_stdx::fs::dir_lock::{DirLock, Terms};
use pinch_stdx::host::Host;
use serde_json::{Map, Value, json};

use super::{failed, rename, write_object};
use crate::document::{self, Problem};

/// Puts `oauth.json` and the `apiKeys` of settings.json into a new auth.json, and answers with the providers in it. Where there is an
/// auth.json nothing is done. A part that cannot be read is reported and stays where it is.
pub(super) fn fold(agent_dir: &Path, host: &Host, problems: &mut Vec<Problem>) -> Result<Vec<String>, Problem> {
    let [auth, oauth, settings] = ["auth.json", "oauth.json", "settings.json"].map(|name| agent_dir.join(name));
    if auth.symlink_metadata().is_ok() {
        return Ok(Vec::new());
    }
    let mut read = |path: &Path| {
        document::read_object(path).unwrap_or_else(|problem| {
            problems.push(problem);
            Map::new()
        })
    };
    let mut entries = Map::new();
    for (provider, entry) in read(&oauth) {
        if let Value::Object(mut members) = entry {
            members.insert("type".into(), "oauth".into());
            entries.insert(provider, members.into());
        }
    }
    let has_oauth = !entries.is_empty();
    let keys = read(&settings).get("apiKeys").and_then(Value::as_object).cloned().unwrap_or_default();
    for (provider, key) in &keys {
        if let (Some(key), None) = (key.as_str(), entries.get(provider)) {
            entries.insert(provider.clone(), json!({"type": "api_key", "key": key}));
        }
    }
    if entries.is_empty() {
        return Ok(Vec::new());
    }
    let locked = |path: &Path| {
        DirLock::acquire(path, &Terms::QUICK, host)
            .map_err(|error| Problem::new(path, format!("cannot be locked: {error}")))
    };
    let lock = locked(&auth)?;
    // Another start may have been faster.
    if auth.symlink_metadata().is_ok() {
        return Ok(Vec::new());
    }
    write_object(&auth, &entries, Access::Private).map_err(|error| failed(&auth, &error))?;
    drop(lock);
    if has_oauth {
        rename(&oauth, &agent_dir.join("oauth.json.migrated"))?;
    }
    if !keys.is_empty() {
        let _lock = locked(&settings)?;
        let mut object = document::read_object(&settings)?;
        object.shift_remove("apiKeys");
        write_object(&settings, &object, Access::Keep).map_err(|error| failed(&settings, &error))?;
    }
    Ok(entries.keys().cloned().collect())
}
