//! Calls the hooks of plugins inside a session: for tool calls, messages and compactions.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pinch_agent_core::hooks::{BeforeTool, FinishedCall, PendingCall, ToolPatch};
use pinch_coding_agent::compaction::Compacted;
use pinch_coding_agent::compaction::hooks::{BeforeCompaction, PendingCompaction};
use pinch_coding_agent::extension::{
    Extension, ExtensionCx, HandlerFuture, MessageAction, Notification, Point, Points,
};
use pinch_llm::message::{Block, Content, Message, block};
use pinch_ports::{ApprovalBroker, ApprovalDecision, ApprovalRequest};
use tokio::time::Instant;

use super::hook_point::HookPoint;
use super::payloads::HookContext;
use super::registry::{HookCall, PluginSet};
use super::session_payloads::{
    AfterToolCall, ApprovalResolution, ApprovalResolved, BeforeMessageWrite, BeforeToolCall, CompactionFinished,
    CompactionStarting, MessageWrite, RequiredApproval, ToolResultPersist,
};

/// The reason for the model if a plugin gives none.
const BLOCKED: &str = "Tool call blocked by plugin hook";
/// The reason for the model if a guard fails.
const GUARD_FAILED: &str = "Tool call blocked because before_tool_call hook failed";
/// The reasons for the model if a call needs an approval and does not get it.
const DENIED: &str = "Denied by user";
const NOT_ANSWERED: &str = "Approval timed out";
const NOBODY: &str = "Plugin approval unavailable (no approval route)";
const ABORTED: &str = "Approval cancelled (run aborted)";
/// Maximum time to wait for an approval.
const MAX_APPROVAL_TIME: Duration = Duration::from_secs(600);
/// Maximum characters of the arguments that a person is shown.
const MAX_SHOWN: usize = 2000;
/// What the conversation has instead of a message that a plugin blocks.
const REMOVED: &str = "[This message was removed.]";

/// An extension of one run's session that calls the plugins of its engine.
pub(super) struct PluginHooks {
    plugins: PluginSet,
    cx: Arc<HookContext>,
    approvals: Arc<dyn ApprovalBroker>,
    state: Mutex<SessionState>,
}

#[derive(Default)]
struct SessionState {
    /// When the running calls began.
    calls: HashMap<String, Instant>,
    /// Number of messages that the current compaction replaces.
    n_compacting: usize,
    /// Number of messages before the current compaction.
    n_messages: Option<usize>,
}

impl PluginHooks {
    pub(super) fn new(plugins: PluginSet, cx: Arc<HookContext>, approvals: Arc<dyn ApprovalBroker>) -> Self {
        Self { plugins, cx, approvals, state: Mutex::default() }
    }

    fn with_state<T>(&self, change: impl FnOnce(&mut SessionState) -> T) -> T {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Asks the plugins about a call, until one blocks it.
    async fn before_tool_call(&self, call: &PendingCall, cx: &ExtensionCx) -> BeforeTool {
        let (tool, call_id) = (call.call.name.clone(), call.call.id.to_string());
        let mut event = BeforeToolCall { tool, call_id, params: call.input.clone() };
        let mut is_changed = false;
        for one in self.plugins.calls(HookPoint::BeforeToolCall) {
            let asked = event.clone();
            match one.ask(|plugin| Box::pin(async move { plugin.before_tool_call(&asked, &self.cx).await })).await {
                Some(changes) => {
                    if let Some(reason) = changes.block {
                        return BeforeTool::deny(if reason.trim().is_empty() { BLOCKED } else { &reason });
                    }
                    is_changed |= !changes.params.is_empty();
                    event.params.extend(changes.params);
                    let Some(required) = changes.approval else { continue };
                    let resolution = self.approve(&required, &event, cx).await;
                    self.tell_resolution(&one, &event, resolution);
                    if let Some(reason) = self.refusal(resolution, &required) {
                        return BeforeTool::deny(reason);
                    }
                }
                None if one.blocks_on_error() => return BeforeTool::deny(GUARD_FAILED),
                None => {}
            }
        }
        if is_changed { BeforeTool::Rewrite(event.params) } else { BeforeTool::Allow }
    }

    /// Asks a person to approve a call.
    async fn approve(
        &self,
        required: &RequiredApproval,
        event: &BeforeToolCall,
        cx: &ExtensionCx,
    ) -> ApprovalResolution {
        if !self.approvals.is_available() {
            return ApprovalResolution::Cancelled;
        }
        let limit = required.timeout.min(MAX_APPROVAL_TIME);
        let arguments: String = serde_json::to_string(&event.params).unwrap_or_default();
        let shown: String = arguments.chars().take(MAX_SHOWN).collect();
        let cut = if shown.len() < arguments.len() { "…" } else { "" };
        let cwd = self.cx.workspace.as_deref().map(|dir| dir.display().to_string()).unwrap_or_default();
        let texts = [required.title.trim(), required.description.trim()];
        let reason = texts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(": ");
        let mut request = ApprovalRequest::new(format!("{} {shown}{cut}", event.tool), cwd, reason, limit);
        request.session_key.clone_from(&self.cx.session_key);
        request.severity = required.severity;
        let asked = tokio::time::timeout(limit, self.approvals.request(&request));
        match cx.wait_untimed(asked).await {
            None => ApprovalResolution::Cancelled,
            Some(Ok(decision)) => ApprovalResolution::Decided(decision),
            Some(Err(_)) => ApprovalResolution::TimedOut,
        }
    }

    /// Tells the plugin that required an approval what became of it.
    fn tell_resolution(&self, to: &HookCall<'_>, event: &BeforeToolCall, resolution: ApprovalResolution) {
        let resolved = ApprovalResolved { tool: event.tool.clone(), call_id: event.call_id.clone(), resolution };
        self.plugins.notify_one(to, HookPoint::ApprovalResolved, resolved, &self.cx, |plugin, event, cx| {
            plugin.on_approval_resolved(event, cx)
        });
    }

    /// Returns the reason for the model if a call is not approved.
    fn refusal(&self, resolution: ApprovalResolution, required: &RequiredApproval) -> Option<&'static str> {
        match resolution {
            ApprovalResolution::Decided(ApprovalDecision::AllowOnce | ApprovalDecision::AllowAlways) => None,
            ApprovalResolution::Decided(ApprovalDecision::Deny) => Some(DENIED),
            ApprovalResolution::TimedOut => (!required.allows_on_timeout).then_some(NOT_ANSWERED),
            ApprovalResolution::Cancelled if self.approvals.is_available() => Some(ABORTED),
            ApprovalResolution::Cancelled => Some(NOBODY),
        }
    }

