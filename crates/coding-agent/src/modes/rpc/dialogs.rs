//! Dialogs and updates of extensions as JSON lines.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;
use pinch_stdx::host::Host;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::approvals::{self, Approvals, Begun};
use super::outbox::Outbox;
use crate::extension::ui::{Approval, Dialog, DialogKind, DialogReply, ToolApproval, Ui, UiUpdate};
use crate::protocol::command::{Hello, ToolReply, UiAnswer, UiReply};

/// The user interface behind a client. Pass it to the session's extensions and to [`super::rpc`].
#[derive(Clone)]
pub struct ClientUi(Arc<DialogsShared>);

struct DialogsShared {
    host: Host,
    state: Mutex<DialogsState>,
    lines: Outbox,
}

struct DialogsState {
    /// Pending answers, by request id.
    waiting: HashMap<String, oneshot::Sender<Option<UiAnswer>>>,
    /// Whether the client can be asked.
    is_open: bool,
    /// Pending approvals of calls.
    approvals: Approvals,
    /// Whether it is in use by a client.
    is_taken: bool,
}

impl ClientUi {
    /// Creates a user interface for one client.
    pub fn new(host: &Host) -> Self {
        let lines = Outbox::default();
        let approvals = Approvals::default();
        let state = DialogsState { waiting: HashMap::new(), is_open: true, approvals, is_taken: false };
        Self(Arc::new(DialogsShared { host: host.clone(), state: Mutex::new(state), lines }))
    }

    fn state(&self) -> MutexGuard<'_, DialogsState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the outbox, once.
    pub(super) fn take_lines(&self) -> Option<Outbox> {
        let is_taken = std::mem::replace(&mut self.state().is_taken, true);
        (!is_taken).then(|| self.0.lines.clone())
    }

    /// Answers a dialog. Answers without a dialog are ignored.
    pub(super) fn reply(&self, reply: UiReply) {
        if let Some(waiting) = self.state().waiting.remove(&reply.id) {
            drop(waiting.send(reply.answer));
        }
    }

    /// Dismisses the open dialogs without an answer.
    pub(super) fn dismiss(&self) {
        self.state().waiting.clear();
    }

    /// Closes all dialogs.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.is_open = false;
        state.waiting.clear();
        state.approvals.close();
    }

    fn request(method: &str, id: &str, members: Value) -> String {
        let mut request = json!({"type": "extension_ui_request", "id": id, "method": method});
        if let (Some(request), Value::Object(members)) = (request.as_object_mut(), members) {
            request.extend(members.into_iter().filter(|(_, value)| !value.is_null()));
        }
        format!("{request}\n")
    }

    fn new_id(&self) -> String {
        self.0.host.ids().uuid_v4()
    }

    /// Applies the client's requested capabilities.
    pub(super) fn hello(&self, hello: &Hello) {
        self.state().approvals.hello(hello);
    }

    /// Answers a request for approval. Answers without a request are ignored.
    pub(super) fn reply_to_call(&self, reply: ToolReply) {
        self.state().approvals.reply(reply);
    }

    /// Asks the client about a call.
    async fn ask_for_approval(&self, call: ToolApproval<'_>) -> Approval {
        let id = self.new_id();
        let begun = self.state().approvals.begin(&id, call);
        let (answer, limit) = match begun {
            Begun::Known(approval) => return approval,
            Begun::Asks { answer, limit } => (answer, limit),
        };
        let mut over = Over { ui: self, id: &id, why: Some("aborted") };
        let request = json!({
            "type": "tool_approval_request", "id": id, "toolCallId": call.call_id, "toolName": call.tool, "args": call.args,
            "timeout": u64::try_from(limit.as_millis()).unwrap_or(u64::MAX),
        });
        self.0.lines.push(format!("{request}\n"));
        match tokio::time::timeout(limit, answer).await {
            Err(_) => {
                over.why = Some("timeout");
                Approval::Denied { reason: approvals::LATE.to_owned() }
            }
            Ok(answer) => {
                over.why = None;
                answer.unwrap_or_else(|_| Approval::Denied { reason: approvals::GONE.to_owned() })
            }
        }
    }
}

