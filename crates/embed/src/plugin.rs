//! Plugins: hooks of the host before, between and after the attempts of a run.
//!
//! A [`Plugin`] is an [`Extension`] with additional hooks. The extension's points cover what happens inside a session (tool calls,
//! messages,
//! compactions), the plugin's own hooks what happens around it. The types of the answers determine how those of several plugins are
//! combined:
//! [`FirstAnswer`], [`LastAnswer`], [`JoinedText`], or the first rejection. Plugins are called one after another, by descending priority. A
//! plugin
//! that fails, panics or times out is logged and skipped.
//!
//! ```
//! use pinch_embed::coding_agent::extension::{Extension, HandlerFuture, Points};
//! use pinch_embed::plugin::{BeforePromptBuild, HookContext, JoinedText, Plugin, PromptChanges};
//!
//! struct Clock;
//!
//! impl Extension for Clock {
//!     fn name(&self) -> &str {
//!         "clock"
//!     }
//!
//!     fn points(&self) -> Points {
//!         Points::NONE
//!     }
//! }
//!
//! impl Plugin for Clock {
//!     fn before_prompt_build<'a>(&'a self, _: &'a BeforePromptBuild, _: &'a HookContext) -> HandlerFuture<'a, PromptChanges> {
//!         Box::pin(async { Ok(PromptChanges { prepend_context: JoinedText::from("It is noon."), ..PromptChanges::default() }) })
//!     }
//! }
//! ```

use std::path::PathBuf;

use pinch_coding_agent::extension::{Extension, HandlerFuture};
use pinch_llm::message::ToolResult;

mod answers;
mod guard;
mod hook_point;
mod payloads;
mod session_payloads;
mod gateway_payloads;
pub(crate) mod registry;
mod session_hooks;
mod run_hooks;
mod message_hooks;
mod gateway_hooks;
#[cfg(feature = "extension-process")]
pub mod process;

pub use crate::prompt::bootstrap::WorkspaceFile;
pub use answers::{FirstAnswer, JoinedText, LastAnswer};
pub use gateway_payloads::{
    BeforeReset, GatewayStart, GatewayStop, MessageChanges, MessageContext, MessageReceived, MessageSending,
    MessageSent, ResetReason, SessionContext, SessionEnd, SessionStart,
};
pub use hook_point::{HookPoint, HookRules};
pub(crate) use message_hooks::MessageHooks;
pub use payloads::{
    AgentBootstrap, AgentEnd, AgentStartChanges, BeforeAgentRun, BeforeModelResolve, BeforePromptBuild, HookContext,
    LlmInput, LlmOutput, ModelOverride, PromptChanges, RunVerdict,
};
pub use run_hooks::{PreparedPrompt, RunHooks, TurnSizes};
pub use session_payloads::{
    AfterToolCall, ApprovalResolution, ApprovalResolved, BeforeMessageWrite, BeforeToolCall, CompactionFinished,
    CompactionStarting, MessageWrite, RequiredApproval, ToolCallChanges, ToolResultPersist,
};

/// Hooks of the host around the attempts of runs. The default of every method changes nothing.
///
/// Hooks that return an answer may take [ten seconds](ASK_LIMIT), those for every message [two](WRITE_LIMIT). Hooks that only observe do
/// not delay the run; they may take [half a minute](WATCH_LIMIT), and draining the engine waits for them.
pub trait Plugin: Extension {
    /// Returns how a hook is called: priority, time limit, and whether its failure blocks what it guards.
    fn rules(&self, hook: HookPoint) -> HookRules {
        HookRules::of(hook)
    }

