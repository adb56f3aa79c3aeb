//! Laws that hold for every log.

use std::sync::Arc;

use pinch_llm::message::{Content, Message};
use pinch_session::entry::{Compaction, CustomMessage, Entry, EntryBody, EntryId};
use pinch_session::session_log::{SessionLog, context_of};
use pinch_testing::logs::run;
use proptest::prelude::*;
use serde_json::json;

use pinch_testing::logs::{answer, append, bash, create, file, message, open, result, user};

/// One operation on a log.
#[derive(Clone, Debug)]
pub(crate) enum LogStep {
    User(String),
    Answer(u8),
    Result(u8),
    Bash,
    Custom,
    System,
    Level,
    Label(usize),
    Edit(usize, bool),
    Compact(usize),
    Move(usize),
    Reset,
    Reopen,
}

pub(crate) fn step() -> impl Strategy<Value = LogStep> {
    prop_oneof![
        4 => ".{0,12}".prop_map(LogStep::User),
        4 => (0u8..3).prop_map(LogStep::Answer),
        4 => (0u8..3).prop_map(LogStep::Result),
        1 => Just(LogStep::Bash),
        1 => Just(LogStep::Custom),
        1 => Just(LogStep::System),
        1 => Just(LogStep::Level),
        1 => any::<usize>().prop_map(LogStep::Label),
        1 => (any::<usize>(), any::<bool>()).prop_map(|(at, hide)| LogStep::Edit(at, hide)),
        1 => any::<usize>().prop_map(LogStep::Compact),
        1 => any::<usize>().prop_map(LogStep::Move),
        1 => Just(LogStep::Reset),
        1 => Just(LogStep::Reopen),
    ]
}

pub(crate) async fn play(dir: &std::path::Path, steps: Vec<LogStep>) -> SessionLog {
    let mut log = create(dir).await;
    append(&mut log, [user("begin")]).await;
    for step in steps {
        let ids: Vec<EntryId> = log.entry_ids().cloned().collect();
        let pick = |at: usize| ids[at % ids.len()].clone();
        let body = match step {
            LogStep::User(text) => user(&text),
            LogStep::Answer(n) => answer("a", &["c0", "c1", "c2"][..usize::from(n)]),
            LogStep::Result(n) => result(["c0", "c1", "c2"][usize::from(n)]),
            LogStep::Bash => bash(),
            LogStep::Custom => EntryBody::CustomMessage(CustomMessage {
                custom_type: "t".into(),
                content: Content::Text("c".into()),
                display: true,
                details: None,
            }),
            LogStep::System => message(json!({ "role": "system", "content": "prompt", "timestamp": 1 })),
            LogStep::Level => EntryBody::ThinkingLevelChange { thinking_level: "low".into() },
            LogStep::Label(at) => EntryBody::Label { target_id: pick(at), label: Some("l".into()) },
            LogStep::Edit(at, hide) => EntryBody::ContextEdit {
                target_id: pick(at),
                replacement: (!hide).then(|| Content::Text("edited".into())),
            },
            LogStep::Compact(at) => EntryBody::Compaction(Compaction {
                summary: "S".into(),
                first_kept_entry_id: Some(pick(at)),
                ..Compaction::default()
            }),
            LogStep::Move(at) => {
                log.move_to(&pick(at)).unwrap();
                continue;
            }
            LogStep::Reset => {
                log.reset_leaf();
                continue;
            }
            LogStep::Reopen => {
                log = open(&file(&log)).await.unwrap();
                continue;
            }
        };
        log.append(body).await.unwrap();
    }
    log
}

