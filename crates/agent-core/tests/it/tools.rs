//! Tools that behave, and tools that do not.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use pinch_agent_core::queue::{MessageQueues, QueueKind, SteeringPoint};
use pinch_agent_core::tool::{ExternalTool, JsonObject, ToolMode, ToolOutput, ToolSpec};
use pinch_agent_core::{AgentEvent, EndReason, Tool, ToolCx, ToolError};
use pinch_llm::message::{Message, StopReason};
use pinch_llm::provider::scripted::ScriptedReply;
use pinch_llm::schema::Schema;
use pinch_stdx::cancel::{Cancel, CancelReason};
use serde_json::json;

use super::hooks::shape;
use super::{agent, calls, results, run};

type ToolWork = fn(Arc<AtomicBool>) -> BoxFuture<'static, Result<ToolOutput, ToolError>>;

/// A tool that performs a behaviour with a flag.
struct Stub {
    spec: ToolSpec,
    flag: Arc<AtomicBool>,
    work: ToolWork,
}

impl Stub {
    fn tool(name: &str, flag: &Arc<AtomicBool>, work: ToolWork) -> Arc<dyn Tool> {
        let spec = ToolSpec::new(name, "", Schema::new(json!({"type": "object"})));
        Arc::new(Self { spec, flag: Arc::clone(flag), work })
    }
}

impl Tool for Stub {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run<'a>(&'a self, _: JsonObject, _: &'a ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        (self.work)(Arc::clone(&self.flag))
    }
}

pub(super) fn fine(name: &str) -> Arc<dyn Tool> {
    Stub::tool(name, &Arc::default(), |_| Box::pin(async { Ok(ToolOutput::text("fine")) }))
}

