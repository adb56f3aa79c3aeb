//! The order of events, in runs of every shape, cancelled at every event.

use std::collections::HashSet;

use futures::StreamExt;
use pinch_agent_core::AgentEvent;
use pinch_llm::message::Message;
use pinch_llm::provider::scripted::ScriptedReply;
use pinch_stdx::cancel::{Cancel, CancelReason};

use super::{agent, calls};

/// Checks the guarantees of `pinch_agent_core::event` for a finished run.
fn check(events: &[AgentEvent]) {
    assert!(matches!(events.first(), Some(AgentEvent::AgentStart)));
    assert!(matches!(events.last(), Some(AgentEvent::AgentEnd(_))));
    let (mut open_message, mut open_turn) = (false, false);
    let mut running: HashSet<String> = HashSet::new();
    for event in &events[1..events.len() - 1] {
        match event {
            AgentEvent::AgentStart | AgentEvent::AgentEnd(_) => panic!("one start, one end"),
            AgentEvent::TurnStart => assert!(!std::mem::replace(&mut open_turn, true)),
            AgentEvent::TurnEnd { .. } => {
                assert!(std::mem::replace(&mut open_turn, false) && !open_message && running.is_empty());
            }
            AgentEvent::MessageStart(_) => assert!(open_turn && !std::mem::replace(&mut open_message, true)),
            AgentEvent::MessageUpdate(_) => assert!(open_message),
            AgentEvent::MessageEnd { message, .. } => {
                assert!(std::mem::replace(&mut open_message, false));
                if let Message::ToolResult(result) = &**message {
                    assert!(!running.contains(result.tool_call_id.as_str()), "a result comes after its call's end");
                }
            }
            AgentEvent::ToolStart(start) => assert!(!open_message && running.insert(start.id.to_string())),
            AgentEvent::ToolUpdate { start, .. } => assert!(running.contains(start.id.as_str())),
            AgentEvent::ToolEnd { start, .. } => assert!(running.remove(start.id.as_str())),
            other => panic!("no law for {other:?}"),
        }
    }
    assert!(!open_turn && !open_message && running.is_empty());
}

fn script() -> Vec<ScriptedReply> {
    vec![calls(&[("a", "nope"), ("b", "nope")]), calls(&[("c", "nope")]), ScriptedReply::text("done")]
}

#[tokio::test]
async fn the_order_holds_wherever_a_run_is_cancelled() {
    for stop_at in 0.. {
        let (mut agent, _) = agent(script(), vec![]);
        let cancel = Cancel::new();
        let mut run = agent.run(vec![std::sync::Arc::new(Message::user("go", 1))], cancel.clone()).unwrap();
        let mut events = Vec::new();
        while let Some(event) = run.next().await {
            events.push(event);
            if events.len() == stop_at + 1 {
                cancel.cancel(CancelReason::User);
            }
        }
        drop(run);
        check(&events);
        let n_calls: usize =
            agent.messages.iter().filter_map(|m| m.as_assistant()).map(|m| m.tool_calls().count()).sum();
        let n_results = agent.messages.iter().filter(|m| matches!(***m, Message::ToolResult(_))).count();
        let failed = |m: &std::sync::Arc<pinch_llm::message::AssistantMessage>| m.stop_reason.is_failure();
        let in_failed: usize = (agent.messages.iter().filter_map(|m| m.as_assistant()))
            .filter(|m| failed(m))
            .map(|m| m.tool_calls().count())
            .sum();
        assert_eq!(n_results, n_calls - in_failed, "each call has one result");
        if stop_at >= events.len() {
            return;
        }
    }
}
