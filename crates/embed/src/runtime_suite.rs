//! Conformance suite for [`AttemptRuntime`](crate::runtime::AttemptRuntime): whatever carries out the attempts, a run behaves alike.
//!
//! A fork implements [`RuntimeFixture`] for its runtime and calls [`check`] in a test with a tokio runtime.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use pinch_agent_core::event::AgentEvent;
use pinch_agent_core::queue::QueueKind;
use pinch_agent_core::tool::{FnTool, JsonObject, ToolOutput, ToolSpec};
use pinch_coding_agent::event::SessionEvent;
use pinch_llm::event::StreamEvent;
use pinch_llm::schema::Schema;
use pinch_stdx::cancel::CancelReason;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::delivery::EngineEvent;
use crate::engine::{Engine, EngineBuilder, EngineRun, RunTarget};
use crate::run::client_tools::ClientToolResult;
use crate::run::{RunError, RunRequest, RunResult};
use crate::runner::RunEvent;
use crate::runtime::Capabilities;

/// Time limit for everything that must happen. A runtime that ignores that it is stopped is given up after ten seconds.
const SOON: Duration = Duration::from_secs(30);

const SESSION: &str = "suite";

/// What the model, or the program in its place, does when it is asked.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RuntimeTurn {
    /// It answers with this text and stops.
    Answer(&'static str),
    /// It refuses the request, in a way that another try does not help, with this message.
    Refusal(&'static str),
    /// It begins to answer with this text, and says nothing more.
    Hang(&'static str),
    /// It calls this tool with these arguments.
    Call(&'static str, Value),
}

/// Creates engines for the suite.
pub trait RuntimeFixture: Sync {
    /// Returns the id of the runtime, as runs report it.
    fn id(&self) -> &'static str;

    /// Returns the capabilities of the runtime; by default all.
    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL
    }

    /// Returns whether the runtime runs tools of the host; by default it does.
    fn runs_tools(&self) -> bool {
        true
    }

    /// Returns whether messages can be added during an attempt; by default they can.
    fn accepts_messages(&self) -> bool {
        true
    }

    /// Creates an engine whose runs use the runtime by default. Its model takes these turns, in this order, whichever runs they belong to.
    /// `register` must be applied to the builder.
    fn engine<'a>(
        &'a self,
        turns: Vec<RuntimeTurn>,
        register: Box<dyn FnOnce(EngineBuilder) -> EngineBuilder + Send + 'a>,
    ) -> BoxFuture<'a, RuntimeBed>;
}

/// An engine, and what it needs to live.
pub struct RuntimeBed {
    /// The engine.
    pub engine: Engine,
    /// Servers and directories, which are dropped after the engine.
    pub keep: Box<dyn Any + Send>,
}

impl std::fmt::Debug for RuntimeBed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RuntimeBed").field("engine", &self.engine).finish_non_exhaustive()
    }
}

type ScenarioOutcome = Result<(), String>;

