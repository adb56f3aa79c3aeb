//! Sessions by key: the profile that a session keeps using.

use pinch_embed::ports::SessionEntry;
use serde_json::{Value, json};

use super::world::{self, block_on};
use super::{NOW, check};

const KEY: &str = "agent:main:chat";
/// The order of the profiles, as in the group.
const ORDER: [&str; 3] = ["p1", "p2", "p3"];

pub(super) fn run(area: &str, given: &Value, expect: &Value) -> Option<Result<(), String>> {
    (area == "session-override").then(|| chosen(given).and_then(|actual| check(expect, &actual)))
}

/// Sends a message to a session with the stored state of the case.
fn chosen(given: &Value) -> Result<Value, String> {
    let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
    let resting = given["cooldown"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let resting = resting.map(|id| (id.to_owned(), json!({"cooldownUntil": NOW + 60_000, "errorCount": 1})));
    let health = json!({"version": 1, "profiles": {}, "usageStats": resting.collect::<serde_json::Map<_, _>>()});
    world::write(dir.path(), "agents/main/agent/auth-profiles.json", &health)?;
    let profiles = ORDER.map(|id| json!({"id": id, "provider": "anthropic", "apiKey": "k"}));
    let document = json!({
        "agents": {"defaults": {"model": "anthropic/claude-opus-4-6"}},
        "auth": {"profiles": profiles, "order": {"anthropic": ORDER}},
    });
    let engine = world::builder(dir.path(), document).build();
    let mut entry = given["entry"].clone();
    (entry["sessionId"], entry["updatedAt"]) = (json!("s1"), NOW.into());
    let entry: SessionEntry = serde_json::from_value(entry).map_err(|error| error.to_string())?;
    let text = if given["isNewSession"] == true { "/new hello" } else { "hello" };
    let request = block_on(async {
        engine.update_session(KEY, move |_| Some(entry.clone())).await.map_err(|error| error.to_string())?;
        engine.message(KEY, text).await.map_err(|error| error.to_string())
    })?;
    Ok(request.auth_profile.map_or(Value::Null, |choice| choice.id.as_str().into()))
}
