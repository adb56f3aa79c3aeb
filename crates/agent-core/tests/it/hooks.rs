//! Hooks of an agent's owner.

use std::sync::{Arc, Mutex};

use futures::StreamExt;
use futures::future::BoxFuture;
use pinch_agent_core::hooks::{AfterTurn, FinishedCall, Hooks, NextTurn, ToolPatch, TurnEnded};
use pinch_agent_core::queue::{MessageQueues, QueueKind};
use pinch_agent_core::tool::{JsonObject, ToolOutput, ToolSpec};
use pinch_agent_core::{AgentEvent, EndReason, Tool, ToolCx, ToolError};
use pinch_llm::message::{Block, Content, Message, SystemMessage};
use pinch_llm::provider::scripted::ScriptedReply;
use pinch_llm::schema::Schema;
use pinch_llm::thinking::ThinkingLevel;
use pinch_stdx::cancel::Cancel;
use serde_json::json;

use super::{agent, calls, run};

/// Changes the next turn as configured.
#[derive(Default)]
struct Between {
    next: Mutex<Vec<Result<NextTurn, String>>>,
    /// Gets a user message on every call.
    steers: Mutex<Option<MessageQueues>>,
    prompt: Mutex<Option<SystemMessage>>,
    patch: ToolPatch,
}

impl Hooks for Between {
    fn between_turns<'a>(&'a self, _: &'a TurnEnded) -> BoxFuture<'a, Result<NextTurn, String>> {
        if let Some(queues) = &*self.steers.lock().unwrap() {
            queues.push(QueueKind::Steering, Message::user("in time", 1));
        }
        let next = self.next.lock().unwrap().pop().unwrap_or_else(|| Ok(NextTurn::default()));
        Box::pin(async { next })
    }

    fn system(&self, _: &[Arc<Message>]) -> Option<SystemMessage> {
        self.prompt.lock().unwrap().take()
    }

    fn after_tool<'a>(&'a self, _: &'a FinishedCall) -> BoxFuture<'a, ToolPatch> {
        Box::pin(async { self.patch.clone() })
    }
}

/// Summarizes a conversation: roles, and the texts of users.
pub(super) fn shape(messages: &[Arc<Message>]) -> Vec<String> {
    let word = |message: &Arc<Message>| match &**message {
        Message::User(user) => user.content.text(""),
        other => other.role().to_owned(),
    };
    messages.iter().map(word).collect()
}

fn two_turns() -> [ScriptedReply; 2] {
    [calls(&[("a", "none")]), ScriptedReply::text("done")]
}

#[tokio::test]
async fn a_turn_can_begin_with_messages_and_another_level() {
    let (mut agent, provider) = agent(two_turns(), vec![]);
    let next = NextTurn {
        messages: vec![Arc::new(Message::user("by the way", 1))],
        thinking: Some(ThinkingLevel::High),
        ..NextTurn::default()
    };
    agent.hooks = Arc::new(Between { next: Mutex::new(vec![Ok(next)]), ..Between::default() });
    run(&mut agent, &Cancel::new()).await;
    assert_eq!(shape(&agent.messages), ["go", "assistant", "toolResult", "by the way", "assistant"]);
    assert_eq!(provider.n_calls(), 2);
    assert_eq!(agent.thinking, ThinkingLevel::High);
}

#[tokio::test]
async fn steering_that_comes_between_turns_is_still_in_time() {
    let (mut agent, _) = agent(two_turns(), vec![]);
    let steers = Mutex::new(Some(agent.queues()));
    agent.hooks = Arc::new(Between { steers, ..Between::default() });
    run(&mut agent, &Cancel::new()).await;
    assert_eq!(shape(&agent.messages), ["go", "assistant", "toolResult", "in time", "assistant"]);
}