/// Checks that each call on a path is answered before the next message, except those at its end.
pub(crate) fn is_paired(path: &[Arc<Entry>]) -> Result<(), String> {
    let mut awaited: Vec<String> = Vec::new();
    for entry in path {
        match &entry.body {
            EntryBody::Message(message) => match &**message {
                Message::ToolResult(result) => {
                    let at = awaited.iter().position(|id| result.tool_call_id == id.as_str());
                    awaited.remove(at.ok_or_else(|| format!("{}: a result nobody waits for", entry.id))?);
                }
                _ if !awaited.is_empty() => return Err(format!("{}: {awaited:?} unanswered", entry.id)),
                message => {
                    let calls = message.as_assistant().into_iter().flat_map(|message| message.tool_calls());
                    awaited = calls.map(|call| call.id.to_string()).collect();
                }
            },
            EntryBody::CustomMessage(_) if !awaited.is_empty() => return Err(format!("{}: unanswered", entry.id)),
            _ => {}
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn written_entries_are_read_back(steps in prop::collection::vec(step(), 0..40)) {
        run(async {
            let dir = tempfile::tempdir().unwrap();
            let log = play(dir.path(), steps).await;
            let again = open(&file(&log)).await.unwrap();
            let entries: Vec<_> = log.entries().collect();
            prop_assert_eq!(&entries, &again.entries().collect::<Vec<_>>());
            for entry in &entries {
                prop_assert_eq!(entry.to_line().into_bytes(), again.line(&entry.id).unwrap().to_vec());
                prop_assert_eq!(log.line(&entry.id), again.line(&entry.id));
            }
            prop_assert_eq!(log.tree(), again.tree());
            Ok(())
        })?;
    }

    #[test]
    fn the_context_of_any_leaf_equals_its_replayed_path(steps in prop::collection::vec(step(), 0..40)) {
        run(async {
            let dir = tempfile::tempdir().unwrap();
            let log = play(dir.path(), steps).await;
            for id in log.entry_ids() {
                let path: Vec<_> = log.branch(id).unwrap().entries().collect();
                prop_assert_eq!(log.context_at(Some(id)).unwrap(), context_of(&path));
            }
            Ok(())
        })?;
    }

    #[test]
    fn calls_are_paired_and_healing_is_idempotent(steps in prop::collection::vec(step(), 0..40)) {
        run(async {
            let dir = tempfile::tempdir().unwrap();
            let mut log = play(dir.path(), steps).await;
            for id in log.entry_ids() {
                let path: Vec<_> = log.branch(id).unwrap().entries().collect();
                prop_assert_eq!(is_paired(&path), Ok(()));
            }
            log.heal().await.unwrap();
            prop_assert_eq!(log.awaited_calls().len(), 0);
            let mut again = open(&file(&log)).await.unwrap();
            if log.leaf_id() == again.leaf_id() {
                prop_assert_eq!(again.heal().await.unwrap(), 0);
            }
            Ok(())
        })?;
    }

    #[test]
    fn every_prefix_of_a_file_opens(steps in prop::collection::vec(step(), 0..12), cut in any::<prop::sample::Index>()) {
        run(async {
            let dir = tempfile::tempdir().unwrap();
            let log = play(dir.path(), steps).await;
            let text = std::fs::read(file(&log)).unwrap();
            let ids: Vec<EntryId> = log.entry_ids().cloned().collect();
            let header = text.iter().position(|byte| *byte == b'\n').unwrap();
            let cut = cut.index(text.len() + 1);
            let whole = text[..cut].iter().filter(|byte| **byte == b'\n').count();
            let path = dir.path().join("cut.jsonl");
            std::fs::write(&path, &text[..cut]).unwrap();
            if cut > 0 && cut < header {
                // Not even a header: there is no session to preserve.
                prop_assert!(open(&path).await.is_err());
                prop_assert_eq!(std::fs::read(&path).unwrap(), &text[..cut]);
                return Ok(());
            }
            let mut log = open(&path).await.unwrap();
            // A line that lacks only its line break counts as well.
            let n_good = log.entry_ids().len();
            prop_assert!(n_good + 1 >= whole && n_good <= whole);
            prop_assert_eq!(log.entry_ids().collect::<Vec<_>>(), ids[..n_good].iter().collect::<Vec<_>>());
            let n_before = log.entry_ids().len() + log.awaited_calls().len();
            append(&mut log, [user("after")]).await;
            let again = open(&path).await.unwrap();
            prop_assert_eq!(again.entry_ids().len(), n_before + 1);
            prop_assert_eq!(again.leaf_id(), log.leaf_id());
            prop_assert_eq!(again.entry_ids().take(n_good).collect::<Vec<_>>(), ids[..n_good].iter().collect::<Vec<_>>());
            Ok(())
        })?;
    }
}
