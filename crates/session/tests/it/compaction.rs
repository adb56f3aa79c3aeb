//! Compaction of whole logs.

use std::sync::Mutex;

use futures::future::BoxFuture;
use pinch_llm::message::Message;
use pinch_session::compaction::{
    self, CompactError, CompactionReason, CompactionSettings, Preparation, Strategy, Summarised,
};
use pinch_session::entry::EntryBody;
use pinch_session::session_log::SessionLog;
use pinch_stdx::cancel::Cancel;
use proptest::prelude::*;
use serde_json::json;

use pinch_testing::logs::{answer, append, create, file, message, open, result, shown, user};

/// A strategy that returns a fixed text and records its input.
#[derive(Default)]
struct FixedSummaries(Mutex<Vec<Preparation>>);

impl Strategy for FixedSummaries {
    fn summarise<'a>(
        &'a self,
        preparation: &'a Preparation,
        _cancel: &'a Cancel,
    ) -> BoxFuture<'a, Result<Summarised, CompactError>> {
        self.0.lock().unwrap().push(preparation.clone());
        Box::pin(async { Ok(Summarised::new("SUM")) })
    }
}

fn keep(tokens: u64) -> CompactionSettings {
    CompactionSettings { keep_recent_tokens: tokens, ..CompactionSettings::default() }
}

async fn compact(log: &mut SessionLog, tokens: u64) -> Result<compaction::Compacted, CompactError> {
    compaction::compact(log, &keep(tokens), &FixedSummaries::default(), CompactionReason::Manual, &Cancel::new()).await
}

#[tokio::test]
async fn usage_counted_before_an_edit_is_ignored() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = create(dir.path()).await;
    let turn = |question: String| [user(&question), answer("1234", &[])];
    let ids = append(&mut log, turn("x".repeat(4000))).await;
    append(&mut log, turn("y".repeat(400))).await;
    let tokens = |log: &SessionLog| compaction::prepare_log(log, &keep(50)).unwrap().tokens_before;
    assert_eq!(tokens(&log), 2, "as the provider says");
    append(&mut log, [EntryBody::ContextEdit { target_id: ids[0].clone(), replacement: None }]).await;
    assert_eq!(tokens(&log), 1 + 100 + 1, "the rest, by its length");
    append(&mut log, turn("z".to_owned())).await;
    assert_eq!(tokens(&log), 2, "as the provider says now");
}

#[tokio::test]
async fn the_summary_replaces_the_messages_before_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = create(dir.path()).await;
    let ids =
        append(&mut log, [user("one"), answer("a1", &["f.rs"]), result("f.rs"), user("two"), answer("a2", &[])]).await;
    let made = compact(&mut log, 1).await.unwrap();
    // The cut splits the second turn, whose request would be lost.
    assert_eq!(made.first_kept_entry_id, ids[4]);
    assert_eq!(
        made.summary,
        "SUM\n\n<last-user-request>\ntwo\n</last-user-request>\n\n<read-files>\nf.rs\n</read-files>"
    );
    assert_eq!(made.details, Some(json!({ "readFiles": ["f.rs"], "modifiedFiles": [] })));
    assert_eq!(shown(&log), ["compactionSummary", "assistant a2"]);
    assert_eq!(shown(&open(&file(&log)).await.unwrap()), shown(&log));
    assert!(matches!(compact(&mut log, 1).await, Err(CompactError::AlreadyCompacted)));
}

#[tokio::test]
async fn pinned_messages_survive_verbatim() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = create(dir.path()).await;
    let ids = append(&mut log, [user("rule"), answer("a1", &[]), user("two"), answer("a2", &[]), user("three")]).await;
    log.append_label(&ids[0], Some("pin")).await.unwrap();
    let made = compact(&mut log, 1).await.unwrap();
    assert_eq!(made.summary, "SUM\n\n<pinned>\nrule\n</pinned>");
    append(&mut log, [answer("a3", &[]), user("four")]).await;
    let made = compact(&mut log, 1).await.unwrap();
    assert_eq!(made.summary, "SUM\n\n<pinned>\nrule\n</pinned>", "and the next compaction, too");
}

#[tokio::test]
async fn the_whole_prompt_is_stored_in_the_entry() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = create(dir.path()).await;
    let system =
        |text: &str| message(json!({ "role": "system", "content": "", "sections": { "rules": text }, "timestamp": 1 }));
    append(&mut log, [system("old"), user("one"), answer("a1", &[]), system("new"), user("two")]).await;
    compact(&mut log, 1).await.unwrap();
    let context = log.context();
    let Message::System(state) = &*context.messages[0] else { panic!("{context:?}") };
    assert_eq!(state.sections, [("rules".into(), Some("new".into()))]);
    assert_eq!(shown(&log), ["system", "compactionSummary", "user two"]);
}

#[tokio::test]
async fn a_small_session_is_not_compacted() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = create(dir.path()).await;
    append(&mut log, [user("one"), answer("a1", &[])]).await;
    let n_before = log.entry_ids().len();
    let refused = compact(&mut log, 20_000).await.unwrap_err();
    assert_eq!(refused.to_string(), "Nothing to compact (session too small)");
    assert_eq!(log.entry_ids().len(), n_before);
}

#[tokio::test]
async fn cancelling_stores_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = create(dir.path()).await;
    append(&mut log, [user("one"), answer("a1", &[]), user("two")]).await;
    let cancel = Cancel::new();
    cancel.cancel(pinch_stdx::cancel::CancelReason::User);
    let strategy = FixedSummaries::default();
    let outcome = compaction::compact(&mut log, &keep(1), &strategy, CompactionReason::Manual, &cancel).await;
    assert!(matches!(outcome, Err(CompactError::Cancelled)));
    assert_eq!(log.entry_ids().len(), 3);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_call_is_separated_from_its_result(
        turns in prop::collection::vec((0usize..3, 0usize..200), 1..12),
        tokens in 1u64..200,
        rounds in 1usize..4,
    ) {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
            let dir = tempfile::tempdir().unwrap();
            let mut log = create(dir.path()).await;
            for _ in 0..rounds {
                for (n_calls, size) in &turns {
                    append(&mut log, [user(&"u".repeat(*size)), EntryBody::ThinkingLevelChange { thinking_level: "low".into() }]).await;
                    let calls = &["c0", "c1", "c2"][..*n_calls];
                    append(&mut log, [answer("a", calls)]).await;
                    for call in calls {
                        append(&mut log, [result(call)]).await;
                    }
                }
                drop(compact(&mut log, tokens).await);
                let mut open: Vec<String> = Vec::new();
                for message in &log.context().messages {
                    match &**message {
                        Message::Assistant(assistant) => open.extend(assistant.tool_calls().map(|call| call.id.to_string())),
                        Message::ToolResult(result) => {
                            let at = open.iter().position(|id| result.tool_call_id == id.as_str());
                            prop_assert!(at.is_some(), "a result without its call");
                            open.remove(at.unwrap());
                        }
                        _ => prop_assert!(open.is_empty(), "a call without its result"),
                    }
                }
            }
            Ok(())
        })?;
    }
}