#[tokio::test]
async fn one_at_a_time_means_one_per_turn() {
    let (mut agent, _) =
        agent([calls(&[("a", "none")]), ScriptedReply::text("one"), ScriptedReply::text("two")], vec![]);
    let hooks = Arc::new(Between::default());
    agent.hooks = hooks.clone();
    let queues = agent.queues();
    let mut n_ends = 0;
    let mut events = agent.run(vec![Arc::new(Message::user("go", 1))], Cancel::new()).unwrap();
    while let Some(event) = futures::StreamExt::next(&mut events).await {
        if matches!(event, AgentEvent::TurnEnd { .. }) {
            n_ends += 1;
            if n_ends == 1 {
                queues.push(QueueKind::Steering, Message::user("waits", 1));
                *hooks.steers.lock().unwrap() = Some(queues.clone());
            } else {
                *hooks.steers.lock().unwrap() = None;
            }
        }
    }
    drop(events);
    let wanted = ["go", "assistant", "toolResult", "waits", "assistant", "in time", "assistant"];
    assert_eq!(shape(&agent.messages), wanted);
}

#[tokio::test]
async fn a_failure_between_turns_is_a_regular_error_turn() {
    let (mut agent, provider) = agent(two_turns(), vec![]);
    agent.hooks = Arc::new(Between { next: Mutex::new(vec![Err("no room".into())]), ..Between::default() });
    let events = run(&mut agent, &Cancel::new()).await;
    let Some(AgentEvent::AgentEnd(end)) = events.last() else { panic!("no end") };
    assert_eq!(end.reason, EndReason::Failed);
    assert_eq!(agent.error_message.as_deref(), Some("no room"));
    assert_eq!(provider.n_calls(), 1);
}

#[tokio::test]
async fn a_changed_prompt_is_declared_before_the_request() {
    let (mut agent, _) = agent(two_turns(), vec![]);
    let hooks = Arc::new(Between::default());
    agent.hooks = hooks.clone();
    let said = SystemMessage { content: Content::Text("be brief".into()), timestamp: 1, ..SystemMessage::default() };
    *hooks.prompt.lock().unwrap() = Some(said);
    run(&mut agent, &Cancel::new()).await;
    assert_eq!(shape(&agent.messages), ["system", "go", "assistant", "toolResult", "assistant"]);
}

/// A tool whose result is text and data.
struct Structured(ToolSpec);

impl Tool for Structured {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn run<'a>(&'a self, _: JsonObject, _: &'a ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async { Ok(ToolOutput { structured: Some(json!({"n": 1})), ..ToolOutput::text("one") }) })
    }
}

#[tokio::test]
async fn replaced_content_drops_the_structured_data() {
    let other = || Some(vec![Block::text("two")]);
    for (patch, wanted) in [
        (ToolPatch::default(), Some(json!({"n": 1}))),
        (ToolPatch { content: other(), ..ToolPatch::default() }, None),
        (ToolPatch { content: other(), structured: Some(json!(2)), ..ToolPatch::default() }, Some(json!(2))),
    ] {
        let spec = ToolSpec::new("s", "", Schema::new(json!({"type": "object"})));
        let (mut agent, _) = agent([calls(&[("a", "s")]), ScriptedReply::text("ok")], vec![Arc::new(Structured(spec))]);
        agent.hooks = Arc::new(Between { patch, ..Between::default() });
        let events = run(&mut agent, &Cancel::new()).await;
        let found = events.iter().find_map(|event| match event {
            AgentEvent::ToolEnd { output, .. } => Some(output.structured.clone()),
            _ => None,
        });
        assert_eq!(found, Some(wanted));
    }
}

/// Converts messages from outside to capital letters.
struct LoudInput;

impl Hooks for LoudInput {
    fn incoming<'a>(&'a self, message: &'a Arc<Message>) -> BoxFuture<'a, Option<Arc<Message>>> {
        Box::pin(async {
            let Message::User(user) = &**message else { panic!("only users speak here") };
            let text = user.content.text("");
            // A replacement with another role must be ignored.
            let other = Message::System(SystemMessage::default());
            Some(Arc::new(if text == "keep" { other } else { Message::user(text.to_uppercase(), 1) }))
        })
    }
}

#[tokio::test]
async fn incoming_messages_are_changed_before_they_are_emitted() {
    let (mut agent, _) = agent([calls(&[("a", "none")]), ScriptedReply::text("done")], vec![]);
    agent.hooks = Arc::new(LoudInput);
    agent.queues().push(QueueKind::Steering, Message::user("keep", 1));
    let events = run(&mut agent, &Cancel::new()).await;
    let starts = events.iter().filter_map(|event| match event {
        AgentEvent::MessageStart(message) => Some(Arc::clone(message)),
        _ => None,
    });
    let starts = shape(&starts.collect::<Vec<_>>());
    assert_eq!(starts, ["GO", "keep", "assistant", "toolResult", "assistant"]);
    assert_eq!(shape(&agent.messages), starts);
}