/// Sets the flag when it is dropped.
struct OnDrop(Arc<AtomicBool>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn deaf(flag: &Arc<AtomicBool>) -> Arc<dyn Tool> {
    Stub::tool("deaf", flag, |flag| {
        Box::pin(async move {
            let _on_drop = OnDrop(flag);
            std::future::pending().await
        })
    })
}

#[tokio::test]
async fn a_panicking_tool_fails_only_its_own_call() {
    let broken = Stub::tool("broken", &Arc::default(), |_| Box::pin(async { panic!("bug") }));
    let (mut agent, _) =
        agent([calls(&[("a", "broken"), ("b", "fine")]), ScriptedReply::text("ok")], vec![broken, fine("fine")]);
    run(&mut agent, &Cancel::new()).await;
    let results = results(&agent);
    assert!(results[0].1 && results[0].2.contains("failed unexpectedly"), "{results:?}");
    assert_eq!(results[1], ("b".into(), false, "fine".into()));
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_ignores_cancellation_is_dropped_after_its_grace_period() {
    let dropped = Arc::new(AtomicBool::new(false));
    let (mut agent, provider) = agent([calls(&[("a", "deaf")]), ScriptedReply::text("never")], vec![deaf(&dropped)]);
    let cancel = Cancel::new();
    let stop = cancel.clone();
    let began = tokio::time::Instant::now();
    let (events, ()) = tokio::join!(run(&mut agent, &cancel), async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        stop.cancel(CancelReason::User);
    });
    assert_eq!(began.elapsed(), Duration::from_secs(6));
    assert!(dropped.load(Ordering::SeqCst));
    assert_eq!(results(&agent), [("a".into(), true, "Operation aborted".into())]);
    assert_eq!(provider.requests().len(), 1, "no request after an aborted batch");
    let AgentEvent::AgentEnd(end) = events.last().unwrap() else { panic!("the run has an end") };
    assert_eq!(end.reason, EndReason::Aborted);
}

#[tokio::test]
async fn dropping_the_run_drops_its_tools() {
    let dropped = Arc::new(AtomicBool::new(false));
    let (mut agent, _) = agent([calls(&[("a", "deaf")])], vec![deaf(&dropped)]);
    {
        let mut run = agent.run(vec![Arc::new(Message::user("go", 1))], Cancel::new()).unwrap();
        while let Some(event) = run.next().await {
            if matches!(event, AgentEvent::ToolStart(_)) {
                break;
            }
        }
        assert!(futures::poll!(run.next()).is_pending());
        tokio::task::yield_now().await;
    }
    tokio::task::yield_now().await;
    assert!(dropped.load(Ordering::SeqCst));
}

#[tokio::test]
async fn calls_of_external_tools_end_the_run_after_the_others() {
    let spec = ToolSpec::new("remote", "", Schema::new(json!({"type": "object"})));
    let tools = || vec![fine("fine"), Arc::new(ExternalTool::new(spec.clone())) as Arc<dyn Tool>];
    for sequential in [false, true] {
        let replies = [calls(&[("a", "remote"), ("b", "fine"), ("c", "remote")]), ScriptedReply::text("never")];
        let (mut agent, provider) = agent(replies, tools());
        if sequential {
            agent.execution = ToolMode::Sequential;
        }
        let events = run(&mut agent, &Cancel::new()).await;
        let AgentEvent::AgentEnd(end) = events.last().unwrap() else { panic!("the run has an end") };
        assert_eq!(end.reason, EndReason::CallsPending);
        assert_eq!(end.pending_calls.iter().map(|call| call.id.as_str()).collect::<Vec<_>>(), ["a", "c"]);
        assert_eq!(results(&agent), [("b".into(), false, "fine".into())]);
        assert_eq!(provider.requests().len(), 1, "the model is not asked before the results are there");
        let starts = events.iter().filter(|event| matches!(event, AgentEvent::ToolStart(_))).count();
        let ends = events.iter().filter(|event| matches!(event, AgentEvent::ToolEnd { .. })).count();
        assert_eq!((starts, ends), (1, 1), "every start has its end");
    }
}

#[tokio::test]
async fn a_truncated_answer_runs_no_calls() {
    let mut cut = calls(&[("a", "fine")]);
    cut.stop = Some(StopReason::Length);
    let (mut agent, _) = agent([cut, ScriptedReply::text("again")], vec![fine("fine")]);
    run(&mut agent, &Cancel::new()).await;
    let results = results(&agent);
    assert!(results[0].1 && results[0].2.contains("hit the output token limit"), "{results:?}");
}

#[tokio::test]
async fn duplicate_call_ids_are_made_unique() {
    let (mut agent, _) =
        agent([calls(&[("a", "fine"), ("a", "fine"), ("a_2", "fine")]), ScriptedReply::text("ok")], vec![fine("fine")]);
    run(&mut agent, &Cancel::new()).await;
    let ids: Vec<String> = results(&agent).into_iter().map(|(id, ..)| id).collect();
    assert_eq!(ids, ["a", "a_2", "a_2_2"]);
}

#[tokio::test]
async fn tools_and_their_changes_are_declared() {
    let (mut agent, _) = agent(
        [ScriptedReply::text("a"), ScriptedReply::text("b"), ScriptedReply::text("c")],
        vec![fine("x"), fine("y")],
    );
    run(&mut agent, &Cancel::new()).await;
    agent.tools = agent.tools.filter(|tool| tool.spec().name == "x");
    run(&mut agent, &Cancel::new()).await;
    run(&mut agent, &Cancel::new()).await;
    let said: Vec<(Vec<&str>, Vec<String>)> = (agent.messages.iter())
        .filter_map(|message| match &**message {
            Message::System(s) => {
                Some((s.tools_added.iter().map(|t| t.name.as_str()).collect(), s.tools_removed.clone()))
            }
            _ => None,
        })
        .collect();
    assert_eq!(said, [(vec!["x", "y"], vec![]), (vec![], vec!["y".to_owned()])]);
}

/// A tool that queues a steering message in the call `first`.
struct SteeringTool {
    spec: ToolSpec,
    queues: MessageQueues,
}

impl Tool for SteeringTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run<'a>(&'a self, _: JsonObject, cx: &'a ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            if cx.call.as_str() == "first" {
                self.queues.push(QueueKind::Steering, Message::user("stop", 1));
            }
            Ok(ToolOutput::text("done"))
        })
    }
}

