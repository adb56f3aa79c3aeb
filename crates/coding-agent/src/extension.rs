//! Extensions: external code that observes a session and can intervene.
//!
//! An [`Extension`] declares which [`Points`] it handles, registers tools and commands, and is called at each point; every point has its
//! own payload and answer types. [`Extensions`] combines several extensions, called one after another in the order they were loaded. An
//! extension that fails, panics or times out is reported and skipped, unless it guards something: then `tool_call` and `user_bash` are
//! denied.
//!
//! The feature `extension-process` runs extensions as separate processes, in any language.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use pinch_agent_core::hooks::{BeforeTool, FinishedCall, PendingCall, ToolPatch};
use pinch_llm::message::Message;
use pinch_llm::model::Model;
use serde_json::Value;

pub mod points;
pub mod error;
mod limit;
pub mod overlay;
pub mod component;
pub mod snapshot;
pub mod rendering;
pub mod ui;
pub mod boundary;
pub(crate) mod trust;
mod trust_prompt;
pub mod payloads;
pub mod register;
pub mod models;
pub mod actions;
mod exec;
mod core;
pub mod cx;
pub mod command_cx;
mod context;
pub mod host;
mod printed;
#[cfg(feature = "extension-process")]
pub mod process;
pub mod launch;

pub use crate::event::ExtensionFailure;
pub use boundary::{AnswerOutcome, BeforeSettle, Boundary, BoundaryAction, Draft, TurnEnd};
pub use command_cx::{CommandCx, Replaced};
pub use core::{BusListener, FoundCommand, FoundShortcut};
pub use cx::{ExtensionCx, ExtensionHandle};
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
pub use printed::OutputListener;
pub use register::{Flag, FlagKind, FlagValue, ProviderChange, Registrations};
pub use trust::{ProjectTrust, TrustAction};
pub use trust_prompt::TrustPrompt;

use crate::compaction::hooks::{BeforeCompaction, BeforeMove, MoveChanges, PendingCompaction, PendingMove};

/// The result of a handler.
pub type HandlerFuture<'a, T> = BoxFuture<'a, Result<T, ExtensionError>>;

/// Changes to a request's headers: names with their new values; `None` removes a header.
pub type HeaderChanges = Vec<(String, Option<String>)>;

/// Code that observes a session and can intervene. Only called at the points returned by [`Extension::points`]; others cost nothing.
///
/// A handler may take [`HANDLER_LIMIT`], excluding dialogs, before it is dropped. It is also dropped when the current prompt is cancelled,
/// unless its answer is required for consistency.
pub trait Extension: Send + Sync {
    /// Returns the name used in reports: the path it was loaded from, if any.
    fn name(&self) -> &str;

    /// Returns the points it handles.
    fn points(&self) -> Points;

    /// Returns how long its handlers may take; `None` if it limits them itself. The default is [`HANDLER_LIMIT`].
    fn handler_limit(&self) -> Option<Duration> {
        Some(HANDLER_LIMIT)
    }

    /// Registers tools, commands, flags and the like. `handle` gives access to the session later, outside of handlers, for example from
    /// tools.
    ///
    /// # Errors
    /// If this fails, nothing is registered and the extension is never called.
    fn register(&self, to: &mut Registrations, handle: &ExtensionHandle) -> Result<(), ExtensionError> {
        let _ = (to, handle);
        Ok(())
    }

