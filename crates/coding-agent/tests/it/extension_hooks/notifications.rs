//! The notifications of extensions, and their timing.

use std::sync::Arc;

use futures::StreamExt;
use pinch_agent_core::event::AgentEvent;
use pinch_coding_agent::event::SessionEvent;
use pinch_coding_agent::extension::Point;
use pinch_coding_agent::session::{AgentSession, Prompt};
use pinch_llm::provider::scripted::ScriptedReply as Reply;
use pinch_llm::thinking::ThinkingLevel;

use super::{TWO, echo, stage};
use crate::session::{in_memory, model};

#[tokio::test]
async fn extensions_are_notified_in_load_order() {
    let points = [
        Point::SessionStart,
        Point::AgentStart,
        Point::TurnStart,
        Point::MessageStart,
        Point::ToolExecutionStart,
        Point::ToolExecutionEnd,
        Point::AgentEnd,
        Point::AgentSettled,
        Point::ResourcesDiscover,
        Point::AfterProviderResponse,
    ];
    let mut stage = stage(in_memory(), [echo("x"), Reply::text("done")], &points, &TWO).await;
    assert_eq!(
        stage.notes(),
        ["a start startup false", "b start startup false", "a resources startup", "b resources startup"]
    );
    let found: Vec<(&str, &[std::path::PathBuf])> =
        stage.scene.session.discovered().iter().map(|one| (one.extension.as_str(), one.skills.as_slice())).collect();
    assert_eq!(found, [("a", &["a".into()][..]), ("b", &["b".into()])]);
    stage.ask("go").await;
    let of_a: Vec<String> =
        stage.notes().into_iter().filter_map(|note| Some(note.strip_prefix("a ")?.to_owned())).collect();
    let expected = [
        "agent_start",
        "turn_start 0",
        "message_start",
        "message_start",
        "response 200",
        "message_start",
        "tool_execution_start",
        "tool_execution_end",
        "message_start",
        "turn_start 1",
        "response 200",
        "message_start",
        "agent_end",
        "agent_settled",
    ];
    assert_eq!(of_a, expected);
}

#[tokio::test]
async fn extensions_are_notified_before_the_reader_and_the_log() {
    let mut stage =
        stage(in_memory(), [Reply::text("done")], &[Point::MessageStart, Point::MessageUpdate], &TWO[..1]).await;
    let notes = Arc::clone(&stage.notes);
    let mut run = stage.scene.session.prompt(Prompt::text("go"));
    let mut n_starts = 0;
    while let Some(event) = run.next().await {
        if let SessionEvent::Agent(AgentEvent::MessageStart(_)) = event.unwrap() {
            n_starts += 1;
            let n_notified = notes.lock().unwrap().iter().filter(|note| note.ends_with("message_start")).count();
            assert_eq!(n_notified, n_starts);
        }
    }
    assert_eq!(n_starts, 3);
}

#[tokio::test]
async fn changes_of_model_level_and_name_are_notified() {
    let points = [Point::ModelSelect, Point::ThinkingLevelSelect, Point::SessionInfoChanged];
    let mut stage = stage(in_memory(), [], &points, &TWO[..1]).await;
    stage.scene.session.set_model(model("other", true)).await.unwrap();
    stage.scene.session.set_model(model("other", true)).await.unwrap();
    stage.scene.session.set_thinking(ThinkingLevel::High).await.unwrap();
    stage.scene.session.set_name("n").await.unwrap();
    assert_eq!(stage.notes(), ["a model other m set", "a level high off", "a name Some(\"n\")"]);
}

#[tokio::test]
async fn points_without_handlers_cost_nothing() {
    let mut stage = stage(in_memory(), [Reply::text("1")], &[], &TWO).await;
    stage.ask("hi").await;
    assert!(stage.notes().is_empty());
    assert!(stage.scene.provider.requests()[0].options.observer.is_none());
    assert_eq!(stage.texts(), ["system", "hi", "1"]);
}

#[expect(dead_code, reason = "holds the session by its type, so that it stays Send")]
fn sessions_can_move_between_threads(session: AgentSession) -> impl Send {
    session
}
