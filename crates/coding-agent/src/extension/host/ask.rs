//! Calling all extensions at a point.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue};
use pinch_agent_core::hooks::{BeforeTool, FinishedCall, PendingCall, ToolPatch};
use pinch_llm::message::Message;
use pinch_llm::model::Model;
use serde_json::Value;

use super::Extensions;
use crate::compaction::hooks::{BeforeCompaction, BeforeMove, MoveChanges, PendingCompaction, PendingMove};
use crate::entry::CustomMessage;
use crate::extension::context::{is_system, with_system, without_system};
use crate::extension::ui::{Approval, ToolApproval};
use crate::extension::{
    AgentStartAction, BeforeAgentStart, BeforeFork, BeforeSettle, BeforeSwitch, Boundary, ContextAction,
    ExtensionError, Input, InputAction, MessageAction, Notification, PayloadAction, Point, ResourcePaths,
    ResourcesDiscover, SwitchDecision, TurnEnd, UserBash, UserBashAction,
};
use crate::prompt::PromptSections;
use crate::resources::ExtraPaths;

/// The result of passing input to the extensions.
#[derive(Clone, Debug)]
pub enum InputOutcome {
    /// The input continues, possibly changed.
    Pass(Input),
    /// An extension handled it.
    Handled,
}

impl Extensions {
    /// Notifies the extensions that subscribe to the point.
    pub(crate) async fn notify(&self, notification: Notification<'_>) {
        let Some(point) = notification.point() else { return };
        for one in self.wanting(point) {
            let call = self.call(&one, point);
            call.attempt(|| one.extension.notified(notification, &call.cx)).await;
        }
    }

    /// Returns the resources that each extension found.
    pub(crate) async fn resources(&self, ask: ResourcesDiscover) -> Vec<ExtraPaths> {
        let point = Point::ResourcesDiscover;
        let mut all = Vec::new();
        for one in self.wanting(point) {
            let call = self.call(&one, point);
            let found = call.attempt(|| one.extension.resources_discover(ask, &call.cx)).await;
            let ResourcePaths { skills, prompts, themes } = found.unwrap_or_default();
            all.push(ExtraPaths { extension: short_name(&one.name).to_owned(), skills, prompts, themes });
        }
        all
    }

    pub(crate) async fn before_switch(&self, to: &BeforeSwitch) -> SwitchDecision {
        let point = Point::SessionBeforeSwitch;
        for one in self.wanting(point) {
            let call = self.call(&one, point);
            let answer = call.attempt(|| one.extension.session_before_switch(to, &call.cx));
            if answer.await == Some(SwitchDecision::Cancel) {
                return SwitchDecision::Cancel;
            }
        }
        SwitchDecision::Proceed
    }

    pub(crate) async fn before_fork(&self, fork: &BeforeFork) -> SwitchDecision {
        let point = Point::SessionBeforeFork;
        for one in self.wanting(point) {
            let call = self.call(&one, point);
            let answer = call.attempt(|| one.extension.session_before_fork(fork, &call.cx));
            if answer.await == Some(SwitchDecision::Cancel) {
                return SwitchDecision::Cancel;
            }
        }
        SwitchDecision::Proceed
    }

    pub(crate) async fn before_compact(&self, ahead: &PendingCompaction<'_>) -> BeforeCompaction {
        let point = Point::SessionBeforeCompact;
        for one in self.wanting(point) {
            let call = self.call(&one, point);
            let answer = call.attempt(|| one.extension.session_before_compact(ahead, &call.cx));
            match answer.await {
                None | Some(BeforeCompaction::Continue) => {}
                Some(other) => return other,
            }
        }
        BeforeCompaction::Continue
    }

    pub(crate) async fn before_tree(&self, ahead: &PendingMove) -> BeforeMove {
        let point = Point::SessionBeforeTree;
        let mut all = MoveChanges::default();
        for one in self.wanting(point) {
            let call = self.call(&one, point);
            let answer = call.attempt(|| one.extension.session_before_tree(ahead, &call.cx));
            match answer.await {
                None => {}
                Some(BeforeMove::Cancel) => return BeforeMove::Cancel,
                Some(BeforeMove::Continue(changes)) => {
                    all.summary = changes.summary.or(all.summary);
                    all.focus = changes.focus.or(all.focus);
                    all.replace_instructions = changes.replace_instructions.or(all.replace_instructions);
                    all.label = changes.label.or(all.label);
                }
            }
        }
        BeforeMove::Continue(all)
    }