    /// Returns directories with skills that the plugin brings; a configured directory may replace them, as any other place of skills.
    /// Called when a run begins.
    fn skill_directories(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Chooses another model. Called before any model is looked up.
    fn before_model_resolve<'a>(
        &'a self,
        event: &'a BeforeModelResolve,
        cx: &'a HookContext,
    ) -> HandlerFuture<'a, ModelOverride> {
        let _ = (event, cx);
        Box::pin(async { Ok(ModelOverride::default()) })
    }

    /// The hook `before_agent_start` of older plugins, which changes model and prompt together, before any model is looked up. Called once
    /// per run, after [`Plugin::before_model_resolve`]; the result of [`Plugin::before_prompt_build`] takes precedence for the prompt.
    fn on_agent_start<'a>(
        &'a self,
        event: &'a BeforeModelResolve,
        cx: &'a HookContext,
    ) -> HandlerFuture<'a, AgentStartChanges> {
        let _ = (event, cx);
        Box::pin(async { Ok(AgentStartChanges::default()) })
    }

    /// Decides whether the run proceeds. The model is known, and no request has been made.
    fn before_agent_run<'a>(&'a self, event: &'a BeforeAgentRun, cx: &'a HookContext) -> HandlerFuture<'a, RunVerdict> {
        let _ = (event, cx);
        Box::pin(async { Ok(RunVerdict::Proceed) })
    }

    /// Adds to the user's prompt and to the system prompt. Called once per run, with the preceding conversation.
    fn before_prompt_build<'a>(
        &'a self,
        event: &'a BeforePromptBuild,
        cx: &'a HookContext,
    ) -> HandlerFuture<'a, PromptChanges> {
        let _ = (event, cx);
        Box::pin(async { Ok(PromptChanges::default()) })
    }

    /// Replaces the workspace files of the system prompt; `None` keeps them. Each plugin sees the files of the previous one. Called once per
    /// run that has a system prompt of its own.
    fn agent_bootstrap<'a>(
        &'a self,
        event: &'a AgentBootstrap,
        cx: &'a HookContext,
    ) -> HandlerFuture<'a, Option<Vec<WorkspaceFile>>> {
        let _ = (event, cx);
        Box::pin(async { Ok(None) })
    }

    /// Called when a prompt is about to be sent.
    fn llm_input<'a>(&'a self, event: &'a LlmInput, cx: &'a HookContext) -> HandlerFuture<'a, ()> {
        let _ = (event, cx);
        Box::pin(async { Ok(()) })
    }

    /// Called when an attempt has ended.
    fn llm_output<'a>(&'a self, event: &'a LlmOutput, cx: &'a HookContext) -> HandlerFuture<'a, ()> {
        let _ = (event, cx);
        Box::pin(async { Ok(()) })
    }

    /// Called when an attempt has ended, and finally when the run has, even if it failed, was stopped or was dropped.
    fn on_agent_end<'a>(&'a self, event: &'a AgentEnd, cx: &'a HookContext) -> HandlerFuture<'a, ()> {
        let _ = (event, cx);
        Box::pin(async { Ok(()) })
    }

    /// Called when a message has arrived through [`Engine::send`](crate::Engine::send), before any decision about it.
    fn on_message_received<'a>(&'a self, event: &'a MessageReceived, cx: &'a MessageContext) -> HandlerFuture<'a, ()> {
        let _ = (event, cx);
        Box::pin(async { Ok(()) })
    }

    /// Called when a block of a reply is about to be sent to a [`ReplySink`](crate::ReplySink): can change its text or withhold it.
    fn message_sending<'a>(
        &'a self,
        event: &'a MessageSending,
        cx: &'a MessageContext,
    ) -> HandlerFuture<'a, MessageChanges> {
        let _ = (event, cx);
        Box::pin(async { Ok(MessageChanges::default()) })
    }

    /// Called when a message was sent to a [`ReplySink`](crate::ReplySink), or could not be sent.
    fn on_message_sent<'a>(&'a self, event: &'a MessageSent, cx: &'a MessageContext) -> HandlerFuture<'a, ()> {
        let _ = (event, cx);
        Box::pin(async { Ok(()) })
    }

    /// Called when a session key is about to get a new session in place of this one.
    fn on_before_reset<'a>(&'a self, event: &'a BeforeReset, cx: &'a SessionContext) -> HandlerFuture<'a, ()> {
        let _ = (event, cx);
        Box::pin(async { Ok(()) })
    }

    /// Called when a session has ended because its key has a new one.
    fn on_session_end<'a>(&'a self, event: &'a SessionEnd, cx: &'a SessionContext) -> HandlerFuture<'a, ()> {
        let _ = (event, cx);
        Box::pin(async { Ok(()) })
    }

    /// Called when a session has been created: that of a key in the index when a message arrives or the key is reset, any other when its
    /// first attempt opens it.
    fn on_session_start<'a>(&'a self, event: &'a SessionStart, cx: &'a SessionContext) -> HandlerFuture<'a, ()> {
        let _ = (event, cx);
        Box::pin(async { Ok(()) })
    }

    /// Called when the host starts to accept messages: [`Engine::announce_start`](crate::Engine::announce_start).
    fn on_gateway_start<'a>(&'a self, event: &'a GatewayStart) -> HandlerFuture<'a, ()> {
        let _ = event;
        Box::pin(async { Ok(()) })
    }

    /// Called when the engine is being [drained](crate::Engine::drain): no more runs begin.
    fn on_gateway_stop<'a>(&'a self, event: &'a GatewayStop) -> HandlerFuture<'a, ()> {
        let _ = event;
        Box::pin(async { Ok(()) })
    }

    /// Decides whether a tool call runs, and with which arguments. Called after the extensions' `tool_call`; a failure blocks the call
    /// unless [`Plugin::rules`] says otherwise.
    fn before_tool_call<'a>(
        &'a self,
        event: &'a BeforeToolCall,
        cx: &'a HookContext,
    ) -> HandlerFuture<'a, ToolCallChanges> {
        let _ = (event, cx);
        Box::pin(async { Ok(ToolCallChanges::default()) })
    }

    /// Called when an approval that this plugin required in [`before_tool_call`](Self::before_tool_call) was given or refused, or is no
    /// longer waited for.
    fn on_approval_resolved<'a>(&'a self, event: &'a ApprovalResolved, cx: &'a HookContext) -> HandlerFuture<'a, ()> {
        let _ = (event, cx);
        Box::pin(async { Ok(()) })
    }

    /// Called when a tool has run, successfully or not.
    fn on_after_tool_call<'a>(&'a self, event: &'a AfterToolCall, cx: &'a HookContext) -> HandlerFuture<'a, ()> {
        let _ = (event, cx);
        Box::pin(async { Ok(()) })
    }

    /// Changes the result of a tool before it enters the conversation and its transcript; `None` keeps it. Each plugin sees the result of
    /// the previous one.
    fn tool_result_persist<'a>(
        &'a self,
        event: &'a ToolResultPersist,
        cx: &'a HookContext,
    ) -> HandlerFuture<'a, Option<ToolResult>> {
        let _ = (event, cx);
        Box::pin(async { Ok(None) })
    }

    /// Changes or blocks a message before it enters the conversation and its transcript. Each plugin sees the changes of the previous ones.
    fn before_message_write<'a>(
        &'a self,
        event: &'a BeforeMessageWrite,
        cx: &'a HookContext,
    ) -> HandlerFuture<'a, MessageWrite> {
        let _ = (event, cx);
        Box::pin(async { Ok(MessageWrite::Keep) })
    }

    /// Called when the conversation is about to be compacted.
    fn on_before_compaction<'a>(&'a self, event: &'a CompactionStarting, cx: &'a HookContext) -> HandlerFuture<'a, ()> {
        let _ = (event, cx);
        Box::pin(async { Ok(()) })
    }

    /// Called when a compaction has ended, even if it failed.
    fn on_after_compaction<'a>(&'a self, event: &'a CompactionFinished, cx: &'a HookContext) -> HandlerFuture<'a, ()> {
        let _ = (event, cx);
        Box::pin(async { Ok(()) })
    }
}

pub use guard::{ASK_LIMIT, WATCH_LIMIT, WRITE_LIMIT};