/// A pending request for approval; notifies the client if it is dropped unanswered.
struct Over<'a> {
    ui: &'a ClientUi,
    id: &'a str,
    /// Why the request is closed; `None` if it was answered.
    why: Option<&'static str>,
}

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.ui.state().approvals.forget(self.id);
        if let Some(why) = self.why {
            let line = json!({"type": "tool_approval_end", "id": self.id, "reason": why});
            self.ui.0.lines.push(format!("{line}\n"));
        }
    }
}

impl Ui for ClientUi {
    fn approve<'a>(&'a self, call: ToolApproval<'a>) -> BoxFuture<'a, Approval> {
        Box::pin(self.ask_for_approval(call))
    }

    fn ask<'a>(&'a self, dialog: &'a Dialog) -> BoxFuture<'a, Option<DialogReply>> {
        Box::pin(async move {
            let id = self.new_id();
            let (tx, answer) = oneshot::channel();
            {
                let mut state = self.state();
                if !state.is_open {
                    return None;
                }
                state.waiting.insert(id.clone(), tx);
            }
            let _forget = Forget { ui: self, id: &id };
            let timeout = dialog.timeout.map(|limit| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX));
            let (method, members) = match &dialog.kind {
                DialogKind::Select { options } => ("select", json!({"title": dialog.title, "options": options})),
                DialogKind::Confirm { message } => ("confirm", json!({"title": dialog.title, "message": message})),
                DialogKind::Input { placeholder } => {
                    ("input", json!({"title": dialog.title, "placeholder": placeholder}))
                }
                DialogKind::Editor { prefill } => ("editor", json!({"title": dialog.title, "prefill": prefill})),
            };
            let mut members = members;
            members["timeout"] = timeout.into();
            self.0.lines.push(Self::request(method, &id, members));
            match answer.await.ok()?? {
                UiAnswer::Value(text) => Some(DialogReply::Text(text)),
                UiAnswer::Confirmed(yes) => Some(DialogReply::Yes(yes)),
            }
        })
    }

    fn show(&self, show: UiUpdate) {
        let (method, members) = match show {
            UiUpdate::Note { message, kind } => {
                ("notify", json!({"message": message, "notifyType": kind.map(|kind| kind.as_str())}))
            }
            UiUpdate::Status { key, text } => ("setStatus", json!({"statusKey": key, "statusText": text})),
            UiUpdate::Widget { key, lines, place } => (
                "setWidget",
                json!({
                    "widgetKey": key, "widgetLines": lines,
                    "widgetPlacement": place.map(|place| place.as_str()),
                }),
            ),
            UiUpdate::Title(title) => ("setTitle", json!({"title": title})),
            UiUpdate::EditorText(text) | UiUpdate::EditorPaste(text) => ("set_editor_text", json!({"text": text})),
            // Clients see which session there is, and have no terminal.
            UiUpdate::Reset
            | UiUpdate::WorkingMessage(_)
            | UiUpdate::WorkingVisible(_)
            | UiUpdate::WorkingIndicator(_)
            | UiUpdate::HiddenThinkingLabel(_)
            | UiUpdate::ToolsExpanded(_)
            | UiUpdate::Theme(_)
            | UiUpdate::RedrawCall { .. } => return,
        };
        // An update with the same name supersedes earlier ones.
        let name = match method {
            "notify" => None,
            _ => Some(format!(
                "{method} {}",
                members["statusKey"].as_str().or(members["widgetKey"].as_str()).unwrap_or_default()
            )),
        };
        self.0.lines.show(name, Self::request(method, &self.new_id(), members));
    }
}

/// Removes a dialog when dropped.
struct Forget<'a> {
    ui: &'a ClientUi,
    id: &'a str,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.ui.state().waiting.remove(self.id);
    }
}
