//! Extensions handling the calls of a model and the commands of a user.

use pinch_coding_agent::event::SessionEvent;
use pinch_coding_agent::extension::{Point, UserBashAction};
use pinch_llm::message::Message;
use pinch_llm::provider::scripted::ScriptedReply as Reply;

use super::probe::Mood;
use super::{TWO, around, echo, failures, stage};
use crate::session::in_memory;

#[tokio::test]
async fn calls_and_results_pass_through_all_extensions() {
    let mut stage =
        stage(in_memory(), [echo("x"), Reply::text("1")], &[Point::ToolCall, Point::ToolResult], &TWO).await;
    stage.ask("hi").await;
    let Message::ToolResult(result) = &*stage.scene.session.messages()[3] else { panic!() };
    assert_eq!(result.content[0].as_text(), Some("x+a+b+a+b"));
    let call = stage.scene.session.messages()[2].as_assistant().unwrap().tool_calls().next().unwrap().clone();
    assert_eq!(call.arguments["text"], "x", "what the model said is not rewritten");
}

#[tokio::test]
async fn an_extension_that_blocks_a_call_is_the_last_to_see_it() {
    let mut stage = stage(in_memory(), [echo("stop"), Reply::text("1")], &[Point::ToolCall], &TWO).await;
    stage.ask("hi").await;
    let Message::ToolResult(result) = &*stage.scene.session.messages()[3] else { panic!() };
    assert_eq!((result.content[0].as_text(), result.is_error), (Some("not with a"), true));
    assert_eq!(stage.notes(), ["a tool_call"]);
}

#[tokio::test(start_paused = true)]
async fn a_failing_handler_blocks_a_call() {
    for (mood, why) in [
        (Mood::Fails, "no"),
        (Mood::Panics, "The handler panicked: boom"),
        (Mood::Sleeps, "The handler took longer than 30 s"),
    ] {
        let mut stage = stage(in_memory(), [echo("x"), Reply::text("1")], &[Point::ToolCall], &around(mood)).await;
        let events = stage.ask("hi").await;
        let Message::ToolResult(result) = &*stage.scene.session.messages()[3] else { panic!() };
        let text = format!("Extension failed, blocking execution: {why}");
        assert_eq!((result.content[0].as_text(), result.is_error), (Some(text.as_str()), true));
        assert_eq!(failures(&events).len(), 1);
        assert_eq!(stage.notes(), ["a tool_call", "bad tool_call"]);
        let blocked = stage.scene.session.control().before_bash("ls", false).await;
        assert!(matches!(blocked, UserBashAction::Run), "it does not ask for these");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failing_handler_is_reported_and_skipped() {
    for mood in [Mood::Fails, Mood::Panics, Mood::Sleeps] {
        let points = [Point::AgentStart, Point::Input, Point::Context, Point::ToolResult, Point::BeforeAgentStart];
        let mut stage = stage(in_memory(), [echo("x"), Reply::text("1")], &points, &around(mood)).await;
        let events = stage.ask("hi").await;
        assert_eq!(stage.texts()[..2], ["system", "hi+a+z"]);
        let Message::ToolResult(result) = &*stage.scene.session.messages()[5] else { panic!() };
        assert_eq!(result.content[0].as_text(), Some("x+a+z"));
        let failed: Vec<(String, String)> =
            failures(&events).into_iter().map(|failure| (failure.extension, failure.event)).collect();
        let bad = |event: &str| ("bad".to_owned(), event.to_owned());
        let expected = ["input", "before_agent_start", "agent_start", "context", "tool_result", "context"].map(bad);
        assert_eq!(failed, expected);
        assert!(matches!(events.last(), Some(SessionEvent::Settled { aborted: false })));
    }
}

#[tokio::test(start_paused = true)]
async fn a_user_command_passes_through_all_extensions_and_fails_closed() {
    let works = stage(in_memory(), [], &[Point::UserBash], &TWO).await;
    let answer = works.scene.session.control().before_bash("ls", true).await;
    assert!(matches!(answer, UserBashAction::Instead(ran) if ran.output == "a"));
    assert_eq!(works.notes(), ["a bash ls"]);
    for mood in [Mood::Fails, Mood::Panics, Mood::Sleeps] {
        let broken = stage(in_memory(), [], &[Point::UserBash], &[("bad", mood)]).await;
        let answer = broken.scene.session.control().before_bash("ls", true).await;
        assert!(matches!(answer, UserBashAction::Block { .. }));
        assert_eq!(broken.extensions.take_failures().len(), 1);
    }
}
