//! Plugins as separate processes: programs in any language, and JavaScript and TypeScript through the runner.
//!
//! A process names its hooks when it starts, and receives those only. `docs/extensions.md` describes the messages. A process that exits,
//! hangs or answers rubbish fails in that hook, which is then treated like a failing hook of any other plugin.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pinch_coding_agent::document::Problem;
use pinch_coding_agent::extension::process::{HookSubscription, ProcessExtension, start_processes};
use pinch_coding_agent::extension::{Extension, ExtensionError, HandlerFuture};
use pinch_coding_agent::resources::ExtensionEntry;
use pinch_llm::message::ToolResult;
use pinch_stdx::host::Host;
use serde_json::{Value, json};

use super::{
    AfterToolCall, AgentBootstrap, AgentEnd, AgentStartChanges, ApprovalResolved, BeforeAgentRun, BeforeMessageWrite,
    BeforeModelResolve, BeforePromptBuild, BeforeReset, BeforeToolCall, CompactionFinished, CompactionStarting,
    GatewayStart, GatewayStop, HookContext, HookPoint, HookRules, LlmInput, LlmOutput, MessageChanges, MessageContext,
    MessageReceived, MessageSending, MessageSent, MessageWrite, ModelOverride, Plugin, PromptChanges, RunVerdict,
    SessionContext, SessionEnd, SessionStart, ToolCallChanges, ToolResultPersist, WorkspaceFile,
};

mod json;

use json::{message_context, run_context, session_context};

/// Starts the plugins at these paths, each of them an extension as `docs/extensions.md` describes. `dir` is their working directory and where
/// the JavaScript runner is installed. Plugins that cannot be started are reported and skipped.
pub async fn start_plugins(paths: &[PathBuf], dir: &Path, host: &Host) -> (Vec<Arc<dyn Plugin>>, Vec<Problem>) {
    let mut problems = Vec::new();
    let mut entries = Vec::new();
    for path in paths {
        let found = ExtensionEntry::find(path);
        if !path.exists() || found.is_empty() {
            problems.push(Problem::new(path, "there is no plugin here").remedy("Correct plugins.load.paths"));
            continue;
        }
        entries.extend(found);
    }
    let (started, failed) = start_processes(&entries, dir, dir, false, host).await;
    problems.extend(failed.into_iter().map(|why| Problem::new(dir, why)));
    for plugin in &started {
        for hook in plugin.hooks().iter().filter(|hook| HookPoint::parse(&hook.name).is_none()) {
            let path = Path::new(Extension::name(&**plugin));
            problems.push(Problem::new(path, format!("there is no hook \"{}\"", hook.name)));
        }
    }
    (started.into_iter().map(|plugin| -> Arc<dyn Plugin> { plugin }).collect(), problems)
}

/// Returns the subscription of a process to a hook.
fn subscription(process: &ProcessExtension, hook: HookPoint) -> Option<&HookSubscription> {
    process.hooks().iter().find(|known| known.name == hook.name())
}

/// Calls a hook if the process subscribes to it, and parses its answer; null is no answer.
fn ask<'a, T>(
    process: &'a ProcessExtension,
    hook: HookPoint,
    event: impl FnOnce() -> Value + Send + 'a,
    cx: impl FnOnce() -> Value + Send + 'a,
    parse: impl FnOnce(&Value) -> Result<T, ExtensionError> + Send + 'a,
) -> HandlerFuture<'a, T> {
    Box::pin(async move {
        let answer = match subscription(process, hook) {
            Some(_) => json::checked(process.call_hook(hook.name(), event(), cx()).await?)?,
            None => Value::Null,
        };
        parse(&answer)
    })
}

/// Calls a hook that only observes.
fn tell<'a>(
    process: &'a ProcessExtension,
    hook: HookPoint,
    event: impl FnOnce() -> Value + Send + 'a,
    cx: impl FnOnce() -> Value + Send + 'a,
) -> HandlerFuture<'a, ()> {
    ask(process, hook, event, cx, |_| Ok(()))
}

