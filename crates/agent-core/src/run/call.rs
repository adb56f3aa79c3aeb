//! One tool call: lookup, preparation, validation, approval, execution, and the hook afterwards.

use std::sync::Arc;
use std::task::Poll;

use pinch_llm::message::{AssistantMessage, ToolCall};
use pinch_stdx::cancel::Cancel;
use pinch_stdx::host::Host;
use tokio::time::Instant;

use super::grace::Grace;
use super::spans;
use crate::hooks::{BeforeTool, FinishedCall, Hooks, PendingCall};
use crate::tool::cx::Progress;
use crate::tool::{Tool, ToolCx, ToolError, ToolOutput};

/// A call that is ready to run.
pub(super) struct Ready {
    pub(super) tool: Arc<dyn Tool>,
    pub(super) pending: PendingCall,
}

/// Does everything before running a call.
///
/// # Errors
/// Returns the result of a call that does not run.
pub(super) async fn prepare(
    tool: Option<&Arc<dyn Tool>>,
    hooks: &dyn Hooks,
    message: &Arc<AssistantMessage>,
    (batch, at): (&Arc<[ToolCall]>, usize),
    cancel: &Cancel,
) -> Result<Ready, ToolOutput> {
    let call = &batch[at];
    cancel.check().map_err(|_| ToolError::aborted())?;
    let tool = tool.ok_or_else(|| ToolError::new(format!("Tool {} not found", call.name)))?;
    let mut prepared = call.clone();
    if prepared.arguments_error.is_none() {
        prepared.arguments = tool.prepare(prepared.arguments)?;
    }
    let input =
        prepared.validated_arguments(&tool.spec().parameters).map_err(|error| ToolError::new(error.to_string()))?;
    let mut pending = PendingCall { message: Arc::clone(message), call: call.clone(), input, batch: Arc::clone(batch) };
    match cancel.run(hooks.before_tool(&pending)).await.map_err(|_| ToolError::aborted())? {
        BeforeTool::Allow => {}
        BeforeTool::Rewrite(input) => pending.input = input,
        BeforeTool::Deny { reason, end_run, details } => {
            let reason = if reason.is_empty() { "Tool execution was blocked".to_owned() } else { reason };
            let denied = ToolOutput::from(ToolError::new(reason));
            return Err(ToolOutput { end_run, details: details.or(denied.details), ..denied });
        }
    }
    // The run may have been cancelled while a hook was waiting for a person.
    cancel.check().map_err(|_| ToolError::aborted())?;
    Ok(Ready { tool: Arc::clone(tool), pending })
}

/// Runs an allowed call, and passes its result to the hook.
pub(super) async fn run(
    ready: Ready,
    hooks: Arc<dyn Hooks>,
    progress: Progress,
    grace: Grace,
    host: Host,
) -> (ToolOutput, i64) {
    let Ready { tool, pending } = ready;
    let began = Instant::now();
    let cx = ToolCx { call: &pending.call.id, cancel: grace.cancel(), progress: &progress, host: &host };
    let output = grace.run(tool.run(pending.input.clone(), &cx)).await;
    let output = output.unwrap_or_else(|| Err(ToolError::aborted()));
    let duration_ms = i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX);
    // Let all calls of the message start before the first result is processed.
    let_others_go().await;
    let PendingCall { message, call, input, .. } = pending;
    let mut done = FinishedCall { message, call, input, output: output.unwrap_or_else(ToolOutput::from) };
    let patch = grace.run(hooks.after_tool(&done)).await;
    patch.unwrap_or_default().apply(&mut done.output);
    spans::record_result(done.output.failed, duration_ms);
    (done.output, duration_ms)
}

/// Yields once to the other tasks. Unlike tokio's `yield_now`, this keeps the tasks' order.
async fn let_others_go() {
    let mut gone = false;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut gone, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
