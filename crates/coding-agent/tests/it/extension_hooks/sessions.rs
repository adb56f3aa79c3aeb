//! Extensions during the life of a session: loading, compaction, the tree, replacement.

use std::sync::Arc;

use pinch_coding_agent::entry::EntryId;
use pinch_coding_agent::extension::{Extension, ExtensionError, Extensions, Point, Points, SessionReason};
use pinch_coding_agent::session::{CompactRequest, ForkAt, ForkError, Navigation, SessionError};
use pinch_coding_agent::session_log::{NewSession, SessionLog};
use pinch_llm::provider::scripted::ScriptedReply as Reply;

use super::probe::Mood;
use super::{Echo, TWO, around, stage};
use crate::session::in_memory;
use pinch_testing::logs::{answer, append, host, store, user};

#[tokio::test]
async fn compactions_and_moves_ask_extensions_first() {
    let mut log = in_memory();
    append(&mut log, [user("q1"), answer("a1", &[]), user("q2"), answer("a2", &[])]).await;
    let points = [
        Point::SessionBeforeCompact,
        Point::SessionCompact,
        Point::SessionCompactFailed,
        Point::SessionBeforeTree,
        Point::SessionTree,
    ];
    let mut stage = stage(log, [], &points, &around(Mood::Fails)).await;
    stage.scene.session.compaction_mut().settings.keep_recent_tokens = 1;
    let first = stage.scene.session.log().entry_ids().next().cloned().unwrap();
    let done = stage.scene.session.compact(CompactRequest::manual(None), &|_| {}).await.unwrap();
    assert_eq!((done.summary.as_str(), done.from_extension), ("a", true));
    stage.scene.session.compact(CompactRequest::manual(None), &|_| {}).await.unwrap_err();
    let expected = ["a before_compact", "a compacted true", "bad compacted true", "z compacted true"];
    let notes = stage.notes();
    assert_eq!(notes[..4], expected);
    assert_eq!(notes[4], "a compact failed Already compacted");
    stage.scene.session.navigate(Navigation::to(first.clone()), &|_| {}).await.unwrap();
    let notes = stage.notes();
    assert_eq!(notes[0], "a before_tree 5", "{notes:?}");
    assert!(notes.contains(&"z session_tree".to_owned()));
    assert_eq!(stage.scene.session.log().label(&first).unwrap().text, "z", "the last label counts");
}

#[tokio::test]
async fn a_session_is_left_only_if_no_extension_objects() {
    let dir = tempfile::tempdir().unwrap();
    let log = SessionLog::create(&host(), store(dir.path()), NewSession::in_directory("/w")).await.unwrap();
    let all = [Point::SessionBeforeSwitch, Point::SessionBeforeFork, Point::SessionStart, Point::SessionShutdown];
    let mut minds = stage(log, [Reply::text("1")], &all, &TWO).await;
    minds.ask("q").await;
    minds.notes();
    let id = minds.scene.session.log().id().to_owned();
    assert!(matches!(minds.scene.session.begin_new(None).await, Err(SessionError::SwitchCancelled)));
    assert!(matches!(minds.scene.session.switch_to(in_memory()).await, Err(SessionError::SwitchCancelled)));
    let point: EntryId = minds.scene.session.fork_points()[0].0.clone();
    let forked = minds.scene.session.fork(&point, ForkAt::Before).await;
    assert!(matches!(forked, Err(ForkError::Session(SessionError::SwitchCancelled))));
    assert_eq!(*minds.scene.session.log().id(), id);
    assert_eq!(minds.notes(), ["a before_switch new", "a before_switch resume", "a before_fork true"]);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);

    let dir = tempfile::tempdir().unwrap();
    let log = SessionLog::create(&host(), store(dir.path()), NewSession::in_directory("/w")).await.unwrap();
    let mut goes = stage(log, [Reply::text("1")], &all[2..], &TWO[..1]).await;
    goes.ask("q").await;
    goes.notes();
    let point: EntryId = goes.scene.session.fork_points()[0].0.clone();
    goes.scene.session.fork(&point, ForkAt::Before).await.unwrap();
    goes.scene.session.begin_new(None).await.unwrap();
    goes.scene.session.switch_to(in_memory()).await.unwrap();
    goes.scene.session.shut_down(SessionReason::Quit).await;
    goes.scene.session.shut_down(SessionReason::Quit).await;
    let expected = [
        "a shutdown fork true",
        "a start fork true",
        "a shutdown new true",
        "a start new true",
        "a shutdown resume false",
        "a start resume true",
        "a shutdown quit false",
    ];
    assert_eq!(goes.notes(), expected);
}

/// Fails during registration, after registering something.
struct FailingExtension(bool);

impl Extension for FailingExtension {
    fn name(&self) -> &str {
        "broken"
    }

    fn points(&self) -> Points {
        Points::of([Point::Input])
    }

    fn register(
        &self,
        to: &mut pinch_coding_agent::extension::Registrations,
        _: &pinch_coding_agent::extension::ExtensionHandle,
    ) -> Result<(), ExtensionError> {
        to.tool(Echo::tool());
        assert!(!self.0, "as wished");
        Err(ExtensionError::new("no"))
    }
}

#[test]
fn an_extension_that_fails_to_load_leaves_nothing() {
    for panics in [false, true] {
        let extensions = Extensions::load(&host(), [Arc::new(FailingExtension(panics)) as Arc<dyn Extension>]);
        assert!(extensions.is_empty() && extensions.tools().is_empty() && !extensions.wants(Point::Input));
        let failed = extensions.take_failures();
        assert_eq!((failed[0].extension.as_str(), failed[0].event.as_str()), ("broken", "load"));
        assert!(failed[0].error.starts_with("Failed to load extension: "), "{failed:?}");
    }
}
