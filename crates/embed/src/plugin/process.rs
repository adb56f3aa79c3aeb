//! Plugins as separate processes: programs in any language, and JavaScript and TypeScript through the runner.
//!
//! A process names its hooks when it starts, and receives those only. `docs/extensions.md` describes the messages. A process that exits,
//! hangs or answers rubbish fails in that hook, which is then treated like a failing hook of any other plugin.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pinch_coding_agent::document::Problem;
use pinch_coding_agent::extension::HandlerFuture;
use pinch_coding_agent::extension::process::{ProcessExtension, start_processes};
use pinch_coding_agent::resources::ExtensionEntry;
use pinch_llm::message::ToolResult;
use pinch_stdx::host::Host;
use serde_json::{Value, json};

use super::{
    AfterToolCall, AgentEnd, AgentStartChanges, BeforeAgentRun, BeforeMessageWrite, BeforeModelResolve,
    BeforePromptBuild, BeforeReset, BeforeToolCall, CompactionFinished, CompactionStarting, GatewayStart, GatewayStop,
    HookContext, HookPoint, HookRules, LlmInput, LlmOutput, MessageChanges, MessageContext, MessageReceived,
    MessageSending, MessageSent, MessageWrite, ModelOverride, Plugin, PromptChanges, RunVerdict, SessionContext,
    SessionEnd, SessionStart, ToolCallChanges,
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
            let path = Path::new(pinch_coding_agent::extension::Extension::name(&**plugin));
            problems.push(Problem::new(path, format!("there is no hook \"{}\"", hook.name)));
        }
    }
    (started.into_iter().map(|plugin| -> Arc<dyn Plugin> { plugin }).collect(), problems)
}

/// Calls a hook if the process subscribes to it.
async fn ask(
    process: &ProcessExtension,
    hook: HookPoint,
    event: impl FnOnce() -> Value,
    cx: impl FnOnce() -> Value,
) -> Result<Value, pinch_coding_agent::extension::ExtensionError> {
    if !process.hooks().iter().any(|known| known.name == hook.name()) {
        return Ok(Value::Null);
    }
    json::checked(process.call_hook(hook.name(), event(), cx()).await?)
}

