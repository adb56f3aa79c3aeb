//! How extensions change prompts, messages and requests.

use http::HeaderMap;
use pinch_agent_core::event::AgentEvent;
use pinch_agent_core::queue::QueueKind;
use pinch_coding_agent::event::{ExtensionFailure, SessionEvent};
use pinch_coding_agent::extension::{InputSource, Point};
use pinch_coding_agent::session_log::{NewSession, SessionLog};
use pinch_llm::message::Message;
use pinch_llm::provider::scripted::ScriptedReply as Reply;
use serde_json::json;

use super::probe::Mood;
use super::{TWO, around, custom, echo, failures, pull, stage};
use crate::session::in_memory;
use pinch_testing::logs::{host, store, text_of};

#[tokio::test]
async fn input_can_be_changed_or_handled() {
    let mut stage = stage(in_memory(), [Reply::text("1")], &[Point::Input], &TWO).await;
    stage.ask("hi").await;
    assert_eq!(stage.texts()[1], "hi+a+b");
    assert_eq!(stage.notes(), ["a input interactive false", "b input interactive false"]);
    let events = stage.ask("mine").await;
    assert!(events.is_empty(), "{events:?}");
    assert_eq!(stage.notes(), ["a input interactive false"], "who deals with it is the last to see it");
    let control = stage.scene.session.control();
    assert!(control.say(QueueKind::Steering, "later", Vec::new(), InputSource::Rpc).await);
    assert!(!control.say(QueueKind::FollowUp, "mine", Vec::new(), InputSource::Rpc).await);
    assert_eq!(control.waiting(), (vec!["later+a+b".to_owned()], Vec::new()));
    assert_eq!(stage.notes()[0], "a input rpc true");
}

#[tokio::test]
async fn messages_and_system_prompts_can_be_added_before_the_answer() {
    let mut stage = stage(in_memory(), [Reply::text("1"), Reply::text("2")], &[Point::BeforeAgentStart], &TWO).await;
    stage.ask("hi").await;
    assert_eq!(stage.notes(), ["a before_start hi None", "b before_start hi None"]);
    assert_eq!(stage.texts(), ["system", "hi", "custom", "custom", "1"]);
    let Message::System(system) = &*stage.scene.session.messages()[0] else { panic!() };
    assert_eq!(system.sections[0].1.as_deref(), Some("sys"), "the conversation keeps its own");
    let Message::System(asked) = &*stage.scene.provider.requests()[0].messages[0] else { panic!() };
    assert_eq!((asked.content.text(""), &asked.sections[..]), ("sys+a+b".to_owned(), &[][..]));
    assert_eq!(asked.tools_added, system.tools_added);
    pull(stage.scene.session.prompt_custom(&custom("x"), &pinch_stdx::cancel::Cancel::new())).await;
    assert_eq!(stage.notes()[0], "a before_start x Some(\"c\")");
}

#[tokio::test]
async fn the_messages_of_a_request_can_be_replaced() {
    let mut stage = stage(in_memory(), [Reply::text("1"), Reply::text("2")], &[Point::Context], &TWO).await;
    stage.ask("hi").await;
    stage.ask("and").await;
    assert_eq!(stage.notes()[..2], ["a context user", "b context user,user"], "messages of the system are not shown");
    let sent = stage.scene.provider.requests();
    let texts: Vec<String> = sent[1].messages.iter().map(|message| text_of(message)).collect();
    assert_eq!(texts, ["system", "hi", "1", "and", "a", "b"]);
    assert_eq!(stage.texts(), ["system", "hi", "1", "and", "2"], "the conversation stays as it is");
}

#[tokio::test]
async fn complete_messages_can_be_replaced_by_others_of_their_role() {
    let dir = tempfile::tempdir().unwrap();
    let log = SessionLog::create(&host(), store(dir.path()), NewSession::in_directory("/w")).await.unwrap();
    let mut stage = stage(log, [Reply::text("1")], &[Point::MessageEnd], &TWO).await;
    let events = stage.ask("hi").await;
    assert_eq!(stage.texts(), ["system", "hi+a+b", "1"]);
    let file = std::fs::read_to_string(stage.scene.session.path().unwrap()).unwrap();
    assert!(file.contains("hi+a+b") && !file.contains("\"hi\""));
    let was_emitted = events.iter().any(|event| match event {
        SessionEvent::Agent(AgentEvent::MessageEnd { message, .. }) => text_of(message) == "hi+a+b",
        _ => false,
    });
    assert!(was_emitted);
    let failed = failures(&events);
    let error = "message_end handlers must return a message with the same role";
    let expected = ["a", "b"].map(|name| ExtensionFailure {
        extension: name.into(),
        event: "message_end".into(),
        error: error.into(),
    });
    assert_eq!(failed, expected);
}

#[tokio::test]
async fn a_result_keeps_answering_its_call() {
    let mut stage = stage(in_memory(), [echo("x"), Reply::text("1")], &[Point::MessageEnd], &TWO[..1]).await;
    let events = stage.ask("hi").await;
    let Message::ToolResult(result) = &*stage.scene.session.messages()[3] else { panic!() };
    assert_eq!(result.tool_call_id.as_str(), "c1");
    assert_eq!(failures(&events).len(), 3, "two answers and a result were refused");
}

#[tokio::test]
async fn a_turn_can_be_continued() {
    let mut stage = stage(in_memory(), [Reply::text("1"), Reply::text("2")], &[Point::TurnEnd], &TWO[..1]).await;
    stage.ask("hi").await;
    assert_eq!(stage.notes(), ["a turn_end 0 0", "a turn_end 1 0"]);
    assert_eq!(stage.scene.provider.requests().len(), 2);
}

#[tokio::test]
async fn bodies_and_headers_of_requests_can_be_changed() {
    let points = [Point::BeforeProviderRequest, Point::BeforeProviderHeaders];
    let mut stage = stage(in_memory(), [Reply::text("1")], &points, &around(Mood::Fails)).await;
    stage.ask("hi").await;
    let request = stage.scene.provider.requests().remove(0);
    let observer = request.options.observer.unwrap();
    let body = observer.on_payload(&json!("body"), &request.model).await.unwrap();
    assert_eq!(body, Some(json!([["body", "a"], "z"])));
    let mut headers = HeaderMap::new();
    headers.insert("gone", "x".parse().unwrap());
    observer.on_headers(&mut headers, &request.model).await.unwrap();
    let header = |name: &str| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    assert_eq!((header("x-a"), header("x-z"), header("gone")), (Some("1".into()), Some("1".into()), None));
    let failed: Vec<String> = stage.extensions.take_failures().into_iter().map(|failure| failure.error).collect();
    assert_eq!(failed, ["no", "Invalid header: b d", "no", "Invalid header: b d"]);
}
