//! Extensions as separate processes: JSON-RPC 2.0 over standard input and output, one message per line.
//!
//! The process receives points as `event`, and requests actions and dialogs; `docs/extensions.md` lists all messages. A process that exits,
//! hangs or sends invalid messages costs the session only its contribution: its tools return errors, and calls it guards are denied.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pinch_agent_core::hooks::{BeforeTool, FinishedCall, PendingCall, ToolPatch};
use pinch_llm::message::Message;
use pinch_llm::model::Model;
use pinch_stdx::host::Host;
use serde_json::{Map, Value, json};

use super::boundary::{BeforeSettle, Boundary, BoundaryAction, TurnEnd};
use super::cx::{ExtensionCx, ExtensionHandle};
use super::error::ExtensionError;
use super::payloads::{
    AgentStartAction, BeforeAgentStart, BeforeFork, BeforeSwitch, ContextAction, Input, InputAction, MessageAction,
    Notification, PayloadAction, ResourcePaths, ResourcesDiscover, SwitchDecision, UserBash, UserBashAction,
};
use super::points::{Point, Points};
use super::printed::OutputListener;
use super::register::Registrations;
use super::trust::{ProjectTrust, TrustAction};
use super::ui::Dialogs;
use super::{Extension, HandlerFuture, HeaderChanges};
use crate::compaction::hooks::{BeforeCompaction, BeforeMove, MoveChanges, PendingCompaction, PendingMove};
use crate::protocol::EventWriter;

mod served;
mod open_components;
mod open_streams;
mod points;
mod screen;
mod output;
mod link;
mod supervision;
mod node_host;
pub(super) mod start;
mod fit;
mod drafts;
mod hooks;
mod renderers;
mod models;
mod providers;
mod manifest;
mod components;
mod requests;
mod restart;

pub use hooks::HookSubscription;
pub use link::MAX_LINE;
pub use start::start_processes;

use link::Link;
use manifest::{facts, subscriptions};
use points as json_of;

/// How long a process may take to answer `initialize`.
pub const START_LIMIT: Duration = Duration::from_secs(10);
/// How long a process may take to return completions.
const COMPLETION_LIMIT: Duration = Duration::from_secs(2);
/// Version of the protocol.
pub const PROTOCOL_VERSION: u32 = 1;

/// How to start a process.
#[derive(Clone, Debug)]
pub struct ProcessSpec {
    /// Name used in reports: its path.
    pub name: String,
    /// Program and arguments.
    pub command: Vec<String>,
    /// Working directory.
    pub cwd: PathBuf,
    /// Directory of the user's settings.
    pub agent_dir: PathBuf,
    /// Whether there is a user interface.
    pub has_ui: bool,
}

/// An extension running as a separate process. Dropping it kills the process with all its descendants; [`Extension::close`] shuts it down
/// gracefully.
pub struct ProcessExtension {
    name: String,
    link: Arc<Link>,
    /// Its answer to `initialize`.
    manifest: Value,
    points: Points,
    unknown: Vec<String>,
    hooks: Vec<HookSubscription>,
    /// Converts events to their JSON mode format.
    writer: Mutex<EventWriter>,
    /// The process, and those whose place it took.
    processes: Mutex<restart::Processes>,
    /// How it is started anew for the next session, if it is.
    restart: Option<(ProcessSpec, Host)>,
    /// Receives what it prints.
    listener: Option<OutputListener>,
}

impl ProcessExtension {
    /// Starts a process and asks for its registrations.
    ///
    /// # Errors
    /// Fails if it cannot be started, does not answer within [`START_LIMIT`], or sends an invalid answer; the process is killed then.
    pub async fn start(spec: ProcessSpec, host: &Host) -> Result<Self, ExtensionError> {
        let (program, args) = spec.command.split_first().ok_or_else(|| ExtensionError::new("The command is empty"))?;
        let mut command = std::process::Command::new(program);
        command.args(args).current_dir(&spec.cwd).env_clear().envs(host.env().iter());
        let serve: link::Serve = Arc::new(|link, request| Box::pin(requests::serve(link, request)));
        let (link, tasks) = supervision::start(command, serve)?;
        let params = json!({
            "protocolVersion": PROTOCOL_VERSION, "cwd": spec.cwd.to_string_lossy(), "agentDir": spec.agent_dir.to_string_lossy(),
            "hasUI": spec.has_ui,
        });
        let asking = tokio::time::timeout(START_LIMIT, link.request("initialize", params));
        let manifest = asking.await.map_err(|_| ExtensionError::TimedOut { limit: START_LIMIT })??;
        let (points, unknown) = subscriptions(&manifest)?;
        let hooks = hooks::hooks(&manifest)?;
        let processes = Mutex::new(restart::Processes::of(&link, tasks));
        Ok(Self {
            name: spec.name,
            link,
            manifest,
            points,
            unknown,
            hooks,
            writer: Mutex::default(),
            processes,
            restart: None,
            listener: None,
        })
    }