    /// Returns changed messages for a request, or `None` if unchanged.
    pub(crate) async fn context(&self, messages: &[Arc<Message>]) -> Option<Vec<Arc<Message>>> {
        let mut changed = self.context_without_system(messages).await;
        let point = Point::ContextWithSystem;
        for one in self.wanting(point) {
            let call = self.call(&one, point);
            let now = changed.as_deref().unwrap_or(messages);
            let answer = call.attempt(|| one.extension.context_with_system(now, &call.cx)).await;
            match answer {
                Some(ContextAction::Replace(others)) if others.first().is_some_and(|first| is_system(first)) => {
                    changed = Some(others);
                }
                Some(ContextAction::Replace(_)) => {
                    let error = ExtensionError::new("The first message must be a system message");
                    self.report(&one.name, point.name(), &error);
                }
                Some(ContextAction::Keep) | None => {}
            }
        }
        changed
    }

    async fn context_without_system(&self, messages: &[Arc<Message>]) -> Option<Vec<Arc<Message>>> {
        let point = Point::Context;
        if !self.wants(point) {
            return None;
        }
        let mut now = without_system(messages);
        let mut is_changed = false;
        for one in self.wanting(point) {
            let call = self.call(&one, point);
            let answer = call.attempt(|| one.extension.context(&now, &call.cx)).await;
            if let Some(ContextAction::Replace(others)) = answer {
                now = others;
                is_changed = true;
            }
        }
        is_changed.then(|| with_system(messages, now))
    }

    /// Returns a changed body for a request, or `None` if unchanged.
    pub(crate) async fn before_request(&self, body: &Value, model: &Model) -> Option<Value> {
        let point = Point::BeforeProviderRequest;
        let mut changed: Option<Value> = None;
        for one in self.wanting(point) {
            let call = self.call(&one, point);
            let now = changed.as_ref().unwrap_or(body);
            let answer = call.attempt(|| one.extension.before_provider_request(now, model, &call.cx)).await;
            if let Some(PayloadAction::Replace(other)) = answer {
                changed = Some(other);
            }
        }
        changed
    }

    /// Changes a request's headers.
    pub(crate) async fn before_headers(&self, headers: &mut HeaderMap, model: &Model) {
        let point = Point::BeforeProviderHeaders;
        for one in self.wanting(point) {
            let call = self.call(&one, point);
            let now = header_texts(headers);
            let answer = call.attempt(|| one.extension.before_provider_headers(&now, model, &call.cx)).await;
            for (name, value) in answer.unwrap_or_default() {
                if !change_header(headers, &name, value.as_deref()) {
                    let error = ExtensionError::new(format!("Invalid header: {name}"));
                    self.report(&one.name, point.name(), &error);
                }
            }
        }
    }

    /// Returns the messages to add to a prompt, and a changed system prompt, if any.
    pub(crate) async fn before_start(
        &self,
        mut start: BeforeAgentStart,
    ) -> (Vec<CustomMessage>, Option<PromptSections>) {
        let point = Point::BeforeAgentStart;
        let (mut messages, mut is_changed) = (Vec::new(), false);
        for one in self.wanting(point) {
            let call = self.call(&one, point);
            let answer = call.attempt(|| one.extension.before_agent_start(&start, &call.cx));
            let AgentStartAction { messages: said, system, sections } = answer.await.unwrap_or_default();
            messages.extend(said);
            if let Some(system) = system {
                start.system = system;
                is_changed = true;
            }
            for (name, text) in &sections {
                start.system.replace_wrapped(name, text);
                is_changed = true;
            }
        }
        (messages, is_changed.then_some(start.system))
    }

    pub(crate) async fn turn_end(&self, turn: TurnEnd<'_>) -> Boundary {
        let point = Point::TurnEnd;
        let mut so_far = Boundary::default();
        for one in self.wanting(point) {
            let call = self.call(&one, point);
            let answer = call.attempt(|| one.extension.turn_end(turn, &so_far, &call.cx)).await;
            so_far.add(answer.unwrap_or_default());
        }
        so_far
    }

    pub(crate) async fn before_settle(&self, ahead: BeforeSettle) -> Boundary {
        let point = Point::AgentBeforeSettle;
        let mut so_far = Boundary::default();
        for one in self.wanting(point) {
            let call = self.call(&one, point);
            let answer = call.attempt(|| one.extension.agent_before_settle(ahead, &so_far, &call.cx)).await;
            so_far.add(answer.unwrap_or_default());
        }
        so_far
    }

    /// Reports that the combined result for a turn or an idle session cannot be applied.
    pub(crate) fn report_boundary(&self, point: Point, why: String) {
        self.report("<boundary>", point.name(), &ExtensionError::new(why));
    }

    /// Returns a replacement for a complete message, or `None` if unchanged.
    pub(crate) async fn message_end(&self, message: &Arc<Message>) -> Option<Arc<Message>> {
        let point = Point::MessageEnd;
        let mut changed: Option<Arc<Message>> = None;
        for one in self.wanting(point) {
            let call = self.call(&one, point);
            let now = changed.as_ref().unwrap_or(message);
            let answer = call.attempt(|| one.extension.message_end(now, &call.cx)).await;
            match answer {
                Some(MessageAction::Replace(other)) if may_replace(message, &other) => changed = Some(other),
                Some(MessageAction::Replace(_)) => {
                    let error = ExtensionError::new("message_end handlers must return a message with the same role");
                    self.report(&one.name, point.name(), &error);
                }
                Some(MessageAction::Keep) | None => {}
            }
        }
        changed
    }

