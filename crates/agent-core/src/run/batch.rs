//! The calls of one answer: sequential or in parallel.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::Either;
use pinch_llm::message::{AssistantMessage, Message, StopReason, ToolCall, ToolResult};
use tokio::task::{Id, JoinSet};
use tracing::Instrument as _;

use super::call::{self, Ready};
use super::route::Route;
use super::{RunDriver, spans};
use crate::event::{AgentEvent, ToolStart};
use crate::hooks::PendingCall;
use crate::tool::cx::{Progress, ProgressBoard};
use crate::tool::{ToolError, ToolMode, ToolOutput};

/// The result of a call that is skipped because a message is waiting, in OpenClaw 2026.9.6's words.
const SKIPPED: &str = "Skipped to process an incoming message.";

/// Number of calls of one answer that run at the same time; the others wait. pi has no limit, so a model that calls a thousand commands at
/// once starts a thousand processes, and none of them can be cancelled before the last one has started.
const MAX_PARALLEL: usize = 64;

/// Outcome of the calls of one answer.
pub(super) struct ToolBatch {
    /// The calls, as they ran.
    pub(super) calls: Arc<[ToolCall]>,
    pub(super) results: Vec<Arc<Message>>,
    /// Whether every call asked the run to end.
    pub(super) ends_run: bool,
    /// Calls that the caller has to run.
    pub(super) pending: Vec<ToolCall>,
}

/// A call with its position in the answer.
struct Placed {
    at: usize,
    ready: Ready,
}

/// The result of a call and how long it ran.
type CallOutcome = (ToolOutput, Option<i64>);

impl ToolBatch {
    /// Sets aside calls that the caller has to run, and returns the others.
    fn take_pending(&mut self, ready: Vec<Placed>) -> Vec<Placed> {
        let is_pending = |placed: &Placed| placed.ready.tool.spec().mode == ToolMode::External;
        let (pending, ready): (Vec<_>, Vec<_>) = ready.into_iter().partition(is_pending);
        self.pending.extend(pending.into_iter().map(|Placed { ready, .. }| {
            let PendingCall { mut call, input, .. } = ready.pending;
            call.arguments = input;
            call
        }));
        ready
    }
}