impl Plugin for ProcessExtension {
    fn rules(&self, hook: HookPoint) -> HookRules {
        let mut rules = HookRules::of(hook);
        if let Some(known) = subscription(self, hook) {
            rules.priority = known.priority;
            rules.blocks_on_error = known.blocks_on_error.unwrap_or(rules.blocks_on_error);
            // A process cannot extend the time that a run waits for it.
            rules.limit = known.time_limit.map_or(rules.limit, |limit| limit.min(rules.limit));
        }
        rules
    }

    fn before_model_resolve<'a>(
        &'a self,
        event: &'a BeforeModelResolve,
        cx: &'a HookContext,
    ) -> HandlerFuture<'a, ModelOverride> {
        ask(
            self,
            HookPoint::BeforeModelResolve,
            move || json!({"prompt": event.prompt}),
            move || run_context(cx),
            json::model_override,
        )
    }

    fn on_agent_start<'a>(
        &'a self,
        event: &'a BeforeModelResolve,
        cx: &'a HookContext,
    ) -> HandlerFuture<'a, AgentStartChanges> {
        ask(
            self,
            HookPoint::BeforeAgentStart,
            move || json!({"prompt": event.prompt}),
            move || run_context(cx),
            json::start_changes,
        )
    }

    fn before_agent_run<'a>(&'a self, event: &'a BeforeAgentRun, cx: &'a HookContext) -> HandlerFuture<'a, RunVerdict> {
        ask(
            self,
            HookPoint::BeforeAgentRun,
            move || json!({"prompt": event.prompt, "provider": event.provider, "model": event.model}),
            move || run_context(cx),
            json::verdict,
        )
    }

    fn before_prompt_build<'a>(
        &'a self,
        event: &'a BeforePromptBuild,
        cx: &'a HookContext,
    ) -> HandlerFuture<'a, PromptChanges> {
        ask(
            self,
            HookPoint::BeforePromptBuild,
            move || json::prompt_build(&event.prompt, &event.messages),
            move || run_context(cx),
            json::prompt_changes,
        )
    }

    fn agent_bootstrap<'a>(
        &'a self,
        event: &'a AgentBootstrap,
        cx: &'a HookContext,
    ) -> HandlerFuture<'a, Option<Vec<WorkspaceFile>>> {
        ask(
            self,
            HookPoint::AgentBootstrap,
            move || json::bootstrap(event),
            move || run_context(cx),
            |answer| json::bootstrap_files(answer, event),
        )
    }

    fn llm_input<'a>(&'a self, event: &'a LlmInput, cx: &'a HookContext) -> HandlerFuture<'a, ()> {
        tell(self, HookPoint::LlmInput, move || json::llm_input(event, cx), move || run_context(cx))
    }

    fn llm_output<'a>(&'a self, event: &'a LlmOutput, cx: &'a HookContext) -> HandlerFuture<'a, ()> {
        tell(self, HookPoint::LlmOutput, move || json::llm_output(event, cx), move || run_context(cx))
    }

    fn on_agent_end<'a>(&'a self, event: &'a AgentEnd, cx: &'a HookContext) -> HandlerFuture<'a, ()> {
        tell(self, HookPoint::AgentEnd, move || json::agent_end(event), move || run_context(cx))
    }

    fn before_tool_call<'a>(
        &'a self,
        event: &'a BeforeToolCall,
        cx: &'a HookContext,
    ) -> HandlerFuture<'a, ToolCallChanges> {
        ask(
            self,
            HookPoint::BeforeToolCall,
            move || json::before_tool_call(event, cx),
            move || run_context(cx),
            json::call_changes,
        )
    }

    fn on_approval_resolved<'a>(&'a self, event: &'a ApprovalResolved, cx: &'a HookContext) -> HandlerFuture<'a, ()> {
        tell(self, HookPoint::ApprovalResolved, move || json::approval_resolved(event, cx), move || run_context(cx))
    }

    fn on_after_tool_call<'a>(&'a self, event: &'a AfterToolCall, cx: &'a HookContext) -> HandlerFuture<'a, ()> {
        tell(self, HookPoint::AfterToolCall, move || json::after_tool_call(event, cx), move || run_context(cx))
    }

    fn tool_result_persist<'a>(
        &'a self,
        event: &'a ToolResultPersist,
        cx: &'a HookContext,
    ) -> HandlerFuture<'a, Option<ToolResult>> {
        ask(
            self,
            HookPoint::ToolResultPersist,
            move || json::tool_result(event),
            move || run_context(cx),
            |answer| json::persisted(answer, &event.result),
        )
    }

    fn before_message_write<'a>(
        &'a self,
        event: &'a BeforeMessageWrite,
        cx: &'a HookContext,
    ) -> HandlerFuture<'a, MessageWrite> {
        ask(
            self,
            HookPoint::BeforeMessageWrite,
            move || json::message_write(&event.message, cx),
            move || run_context(cx),
            json::write,
        )
    }

    fn on_before_compaction<'a>(&'a self, event: &'a CompactionStarting, cx: &'a HookContext) -> HandlerFuture<'a, ()> {
        tell(self, HookPoint::BeforeCompaction, move || json::compaction_starting(event), move || run_context(cx))
    }

    fn on_after_compaction<'a>(&'a self, event: &'a CompactionFinished, cx: &'a HookContext) -> HandlerFuture<'a, ()> {
        tell(self, HookPoint::AfterCompaction, move || json::compaction_finished(event), move || run_context(cx))
    }

    fn on_message_received<'a>(&'a self, event: &'a MessageReceived, cx: &'a MessageContext) -> HandlerFuture<'a, ()> {
        tell(self, HookPoint::MessageReceived, move || json::received(event), move || message_context(cx))
    }

    fn message_sending<'a>(
        &'a self,
        event: &'a MessageSending,
        cx: &'a MessageContext,
    ) -> HandlerFuture<'a, MessageChanges> {
        ask(
            self,
            HookPoint::MessageSending,
            move || json::sending(event),
            move || message_context(cx),
            json::message_changes,
        )
    }

    fn on_message_sent<'a>(&'a self, event: &'a MessageSent, cx: &'a MessageContext) -> HandlerFuture<'a, ()> {
        tell(self, HookPoint::MessageSent, move || json::sent(event), move || message_context(cx))
    }

    fn on_before_reset<'a>(&'a self, event: &'a BeforeReset, cx: &'a SessionContext) -> HandlerFuture<'a, ()> {
        tell(self, HookPoint::BeforeReset, move || json::before_reset(event), move || session_context(cx))
    }

    fn on_session_end<'a>(&'a self, event: &'a SessionEnd, cx: &'a SessionContext) -> HandlerFuture<'a, ()> {
        tell(self, HookPoint::SessionEnd, move || json::session_end(event, cx), move || session_context(cx))
    }

    fn on_session_start<'a>(&'a self, event: &'a SessionStart, cx: &'a SessionContext) -> HandlerFuture<'a, ()> {
        tell(self, HookPoint::SessionStart, move || json::session_start(event, cx), move || session_context(cx))
    }

    fn on_gateway_start<'a>(&'a self, event: &'a GatewayStart) -> HandlerFuture<'a, ()> {
        tell(self, HookPoint::GatewayStart, move || json!({"port": event.port}), move || json!({}))
    }

    fn on_gateway_stop<'a>(&'a self, event: &'a GatewayStop) -> HandlerFuture<'a, ()> {
        tell(self, HookPoint::GatewayStop, move || json!({"reason": event.reason}), move || json!({}))
    }
}
