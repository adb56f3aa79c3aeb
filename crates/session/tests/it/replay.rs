//! Stored entries are read back byte for byte, and contexts match a straightforward implementation of the rules.

use std::path::Path;

use pinch_session::entry::{Entry, EntryId};
use pinch_session::session_log::{Context, NewSession, SessionLog};
use pinch_session::store::SessionRef;
use pinch_stdx::host::ms_from_iso;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::properties::{play, step};
use pinch_testing::logs::run;
use pinch_testing::logs::{append, host, open, store, user};

/// Generates any JSON, with some nesting.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e15..1e15).prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((".{0,6}", inner), 0..4).prop_map(|pairs| Value::Object(Map::from_iter(pairs))),
        ]
    })
}

/// Generates an entry of a known or unknown type with arbitrary values under known and unknown field names.
fn any_entry() -> impl Strategy<Value = Map<String, Value>> {
    let kind = prop_oneof![
        prop::sample::select(vec![
            "message",
            "thinking_level_change",
            "model_change",
            "compaction",
            "branch_summary",
            "custom",
            "custom_message",
            "label",
            "session_info",
            "context_edit",
            "usage",
        ])
        .prop_map(str::to_owned),
        "[a-z_]{1,10}".prop_filter("a header is none", |kind| kind != "session"),
    ];
    let name = prop_oneof![
        prop::sample::select(vec![
            "message",
            "summary",
            "targetId",
            "label",
            "name",
            "content",
            "replacement",
            "usage",
            "firstKeptEntryId",
            "details",
            "timestamp",
            "parentId",
            "provider",
            "modelId",
            "customType",
            "data",
        ])
        .prop_map(str::to_owned),
        ".{1,6}".prop_filter("these have a meaning of their own", |name| name != "type" && name != "id"),
    ];
    (kind, prop::collection::vec((name, any_json()), 0..6)).prop_map(|(kind, fields)| {
        let mut entry = Map::from_iter([("type".to_owned(), Value::from(kind))]);
        entry.extend(fields);
        entry
    })
}

/// Writes the line of an entry, with whitespace where JSON allows it.
fn odd_line(mut entry: Map<String, Value>, id: usize, blank: &str) -> String {
    entry.insert("id".into(), format!("e{id}").into());
    let fields: Vec<String> = entry
        .iter()
        .map(|(name, value)| format!("{blank}{}{blank}:{blank}{value}", Value::from(name.as_str())))
        .collect();
    format!("{{{}{blank}}}", fields.join(","))
}

const HEADER: &str = "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"t\",\"cwd\":\"/w\"}\n";

async fn written(path: &Path, text: &[u8]) -> SessionLog {
    std::fs::write(path, text).unwrap();
    open(path).await.unwrap()
}

/// Replays a path on plain JSON by the rules alone; returns the messages, thinking level and model.
fn replayed(path: &[Value]) -> (Vec<Value>, String, Option<(String, String)>) {
    let kind = |entry: &Value| entry["type"].as_str().unwrap_or_default().to_owned();
    let is_system = |entry: &Value| kind(entry) == "message" && entry["message"]["role"] == "system";
    let mut shown: Vec<&Value> = path.iter().collect();
    if let Some(last) = path.iter().rposition(|entry| kind(entry) == "compaction") {
        let first = path[..last].iter().position(|entry| entry["id"] == path[last]["firstKeptEntryId"]).unwrap_or(last);
        let kept = path[first..last].iter().filter(|entry| !is_system(entry) && kind(entry) != "compaction");
        shown = std::iter::once(&path[last]).chain(kept).chain(&path[last + 1..]).collect();
    }
    let mut messages = Vec::new();
    for entry in &shown {
        let time = entry["timestamp"].as_str().and_then(ms_from_iso);
        let mut message = match &*kind(entry) {
            "message" => entry["message"].clone(),
            "custom_message" => json!({
                "role": "custom", "customType": entry["customType"], "content": entry["content"], "display": entry["display"],
                "timestamp": time,
            }),
            "branch_summary" if entry["summary"] != "" => json!({
                "role": "branchSummary", "summary": entry["summary"], "fromId": entry["fromId"], "timestamp": time,
            }),
            "compaction" => json!({
                "role": "compactionSummary", "summary": entry["summary"], "tokensBefore": entry["tokensBefore"], "timestamp": time,
            }),
            _ => continue,
        };
        let edit = shown.iter().rev().find(|edit| kind(edit) == "context_edit" && edit["targetId"] == entry["id"]);
        if let Some(edit) = edit {
            if edit["replacement"].is_null() {
                continue;
            }
            let content = &edit["replacement"]["content"];
            match message["role"].as_str() {
                Some("user" | "custom") => message["content"] = content.clone(),
                Some("assistant" | "toolResult") => message["content"] = json!([{ "type": "text", "text": content }]),
                _ => {}
            }
        }
        messages.push(message);
    }
    let level = path.iter().rev().find(|entry| kind(entry) == "thinking_level_change");
    let level = level.map_or("off".to_owned(), |entry| entry["thinkingLevel"].as_str().unwrap().to_owned());
    let model = path.iter().rev().find_map(|entry| {
        let message = &entry["message"];
        (message["role"] == "assistant").then(|| (message["provider"].to_string(), message["model"].to_string()))
    });
    (messages, level, model)
}