#[tokio::test]
async fn calls_that_have_not_started_are_skipped_for_a_waiting_message() {
    let result = |id: &str, is_skipped: bool| match is_skipped {
        true => (id.to_owned(), true, "Skipped to process an incoming message.".to_owned()),
        false => (id.to_owned(), false, "done".to_owned()),
    };
    for (mode, point, waits, skipped) in [
        (ToolMode::Sequential, SteeringPoint::BeforeCalls, false, [false, true, true]),
        (ToolMode::Sequential, SteeringPoint::BeforeCalls, true, [true, true, true]),
        (ToolMode::Sequential, SteeringPoint::BetweenTurns, true, [false, false, false]),
        // These start together.
        (ToolMode::Parallel, SteeringPoint::BeforeCalls, false, [false, false, false]),
        (ToolMode::Parallel, SteeringPoint::BeforeCalls, true, [true, true, true]),
    ] {
        let ids = ["first", "second", "third"];
        let replies = [calls(&ids.map(|id| (id, "work"))), ScriptedReply::text("well"), ScriptedReply::text("done")];
        let (mut agent, provider) = agent(replies, Vec::new());
        let queues = agent.queues();
        queues.set_steering_point(point);
        let spec = ToolSpec::new("work", "", Schema::new(json!({"type": "object"})));
        let tool: Arc<dyn Tool> = Arc::new(SteeringTool { spec, queues: queues.clone() });
        agent.tools = std::iter::once(tool).collect();
        agent.execution = mode;
        let mut running = agent.run(vec![Arc::new(Message::user("go", 1))], Cancel::new()).unwrap();
        let (mut started, mut ended) = (0, 0);
        while let Some(event) = running.next().await {
            match event {
                // The message comes while the answer with the calls arrives.
                AgentEvent::MessageStart(message) if message.role() == "assistant" && waits && started == 0 => {
                    queues.clear(QueueKind::Steering);
                    queues.push(QueueKind::Steering, Message::user("stop", 1));
                }
                AgentEvent::ToolStart(_) => started += 1,
                AgentEvent::ToolEnd { .. } => ended += 1,
                _ => {}
            }
        }
        drop(running);
        let expected: Vec<_> = ids.into_iter().zip(skipped).map(|(id, is_skipped)| result(id, is_skipped)).collect();
        assert_eq!(results(&agent), expected, "{mode:?} {point:?} {waits}");
        assert_eq!((started, ended), (3, 3));
        let told =
            provider.requests()[1].messages.iter().any(|message| shape(std::slice::from_ref(message)) == ["stop"]);
        assert!(told, "{mode:?} {point:?} {waits}");
    }
}

/// Runs until it is cancelled, and counts its calls.
struct CountedTool {
    spec: ToolSpec,
    n_calls: AtomicUsize,
}

impl Tool for CountedTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run<'a>(&'a self, _: JsonObject, cx: &'a ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.n_calls.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            cx.cancel.cancelled().await;
            Err(ToolError::aborted())
        })
    }
}

#[tokio::test]
async fn of_a_thousand_calls_few_run_at_once_and_none_starts_after_the_cancellation() {
    let spec = ToolSpec::new("counted", "", Schema::new(json!({"type": "object"})));
    let tool = Arc::new(CountedTool { spec, n_calls: AtomicUsize::new(0) });
    let ids: Vec<String> = (0..1000).map(|n| format!("c{n}")).collect();
    let wanted: Vec<(&str, &str)> = ids.iter().map(|id| (id.as_str(), "counted")).collect();
    let (mut agent, _) = agent([calls(&wanted)], vec![Arc::clone(&tool) as Arc<dyn Tool>]);
    let cancel = Cancel::new();
    let (stop, seen) = (cancel.clone(), Arc::clone(&tool));
    tokio::join!(run(&mut agent, &cancel), async move {
        while seen.n_calls.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        stop.cancel(CancelReason::User);
    });
    assert_eq!(tool.n_calls.load(Ordering::SeqCst), 64);
    let results = results(&agent);
    assert!(results.iter().all(|(_, failed, text)| *failed && text == "Operation aborted"));
    assert!(results.iter().map(|(id, ..)| id).eq(&ids), "each call has its result");
}

#[tokio::test]
async fn calls_beyond_the_limit_run_when_others_have_ended() {
    let ids: Vec<String> = (0..200).map(|n| format!("c{n}")).collect();
    let wanted: Vec<(&str, &str)> = ids.iter().map(|id| (id.as_str(), "fine")).collect();
    let (mut agent, _) = agent([calls(&wanted), ScriptedReply::text("ok")], vec![fine("fine")]);
    run(&mut agent, &Cancel::new()).await;
    assert!(results(&agent).iter().all(|(_, failed, text)| !failed && text == "fine"));
    assert_eq!(results(&agent).len(), 200);
}

/// Notes the order of its calls.
struct Noted {
    spec: ToolSpec,
    calls: Mutex<Vec<String>>,
}

impl Tool for Noted {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run<'a>(&'a self, _: JsonObject, cx: &'a ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            self.calls.lock().unwrap().push(cx.call.to_string());
            Ok(ToolOutput::text("noted"))
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parallel_calls_begin_in_the_order_of_the_answer() {
    let spec = ToolSpec::new("noted", "", Schema::new(json!({"type": "object"})));
    let tool = Arc::new(Noted { spec, calls: Mutex::default() });
    let ids: Vec<String> = (0..500).map(|n| format!("c{n}")).collect();
    let wanted: Vec<(&str, &str)> = ids.iter().map(|id| (id.as_str(), "noted")).collect();
    let (mut agent, _) = agent([calls(&wanted), ScriptedReply::text("ok")], vec![Arc::clone(&tool) as Arc<dyn Tool>]);
    run(&mut agent, &Cancel::new()).await;
    assert_eq!(*tool.calls.lock().unwrap(), ids);
}