    /// Decides whether a call may run, and with which arguments. A failure denies it.
    pub(crate) async fn tool_call(&self, pending: &PendingCall) -> BeforeTool {
        let point = Point::ToolCall;
        let mut now = Cow::Borrowed(pending);
        for one in self.wanting(point) {
            let call = self.call(&one, point);
            match call.ask(|| one.extension.tool_call(&now, &call.cx)).await {
                Ok(BeforeTool::Allow) => {}
                Ok(BeforeTool::Rewrite(input)) => now.to_mut().input = input,
                Ok(deny @ BeforeTool::Deny { .. }) => return deny,
                Err(error) => {
                    let reason = format!("Extension failed, blocking execution: {error}");
                    return BeforeTool::deny(reason);
                }
            }
        }
        match now {
            Cow::Borrowed(_) => BeforeTool::Allow,
            Cow::Owned(changed) => BeforeTool::Rewrite(changed.input),
        }
    }

    /// Asks for the user's approval of a call that hooks and extensions allow.
    pub(crate) async fn approved(&self, session_id: &str, pending: &PendingCall) -> Approval {
        let call = ToolApproval {
            session_id,
            call_id: pending.call.id.as_str(),
            tool: &pending.call.name,
            args: &pending.input,
        };
        self.0.core.screen().ui.approve(call).await
    }

    /// Returns the changes to a call's result.
    pub(crate) async fn tool_result(&self, done: &FinishedCall) -> ToolPatch {
        let point = Point::ToolResult;
        let mut all = ToolPatch::default();
        let mut now: Option<FinishedCall> = None;
        for one in self.wanting(point) {
            let call = self.call(&one, point);
            let seen = now.as_ref().unwrap_or(done);
            let answer = call.attempt(|| one.extension.tool_result(seen, &call.cx)).await;
            if let Some(patch) = answer.filter(|patch| *patch != ToolPatch::default()) {
                patch.clone().apply(&mut now.get_or_insert_with(|| done.clone()).output);
                all.add(patch);
            }
        }
        all
    }

    /// Decides what to do with a user's command. A failure blocks it.
    pub(crate) async fn user_bash(&self, command: &UserBash) -> UserBashAction {
        let point = Point::UserBash;
        for one in self.wanting(point) {
            let call = self.call(&one, point);
            match call.ask(|| one.extension.user_bash(command, &call.cx)).await {
                Ok(UserBashAction::Run) => {}
                Ok(other) => return other,
                Err(error) => {
                    let reason = format!("Extension failed, blocking execution: {error}");
                    return UserBashAction::Block { reason };
                }
            }
        }
        UserBashAction::Run
    }

    pub(crate) async fn input(&self, mut input: Input) -> InputOutcome {
        let point = Point::Input;
        for one in self.wanting(point) {
            let call = self.call(&one, point);
            let answer = call.attempt(|| one.extension.input(&input, &call.cx)).await;
            match answer {
                None | Some(InputAction::Continue) => {}
                Some(InputAction::Handled) => return InputOutcome::Handled,
                Some(InputAction::Transform { text, images }) => {
                    input.text = text;
                    input.images = images.unwrap_or(input.images);
                }
            }
        }
        InputOutcome::Pass(input)
    }
}

/// Returns an extension's name without its directory and script extension.
fn short_name(name: &str) -> &str {
    let file = Path::new(name).file_name().and_then(|file| file.to_str()).unwrap_or(name);
    file.strip_suffix(".ts").or_else(|| file.strip_suffix(".js")).unwrap_or(file)
}

/// Returns whether a message may replace another one: it needs the same role, and a tool result the same call.
fn may_replace(message: &Message, other: &Message) -> bool {
    match (message, other) {
        (Message::ToolResult(old), Message::ToolResult(new)) => old.tool_call_id == new.tool_call_id,
        _ => message.role() == other.role(),
    }
}

/// Returns the headers with text values; others are ignored.
pub(crate) fn header_texts(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |(name, value): (&HeaderName, &HeaderValue)| Some((name.to_string(), value.to_str().ok()?.to_owned()));
    headers.iter().filter_map(text).collect()
}

/// Sets or removes a header. Returns false if its name or value is invalid.
fn change_header(headers: &mut HeaderMap, name: &str, value: Option<&str>) -> bool {
    let Ok(name) = name.parse::<HeaderName>() else { return false };
    match value.map(str::parse::<HeaderValue>) {
        None => drop(headers.remove(name)),
        Some(Ok(value)) => drop(headers.insert(name, value)),
        Some(Err(_)) => return false,
    }
    true
}