impl RunDriver<'_> {
    /// Runs all calls of an answer. Each one gets exactly one result, unless the caller has to run it.
    pub(super) async fn run_calls(&mut self, message: &Arc<AssistantMessage>) -> ToolBatch {
        let (routes, calls): (Vec<Route>, Vec<ToolCall>) =
            message.tool_calls().map(|call| Route::of(call, &self.agent.tools)).unzip();
        let sequential = self.agent.execution == ToolMode::Sequential
            || routes.iter().any(|route| route.mode() == ToolMode::Sequential);
        let starts: Vec<ToolStart> = calls.iter().map(start_of).collect();
        let mut outcomes: Vec<Option<CallOutcome>> = calls.iter().map(|_| None).collect();
        let mut batch = ToolBatch {
            calls: calls.into(),
            results: Vec::with_capacity(routes.len()),
            ends_run: true,
            pending: Vec::new(),
        };
        let calls = Arc::clone(&batch.calls);
        if sequential {
            let mut skips = false;
            for (at, route) in routes.iter().enumerate() {
                skips = skips || self.skips_calls();
                let ready = self.begin(message, route, (&calls, at), skips, &starts, &mut outcomes).await;
                let ready = batch.take_pending(ready.into_iter().collect());
                self.execute(ready, &starts, &mut outcomes).await;
                self.conclude(route, &calls[at], outcomes[at].take(), &mut batch).await;
            }
        } else {
            let skips = self.skips_calls();
            let mut ready = Vec::with_capacity(calls.len());
            for (at, route) in routes.iter().enumerate() {
                ready.extend(self.begin(message, route, (&calls, at), skips, &starts, &mut outcomes).await);
            }
            let ready = batch.take_pending(ready);
            self.execute(ready, &starts, &mut outcomes).await;
            for ((route, call), outcome) in routes.iter().zip(&*calls).zip(outcomes) {
                self.conclude(route, call, outcome, &mut batch).await;
            }
        }
        batch
    }

    fn skips_calls(&self) -> bool {
        !self.cancel.is_cancelled() && self.agent.queues().skips_calls()
    }

    /// Announces a call and prepares it; a call that may not run, or is skipped, ends immediately.
    async fn begin(
        &self,
        message: &Arc<AssistantMessage>,
        route: &Route,
        (calls, at): (&Arc<[ToolCall]>, usize),
        skips: bool,
        starts: &[ToolStart],
        outcomes: &mut [Option<CallOutcome>],
    ) -> Option<Placed> {
        let is_external = route.mode() == ToolMode::External;
        if !is_external {
            self.emit(AgentEvent::ToolStart(starts[at].clone())).await;
        }
        let prepared = if skips {
            Err(ToolError::new(SKIPPED).into())
        } else if message.stop_reason == StopReason::Length {
            Err(cut_off(route.name(&calls[at])).into())
        } else {
            call::prepare(route.tool.as_ref(), &*self.agent.hooks, message, (calls, at), self.cancel).await
        };
        match prepared {
            Ok(ready) => Some(Placed { at, ready }),
            Err(output) => {
                if is_external {
                    self.emit(AgentEvent::ToolStart(starts[at].clone())).await;
                }
                self.end(at, (output, None), starts, outcomes).await;
                None
            }
        }
    }

    /// Runs calls in parallel, at most [`MAX_PARALLEL`] at a time. Their updates and ends are emitted as they happen.
    async fn execute(&self, ready: Vec<Placed>, starts: &[ToolStart], outcomes: &mut [Option<CallOutcome>]) {
        let board = Arc::new(ProgressBoard::default());
        let mut waiting = ready.into_iter();
        let mut running = JoinSet::new();
        let mut places: HashMap<Id, usize> = HashMap::new();
        loop {
            while running.len() < MAX_PARALLEL
                && let Some(Placed { at, ready }) = waiting.next()
            {
                if self.cancel.is_cancelled() {
                    self.end(at, (ToolError::aborted().into(), None), starts, outcomes).await;
                    continue;
                }
                let progress = Progress::new(at, Arc::clone(&board));
                let hooks = Arc::clone(&self.agent.hooks);
                let span = spans::tool(&ready.pending.call);
                let work = call::run(ready, hooks, progress, self.grace.clone(), self.agent.host.clone());
                match begin_in_order(work.instrument(span)).await {
                    Ok(work) => drop(places.insert(running.spawn(work).id(), at)),
                    Err(panic) => self.end(at, (broken(&panic).into(), None), starts, outcomes).await,
                }
            }
            if running.is_empty() {
                break;
            }
            tokio::select! {
                biased;
                done = running.join_next_with_id() => {
                    self.give_updates(&board, starts).await;
                    let (at, outcome) = match done {
                        Some(Ok((id, (output, duration_ms)))) => (places[&id], (output, Some(duration_ms))),
                        Some(Err(panic)) => (places[&panic.id()], (broken(&panic.to_string()).into(), None)),
                        None => break,
                    };
                    board.close(at);
                    self.end(at, outcome, starts, outcomes).await;
                }
                () = board.changed.notified() => self.give_updates(&board, starts).await,
            }
        }
    }

    async fn give_updates(&self, board: &ProgressBoard, starts: &[ToolStart]) {
        while let Some((at, so_far)) = board.take() {
            self.emit(AgentEvent::ToolUpdate { start: starts[at].clone(), so_far: Box::new(so_far) }).await;
        }
    }

    async fn end(&self, at: usize, outcome: CallOutcome, starts: &[ToolStart], outcomes: &mut [Option<CallOutcome>]) {
        let (output, duration_ms) = outcome.clone();
        outcomes[at] = Some(outcome);
        self.emit(AgentEvent::ToolEnd { start: starts[at].clone(), output: Box::new(output), duration_ms }).await;
    }

    /// Adds a call's result to the conversation.
    async fn conclude(&mut self, route: &Route, call: &ToolCall, outcome: Option<CallOutcome>, batch: &mut ToolBatch) {
        if outcome.is_none() && batch.pending.iter().any(|pending| pending.id == call.id) {
            return;
        }
        // Every call has an outcome by now; a missing one would be a bug, and still needs a result.
        let (output, duration_ms) = outcome.unwrap_or_else(|| (ToolError::aborted().into(), None));
        batch.ends_run &= output.end_run;
        let message = Arc::new(Message::ToolResult(ToolResult {
            tool_call_id: call.id.clone(),
            tool_name: route.name(call).to_owned(),
            content: output.content,
            details: route.details(call, output.details),
            is_error: output.failed,
            timestamp: self.agent.host.now_ms(),
            usage: output.usage,
            duration_ms,
            nested_calls: None,
        }));
        self.emit(AgentEvent::MessageStart(Arc::clone(&message))).await;
        let message = self.append(message).await;
        batch.results.push(Arc::clone(&message));
        self.emit(AgentEvent::MessageEnd { message, error: None, queued: None }).await;
    }
}

fn start_of(call: &ToolCall) -> ToolStart {
    ToolStart { id: call.id.clone(), name: call.name.clone(), args: Arc::new(call.arguments.clone()) }
}

/// Returns the text that informs a model that its call was cut off, in pi 0.87.1's words.
fn cut_off(tool: &str) -> ToolError {
    ToolError::new(format!(
        "Tool call \"{tool}\" was not executed: the response hit the output token limit, so its arguments may be truncated. \
         Re-issue the tool call with complete arguments."
    ))
}

/// Polls a call for the first time, and returns it to be run as a task. Tasks may be polled in any order; the first step of calls that change
/// the same file has to be in the order of the answer.
///
/// # Errors
/// Returns the message of a panic.
async fn begin_in_order<F: Future<Output = (ToolOutput, i64)>>(
    work: F,
) -> Result<impl Future<Output = (ToolOutput, i64)>, String> {
    let mut work = Box::pin(work);
    let poll =
        |cx: &mut Context<'_>| Poll::Ready(std::panic::catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))));
    // Within tokio's budget, the first step could be put off.
    match tokio::task::unconstrained(std::future::poll_fn(poll)).await {
        Ok(Poll::Pending) => Ok(Either::Left(work)),
        Ok(Poll::Ready(done)) => Ok(Either::Right(std::future::ready(done))),
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            Err(text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default())
        }
    }
}

fn broken(panic: &str) -> ToolError {
    tracing::error!(error = %panic, "a tool panicked");
    ToolError::new("The tool failed unexpectedly. This is a bug in the tool; try another way.")
}
