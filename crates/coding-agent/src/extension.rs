//! Extensions: code from outside that watches a session and steps in.
//!
//! An [`Extension`] says which [`Points`] it wants, brings tools and commands along, and is asked at each point; every point has a payload and an
//! answer of its own. [`Extensions`] makes many of them one: they are asked in the order they were loaded in, one after another. One that fails,
//! panics or takes too long is reported and passed over, except where that would let something through that it was to stop: `tool_call` and
//! `user_bash` are refused then.
//!
//! The feature `extension-process` runs extensions as programs of their own, in any language.

use std::sync::Arc;

use futures::future::BoxFuture;
use pinch_agent_core::hooks::{BeforeTool, FinishedCall, PendingCall, ToolPatch};
use pinch_llm::message::Message;
use pinch_llm::model::Model;
use serde_json::Value;

pub mod points;
pub mod error;
mod limit;
pub mod ui;
pub mod boundary;
pub(crate) mod trust;
mod trust_prompt;
pub mod payloads;
pub mod actions;
mod exec;
pub mod register;
mod core;
pub mod cx;
mod context;
pub mod host;
#[cfg(feature = "extension-process")]
pub mod process;
pub mod launch;

pub use crate::event::ExtensionFailure;
pub use boundary::{AnswerOutcome, BeforeSettle, Boundary, BoundaryAction, Draft, TurnEnd};
pub use core::{BusListener, FoundCommand};
pub use cx::{CommandCx, ExtensionCx, ExtensionHandle, Replaced};
pub use error::ExtensionError;
pub use exec::{ExecOptions, ExecOutput};
pub use host::Extensions;
pub use limit::HANDLER_LIMIT;
pub use payloads::{
    AgentStartAction, BeforeAgentStart, BeforeFork, BeforeSwitch, ContextAction, Input, InputAction, InputSource,
    MessageAction, ModelSource, Notification, PayloadAction, ResourcePaths, ResourcesDiscover, SessionReason,
    SwitchDecision, UserBash, UserBashAction,
};
pub use points::{Point, Points};
pub use register::{Flag, FlagKind, FlagValue, ProviderChange, Registrations, Shortcut};
pub use trust::{ProjectTrust, TrustAction};
pub use trust_prompt::TrustPrompt;

use crate::compaction::hooks::{BeforeCompaction, BeforeMove, CompactionAhead, MoveAhead, MoveChanges};

/// What a handler answers.
pub type HandlerFuture<'a, T> = BoxFuture<'a, Result<T, ExtensionError>>;

/// Changes of a request's headers: names with their new values; `None` takes one away.
pub type HeaderChanges = Vec<(String, Option<String>)>;

/// Code that watches a session and steps in. Only points that [`Extension::points`] names are asked; the others cost nothing.
///
/// A handler may take [`HANDLER_LIMIT`], dialogs not counted, and is dropped then. It is dropped too when the prompt under way is cancelled, except
/// where the order of things needs its answer.
pub trait Extension: Send + Sync {
    /// The name it is reported by: the path it was loaded from, where there is one.
    fn name(&self) -> &str;

    /// The points at which it wants to be asked.
    fn points(&self) -> Points;

    /// Brings along tools, commands, flags and the like. `handle` is for speaking to the session later, outside of handlers: from tools, say.
    ///
    /// # Errors
    /// Nothing of it counts then, and the extension is not asked at any point.
    fn register(&self, to: &mut Registrations, handle: &ExtensionHandle) -> Result<(), ExtensionError> {
        let _ = (to, handle);
        Ok(())
    }