    /// Lets the plugins change a tool result.
    async fn tool_result_persist(&self, message: &Arc<Message>, is_synthetic: bool) -> Option<Arc<Message>> {
        let Message::ToolResult(result) = &**message else { return None };
        let mut changed = None;
        for one in self.plugins.calls(HookPoint::ToolResultPersist) {
            let event = ToolResultPersist { result: changed.as_ref().unwrap_or(result).clone(), is_synthetic };
            let answer =
                one.ask(|plugin| Box::pin(async move { plugin.tool_result_persist(&event, &self.cx).await })).await;
            changed = answer.flatten().or(changed);
        }
        let mut changed = changed?;
        // A result must keep the id of its call.
        changed.tool_call_id.clone_from(&result.tool_call_id);
        changed.tool_name.clone_from(&result.tool_name);
        Some(Arc::new(Message::ToolResult(changed)))
    }

    /// Lets the plugins change a message, or block its text.
    async fn before_message_write(&self, message: &Arc<Message>) -> Option<Arc<Message>> {
        let mut changed: Option<Arc<Message>> = None;
        for one in self.plugins.calls(HookPoint::BeforeMessageWrite) {
            let now = changed.as_ref().unwrap_or(message);
            let event = BeforeMessageWrite { message: Arc::clone(now) };
            let answer =
                one.ask(|plugin| Box::pin(async move { plugin.before_message_write(&event, &self.cx).await })).await;
            match answer {
                Some(MessageWrite::Replace(other)) if has_same_role(message, &other) => changed = Some(other),
                Some(MessageWrite::Replace(_)) => {
                    tracing::warn!(plugin = one.name(), "before_message_write must return a message of the same role");
                }
                Some(MessageWrite::Block) => return Some(Arc::new(without_text(now))),
                Some(MessageWrite::Keep) | None => {}
            }
        }
        changed
    }

    /// Lets the plugins change a message before it is written; `None` if they do not. `is_synthetic`: the message stands in for a missing
    /// result.
    pub(super) async fn written(&self, message: &Arc<Message>, is_synthetic: bool) -> Option<Arc<Message>> {
        let persisted = self.tool_result_persist(message, is_synthetic).await;
        let written = self.before_message_write(persisted.as_ref().unwrap_or(message)).await;
        written.or(persisted)
    }

    fn compaction_ended(&self, done: Result<&Compacted, &str>, cx: &ExtensionCx) {
        let before = self.with_state(|state| (std::mem::take(&mut state.n_compacting), state.n_messages.take()));
        let event = CompactionFinished {
            n_messages: done.map_or(before.1, |done| Some(done.messages_after)),
            n_compacted: done.map_or(0, |_| before.0),
            n_tokens: done.ok().map(|done| done.estimated_tokens_after),
            error: done.err().map(str::to_owned),
            session_file: session_file(cx),
        };
        self.plugins.notify(HookPoint::AfterCompaction, event, &self.cx, |plugin, event, cx| {
            plugin.on_after_compaction(event, cx)
        });
    }
}

