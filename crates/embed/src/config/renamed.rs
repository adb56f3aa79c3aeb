//! Keys of other OpenClaw versions: read under their current names, with a notice that names the new key.

use std::path::Path;

use pinch_coding_agent::document::Problem;
use serde_json::{Map, Value};

/// Old and new paths. `*` stands for every member of an object or item of a list.
const RENAMED: [(&str, &str); 16] = [
    ("session.idleMinutes", "session.reset.idleMinutes"),
    ("session.resetByType.dm", "session.resetByType.direct"),
    ("tools.exec.timeoutSec", "tools.exec.timeoutSeconds"),
    ("agents.list.*.tools.exec.timeoutSec", "agents.list.*.tools.exec.timeoutSeconds"),
    ("tools.allowCrossContextSend", "tools.message.crossContext"),
    ("agents.defaults.memorySearch", "agents.defaults.memory.search"),
    ("agents.list.*.memorySearch", "agents.list.*.memory.search"),
    ("agents.defaults.embeddedPi", "agents.defaults.embeddedAgent"),
    ("agents.list.*.embeddedPi", "agents.list.*.embeddedAgent"),
    ("embeddedPi", "embeddedAgent"),
    ("channels.*.chunkMode", "channels.*.streaming.chunkMode"),
    ("channels.*.blockStreaming", "channels.*.streaming.block"),
    ("messages.tts", "tts"),
    ("media", "attachments"),
    ("audit", "logging.audit"),
    ("cron.failureDestination", "cron.failureAlert"),
];

/// Keys that no longer have a meaning or a successor.
const RETIRED: [&str; 3] =
    ["agents.defaults.llm", "agents.defaults.silentReplyRewrite", "agents.defaults.systemPromptOverride"];

/// Copies values from old keys to new ones that are not set. A notice names every old key.
pub(super) fn modernise(document: &mut Map<String, Value>, file: &Path) -> Vec<Problem> {
    let mut notices = Vec::new();
    for (old, new) in RENAMED {
        let (old, new): (Vec<&str>, Vec<&str>) = (old.split('.').collect(), new.split('.').collect());
        rename(document, &old, &new, "", &mut |at, new| {
            let what = format!("the key has been renamed to {new}");
            notices.push(Problem::new(file, what).at(at).remedy("Rename it; until then it is still read"));
        });
    }
    for old in RETIRED {
        let path: Vec<&str> = old.split('.').collect();
        if descend(document, &path).is_some() {
            let what = "the key is obsolete and has no effect";
            notices.push(Problem::new(file, what).at(old).remedy("Remove it"));
        }
    }
    entries_to_list(document);
    notices
}

/// Copies one path, for every member that a `*` in both paths matches. `at`: the path of the object.
fn rename(
    object: &mut Map<String, Value>,
    old: &[&str],
    new: &[&str],
    at: &str,
    notice: &mut impl FnMut(String, String),
) {
    let full = |rest: &[&str]| {
        let rest = rest.join(".");
        if at.is_empty() { rest } else { format!("{at}.{rest}") }
    };
    let Some(star) = old.iter().position(|name| *name == "*") else {
        if let Some(value) = descend(object, old).cloned() {
            notice(full(old), full(new));
            put(object, new, value);
        }
        return;
    };
    let above = full(&old[..star]);
    let members: Vec<(String, &mut Map<String, Value>)> = match descend(object, &old[..star]) {
        Some(Value::Object(members)) => {
            let members = members.iter_mut();
            members.filter_map(|(name, member)| Some((format!("{above}.{name}"), member.as_object_mut()?))).collect()
        }
        Some(Value::Array(items)) => {
            let items = items.iter_mut().enumerate();
            items.filter_map(|(n, item)| Some((format!("{above}[{n}]"), item.as_object_mut()?))).collect()
        }
        _ => Vec::new(),
    };
    for (at, member) in members {
        rename(member, &old[star + 1..], &new[star + 1..], &at, notice);
    }
}

fn descend<'a>(object: &'a mut Map<String, Value>, path: &[&str]) -> Option<&'a mut Value> {
    let (name, rest) = path.split_first()?;
    let value = object.get_mut(*name)?;
    if rest.is_empty() { Some(value) } else { descend(value.as_object_mut()?, rest) }
}

/// Sets a member unless it exists.
fn put(object: &mut Map<String, Value>, path: &[&str], value: Value) {
    let Some((name, rest)) = path.split_first() else { return };
    let member = object.entry(*name);
    match rest {
        [] => drop(member.or_insert(value)),
        rest => {
            if let Some(inner) = member.or_insert_with(|| Value::Object(Map::new())).as_object_mut() {
                put(inner, rest, value);
            }
        }
    }
}

/// Converts the newer form of `agents.list`, `agents.entries.<id>`.
fn entries_to_list(document: &mut Map<String, Value>) {
    let Some(agents) = document.get_mut("agents").and_then(Value::as_object_mut) else { return };
    let Some(Value::Object(entries)) = agents.get("entries") else { return };
    let entries = entries.clone();
    agents.shift_remove("entries");
    let list = agents.entry("list").or_insert_with(|| Value::Array(Vec::new()));
    let Some(list) = list.as_array_mut() else { return };
    for (id, mut entry) in entries {
        if let Some(members) = entry.as_object_mut() {
            members.insert("id".to_owned(), id.into());
        }
        list.push(entry);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn renamed_keys_are_read_and_reported() {
        let document = json!({
            "session": {"idleMinutes": 5}, "tools": {"exec": {"timeoutSec": 9, "timeoutSeconds": 8}},
            "agents": {"entries": {"ops": {"workspace": "/o"}}, "list": [{"id": "main", "embeddedPi": 1}], "defaults": {"llm": {}}},
            "channels": {"telegram": {"chunkMode": "x"}, "other": 5}, "cron": [],
        });
        let mut document = document.as_object().unwrap().clone();
        let notices = modernise(&mut document, Path::new("p.json"));
        let notices: Vec<String> = notices.iter().map(ToString::to_string).collect();
        let renamed = |old: &str, new: &str| {
            format!("p.json:{old}: the key has been renamed to {new}. Rename it; until then it is still read")
        };
        assert_eq!(
            notices,
            [
                renamed("session.idleMinutes", "session.reset.idleMinutes"),
                renamed("tools.exec.timeoutSec", "tools.exec.timeoutSeconds"),
                renamed("agents.list[0].embeddedPi", "agents.list[0].embeddedAgent"),
                renamed("channels.telegram.chunkMode", "channels.telegram.streaming.chunkMode"),
                "p.json:agents.defaults.llm: the key is obsolete and has no effect. Remove it".to_owned(),
            ]
        );
        assert_eq!(
            Value::Object(document),
            json!({
                "session": {"idleMinutes": 5, "reset": {"idleMinutes": 5}},
                "tools": {"exec": {"timeoutSec": 9, "timeoutSeconds": 8}},
                "agents": {
                    "list": [{"id": "main", "embeddedPi": 1, "embeddedAgent": 1}, {"id": "ops", "workspace": "/o"}],
                    "defaults": {"llm": {}},
                },
                "channels": {"telegram": {"chunkMode": "x", "streaming": {"chunkMode": "x"}}, "other": 5}, "cron": [],
            })
        );
    }
}
