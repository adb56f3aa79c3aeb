//! Hooks of an engine: code of the host that steps in before, between and after the attempts of a run.
//!
//! A [`Plugin`] is an [`Extension`] with more points: what happens inside a session (calls of tools, messages, compactions) it sees through the
//! extension's points, and what happens around it through its own. The types of the answers say how those of several plugins are combined:
//! [`FirstAnswer`], [`LastAnswer`], [`JoinedText`], or a verdict that stands. Plugins are asked one after another, those with a higher priority
//! first. One that fails, panics or takes too long is logged and passed over.
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

use pinch_coding_agent::extension::{Extension, HandlerFuture};
use pinch_llm::message::ToolResult;

mod answers;
mod guard;
mod payloads;
mod gateway_payloads;
pub(crate) mod registry;
mod results;
mod run_hooks;
mod message_hooks;
mod session_hooks;

pub use answers::{FirstAnswer, JoinedText, LastAnswer};
pub use gateway_payloads::{
    BeforeReset, GatewayStart, GatewayStop, MessageChanges, MessageContext, MessageReceived, MessageSending,
    MessageSent, ResetReason, SessionContext, SessionEnd, SessionStart,
};
pub(crate) use message_hooks::MessageHooks;
pub use payloads::{
    AgentEnd, AgentStartChanges, BeforeAgentRun, BeforeModelResolve, BeforePromptBuild, HookContext, LlmInput,
    LlmOutput, ModelOverride, PromptChanges, RunVerdict,
};
pub(crate) use results::ResultHooks;
pub use run_hooks::{PreparedPrompt, RunHooks};

/// Code of the host that steps in around the attempts of runs. Every method has a default that changes nothing.
///
/// An answer is waited for [for ten seconds](ASK_LIMIT). Nobody waits for those that only watch; they may take [half a minute](WATCH_LIMIT), and
/// are waited for when the engine is drained.
pub trait Plugin: Extension {
    /// Plugins with a higher priority are asked first; those with the same one in the order in which they were registered.
    fn priority(&self) -> i32 {
        0
    }

    /// Whether a run is rejected if [`Plugin::before_agent_run`] fails. Otherwise it takes place.
    fn rejects_on_error(&self) -> bool {
        false
    }

    /// Chooses another model, before any is looked up.
    fn before_model_resolve<'a>(
        &'a self,
        event: &'a BeforeModelResolve,
        cx: &'a HookContext,
    ) -> HandlerFuture<'a, ModelOverride> {
        let _ = (event, cx);
        Box::pin(async { Ok(ModelOverride::default()) })
    }

    /// The hook `before_agent_start` of older plugins: model and prompt at once, before any model is looked up. Called once a run, after
    /// [`Plugin::before_model_resolve`]; what [`Plugin::before_prompt_build`] says of the prompt counts more.
    fn on_agent_start<'a>(
        &'a self,
        event: &'a BeforeModelResolve,
        cx: &'a HookContext,
    ) -> HandlerFuture<'a, AgentStartChanges> {
        let _ = (event, cx);
        Box::pin(async { Ok(AgentStartChanges::default()) })
    }

    /// Decides whether the run takes place. The model is known, and no request was made.
    fn before_agent_run<'a>(&'a self, event: &'a BeforeAgentRun, cx: &'a HookContext) -> HandlerFuture<'a, RunVerdict> {
        let _ = (event, cx);
        Box::pin(async { Ok(RunVerdict::Proceed) })
    }

    /// Adds to the prompt of the user and to the system prompt. Called once a run, with the conversation before it.
    fn before_prompt_build<'a>(
        &'a self,
        event: &'a BeforePromptBuild,
        cx: &'a HookContext,
    ) -> HandlerFuture<'a, PromptChanges> {
        let _ = (event, cx);
        Box::pin(async { Ok(PromptChanges::default()) })
    }

    /// A prompt is about to be sent.
    fn llm_input<'a>(&'a self, event: &'a LlmInput, cx: &'a HookContext) -> HandlerFuture<'a, ()> {
        let _ = (event, cx);
        Box::pin(async { Ok(()) })
    }

    /// An attempt has ended.
    fn llm_output<'a>(&'a self, event: &'a LlmOutput, cx: &'a HookContext) -> HandlerFuture<'a, ()> {
        let _ = (event, cx);
        Box::pin(async { Ok(()) })
    }

    /// An attempt has ended, and at last the run: also when it failed, was stopped or was dropped.
    fn on_agent_end<'a>(&'a self, event: &'a AgentEnd, cx: &'a HookContext) -> HandlerFuture<'a, ()> {
        let _ = (event, cx);
        Box::pin(async { Ok(()) })
    }

    /// A message has arrived through [`Engine::send`](crate::Engine::send). Nothing has been decided about it yet.
    fn on_message_received<'a>(&'a self, event: &'a MessageReceived, cx: &'a MessageContext) -> HandlerFuture<'a, ()> {
        let _ = (event, cx);
        Box::pin(async { Ok(()) })
    }

    /// A block of a reply is about to be sent to a [`ReplySink`](crate::ReplySink): another text for it, or that it is withheld.
    fn message_sending<'a>(
        &'a self,
        event: &'a MessageSending,
        cx: &'a MessageContext,
    ) -> HandlerFuture<'a, MessageChanges> {
        let _ = (event, cx);
        Box::pin(async { Ok(MessageChanges::default()) })
    }

    /// A message was sent to a [`ReplySink`](crate::ReplySink), or could not be sent.
    fn on_message_sent<'a>(&'a self, event: &'a MessageSent, cx: &'a MessageContext) -> HandlerFuture<'a, ()> {
        let _ = (event, cx);
        Box::pin(async { Ok(()) })
    }

    /// A session key is about to get a new session, in the place of this one.
    fn on_before_reset<'a>(&'a self, event: &'a BeforeReset, cx: &'a SessionContext) -> HandlerFuture<'a, ()> {
        let _ = (event, cx);
        Box::pin(async { Ok(()) })
    }

    /// A session has ended: its key means another one.
    fn on_session_end<'a>(&'a self, event: &'a SessionEnd, cx: &'a SessionContext) -> HandlerFuture<'a, ()> {
        let _ = (event, cx);
        Box::pin(async { Ok(()) })
    }

    /// A session key got a new session.
    fn on_session_start<'a>(&'a self, event: &'a SessionStart, cx: &'a SessionContext) -> HandlerFuture<'a, ()> {
        let _ = (event, cx);
        Box::pin(async { Ok(()) })
    }

    /// The host says that it takes messages from now on: [`Engine::announce_start`](crate::Engine::announce_start).
    fn on_gateway_start<'a>(&'a self, event: &'a GatewayStart) -> HandlerFuture<'a, ()> {
        let _ = event;
        Box::pin(async { Ok(()) })
    }

    /// The engine is being [drained](crate::Engine::drain): no run begins any more.
    fn on_gateway_stop<'a>(&'a self, event: &'a GatewayStop) -> HandlerFuture<'a, ()> {
        let _ = event;
        Box::pin(async { Ok(()) })
    }

    /// Changes the result of a tool before it enters the conversation and its transcript; `None` keeps it. Each plugin sees what the one before
    /// made of it. It must not wait for anything.
    fn tool_result_persist(&self, result: &ToolResult) -> Option<ToolResult> {
        let _ = result;
        None
    }
}

pub use guard::{ASK_LIMIT, WATCH_LIMIT};
