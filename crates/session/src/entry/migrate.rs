//! Migration of older format versions.
//!
//! Version 1 had a list of entries without ids; version 2 used another name for extension messages. Files of version 3 and later are never
//! rewritten.

use std::collections::HashSet;

use pinch_stdx::host::Host;
use serde_json::{Map, Value};

use super::{VERSION, scan, text};

/// A session migrated to the current version.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Migrated {
    /// The complete new text, header first.
    pub text: Vec<u8>,
    /// The version it had before.
    pub from: u64,
}

/// Migrates a session of version 1 or 2. Returns `None` if nothing has to be done.
pub fn migrate(bytes: &[u8], host: &Host) -> Option<Migrated> {
    let header = scan::lines(bytes).find_map(|(_, line)| scan::line(line).map(|_| line))?;
    let from = super::Header::parse(header)?.version;
    if from >= VERSION {
        return None;
    }
    let mut lines: Vec<Map<String, Value>> = scan::lines(bytes)
        .filter_map(|(_, line)| text::parse_object(line))
        .filter(|object| object.get("type").is_some_and(Value::is_string))
        .collect();
    if from < 2 {
        give_ids(&mut lines, host);
    }
    for line in &mut lines {
        rename_hook_message(line);
        if is_header(line) {
            line.insert("version".into(), VERSION.into());
        }
    }
    let mut text = Vec::with_capacity(bytes.len() + bytes.len() / 8);
    for line in &lines {
        text.extend_from_slice(text::to_line(line).as_bytes());
        text.push(b'\n');
    }
    Some(Migrated { text, from })
}

fn is_header(line: &Map<String, Value>) -> bool {
    line.get("type").and_then(Value::as_str) == Some("session")
}

/// Version 1: makes a chain in file order and turns the index of the first kept entry into its id.
fn give_ids(lines: &mut [Map<String, Value>], host: &Host) {
    let mut used = HashSet::new();
    let ids: Vec<Option<String>> =
        lines.iter().map(|line| (!is_header(line)).then(|| fresh_id(host, |id| !used.insert(id.to_owned())))).collect();
    let mut parent = Value::Null;
    for (line, id) in lines.iter_mut().zip(&ids) {
        let Some(id) = id else { continue };
        line.insert("id".into(), id.as_str().into());
        line.insert("parentId".into(), std::mem::replace(&mut parent, id.as_str().into()));
        if line.get("type").and_then(Value::as_str) != Some("compaction") {
            continue;
        }
        let Some(index) = line.shift_remove("firstKeptEntryIndex") else { continue };
        // The index counts all lines, with the header as 0.
        let kept = index.as_u64().and_then(|index| ids.get(usize::try_from(index).ok()?)?.clone());
        if let Some(kept) = kept {
            line.insert("firstKeptEntryId".into(), kept.into());
        }
    }
}

/// Version 2: renames `hookMessage` to `custom`.
fn rename_hook_message(line: &mut Map<String, Value>) {
    if line.get("type").and_then(Value::as_str) == Some("message")
        && let Some(role) = line.get_mut("message").and_then(|message| message.get_mut("role"))
        && role == "hookMessage"
    {
        *role = "custom".into();
    }
}

/// Returns an unused id: eight hexadecimal digits, or a whole UUID if a hundred tries fail.
pub(crate) fn fresh_id(host: &Host, mut is_used: impl FnMut(&str) -> bool) -> String {
    for _ in 0..100 {
        let id = host.ids().hex8();
        if !is_used(&id) {
            return id;
        }
    }
    host.ids().uuid_v4()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn migrated(text: &str) -> Vec<Value> {
        let host = Host::builder().seed(1).build();
        let migrated = migrate(text.as_bytes(), &host).expect("old enough");
        scan::lines(&migrated.text).map(|(_, line)| serde_json::from_slice(line).unwrap()).collect()
    }

    #[test]
    fn version_1_becomes_a_chain_and_keeps_unknown_fields() {
        let lines = migrated(
            "{\"type\":\"session\",\"id\":\"s\",\"provider\":\"p\"}\nnot json\n{\"type\":\"message\",\"message\":{}}\n{\"type\":\"compaction\",\"summary\":\"S\",\"firstKeptEntryIndex\":3}\n{\"type\":\"custom\",\"x\":1}\n",
        );
        assert_eq!((&lines[0]["version"], &lines[0]["provider"]), (&Value::from(3), &Value::from("p")));
        assert_eq!(lines[1]["parentId"], Value::Null);
        assert_eq!(lines[2]["parentId"], lines[1]["id"]);
        assert_eq!(lines[2]["firstKeptEntryId"], lines[3]["id"], "a later line is found, too");
        assert!(lines[2].get("firstKeptEntryIndex").is_none());
        assert_eq!(lines[3]["x"], 1);
    }

    #[test]
    fn newer_files_are_left_unchanged() {
        let host = Host::builder().seed(1).build();
        for version in [3, 9] {
            let text = format!("{{\"type\":\"session\",\"version\":{version},\"id\":\"s\"}}\n");
            assert_eq!(migrate(text.as_bytes(), &host), None);
        }
    }
}