impl Plugin for ProcessExtension {
    fn rules(&self, hook: HookPoint) -> HookRules {
        let mut rules = HookRules::of(hook);
        if let Some(known) = self.hooks().iter().find(|known| known.name == hook.name()) {
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
        Box::pin(async move {
            let answer =
                ask(self, HookPoint::BeforeModelResolve, || json!({"prompt": event.prompt}), || run_context(cx))
                    .await?;
            json::model_override(&answer)
        })
    }

    fn on_agent_start<'a>(
        &'a self,
        event: &'a BeforeModelResolve,
        cx: &'a HookContext,
    ) -> HandlerFuture<'a, AgentStartChanges> {
        Box::pin(async move {
            let answer =
                ask(self, HookPoint::BeforeAgentStart, || json!({"prompt": event.prompt}), || run_context(cx)).await?;
            json::start_changes(&answer)
        })
    }

    fn before_agent_run<'a>(&'a self, event: &'a BeforeAgentRun, cx: &'a HookContext) -> HandlerFuture<'a, RunVerdict> {
        Box::pin(async move {
            let answer = ask(
                self,
                HookPoint::BeforeAgentRun,
                || json!({"prompt": event.prompt, "provider": event.provider, "model": event.model}),
                || run_context(cx),
            )
            .await?;
            json::verdict(&answer)
        })
    }

    fn before_prompt_build<'a>(
        &'a self,
        event: &'a BeforePromptBuild,
        cx: &'a HookContext,
    ) -> HandlerFuture<'a, PromptChanges> {
        Box::pin(async move {
            let answer = ask(
                self,
                HookPoint::BeforePromptBuild,
                || json::prompt_build(&event.prompt, &event.messages),
                || run_context(cx),
            )
            .await?;
            json::prompt_changes(&answer)
        })
    }

    fn llm_input<'a>(&'a self, event: &'a LlmInput, cx: &'a HookContext) -> HandlerFuture<'a, ()> {
        Box::pin(async move {
            let asked = ask(self, HookPoint::LlmInput, || json::llm_input(event, cx), || run_context(cx)).await;
            asked.map(drop)
        })
    }

    fn llm_output<'a>(&'a self, event: &'a LlmOutput, cx: &'a HookContext) -> HandlerFuture<'a, ()> {
        Box::pin(async move {
            let asked = ask(self, HookPoint::LlmOutput, || json::llm_output(event, cx), || run_context(cx)).await;
            asked.map(drop)
        })
    }

    fn on_agent_end<'a>(&'a self, event: &'a AgentEnd, cx: &'a HookContext) -> HandlerFuture<'a, ()> {
        Box::pin(async move {
            let asked = ask(self, HookPoint::AgentEnd, || json::agent_end(event), || run_context(cx)).await;
            asked.map(drop)
        })
    }

    fn before_tool_call<'a>(
        &'a self,
        event: &'a BeforeToolCall,
        cx: &'a HookContext,
    ) -> HandlerFuture<'a, ToolCallChanges> {
        Box::pin(async move {
            let answer =
                ask(self, HookPoint::BeforeToolCall, || json::before_tool_call(event, cx), || run_context(cx)).await?;
            json::call_changes(&answer)
        })
    }

    fn on_after_tool_call<'a>(&'a self, event: &'a AfterToolCall, cx: &'a HookContext) -> HandlerFuture<'a, ()> {
        Box::pin(async move {
            let asked =
                ask(self, HookPoint::AfterToolCall, || json::after_tool_call(event, cx), || run_context(cx)).await;
            asked.map(drop)
        })
    }

    fn tool_result_persist<'a>(
        &'a self,
        event: &'a ToolResult,
        cx: &'a HookContext,
    ) -> HandlerFuture<'a, Option<ToolResult>> {
        Box::pin(async move {
            let answer =
                ask(self, HookPoint::ToolResultPersist, || json::tool_result(event), || run_context(cx)).await?;
            json::persisted(&answer, event)
        })
    }

    fn before_message_write<'a>(
        &'a self,
        event: &'a BeforeMessageWrite,
        cx: &'a HookContext,
    ) -> HandlerFuture<'a, MessageWrite> {
        Box::pin(async move {
            let answer = ask(
                self,
                HookPoint::BeforeMessageWrite,
                || json::message_write(&event.message, cx),
                || run_context(cx),
            )
            .await?;
            json::write(&answer)
        })
    }

    fn on_before_compaction<'a>(&'a self, event: &'a CompactionStarting, cx: &'a HookContext) -> HandlerFuture<'a, ()> {
        Box::pin(async move {
            let asked =
                ask(self, HookPoint::BeforeCompaction, || json::compaction_starting(event), || run_context(cx)).await;
            asked.map(drop)
        })
    }

    fn on_after_compaction<'a>(&'a self, event: &'a CompactionFinished, cx: &'a HookContext) -> HandlerFuture<'a, ()> {
        Box::pin(async move {
            let asked =
                ask(self, HookPoint::AfterCompaction, || json::compaction_finished(event), || run_context(cx)).await;
            asked.map(drop)
        })
    }

    fn on_message_received<'a>(&'a self, event: &'a MessageReceived, cx: &'a MessageContext) -> HandlerFuture<'a, ()> {
        Box::pin(async move {
            let asked = ask(self, HookPoint::MessageReceived, || json::received(event), || message_context(cx)).await;
            asked.map(drop)
        })
    }

    fn message_sending<'a>(
        &'a self,
        event: &'a MessageSending,
        cx: &'a MessageContext,
    ) -> HandlerFuture<'a, MessageChanges> {
        Box::pin(async move {
            let answer = ask(self, HookPoint::MessageSending, || json::sending(event), || message_context(cx)).await?;
            json::message_changes(&answer)
        })
    }

    fn on_message_sent<'a>(&'a self, event: &'a MessageSent, cx: &'a MessageContext) -> HandlerFuture<'a, ()> {
        Box::pin(async move {
            let asked = ask(self, HookPoint::MessageSent, || json::sent(event), || message_context(cx)).await;
            asked.map(drop)
        })
    }

    fn on_before_reset<'a>(&'a self, event: &'a BeforeReset, cx: &'a SessionContext) -> HandlerFuture<'a, ()> {
        Box::pin(async move {
            let asked = ask(self, HookPoint::BeforeReset, || json::before_reset(event), || session_context(cx)).await;
            asked.map(drop)
        })
    }

    fn on_session_end<'a>(&'a self, event: &'a SessionEnd, cx: &'a SessionContext) -> HandlerFuture<'a, ()> {
        Box::pin(async move {
            let asked = ask(self, HookPoint::SessionEnd, || json::session_end(event, cx), || session_context(cx)).await;
            asked.map(drop)
        })
    }

    fn on_session_start<'a>(&'a self, event: &'a SessionStart, cx: &'a SessionContext) -> HandlerFuture<'a, ()> {
        Box::pin(async move {
            let asked =
                ask(self, HookPoint::SessionStart, || json::session_start(event, cx), || session_context(cx)).await;
            asked.map(drop)
        })
    }

    fn on_gateway_start<'a>(&'a self, event: &'a GatewayStart) -> HandlerFuture<'a, ()> {
        Box::pin(async move {
            ask(self, HookPoint::GatewayStart, || json!({"port": event.port}), || json!({})).await.map(drop)
        })
    }

    fn on_gateway_stop<'a>(&'a self, event: &'a GatewayStop) -> HandlerFuture<'a, ()> {
        Box::pin(async move {
            ask(self, HookPoint::GatewayStop, || json!({"reason": event.reason}), || json!({})).await.map(drop)
        })
    }
}