/// Waits forever at the given point.
struct StuckHooks {
    at: &'static str,
}

impl Hooks for StuckHooks {
    fn after_tool<'a>(&'a self, _: &'a FinishedCall) -> BoxFuture<'a, ToolPatch> {
        let waits = self.at == "after_tool";
        Box::pin(async move { if waits { std::future::pending().await } else { ToolPatch::default() } })
    }

    fn after_turn<'a>(&'a self, _: &'a TurnEnded) -> BoxFuture<'a, AfterTurn> {
        let waits = self.at == "after_turn";
        Box::pin(async move { if waits { std::future::pending().await } else { AfterTurn::Default } })
    }

    fn between_turns<'a>(&'a self, _: &'a TurnEnded) -> BoxFuture<'a, Result<NextTurn, String>> {
        let waits = self.at == "between_turns";
        Box::pin(async move { if waits { std::future::pending().await } else { Ok(NextTurn::default()) } })
    }

    fn incoming<'a>(&'a self, message: &'a Arc<Message>) -> BoxFuture<'a, Option<Arc<Message>>> {
        let text = if let Message::User(user) = &**message { user.content.text("") } else { String::new() };
        let waits = self.at == "incoming" && text == "steer";
        Box::pin(async move { if waits { std::future::pending().await } else { None } })
    }
}

#[tokio::test(start_paused = true)]
async fn hooks_of_a_cancelled_run_have_the_grace_period_of_tools() {
    for at in ["after_tool", "after_turn"] {
        let (mut agent, _) = agent(two_turns(), Vec::new());
        agent.tools = std::iter::once(super::tools::fine("none")).collect();
        agent.hooks = Arc::new(StuckHooks { at });
        let cancel = Cancel::new();
        let began = tokio::time::Instant::now();
        let stop = async {
            tokio::time::sleep(std::time::Duration::from_secs(60)).await;
            cancel.cancel(pinch_stdx::cancel::CancelReason::User);
        };
        let (events, ()) = tokio::join!(run(&mut agent, &cancel), stop);
        assert_eq!(began.elapsed().as_secs(), 65, "{at}");
        let AgentEvent::AgentEnd(end) = events.last().unwrap() else { panic!("the run has an end") };
        assert_eq!(end.reason, EndReason::Aborted, "{at}");
        assert_eq!(super::results(&agent), [("a".to_owned(), false, "fine".to_owned())], "{at}");
    }
}

#[tokio::test]
async fn undelivered_steering_waits_for_the_next_run() {
    for at in ["before the first poll", "between_turns", "incoming"] {
        let (mut agent, _) =
            agent([ScriptedReply::text("one"), ScriptedReply::text("two"), ScriptedReply::text("three")], Vec::new());
        run(&mut agent, &Cancel::new()).await;
        let queues = agent.queues();
        queues.push(QueueKind::Steering, Message::user("steer", 1));
        queues.push(QueueKind::Steering, Message::user("later", 1));
        agent.hooks = Arc::new(StuckHooks { at });
        let input = if at == "between_turns" { vec![Arc::new(Message::user("go", 2))] } else { Vec::new() };
        if at == "between_turns" {
            queues.clear(QueueKind::Steering);
        }
        let mut under_way = agent.run(input, Cancel::new()).unwrap();
        if at != "before the first poll" {
            let mut is_begun = false;
            while let std::task::Poll::Ready(event) = futures::poll!(under_way.next()) {
                if at == "between_turns" && !is_begun {
                    is_begun = true;
                    continue;
                }
                if at == "between_turns"
                    && matches!(event, Some(AgentEvent::MessageStart(ref m)) if m.role() == "assistant")
                {
                    queues.push(QueueKind::Steering, Message::user("steer", 1));
                    queues.push(QueueKind::Steering, Message::user("later", 1));
                }
            }
        }
        drop(under_way);
        let waits: Vec<String> =
            shape(&queues.list(QueueKind::Steering).into_iter().map(|w| w.message).collect::<Vec<_>>());
        assert_eq!(waits, ["steer", "later"], "{at}");
        assert!(!shape(&agent.messages).contains(&"steer".to_owned()), "{at}");
    }
}
