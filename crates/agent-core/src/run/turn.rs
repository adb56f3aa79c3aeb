//! One turn: a request, its answer, and the calls in it.

use std::sync::Arc;

use pinch_llm::message::StopReason;
use pinch_llm::request::{CallOptions, Request, SystemPrompt, ThinkingChoice};
use tracing::Instrument as _;

use super::failed::{ABORTED, local_answer};
use super::{FinishedTurn, RunDriver, spans};
use crate::hooks::TurnContext;

impl RunDriver<'_> {
    /// Calls the model once and runs the calls of its answer. If `broken` is set, the turn fails without a request.
    pub(super) async fn turn(&mut self, first: bool, broken: Option<String>) -> FinishedTurn {
        let span = spans::turn(self.agent);
        let turn = self.whole_turn(first, broken).instrument(span.clone()).await;
        spans::record_answer(&span, &turn.message);
        turn
    }

    async fn whole_turn(&mut self, first: bool, broken: Option<String>) -> FinishedTurn {
        let request = match broken {
            Some(text) => Err((StopReason::Error, text)),
            // Boxed, as are the calls below: the future of a turn keeps room for everything in it while the answer streams.
            None => Box::pin(self.request(first)).await,
        };
        let (message, error) = match request {
            Ok(request) => self.respond(request).await,
            Err((stop, text)) => {
                let message = local_answer(self.agent, stop, text);
                self.emit_complete(message).await
            }
        };
        let mut turn = FinishedTurn {
            message,
            error,
            calls: Arc::default(),
            results: Vec::new(),
            wants_answer: false,
            tools_ended: false,
            pending_calls: Vec::new(),
        };
        if !turn.message.stop_reason.is_failure() && turn.message.tool_calls().next().is_some() {
            let batch = Box::pin(self.run_calls(&turn.message)).await;
            turn.tools_ended = batch.ends_run;
            turn.wants_answer = !batch.ends_run && batch.pending.is_empty();
            turn.calls = batch.calls;
            turn.results = batch.results;
            turn.pending_calls = batch.pending;
        } else {
            turn.calls = turn.message.tool_calls().cloned().collect();
        }
        turn
    }

    /// Builds the request; fails for a cancelled run or a failing hook.
    async fn request(&mut self, first: bool) -> Result<Box<Request>, (StopReason, String)> {
        let aborted = || (StopReason::Aborted, ABORTED.to_owned());
        self.cancel.check().map_err(|_| aborted())?;
        let hooks = Arc::clone(&self.agent.hooks);
        let seen = TurnContext {
            messages: &self.agent.messages,
            model: &self.agent.model,
            thinking: self.agent.thinking,
            tools: &self.agent.tools,
            first,
        };
        let plan = self.cancel.run(hooks.next_turn(seen)).await.map_err(|_| aborted())?;
        let plan = plan.map_err(|text| (StopReason::Error, text))?;
        if let Some(model) = plan.model {
            self.agent.model = model;
        }
        if let Some(thinking) = plan.thinking {
            self.agent.thinking = thinking;
        }
        let mut options = CallOptions::clone(&self.agent.options);
        options.thinking = ThinkingChoice::Level(self.agent.thinking);
        // The prompt and the tools are in the messages.
        let messages = hooks.to_llm(plan.messages.as_deref().unwrap_or(&self.agent.messages));
        Ok(Box::new(
            Request::new(Arc::clone(&self.agent.model), messages)
                .with_system(SystemPrompt::volatile(hooks.volatile_sections()))
                .with_options(options)
                .with_auth(self.agent.auth.clone())
                .with_host(self.agent.host.clone()),
        ))
    }
}
