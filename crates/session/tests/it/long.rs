//! Long sessions, whose lines stay in their file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pinch_session::entry::{Entry, EntryBody, EntryId};
use pinch_session::session_log::{SessionLog, context_of};
use pinch_session::store::StoreError;
use serde_json::{Value, json};

use pinch_testing::logs::{append, open, user};

const N_ENTRIES: usize = 3_000;

/// Writes a session of more than 4 MiB: questions, some labels, a compaction before the last tenth, a name, and an invalid line.
fn write_long(dir: &Path) -> PathBuf {
    let mut text =
        json!({"type": "session", "version": 3, "id": "long", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/"})
            .to_string();
    let mut parent = Value::Null;
    let mut add = |n: usize, mut entry: Value| {
        let id = format!("{n:08x}");
        entry["id"] = id.as_str().into();
        entry["parentId"] = std::mem::replace(&mut parent, id.into());
        entry["timestamp"] = "2026-01-01T00:00:01.000Z".into();
        text.push('\n');
        text.push_str(&entry.to_string());
    };
    for n in 0..N_ENTRIES {
        let content = format!("{n} {}", "grüße \u{1f600} \" \\ ".repeat(1 + n % 150));
        add(
            n,
            match n {
                2_700 => {
                    json!({"type": "compaction", "summary": "S", "firstKeptEntryId": "00000a88", "tokensBefore": 1})
                }
                2_800 => json!({"type": "session_info", "name": "Long"}),
                n if n % 500 == 7 => {
                    json!({"type": "label", "targetId": format!("{:08x}", n - 1), "label": format!("l{n}")})
                }
                n => json!({"type": "message", "message": {"role": "user", "content": content, "timestamp": n}}),
            },
        );
    }
    text.push_str("\nno entry\n");
    assert!(text.len() > 4 << 20, "{} bytes", text.len());
    let path = dir.join("long.jsonl");
    std::fs::write(&path, text).unwrap();
    path
}

fn parsed(path: &Path) -> Vec<Arc<Entry>> {
    let text = std::fs::read(path).unwrap();
    text.split(|byte| *byte == b'\n').filter_map(|line| Entry::parse(line).map(Arc::new)).skip(1).collect()
}

fn entries(log: &SessionLog) -> Vec<Arc<Entry>> {
    log.entries().collect()
}

#[tokio::test]
async fn entries_match_their_lines() {
    let dir = tempfile::tempdir().unwrap();
    let path = write_long(dir.path());
    let mut log = open(&path).await.unwrap();
    let expected = parsed(&path);
    assert_eq!(expected.len(), N_ENTRIES);
    assert_eq!(entries(&log), expected);
    assert_eq!(log.context(), context_of(&expected));
    assert_eq!((log.name().as_deref(), log.n_skipped(), log.labels().count()), (Some("Long"), 1, 6));
    let early = log.branch(&EntryId::new("00000100")).unwrap().entries().collect::<Vec<_>>();
    assert_eq!(log.context_at(Some(&EntryId::new("00000100"))).unwrap(), context_of(&early));
    // Later entries are in memory as usual.
    append(&mut log, [user("more")]).await;
    let mut theirs = open(&path).await.unwrap();
    append(&mut theirs, [user("theirs")]).await;
    append(&mut log, [user("ours")]).await;
    assert!(log.take_conflict().unwrap().followed);
    let again = open(&path).await.unwrap();
    assert_eq!(entries(&again), entries(&log));
    assert_eq!(again.context(), log.context());
}

#[tokio::test]
async fn a_truncated_last_line_loses_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let path = write_long(dir.path());
    let torn = "{\"type\":\"message\",\"id\":\"torn";
    let whole = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{whole}{torn}")).unwrap();
    let mut log = open(&path).await.unwrap();
    append(&mut log, [user("more")]).await;
    let now = std::fs::read_to_string(&path).unwrap();
    assert!(now.starts_with(&format!("{whole}{torn}\n{{")), "what is new begins on a line of its own");
    assert_eq!(open(&path).await.unwrap().entry_ids().len(), N_ENTRIES + 1);
}

#[tokio::test]
async fn a_partially_written_line_is_read_once_complete() {
    let dir = tempfile::tempdir().unwrap();
    let path = write_long(dir.path());
    let whole = std::fs::read_to_string(&path).unwrap();
    let line = json!({"type": "message", "id": "slow", "parentId": "00000bb7", "timestamp": "2026-01-01T00:00:02.000Z",
        "message": {"role": "user", "content": "slow", "timestamp": 1}})
    .to_string();
    std::fs::write(&path, format!("{whole}{}", &line[..40])).unwrap();
    let mut log = open(&path).await.unwrap();
    std::fs::write(&path, format!("{whole}{line}\n")).unwrap();
    append(&mut log, [user("more")]).await;
    assert!(log.entry(&EntryId::new("slow")).is_some_and(|entry| entry.body.as_message().is_some()));
    assert_eq!(entries(&open(&path).await.unwrap()), entries(&log));
}

#[tokio::test]
async fn removed_files_stay_readable() {
    let dir = tempfile::tempdir().unwrap();
    let path = write_long(dir.path());
    let expected = parsed(&path);
    let log = open(&path).await.unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(entries(&log), expected);
    assert_eq!(log.context(), context_of(&expected));
}

#[tokio::test]
async fn truncated_entries_read_as_empty_and_are_not_copied() {
    let dir = tempfile::tempdir().unwrap();
    let path = write_long(dir.path());
    let mut log = open(&path).await.unwrap();
    let last = log.leaf_id().unwrap().clone();
    std::fs::File::options().write(true).open(&path).unwrap().set_len(1 << 20).unwrap();
    let first = log.entry(&EntryId::new("00000000")).unwrap();
    assert!(first.body.as_message().is_some(), "what is still there is still read");
    assert!(matches!(&log.entry(&last).unwrap().body, EntryBody::Other(raw) if raw.is_empty()));
    assert!(matches!(log.create_branched_session(&last).await, Err(StoreError::Io { .. })));
    assert_eq!(log.id(), "long", "the old session stays");
    assert!(matches!(log.append_name("x").await, Err(StoreError::Cut { .. })));
}

#[tokio::test]
async fn branches_are_copied_line_by_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = write_long(dir.path());
    let mut log = open(&path).await.unwrap();
    let expected: Vec<_> = parsed(&path)[..=6].to_vec();
    log.create_branched_session(&EntryId::new("00000006")).await.unwrap();
    assert_eq!(entries(&log)[..7], expected);
    assert_eq!(log.label(&EntryId::new("00000006")).map(|label| label.text.as_str()), Some("l7"));
}
