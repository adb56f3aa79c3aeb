//! Events of an answer printed by a program.

use std::sync::Arc;

use pinch_agent_core::event::AgentEvent;
use pinch_coding_agent::event::SessionEvent;
use pinch_llm::event::{BlockKind, StreamEvent};
use pinch_llm::message::{AssistantMessage, Block, Message, StopReason, UserMessage};
use pinch_llm::model::Model;
use pinch_stdx::host::Host;
use pinch_stdx::pull::Emitter;

use super::output::{CliReply, line_of, message_of};
use crate::run::facts::Facts;
use crate::run::outcome::{AttemptEnd, AttemptOutcome, FailureStage};
use crate::runtime::AttemptEvent;

/// An answer in progress.
pub(super) struct PrintedAnswer<'e> {
    emitter: &'e Emitter<AttemptEvent>,
    answer: AssistantMessage,
    facts: Facts,
    /// Output since the last complete line.
    line: Vec<u8>,
    /// Text emitted so far; `None` before the answer began.
    shown: Option<String>,
}

impl<'e> PrintedAnswer<'e> {
    pub(super) fn new(emitter: &'e Emitter<AttemptEvent>, model: &Model, host: &Host) -> Self {
        let now = host.now_ms();
        let answer = AssistantMessage::pending(model.api.clone(), model.provider.clone(), model.id.clone(), now);
        Self { emitter, answer, facts: Facts::default(), line: Vec::new(), shown: None }
    }

    async fn emit(&mut self, event: AgentEvent) {
        let event = SessionEvent::Agent(event);
        self.facts.observe(&event, |_| false);
        self.emitter.emit(AttemptEvent::Session(event)).await;
    }

    /// Emits the prompt.
    pub(super) async fn asked(&mut self, prompt: &UserMessage) {
        let message = Arc::new(Message::User(prompt.clone()));
        self.emit(AgentEvent::MessageStart(Arc::clone(&message))).await;
        self.emit(AgentEvent::MessageEnd { message, error: None, queued: None }).await;
    }

    /// Handles further output in JSON lines.
    pub(super) async fn printed(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        // Only new output is searched, since a line may be long and arrive in many pieces.
        while let Some(end) = memchr::memchr(b'\n', rest) {
            self.line.extend_from_slice(&rest[..end]);
            rest = &rest[end + 1..];
            let line = std::mem::take(&mut self.line);
            let text = line_of(&String::from_utf8_lossy(&line)).and_then(|line| message_of(&line));
            if let Some(text) = text {
                let between = if self.shown.as_ref().is_some_and(|shown| !shown.is_empty()) { "\n" } else { "" };
                self.show(&format!("{between}{text}")).await;
            }
        }
        self.line.extend_from_slice(rest);
    }

    async fn show(&mut self, text: &str) {
        if self.shown.is_none() {
            self.shown = Some(String::new());
            let start = Arc::new(Message::Assistant(Arc::new(self.answer.clone())));
            self.emit(AgentEvent::MessageStart(start)).await;
            self.emit(AgentEvent::MessageUpdate(StreamEvent::BlockStart { index: 0, kind: BlockKind::Text })).await;
        }
        if !text.is_empty() {
            self.shown.get_or_insert_default().push_str(text);
            self.emit(AgentEvent::MessageUpdate(StreamEvent::Delta { index: 0, text: text.into() })).await;
        }
    }

    /// Completes the answer and returns it.
    pub(super) async fn answered(&mut self, reply: CliReply) -> Arc<AssistantMessage> {
        let shown = self.shown.clone().unwrap_or_default();
        // The part that was not a complete line, or was parsed differently in the end.
        let rest = reply.text.strip_prefix(shown.trim()).unwrap_or(if shown.is_empty() { &reply.text } else { "" });
        self.show(rest).await;
        self.answer.usage = reply.usage.unwrap_or_default();
        self.answer.stop_reason = StopReason::Stop;
        self.end().await
    }

    /// Ends the answer of a program that failed or was stopped, and returns it with the end of the attempt.
    pub(super) async fn broken_off(&mut self, end: AttemptEnd) -> (AttemptEnd, Arc<AssistantMessage>) {
        let has_begun = self.shown.is_some();
        let end = match end {
            AttemptEnd::Failed { stage, error } => {
                self.answer.stop_reason = StopReason::Error;
                self.answer.error_message = Some(error.text.clone());
                AttemptEnd::failed(if has_begun { FailureStage::Answer } else { stage }, error)
            }
            other => {
                self.answer.stop_reason = StopReason::Aborted;
                other
            }
        };
        let answer = if has_begun { self.end().await } else { Arc::new(self.answer.clone()) };
        (end, answer)
    }

    async fn end(&mut self) -> Arc<AssistantMessage> {
        let text = self.shown.clone().unwrap_or_default();
        if !text.is_empty() {
            let block = Arc::new(Block::text(text));
            self.answer.content = vec![Arc::clone(&block)];
            self.emit(AgentEvent::MessageUpdate(StreamEvent::BlockEnd { index: 0, block })).await;
        }
        let answer = Arc::new(self.answer.clone());
        let message = Arc::new(Message::Assistant(Arc::clone(&answer)));
        self.emit(AgentEvent::MessageEnd { message, error: None, queued: None }).await;
        answer
    }

    pub(super) fn into_outcome(self, end: AttemptEnd) -> AttemptOutcome {
        self.facts.into_outcome(end)
    }
}