fn session_file(cx: &ExtensionCx) -> Option<PathBuf> {
    cx.session().ok().and_then(|session| session.session_file.clone())
}

fn has_same_role(one: &Message, other: &Message) -> bool {
    std::mem::discriminant(one) == std::mem::discriminant(other)
}

/// Returns a message with a note instead of its text. Tool calls stay, because their results refer to them.
fn without_text(message: &Message) -> Message {
    let mut message = message.clone();
    match &mut message {
        Message::User(user) => user.content = Content::Text(REMOVED.to_owned()),
        Message::Assistant(answer) => {
            let answer = Arc::make_mut(answer);
            answer.content.retain(|block| matches!(**block, Block::ToolCall(_)));
            answer.content.insert(0, Arc::new(Block::text(REMOVED)));
        }
        Message::ToolResult(result) => {
            (result.content, result.details) = (vec![Block::text(REMOVED)], None);
        }
        Message::System(_) | Message::Other(_) => {}
    }
    message
}

impl Extension for PluginHooks {
    fn name(&self) -> &str {
        "plugin-hooks"
    }

    /// Each plugin has its own limit.
    fn handler_limit(&self) -> Option<Duration> {
        None
    }

    fn points(&self) -> Points {
        Points::of([
            Point::ToolCall,
            Point::ToolResult,
            Point::MessageEnd,
            Point::SessionBeforeCompact,
            Point::SessionCompact,
            Point::SessionCompactFailed,
        ])
    }

    fn tool_call<'a>(&'a self, call: &'a PendingCall, cx: &'a ExtensionCx) -> HandlerFuture<'a, BeforeTool> {
        Box::pin(async move {
            let decision = self.before_tool_call(call, cx).await;
            if !matches!(decision, BeforeTool::Deny { .. }) {
                self.with_state(|state| state.calls.insert(call.call.id.to_string(), Instant::now()));
            }
            Ok(decision)
        })
    }

    fn tool_result<'a>(&'a self, done: &'a FinishedCall, _: &'a ExtensionCx) -> HandlerFuture<'a, ToolPatch> {
        Box::pin(async move {
            let began = self.with_state(|state| state.calls.remove(done.call.id.as_str()));
            let output = &done.output;
            let event = AfterToolCall {
                tool: done.call.name.clone(),
                call_id: done.call.id.to_string(),
                params: done.input.clone(),
                content: output.content.clone(),
                error: output.failed.then(|| block::join_text(&output.content, "\n")),
                duration_ms: began.map_or(0, |began| u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)),
            };
            self.plugins.notify(HookPoint::AfterToolCall, event, &self.cx, |plugin, event, cx| {
                plugin.on_after_tool_call(event, cx)
            });
            Ok(ToolPatch::default())
        })
    }

    fn message_end<'a>(&'a self, message: &'a Arc<Message>, _: &'a ExtensionCx) -> HandlerFuture<'a, MessageAction> {
        Box::pin(
            async move { Ok(self.written(message, false).await.map_or(MessageAction::Keep, MessageAction::Replace)) },
        )
    }

    fn session_before_compact<'a>(
        &'a self,
        ahead: &'a PendingCompaction<'a>,
        cx: &'a ExtensionCx,
    ) -> HandlerFuture<'a, BeforeCompaction> {
        Box::pin(async move {
            let made = ahead.preparation;
            let messages: Vec<_> = made.messages_to_summarise.iter().chain(&made.turn_prefix).cloned().collect();
            self.with_state(|state| {
                (state.n_compacting, state.n_messages) = (messages.len(), Some(made.messages_before));
            });
            let event = CompactionStarting {
                n_messages: made.messages_before,
                n_compacting: messages.len(),
                n_tokens: made.tokens_before,
                messages,
                session_file: session_file(cx),
            };
            self.plugins.notify(HookPoint::BeforeCompaction, event, &self.cx, |plugin, event, cx| {
                plugin.on_before_compaction(event, cx)
            });
            Ok(BeforeCompaction::Continue)
        })
    }

    fn notified<'a>(&'a self, notification: Notification<'a>, cx: &'a ExtensionCx) -> HandlerFuture<'a, ()> {
        Box::pin(async move {
            match notification {
                Notification::Compacted { done, .. } => self.compaction_ended(Ok(done), cx),
                Notification::CompactFailed { error, .. } => self.compaction_ended(Err(&error.to_string()), cx),
                _ => {}
            }
            Ok(())
        })
    }
}