    /// Passes on what the process prints on its error output, also before this call.
    #[must_use]
    pub fn printing_to(mut self, listener: OutputListener) -> Self {
        self.link.output.listen(listener.clone());
        self.listener = Some(listener);
        self
    }

    /// Builds the message for a point: the header, the payload, and the facts about the session.
    fn event(&self, id: Option<u64>, point: Point, payload: &[u8], cx: &ExtensionCx) -> Vec<u8> {
        // An answer has thousands of updates, so their facts are minimal.
        let facts = match point {
            Point::MessageUpdate => json!({"generation": self.link.generation(cx)}),
            _ => facts(&self.link, cx),
        };
        Self::event_with(id, point, payload, &facts)
    }

    fn event_with(id: Option<u64>, point: Point, payload: &[u8], facts: &Value) -> Vec<u8> {
        let mut line = Vec::with_capacity(payload.len() + 512);
        line.extend_from_slice(br#"{"jsonrpc":"2.0","#);
        if let Some(id) = id {
            line.extend_from_slice(format!("\"id\":{id},").as_bytes());
        }
        let head = format!(r#""method":"event","params":{{"name":"{}","payload":"#, point.name());
        line.extend_from_slice(head.as_bytes());
        line.extend_from_slice(payload);
        line.extend_from_slice(b",\"ctx\":");
        line.extend_from_slice(facts.to_string().as_bytes());
        line.extend_from_slice(b"}}\n");
        line
    }

    /// Sends a point to the process and returns its answer.
    async fn ask(&self, point: Point, payload: Value, cx: &ExtensionCx) -> Result<Value, ExtensionError> {
        let payload = payload.to_string();
        self.link.request_with(cx.watch(), |id| self.event(Some(id), point, payload.as_bytes(), cx)).await
    }

    /// Like [`Self::ask`]; an exited process gives no answer, since its exit was already reported.
    async fn ask_living(&self, point: Point, payload: Value, cx: &ExtensionCx) -> Result<Value, ExtensionError> {
        match self.ask(point, payload, cx).await {
            Err(ExtensionError::Gone { .. }) => Ok(Value::Null),
            other => other,
        }
    }
}

/// Allows the process to open dialogs without a session until dropped.
struct Lent<'a>(&'a Link);

impl<'a> Lent<'a> {
    fn to(link: &'a Link, ui: &Dialogs) -> Self {
        link.lend(Some(ui.clone()));
        Self(link)
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.0.lend(None);
    }
}

/// Returns why an action guarded by the process is denied.
fn blocked(error: &ExtensionError) -> String {
    format!("Extension failed, blocking execution: {error}")
}

impl Extension for ProcessExtension {
    fn name(&self) -> &str {
        &self.name
    }

    fn points(&self) -> Points {
        // Updates are only meaningful after the start of their message.
        if self.points.has(Point::MessageUpdate) { self.points.with(Point::MessageStart) } else { self.points }
    }

    fn register(&self, to: &mut Registrations, handle: &ExtensionHandle) -> Result<(), ExtensionError> {
        manifest::register(&self.link, handle, &self.manifest, to)?;
        self.link.serve_session(handle.clone());
        for name in &self.unknown {
            handle.report("load", &ExtensionError::new(format!("Unknown event: {name}")));
        }
        // It may have exited before a listener existed.
        if let Some(error) = self.link.gone() {
            handle.report("process", &error);
        }
        Ok(())
    }

    fn restart(&self) -> HandlerFuture<'_, Option<Arc<dyn Extension>>> {
        Box::pin(restart::restart(self))
    }