/// Runs all scenarios.
///
/// # Panics
/// Panics with every scenario that fails.
pub async fn check(fixture: &dyn RuntimeFixture) {
    let scenarios: Vec<(&str, BoxFuture<'_, ScenarioOutcome>)> = vec![
        ("an answer is the result of its run", Box::pin(answers(fixture))),
        ("a refusal ends the run with a failure", Box::pin(is_refused(fixture))),
        ("a run can be stopped, and the next one succeeds", Box::pin(is_stopped(fixture))),
        ("a run ends at its time limit", Box::pin(times_out(fixture))),
        ("a dropped run leaves its session usable", Box::pin(is_dropped(fixture))),
        ("tools of the host run, and the model gets their results", Box::pin(calls_tools(fixture))),
        ("a message added during an attempt is read or refused", Box::pin(is_steered(fixture))),
        ("a run stops for client tools, or is refused", Box::pin(calls_client_tools(fixture))),
    ];
    let mut failed = Vec::new();
    for (name, scenario) in scenarios {
        match timeout(SOON * 2, scenario).await {
            Ok(Ok(())) => {}
            Ok(Err(why)) => failed.push(format!("{name}: {why}")),
            Err(_) => failed.push(format!("{name}: it hangs")),
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

async fn bed(fixture: &dyn RuntimeFixture, turns: Vec<RuntimeTurn>) -> RuntimeBed {
    fixture.engine(turns, Box::new(|builder| builder)).await
}

fn request(engine: &Engine, prompt: &str) -> RunRequest {
    engine.request(SESSION, None, None, prompt).run_id(prompt)
}

async fn finish(run: EngineRun) -> Result<Result<RunResult, RunError>, String> {
    timeout(SOON, run.finish()).await.map_err(|_| "the run does not end".to_owned())
}

/// Runs a prompt that must be answered, and returns the texts.
async fn ask(engine: &Engine, prompt: &str) -> Result<(RunResult, String), String> {
    let result = finish(engine.run(request(engine, prompt))).await?.map_err(|error| format!("{prompt:?}: {error}"))?;
    if let Some(error) = &result.meta.error {
        return Err(format!("{prompt:?}: {error:?}"));
    }
    let texts = result.payloads.iter().map(|payload| payload.reply.text.as_str());
    let text = texts.collect::<Vec<_>>().join("\n");
    Ok((result, text))
}

/// Pulls a run until its attempt has begun.
async fn begin(run: &mut EngineRun) -> ScenarioOutcome {
    pull_until(run, |event| matches!(event, RunEvent::Attempt(_))).await
}

/// Pulls a run until its answer has begun.
async fn begin_answer(run: &mut EngineRun) -> ScenarioOutcome {
    let is_text = |event: &RunEvent| match event {
        RunEvent::Session(event) => {
            matches!(&**event, SessionEvent::Agent(AgentEvent::MessageUpdate(StreamEvent::Delta { .. })))
        }
        _ => false,
    };
    pull_until(run, is_text).await
}

async fn pull_until(run: &mut EngineRun, is_reached: impl Fn(&RunEvent) -> bool) -> ScenarioOutcome {
    let pulled = async {
        while let Some(event) = run.next().await {
            if is_reached(&event) {
                return true;
            }
        }
        false
    };
    match timeout(SOON, pulled).await {
        Ok(true) => Ok(()),
        Ok(false) => Err(format!("the run has ended: {:?}", run.result().map(drop))),
        Err(_) => Err("the attempt does not begin".to_owned()),
    }
}

fn ensure(holds: bool, why: impl Into<String>) -> ScenarioOutcome {
    if holds { Ok(()) } else { Err(why.into()) }
}

/// Checks that an unsuccessful run does not look like a successful one, and that it is over.
fn check_failed(engine: &Engine, ended: &Result<RunResult, RunError>) -> ScenarioOutcome {
    if let Ok(result) = ended {
        let meta = &result.meta;
        let says_so = meta.aborted || meta.timed_out || meta.error.is_some() || result.failure().is_some();
        ensure(says_so, format!("it counts as a success: {:?}", result.payloads))?;
    }
    ensure(engine.active().is_empty(), "the run is still active")
}

async fn answers(fixture: &dyn RuntimeFixture) -> ScenarioOutcome {
    let bed = bed(fixture, vec![RuntimeTurn::Answer("Hello there.")]).await;
    let mut events = bed.engine.subscribe();
    let (result, text) = ask(&bed.engine, "hello").await?;
    ensure(text == "Hello there.", format!("the answer is {text:?}"))?;
    let runtime = &result.meta.agent.runtime;
    ensure(runtime == fixture.id(), format!("the runtime is {runtime:?}"))?;
    let outcomes: Vec<&str> = result.meta.attempts.iter().map(|attempt| attempt.outcome.as_str()).collect();
    ensure(outcomes == ["ok"], format!("the attempts are {outcomes:?}"))?;
    drop(bed);
    let mut phases = Vec::new();
    while let Some(event) = events.next().await {
        let EngineEvent::Event(event) = event else { continue };
        if event.stream.as_str() == "lifecycle" {
            phases.extend(event.data["phase"].as_str().map(str::to_owned));
        }
    }
    ensure(phases == ["start", "end"], format!("the lifecycle is {phases:?}"))
}

async fn is_refused(fixture: &dyn RuntimeFixture) -> ScenarioOutcome {
    let bed = bed(fixture, vec![RuntimeTurn::Refusal("the request is malformed")]).await;
    let ended = finish(bed.engine.run(request(&bed.engine, "hello"))).await?;
    check_failed(&bed.engine, &ended)
}

async fn is_stopped(fixture: &dyn RuntimeFixture) -> ScenarioOutcome {
    let bed = bed(fixture, vec![RuntimeTurn::Hang("Half."), RuntimeTurn::Answer("The whole.")]).await;
    let engine = &bed.engine;
    let mut run = engine.run(request(engine, "go"));
    begin(&mut run).await?;
    let stop = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        engine.abort(RunTarget::Session(SESSION), CancelReason::User)
    };
    let (ended, n_stopped) = futures::join!(finish(run), stop);
    ensure(n_stopped == 1, format!("{n_stopped} runs are stopped"))?;
    check_failed(engine, &ended?)?;
    let (_, text) = ask(engine, "again").await?;
    ensure(text == "The whole.", format!("the next answer is {text:?}"))
}

async fn times_out(fixture: &dyn RuntimeFixture) -> ScenarioOutcome {
    let bed = bed(fixture, vec![RuntimeTurn::Hang("Half.")]).await;
    let limit = Duration::from_millis(500);
    let ended = finish(bed.engine.run(request(&bed.engine, "go").timeout(Some(limit)))).await?;
    check_failed(&bed.engine, &ended)
}

async fn is_dropped(fixture: &dyn RuntimeFixture) -> ScenarioOutcome {
    let bed = bed(fixture, vec![RuntimeTurn::Hang("Half."), RuntimeTurn::Answer("The whole.")]).await;
    let engine = &bed.engine;
    let mut run = engine.run(request(engine, "go"));
    begin(&mut run).await?;
    // The attempt is asked for, so that the first turn is taken.
    drop(timeout(Duration::from_millis(500), async { while run.next().await.is_some() {} }).await);
    drop(run);
    ensure(engine.active().is_empty(), "the run is still active")?;
    let (_, text) = ask(engine, "again").await?;
    ensure(text == "The whole.", format!("the next answer is {text:?}"))
}

async fn calls_tools(fixture: &dyn RuntimeFixture) -> ScenarioOutcome {
    if !fixture.runs_tools() {
        return Ok(());
    }
    let n_calls = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&n_calls);
    let probe = FnTool::new(spec("probe"), move |_: JsonObject, _| {
        counter.fetch_add(1, Ordering::Relaxed);
        async { Ok(ToolOutput::text("It works.")) }
    });
    let turns = vec![RuntimeTurn::Call("probe", json!({})), RuntimeTurn::Answer("Done.")];
    let bed = fixture.engine(turns, Box::new(|builder| builder.tool(probe))).await;
    let (result, text) = ask(&bed.engine, "go").await?;
    ensure(text.ends_with("Done."), format!("the answer is {text:?}"))?;
    let n_calls = n_calls.load(Ordering::Relaxed);
    ensure(n_calls == 1, format!("the tool ran {n_calls} times"))?;
    let tools: Vec<(&str, u32)> = result.meta.tools.iter().map(|tool| (tool.name.as_str(), tool.errors)).collect();
    ensure(tools == [("probe", 0)], format!("the report on tools is {tools:?}"))
}

async fn is_steered(fixture: &dyn RuntimeFixture) -> ScenarioOutcome {
    if fixture.accepts_messages() {
        let bed = bed(fixture, vec![RuntimeTurn::Answer("One moment."), RuntimeTurn::Answer("In blue.")]).await;
        let mut run = bed.engine.run(request(&bed.engine, "paint it"));
        begin_answer(&mut run).await?;
        let target = RunTarget::Session(SESSION);
        let queued = bed.engine.queue_message(target, "Blue!", Vec::new(), QueueKind::FollowUp);
        let (queued, ended) = futures::join!(timeout(SOON, queued), finish(run));
        let queued = queued.map_err(|_| "the message is never read")?;
        queued.map_err(|error| format!("the message is refused: {error}"))?;
        let result = ended?.map_err(|error| error.to_string())?;
        let last = result.payloads.last().map(|payload| payload.reply.text.as_str());
        return ensure(last == Some("In blue."), format!("the last answer is {last:?}"));
    }
    let bed = bed(fixture, vec![RuntimeTurn::Hang("One moment.")]).await;
    let engine = &bed.engine;
    let mut run = engine.run(request(engine, "paint it"));
    begin(&mut run).await?;
    let refused = async {
        let target = RunTarget::Session(SESSION);
        let refused = engine.queue_message(target, "Blue!", Vec::new(), QueueKind::FollowUp).await;
        engine.abort(target, CancelReason::User);
        refused
    };
    let (refused, ended) = futures::join!(refused, finish(run));
    ensure(refused.is_err(), "a message that nobody reads is accepted")?;
    check_failed(engine, &ended?)
}

async fn calls_client_tools(fixture: &dyn RuntimeFixture) -> ScenarioOutcome {
    let turns = vec![RuntimeTurn::Call("lookup", json!({})), RuntimeTurn::Answer("Found.")];
    let bed = bed(fixture, turns).await;
    let engine = &bed.engine;
    let mut first = request(engine, "look it up");
    first.client_tools = vec![spec("lookup")];
    let ended = finish(engine.run(first)).await?;
    if !fixture.capabilities().client_tools {
        return ensure(matches!(ended, Err(RunError::Config(_))), "a run with client tools is not refused");
    }
    let result = ended.map_err(|error| error.to_string())?;
    let [call] = &result.meta.pending_tool_calls[..] else {
        return Err(format!("the pending calls are {:?}", result.meta.pending_tool_calls));
    };
    ensure(call.name == "lookup", format!("the pending call is {call:?}"))?;
    let mut second = request(engine, "");
    second.client_tools = vec![spec("lookup")];
    second.client_results = vec![ClientToolResult::text(&call.id, "42")];
    let result = finish(engine.run(second)).await?.map_err(|error| error.to_string())?;
    let last = result.payloads.last().map(|payload| payload.reply.text.as_str());
    ensure(last == Some("Found."), format!("the answer to the result is {last:?}"))
}

fn spec(name: &str) -> ToolSpec {
    ToolSpec::new(name, "A tool of the suite", Schema::new(json!({"type": "object"})))
}