    /// The extension is not asked any more: it ends what it has running.
    fn close(&self) -> HandlerFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    /// [`Point::ProjectTrust`]: whether a project's own settings, extensions and other things count. Asked before there is a session, and only of
    /// extensions that are not the project's own, where no one has said it for this run; the first one that decides counts. `ui` asks people.
    fn project_trust<'a>(&'a self, ask: &'a ProjectTrust, ui: &'a ui::Dialogs) -> HandlerFuture<'a, TrustAction> {
        let _ = (ask, ui);
        Box::pin(async { Ok(TrustAction::Undecided) })
    }

    /// Something happened: all points at which there is nothing to answer.
    fn notified<'a>(&'a self, notification: Notification<'a>, cx: &'a ExtensionCx) -> HandlerFuture<'a, ()> {
        let _ = (notification, cx);
        Box::pin(async { Ok(()) })
    }

    /// [`Point::ResourcesDiscover`]: further skills, prompts and themes. All answers count.
    fn resources_discover<'a>(
        &'a self,
        ask: ResourcesDiscover,
        cx: &'a ExtensionCx,
    ) -> HandlerFuture<'a, ResourcePaths> {
        let _ = (ask, cx);
        Box::pin(async { Ok(ResourcePaths::default()) })
    }

    /// [`Point::SessionBeforeSwitch`]: the first [`SwitchDecision::Cancel`] counts.
    fn session_before_switch<'a>(
        &'a self,
        to: &'a BeforeSwitch,
        cx: &'a ExtensionCx,
    ) -> HandlerFuture<'a, SwitchDecision> {
        let _ = (to, cx);
        Box::pin(async { Ok(SwitchDecision::Proceed) })
    }

    /// [`Point::SessionBeforeFork`]: the first [`SwitchDecision::Cancel`] counts.
    fn session_before_fork<'a>(
        &'a self,
        fork: &'a BeforeFork,
        cx: &'a ExtensionCx,
    ) -> HandlerFuture<'a, SwitchDecision> {
        let _ = (fork, cx);
        Box::pin(async { Ok(SwitchDecision::Proceed) })
    }

    /// [`Point::SessionBeforeCompact`]: the first answer other than `GoOn` counts.
    fn session_before_compact<'a>(
        &'a self,
        ahead: &'a CompactionAhead<'a>,
        cx: &'a ExtensionCx,
    ) -> HandlerFuture<'a, BeforeCompaction> {
        let _ = (ahead, cx);
        Box::pin(async { Ok(BeforeCompaction::GoOn) })
    }

    /// [`Point::SessionBeforeTree`]: the first `Cancel` counts; of changes the last one of each member.
    fn session_before_tree<'a>(&'a self, ahead: &'a MoveAhead, cx: &'a ExtensionCx) -> HandlerFuture<'a, BeforeMove> {
        let _ = (ahead, cx);
        Box::pin(async { Ok(BeforeMove::GoOn(MoveChanges::default())) })
    }

    /// [`Point::Context`]: the messages of a request, without those of the system, which are put back afterwards. Each sees what the one before
    /// made of them.
    fn context<'a>(&'a self, messages: &'a [Arc<Message>], cx: &'a ExtensionCx) -> HandlerFuture<'a, ContextAction> {
        let _ = (messages, cx);
        Box::pin(async { Ok(ContextAction::Keep) })
    }

    /// [`Point::ContextWithSystem`]: the messages of a request as they will be sent, those of the system among them; the first one must stay one
    /// of the system. Asked after [`Extension::context`]. Each sees what the one before made of them.
    fn context_with_system<'a>(
        &'a self,
        messages: &'a [Arc<Message>],
        cx: &'a ExtensionCx,
    ) -> HandlerFuture<'a, ContextAction> {
        let _ = (messages, cx);
        Box::pin(async { Ok(ContextAction::Keep) })
    }

    /// [`Point::BeforeProviderRequest`]: the body of a request, in its provider's own words. Each sees what the one before made of it.
    fn before_provider_request<'a>(
        &'a self,
        body: &'a Value,
        model: &'a Model,
        cx: &'a ExtensionCx,
    ) -> HandlerFuture<'a, PayloadAction> {
        let _ = (body, model, cx);
        Box::pin(async { Ok(PayloadAction::Keep) })
    }

    /// [`Point::BeforeProviderHeaders`]: the headers of a request, credentials among them.
    fn before_provider_headers<'a>(
        &'a self,
        headers: &'a [(String, String)],
        model: &'a Model,
        cx: &'a ExtensionCx,
    ) -> HandlerFuture<'a, HeaderChanges> {
        let _ = (headers, model, cx);
        Box::pin(async { Ok(Vec::new()) })
    }

    /// [`Point::BeforeAgentStart`]: all messages count; of system prompts each sees the one before.
    fn before_agent_start<'a>(
        &'a self,
        start: &'a BeforeAgentStart,
        cx: &'a ExtensionCx,
    ) -> HandlerFuture<'a, AgentStartAction> {
        let _ = (start, cx);
        Box::pin(async { Ok(AgentStartAction::default()) })
    }

    /// [`Point::TurnEnd`]: entries behind a turn, and whether one more request is made, if the turn did not fail. `so_far` is what the extensions
    /// before want; each may change that. When a draft is invalid, none is appended.
    fn turn_end<'a>(
        &'a self,
        turn: TurnEnd<'a>,
        so_far: &'a Boundary,
        cx: &'a ExtensionCx,
    ) -> HandlerFuture<'a, BoundaryAction> {
        let _ = (turn, so_far, cx);
        Box::pin(async { Ok(BoundaryAction::default()) })
    }

    /// [`Point::AgentBeforeSettle`]: nothing would continue by itself. Entries that are appended, and whether the model is asked once more; that
    /// can only be when the conversation does not end with an answer of its. Not asked after a prompt that was cancelled.
    fn agent_before_settle<'a>(
        &'a self,
        ahead: BeforeSettle,
        so_far: &'a Boundary,
        cx: &'a ExtensionCx,
    ) -> HandlerFuture<'a, BoundaryAction> {
        let _ = (ahead, so_far, cx);
        Box::pin(async { Ok(BoundaryAction::default()) })
    }

    /// [`Point::MessageEnd`]: a whole message, before it enters the conversation and the log. Each sees what the one before made of it.
    fn message_end<'a>(&'a self, message: &'a Arc<Message>, cx: &'a ExtensionCx) -> HandlerFuture<'a, MessageAction> {
        let _ = (message, cx);
        Box::pin(async { Ok(MessageAction::Keep) })
    }

    /// [`Point::ToolCall`]: a call that is about to run. Each sees the arguments the one before made; the first `Deny` counts. When this fails the
    /// call does not run.
    fn tool_call<'a>(&'a self, call: &'a PendingCall, cx: &'a ExtensionCx) -> HandlerFuture<'a, BeforeTool> {
        let _ = (call, cx);
        Box::pin(async { Ok(BeforeTool::Allow) })
    }

    /// [`Point::ToolResult`]: a call that has run. Each sees the result as the one before left it.
    fn tool_result<'a>(&'a self, done: &'a FinishedCall, cx: &'a ExtensionCx) -> HandlerFuture<'a, ToolPatch> {
        let _ = (done, cx);
        Box::pin(async { Ok(ToolPatch::default()) })
    }

    /// [`Point::UserBash`]: a command of the user. The first answer other than `Run` counts. When this fails the command does not run.
    fn user_bash<'a>(&'a self, command: &'a UserBash, cx: &'a ExtensionCx) -> HandlerFuture<'a, UserBashAction> {
        let _ = (command, cx);
        Box::pin(async { Ok(UserBashAction::Run) })
    }

    /// [`Point::Input`]: something the user says. Each sees what the one before made of it; the first `Handled` counts.
    fn input<'a>(&'a self, input: &'a Input, cx: &'a ExtensionCx) -> HandlerFuture<'a, InputAction> {
        let _ = (input, cx);
        Box::pin(async { Ok(InputAction::Continue) })
    }
}

/// Something a user runs with `/name arguments`.
pub trait Command: Send + Sync {
    /// Its name, without the slash.
    fn name(&self) -> &str;

    /// What it does, for people.
    fn description(&self) -> Option<&str> {
        None
    }

    /// Completions of the arguments, given the text so far.
    fn complete<'a>(&'a self, typed: &'a str) -> BoxFuture<'a, Vec<Completion>> {
        let _ = typed;
        Box::pin(async { Vec::new() })
    }

    /// Does the work; it may take as long as it likes. Dropped when the prompt is cancelled.
    ///
    /// # Errors
    /// What went wrong; reported as an event. The prompt still counts as answered.
    fn run<'a>(&'a self, args: &'a str, cx: &'a CommandCx) -> BoxFuture<'a, Result<(), ExtensionError>>;
}

/// A completion of a command's arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// What is put in.
    pub value: String,
    /// What is shown, when it is something else.
    pub label: Option<String>,
    /// More about it.
    pub description: Option<String>,
}

impl Completion {
    /// A value that is shown as it is.
    pub fn new(value: impl Into<String>) -> Self {
        Self { value: value.into(), label: None, description: None }
    }
}