    /// Starts the extension anew for the session that replaces the current one, which it was told of with [`Point::SessionShutdown`].
    /// Returns what takes its place and is registered then, or `None` if the extension itself continues.
    ///
    /// # Errors
    /// If this fails, the next session does not have the extension.
    fn restart(&self) -> HandlerFuture<'_, Option<Arc<dyn Extension>>> {
        Box::pin(async { Ok(None) })
    }

    /// Closes the extension, which should stop everything it has running. It is not called afterwards.
    fn close(&self) -> HandlerFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    /// [`Point::ProjectTrust`]: decides whether to trust a project, enabling its settings, extensions and other resources. Called before
    /// there is a session, only for extensions outside the project, and only if the trust is not yet decided for this run; the first
    /// decision wins. `ui` can ask the user.
    fn project_trust<'a>(&'a self, ask: &'a ProjectTrust, ui: &'a ui::Dialogs) -> HandlerFuture<'a, TrustAction> {
        let _ = (ask, ui);
        Box::pin(async { Ok(TrustAction::Undecided) })
    }

    /// Receives notifications: all points without an answer.
    fn notified<'a>(&'a self, notification: Notification<'a>, cx: &'a ExtensionCx) -> HandlerFuture<'a, ()> {
        let _ = (notification, cx);
        Box::pin(async { Ok(()) })
    }

    /// [`Point::ResourcesDiscover`]: returns additional skills, prompts and themes. All answers are used.
    fn resources_discover<'a>(
        &'a self,
        ask: ResourcesDiscover,
        cx: &'a ExtensionCx,
    ) -> HandlerFuture<'a, ResourcePaths> {
        let _ = (ask, cx);
        Box::pin(async { Ok(ResourcePaths::default()) })
    }

    /// [`Point::SessionBeforeSwitch`]: the first [`SwitchDecision::Cancel`] wins.
    fn session_before_switch<'a>(
        &'a self,
        to: &'a BeforeSwitch,
        cx: &'a ExtensionCx,
    ) -> HandlerFuture<'a, SwitchDecision> {
        let _ = (to, cx);
        Box::pin(async { Ok(SwitchDecision::Proceed) })
    }

    /// [`Point::SessionBeforeFork`]: the first [`SwitchDecision::Cancel`] wins.
    fn session_before_fork<'a>(
        &'a self,
        fork: &'a BeforeFork,
        cx: &'a ExtensionCx,
    ) -> HandlerFuture<'a, SwitchDecision> {
        let _ = (fork, cx);
        Box::pin(async { Ok(SwitchDecision::Proceed) })
    }

    /// [`Point::SessionBeforeCompact`]: the first answer other than `Continue` wins.
    fn session_before_compact<'a>(
        &'a self,
        ahead: &'a PendingCompaction<'a>,
        cx: &'a ExtensionCx,
    ) -> HandlerFuture<'a, BeforeCompaction> {
        let _ = (ahead, cx);
        Box::pin(async { Ok(BeforeCompaction::Continue) })
    }

    /// [`Point::SessionBeforeTree`]: the first `Cancel` wins; otherwise the last change of each member.
    fn session_before_tree<'a>(&'a self, ahead: &'a PendingMove, cx: &'a ExtensionCx) -> HandlerFuture<'a, BeforeMove> {
        let _ = (ahead, cx);
        Box::pin(async { Ok(BeforeMove::Continue(MoveChanges::default())) })
    }

    /// [`Point::Context`]: the messages of a request without system messages, which are put back afterwards. Each extension sees the
    /// changes of the previous ones.
    fn context<'a>(&'a self, messages: &'a [Arc<Message>], cx: &'a ExtensionCx) -> HandlerFuture<'a, ContextAction> {
        let _ = (messages, cx);
        Box::pin(async { Ok(ContextAction::Keep) })
    }

    /// [`Point::ContextWithSystem`]: the messages of a request as they will be sent, including system messages; the first one must remain a
    /// system message. Called after [`Extension::context`]. Each extension sees the changes of the previous ones.
    fn context_with_system<'a>(
        &'a self,
        messages: &'a [Arc<Message>],
        cx: &'a ExtensionCx,
    ) -> HandlerFuture<'a, ContextAction> {
        let _ = (messages, cx);
        Box::pin(async { Ok(ContextAction::Keep) })
    }

    /// [`Point::BeforeProviderRequest`]: the body of a request in the provider's format. Each extension sees the changes of the previous
    /// ones.
    fn before_provider_request<'a>(
        &'a self,
        body: &'a Value,
        model: &'a Model,
        cx: &'a ExtensionCx,
    ) -> HandlerFuture<'a, PayloadAction> {
        let _ = (body, model, cx);
        Box::pin(async { Ok(PayloadAction::Keep) })
    }

    /// [`Point::BeforeProviderHeaders`]: the headers of a request, including credentials.
    fn before_provider_headers<'a>(
        &'a self,
        headers: &'a [(String, String)],
        model: &'a Model,
        cx: &'a ExtensionCx,
    ) -> HandlerFuture<'a, HeaderChanges> {
        let _ = (headers, model, cx);
        Box::pin(async { Ok(Vec::new()) })
    }

    /// [`Point::BeforeAgentStart`]: all messages are added; each extension sees the previous one's system prompt.
    fn before_agent_start<'a>(
        &'a self,
        start: &'a BeforeAgentStart,
        cx: &'a ExtensionCx,
    ) -> HandlerFuture<'a, AgentStartAction> {
        let _ = (start, cx);
        Box::pin(async { Ok(AgentStartAction::default()) })
    }

    /// [`Point::TurnEnd`]: entries to append after a turn, and whether to send another request if the turn did not fail. `so_far` holds the
    /// combined result of the previous extensions, which each may change. If any draft is invalid, none is appended.
    fn turn_end<'a>(
        &'a self,
        turn: TurnEnd<'a>,
        so_far: &'a Boundary,
        cx: &'a ExtensionCx,
    ) -> HandlerFuture<'a, BoundaryAction> {
        let _ = (turn, so_far, cx);
        Box::pin(async { Ok(BoundaryAction::default()) })
    }

    /// [`Point::AgentBeforeSettle`]: called when nothing else would continue the run. Returns entries to append, and whether to call the
    /// model again, which requires that the conversation does not end with its answer. Not called after a cancelled prompt.
    fn agent_before_settle<'a>(
        &'a self,
        ahead: BeforeSettle,
        so_far: &'a Boundary,
        cx: &'a ExtensionCx,
    ) -> HandlerFuture<'a, BoundaryAction> {
        let _ = (ahead, so_far, cx);
        Box::pin(async { Ok(BoundaryAction::default()) })
    }

    /// [`Point::MessageEnd`]: a complete message, before it is added to the conversation and the log. Each extension sees the changes of
    /// the previous ones.
    fn message_end<'a>(&'a self, message: &'a Arc<Message>, cx: &'a ExtensionCx) -> HandlerFuture<'a, MessageAction> {
        let _ = (message, cx);
        Box::pin(async { Ok(MessageAction::Keep) })
    }

    /// [`Point::ToolCall`]: a call about to run. Each extension sees the arguments as changed by the previous ones; the first `Deny` wins.
    /// If this fails, the call is denied.
    fn tool_call<'a>(&'a self, call: &'a PendingCall, cx: &'a ExtensionCx) -> HandlerFuture<'a, BeforeTool> {
        let _ = (call, cx);
        Box::pin(async { Ok(BeforeTool::Allow) })
    }

    /// [`Point::ToolResult`]: a finished call. Each extension sees the result as changed by the previous ones.
    fn tool_result<'a>(&'a self, done: &'a FinishedCall, cx: &'a ExtensionCx) -> HandlerFuture<'a, ToolPatch> {
        let _ = (done, cx);
        Box::pin(async { Ok(ToolPatch::default()) })
    }

    /// [`Point::UserBash`]: a shell command of the user. The first answer other than `Run` wins. If this fails, the command is blocked.
    fn user_bash<'a>(&'a self, command: &'a UserBash, cx: &'a ExtensionCx) -> HandlerFuture<'a, UserBashAction> {
        let _ = (command, cx);
        Box::pin(async { Ok(UserBashAction::Run) })
    }

    /// [`Point::Input`]: the user's input. Each extension sees the changes of the previous ones; the first `Handled` wins.
    fn input<'a>(&'a self, input: &'a Input, cx: &'a ExtensionCx) -> HandlerFuture<'a, InputAction> {
        let _ = (input, cx);
        Box::pin(async { Ok(InputAction::Continue) })
    }
}

/// A command that users run with `/name arguments`.
pub trait Command: Send + Sync {
    /// Returns its name, without the slash.
    fn name(&self) -> &str;

    /// Returns a description for people.
    fn description(&self) -> Option<&str> {
        None
    }

    /// Returns completions of the arguments typed so far.
    fn complete<'a>(&'a self, typed: &'a str) -> BoxFuture<'a, Vec<Completion>> {
        let _ = typed;
        Box::pin(async { Vec::new() })
    }

    /// Runs the command, without a time limit. Dropped when the prompt is cancelled.
    ///
    /// # Errors
    /// A failure is reported as an event; the prompt still counts as answered.
    fn run<'a>(&'a self, args: &'a str, cx: &'a CommandCx) -> BoxFuture<'a, Result<(), ExtensionError>>;
}

/// A completion of a command's arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The text to insert.
    pub value: String,
    /// The text to show, if different.
    pub label: Option<String>,
    /// More about it.
    pub description: Option<String>,
}

impl Completion {
    /// Creates a completion shown as its value.
    pub fn new(value: impl Into<String>) -> Self {
        Self { value: value.into(), label: None, description: None }
    }
}