    fn close(&self) -> HandlerFuture<'_, ()> {
        Box::pin(async {
            let links = self.processes.lock().unwrap_or_else(PoisonError::into_inner).links();
            futures::future::join_all(links.iter().map(|link| link.close())).await;
            Ok(())
        })
    }

    fn project_trust<'a>(&'a self, ask: &'a ProjectTrust, ui: &'a Dialogs) -> HandlerFuture<'a, TrustAction> {
        Box::pin(async move {
            let cwd = ask.cwd.to_string_lossy();
            let (payload, facts) = (json!({"cwd": cwd}).to_string(), json!({"cwd": cwd, "hasUI": ui.are_present()}));
            let _lent = Lent::to(&self.link, ui);
            let line = |id| Self::event_with(Some(id), Point::ProjectTrust, payload.as_bytes(), &facts);
            match self.link.request_with(ui.watch.clone(), line).await {
                Ok(answer) => json_of::trust_answer(&answer),
                // Its exit is reported when it is loaded.
                Err(ExtensionError::Gone { .. }) => Ok(TrustAction::Undecided),
                Err(error) => Err(error),
            }
        })
    }

    fn notified<'a>(&'a self, notification: Notification<'a>, cx: &'a ExtensionCx) -> HandlerFuture<'a, ()> {
        Box::pin(async move {
            let Some(point) = notification.point() else { return Ok(()) };
            let payload = match (json_of::notification(&notification), notification) {
                (Some(payload), _) => payload.to_string().into_bytes(),
                (None, Notification::Event(event)) => {
                    let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
                    let Some(line) = writer.line(event) else { return Ok(()) };
                    line.trim_ascii_end().to_owned()
                }
                (None, _) => return Ok(()),
            };
            if !self.points.has(point) {
                return Ok(());
            }
            // Requests made at an end still belong to what ends.
            if matches!(point, Point::SessionShutdown | Point::SessionStart | Point::AgentEnd) {
                let asking = self.link.request_with(cx.watch(), |id| self.event(Some(id), point, &payload, cx));
                return match asking.await {
                    Ok(_) | Err(ExtensionError::Gone { .. }) => Ok(()),
                    Err(error) => Err(error),
                };
            }
            match self.link.send(self.event(None, point, &payload, cx)).await {
                Ok(()) | Err(ExtensionError::Gone { .. }) => Ok(()),
                Err(error) => Err(error),
            }
        })
    }

    fn resources_discover<'a>(
        &'a self,
        ask: ResourcesDiscover,
        cx: &'a ExtensionCx,
    ) -> HandlerFuture<'a, ResourcePaths> {
        Box::pin(async move {
            let cwd = cx.cwd()?;
            let payload = json!({"cwd": cwd.to_string_lossy(), "reason": ask.reason.as_str()});
            json_of::resources(&self.ask_living(Point::ResourcesDiscover, payload, cx).await?)
        })
    }

    fn session_before_switch<'a>(
        &'a self,
        to: &'a BeforeSwitch,
        cx: &'a ExtensionCx,
    ) -> HandlerFuture<'a, SwitchDecision> {
        Box::pin(async move {
            let target = to.target.as_ref().map(|path| path.to_string_lossy().into());
            let payload = json_of::object([("reason", Some(to.reason.as_str().into())), ("targetSessionFile", target)]);
            json_of::leave(&self.ask_living(Point::SessionBeforeSwitch, payload, cx).await?)
        })
    }

    fn session_before_fork<'a>(
        &'a self,
        fork: &'a BeforeFork,
        cx: &'a ExtensionCx,
    ) -> HandlerFuture<'a, SwitchDecision> {
        Box::pin(async move {
            let position = if fork.before { "before" } else { "at" };
            let payload = json!({"entryId": fork.entry.as_str(), "position": position});
            json_of::leave(&self.ask_living(Point::SessionBeforeFork, payload, cx).await?)
        })
    }

    fn session_before_compact<'a>(
        &'a self,
        ahead: &'a PendingCompaction<'a>,
        cx: &'a ExtensionCx,
    ) -> HandlerFuture<'a, BeforeCompaction> {
        Box::pin(async move {
            let session = cx.session()?;
            let payload = fit::compaction(ahead, &cx.branch().await?, session.session_file.as_deref());
            json_of::compaction_answer(&self.ask_living(Point::SessionBeforeCompact, payload, cx).await?)
        })
    }

    fn session_before_tree<'a>(&'a self, ahead: &'a PendingMove, cx: &'a ExtensionCx) -> HandlerFuture<'a, BeforeMove> {
        Box::pin(async move {
            match self.ask_living(Point::SessionBeforeTree, json_of::tree(ahead), cx).await? {
                Value::Null => Ok(BeforeMove::Continue(MoveChanges::default())),
                answer => json_of::tree_answer(&answer),
            }
        })
    }

    fn context<'a>(&'a self, messages: &'a [Arc<Message>], cx: &'a ExtensionCx) -> HandlerFuture<'a, ContextAction> {
        Box::pin(async move {
            let payload = json!({"messages": messages});
            json_of::context_answer(&self.ask_living(Point::Context, payload, cx).await?, messages)
        })
    }

    fn context_with_system<'a>(
        &'a self,
        messages: &'a [Arc<Message>],
        cx: &'a ExtensionCx,
    ) -> HandlerFuture<'a, ContextAction> {
        Box::pin(async move {
            let payload = json!({"messages": messages});
            json_of::context_answer(&self.ask_living(Point::ContextWithSystem, payload, cx).await?, messages)
        })
    }

    fn before_provider_request<'a>(
        &'a self,
        body: &'a Value,
        _: &'a Model,
        cx: &'a ExtensionCx,
    ) -> HandlerFuture<'a, PayloadAction> {
        Box::pin(async move {
            match self.ask_living(Point::BeforeProviderRequest, json!({"payload": body}), cx).await? {
                Value::Null => Ok(PayloadAction::Keep),
                other => Ok(PayloadAction::Replace(other)),
            }
        })
    }

    fn before_provider_headers<'a>(
        &'a self,
        headers: &'a [(String, String)],
        _: &'a Model,
        cx: &'a ExtensionCx,
    ) -> HandlerFuture<'a, HeaderChanges> {
        Box::pin(async move {
            let all: Map<String, Value> =
                headers.iter().map(|(name, text)| (name.clone(), text.as_str().into())).collect();
            let answer = self.ask_living(Point::BeforeProviderHeaders, json!({"headers": all}), cx).await?;
            let changes: Map<String, Value> = json_of::member(&answer, "headers")?.unwrap_or_default();
            Ok(changes.into_iter().map(|(name, text)| (name, text.as_str().map(str::to_owned))).collect())
        })
    }

    fn before_agent_start<'a>(
        &'a self,
        start: &'a BeforeAgentStart,
        cx: &'a ExtensionCx,
    ) -> HandlerFuture<'a, AgentStartAction> {
        Box::pin(async move {
            let payload = json_of::agent_start(start, &*cx.session()?);
            json_of::agent_start_answer(&self.ask_living(Point::BeforeAgentStart, payload, cx).await?)
        })
    }

    fn turn_end<'a>(
        &'a self,
        turn: TurnEnd<'a>,
        so_far: &'a Boundary,
        cx: &'a ExtensionCx,
    ) -> HandlerFuture<'a, BoundaryAction> {
        Box::pin(async move {
            let payload = json_of::turn_end(&turn, so_far);
            json_of::boundary_answer(&self.ask_living(Point::TurnEnd, payload, cx).await?)
        })
    }

    fn agent_before_settle<'a>(
        &'a self,
        ahead: BeforeSettle,
        so_far: &'a Boundary,
        cx: &'a ExtensionCx,
    ) -> HandlerFuture<'a, BoundaryAction> {
        Box::pin(async move {
            let payload = json_of::boundary(so_far, ahead.outcome);
            json_of::boundary_answer(&self.ask_living(Point::AgentBeforeSettle, payload, cx).await?)
        })
    }

    fn message_end<'a>(&'a self, message: &'a Arc<Message>, cx: &'a ExtensionCx) -> HandlerFuture<'a, MessageAction> {
        Box::pin(async move {
            let payload = json!({"message": message});
            json_of::message_answer(&self.ask_living(Point::MessageEnd, payload, cx).await?)
        })
    }

    fn tool_call<'a>(&'a self, call: &'a PendingCall, cx: &'a ExtensionCx) -> HandlerFuture<'a, BeforeTool> {
        Box::pin(async move {
            let payload = json!({"toolName": call.call.name, "toolCallId": call.call.id, "input": call.input});
            match self.ask(Point::ToolCall, payload, cx).await {
                Ok(answer) => json_of::tool_call_answer(&answer),
                Err(error @ ExtensionError::Gone { .. }) => Ok(BeforeTool::deny(blocked(&error))),
                Err(error) => Err(error),
            }
        })
    }

    fn tool_result<'a>(&'a self, done: &'a FinishedCall, cx: &'a ExtensionCx) -> HandlerFuture<'a, ToolPatch> {
        Box::pin(async move {
            let payload = json_of::object([
                ("toolName", Some(done.call.name.as_str().into())),
                ("toolCallId", Some(done.call.id.as_str().into())),
                ("input", Some(json_of::value(&done.input))),
                ("content", Some(json_of::value(&done.output.content))),
                ("details", done.output.details.clone()),
                ("structuredContent", done.output.structured.clone()),
                ("isError", Some(done.output.failed.into())),
            ]);
            json_of::tool_result_answer(&self.ask_living(Point::ToolResult, payload, cx).await?)
        })
    }

    fn user_bash<'a>(&'a self, command: &'a UserBash, cx: &'a ExtensionCx) -> HandlerFuture<'a, UserBashAction> {
        Box::pin(async move {
            let cwd = cx.cwd()?;
            let payload = json!({
                "command": command.command, "excludeFromContext": command.exclude, "cwd": cwd.to_string_lossy(),
            });
            match self.ask(Point::UserBash, payload, cx).await {
                Ok(answer) => json_of::user_bash_answer(&answer),
                Err(error @ ExtensionError::Gone { .. }) => Ok(UserBashAction::Block { reason: blocked(&error) }),
                Err(error) => Err(error),
            }
        })
    }

    fn input<'a>(&'a self, input: &'a Input, cx: &'a ExtensionCx) -> HandlerFuture<'a, InputAction> {
        Box::pin(async move { json_of::input_answer(&self.ask_living(Point::Input, json_of::input(input), cx).await?) })
    }
}