fn in_json(context: &Context) -> (Vec<Value>, String, Option<(String, String)>) {
    let quoted = |text: &str| Value::from(text).to_string();
    let model = context.model.as_ref().map(|model| (quoted(model.provider.as_str()), quoted(model.model_id.as_str())));
    (context.messages.iter().map(|message| message.to_value()).collect(), context.thinking_level.clone(), model)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_entry_survives_byte_for_byte(
        entries in prop::collection::vec(any_entry(), 1..8), blank in prop::sample::select(vec!["", " ", "\t \r"])
    ) {
        run(async {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("s.jsonl");
            let lines: Vec<String> = entries.iter().cloned().enumerate().map(|(n, entry)| odd_line(entry, n, blank)).collect();
            let text = format!("{HEADER}{}\n", lines.join("\n"));
            let mut log = written(&path, text.as_bytes()).await;
            append(&mut log, [user("after")]).await;
            let after = std::fs::read_to_string(&path).unwrap();
            prop_assert!(after.starts_with(&text));
            let again = open(&path).await.unwrap();
            let at = SessionRef::Path(path);
            let copy = SessionLog::fork_from(&host(), store(dir.path()), &at, NewSession::in_directory("/v")).await.unwrap();
            for (n, line) in lines.iter().enumerate() {
                let id = EntryId::new(format!("e{n}"));
                for log in [&log, &again, &copy] {
                    let stored = log.line(&id);
                    prop_assert_eq!(stored.as_deref().map(String::from_utf8_lossy), Some(line.into()));
                }
            }
            Ok(())
        })?;
    }

    #[test]
    fn an_entry_of_an_unknown_type_is_written_unchanged(fields in any_entry()) {
        let mut raw = fields;
        raw.insert("type".into(), "future".into());
        raw.insert("id".into(), "a".into());
        let line = Value::Object(raw.clone()).to_string();
        let entry = Entry::parse(line.as_bytes()).unwrap();
        prop_assert_eq!(entry.to_value(), Value::Object(raw));
        // Numbers are written as in JavaScript, so compare the text.
        let written = entry.to_line();
        prop_assert_eq!(Entry::parse(written.as_bytes()).map(|entry| entry.to_line()), Some(written));
    }

    #[test]
    fn junk_after_a_header_loses_no_later_entries(junk in prop::collection::vec(any::<u8>(), 0..200), lines in prop::collection::vec(any_entry(), 0..3)) {
        run(async {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("s.jsonl");
            let lines: String = lines.into_iter().enumerate().map(|(n, entry)| odd_line(entry, n, "") + "\n").collect();
            let mut log = written(&path, &[HEADER.as_bytes(), lines.as_bytes(), &junk].concat()).await;
            let before: Vec<EntryId> = log.entry_ids().cloned().collect();
            append(&mut log, [user("after")]).await;
            let again = open(&path).await.unwrap();
            let after: Vec<EntryId> = again.entry_ids().cloned().collect();
            prop_assert_eq!(&after[..before.len()], &before[..]);
            prop_assert_eq!(again.leaf_id(), log.leaf_id());
            prop_assert_eq!(in_json(&again.context()), in_json(&log.context()));
            Ok(())
        })?;
    }

    #[test]
    fn contexts_follow_the_rules(steps in prop::collection::vec(step(), 0..40)) {
        run(async {
            let dir = tempfile::tempdir().unwrap();
            let log = play(dir.path(), steps).await;
            for id in log.entry_ids() {
                let path: Vec<Value> = log.branch(id).unwrap().entries().map(|entry| entry.to_value()).collect();
                prop_assert_eq!(in_json(&log.context_at(Some(id)).unwrap()), replayed(&path));
            }
            Ok(())
        })?;
    }
}
