//! The client's side: lines to events.

use std::sync::Arc;
use std::time::Instant;

use futures::{Stream, StreamExt as _};
use pinch_llm::error::{Emitted, LlmError, LlmErrorKind};
use pinch_llm::event::{BlockKind, Emit, EventStream, Finished, Fold, StreamEvent};
use pinch_llm::frame::Frame;
use pinch_llm::message::{AssistantMessage, Block, Message, StopReason, Usage};
use pinch_llm::model::Model;
use pinch_llm::request::{Request, ThinkingChoice};
use pinch_llm::wire::{Decoder, FrameKind, WireCall};
use pinch_stdx::cancel::Cancel;
use pinch_stdx::json::lossy;
use pinch_stdx::pull;
use serde_json::Value;

use super::failure;
use super::writer::rebuilt;

const CUT: &str = "Proxy stream ended unexpectedly";
const ABORTED: &str = "Request aborted by user";

/// Reads an answer whose events come from elsewhere than a server, for example from another process.
///
/// Cancelling ends the answer as aborted, with the part that had arrived; an error and the end of the events without one of the answer end
/// it as failed. The events are dropped when the answer has ended.
pub fn read(
    request: &Request,
    events: impl Stream<Item = Result<Value, LlmError>> + Send + 'static,
    cancel: Cancel,
) -> EventStream {
    let (timestamp, clock) = (request.host.now_ms(), Instant::now());
    let (model, provider) = (Arc::clone(&request.model), request.model.provider.clone());
    let mut reader = LineReader::new(&WireCall::new(request, timestamp));
    let answer = pull::pulled(async move |emitter: pull::Emitter<StreamEvent>| {
        let mut events = std::pin::pin!(events);
        let mut emit = Emit::default();
        while !reader.ended {
            match cancel.run(events.next()).await {
                Ok(Some(Ok(event))) => drop(reader.take(&event, &mut emit)),
                Ok(Some(Err(error))) => reader.fail(error, &mut emit),
                Ok(None) => reader.finish(&mut emit),
                Err(_) => reader.fail(LlmError::new(provider.clone(), LlmErrorKind::Aborted, ABORTED), &mut emit),
            }
            while let Some(mut event) = emit.pop() {
                if let StreamEvent::End(finished) = &mut event {
                    let elapsed = i64::try_from(clock.elapsed().as_millis()).unwrap_or(i64::MAX);
                    Arc::make_mut(&mut finished.message).duration_ms.get_or_insert(elapsed);
                }
                emitter.emit(event).await;
            }
        }
    });
    EventStream::new(&model, timestamp, answer)
}

/// Parses the lines of one answer.
pub(super) struct LineReader {
    model: Arc<Model>,
    /// The initial message, before anything is known about it.
    empty: AssistantMessage,
    fold: Fold,
    blocks: Vec<ProxyBlock>,
    started: bool,
    ended: bool,
}

/// A block that has started.
struct ProxyBlock {
    kind: ProxyBlockKind,
    is_open: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ProxyBlockKind {
    Text,
    Thinking,
    Call,
}

impl ProxyBlockKind {
    /// Returns its name in blocks.
    fn word(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Thinking => "thinking",
            Self::Call => "toolCall",
        }
    }
}

/// An invalid event, with the text of the error.
struct MalformedEvent(String);

impl LineReader {
    pub(super) fn new(call: &WireCall<'_>) -> Self {
        let model = Arc::clone(&call.request.model);
        let ids = (model.api.clone(), model.provider.clone(), model.id.clone());
        let mut empty = AssistantMessage::pending(ids.0, ids.1, ids.2, call.timestamp);
        if let ThinkingChoice::Level(level) = call.request.options.thinking {
            empty.thinking_level = Some(level);
        }
        Self { model, empty, fold: Fold::new(), blocks: Vec::new(), started: false, ended: false }
    }

    fn emit(&mut self, event: StreamEvent, emit: &mut Emit) {
        self.fold.push(&event);
        emit.push(event);
    }

    /// Starts the answer unless it has started: some servers send no start.
    fn start(&mut self, message: Option<Arc<AssistantMessage>>, emit: &mut Emit) {
        if !self.started {
            self.started = true;
            let message = message.unwrap_or_else(|| Arc::new(self.empty.clone()));
            self.emit(StreamEvent::Start(message), emit);
        }
    }

    /// Takes in an event; after the end, there are none.
    fn take(&mut self, event: &Value, emit: &mut Emit) -> FrameKind {
        if self.ended {
            return FrameKind::KeepAlive;
        }
        self.read(event, emit).unwrap_or_else(|MalformedEvent(text)| self.refuse(text, emit))
    }

    /// Ends the answer because an event is invalid.
    fn refuse(&mut self, text: String, emit: &mut Emit) -> FrameKind {
        self.fail(LlmError::new(self.model.provider.clone(), LlmErrorKind::Protocol, text), emit);
        FrameKind::Content
    }

    fn read(&mut self, event: &Value, emit: &mut Emit) -> Result<FrameKind, MalformedEvent> {
        let name = event["type"].as_str().unwrap_or("");
        match name {
            "start" => self.start(message_in(event, Vec::new())?, emit),
            "text_start" => self.open(event, ProxyBlockKind::Text, BlockKind::Text, emit)?,
            "thinking_start" => {
                let redacted = event["redacted"] == true;
                self.open(event, ProxyBlockKind::Thinking, BlockKind::Thinking { redacted }, emit)?;
            }
            "toolcall_start" => {
                let text = |member: &str| event[member].as_str().unwrap_or("").to_owned();
                let kind = BlockKind::ToolCall { id: text("id").into(), name: text("toolName") };
                self.open(event, ProxyBlockKind::Call, kind, emit)?;
            }
            "text_delta" => self.delta(event, name, ProxyBlockKind::Text, emit)?,
            "thinking_delta" => self.delta(event, name, ProxyBlockKind::Thinking, emit)?,
            "toolcall_delta" => self.delta(event, name, ProxyBlockKind::Call, emit)?,
            "text_end" => self.close(event, name, ProxyBlockKind::Text, emit)?,
            "thinking_end" => self.close(event, name, ProxyBlockKind::Thinking, emit)?,
            "toolcall_end" => self.close(event, name, ProxyBlockKind::Call, emit)?,
            "usage" => {
                self.start(None, emit);
                let usage = usage_in(event)?.unwrap_or_default();
                self.emit(StreamEvent::Usage(Box::new(usage)), emit);
            }
            "done" => self.done(event, emit)?,
            "error" => self.failed(event, emit)?,
            _ => return Ok(FrameKind::KeepAlive),
        }
        Ok(FrameKind::Content)
    }

    fn open(
        &mut self,
        event: &Value,
        kind: ProxyBlockKind,
        block: BlockKind,
        emit: &mut Emit,
    ) -> Result<(), MalformedEvent> {
        let index = index_in(event)?;
        if index != self.blocks.len() {
            return Err(MalformedEvent(format!("Proxy stream began block {index} and not {}", self.blocks.len())));
        }
        self.start(None, emit);
        self.blocks.push(ProxyBlock { kind, is_open: true });
        self.emit(StreamEvent::BlockStart { index, kind: block }, emit);
        Ok(())
    }

    /// Returns the block that an event belongs to.
    fn place(
        &mut self,
        event: &Value,
        name: &str,
        kind: ProxyBlockKind,
    ) -> Result<(usize, &mut ProxyBlock), MalformedEvent> {
        let index = index_in(event)?;
        match self.blocks.get_mut(index) {
            Some(place) if place.kind == kind && place.is_open => Ok((index, place)),
            Some(place) if place.kind == kind => {
                Err(MalformedEvent(format!("Received {name} for content that had ended")))
            }
            _ => Err(MalformedEvent(format!("Received {name} for non-{} content", kind.word()))),
        }
    }

    fn delta(
        &mut self,
        event: &Value,
        name: &str,
        kind: ProxyBlockKind,
        emit: &mut Emit,
    ) -> Result<(), MalformedEvent> {
        let (index, _) = self.place(event, name, kind)?;
        let text = event["delta"].as_str().unwrap_or("").into();
        self.emit(StreamEvent::Delta { index, text }, emit);
        Ok(())
    }

    fn close(
        &mut self,
        event: &Value,
        name: &str,
        kind: ProxyBlockKind,
        emit: &mut Emit,
    ) -> Result<(), MalformedEvent> {
        let (index, place) = self.place(event, name, kind)?;
        place.is_open = false;
        let block = match event.get("block") {
            Some(block) => Some(block_of(block)?),
            None => rebuilt(&self.fold, index, event["contentSignature"].as_str()),
        };
        if let Some(block) = block {
            self.emit(StreamEvent::BlockEnd { index, block: Arc::new(block) }, emit);
        }
        Ok(())
    }

    /// Returns the message of an end event, completed with the collected content.
    fn last_message(&self, event: &Value) -> Result<AssistantMessage, MalformedEvent> {
        let so_far = if self.started { self.fold.message() } else { Arc::new(self.empty.clone()) };
        let mut message = match message_in(event, so_far.content.clone())? {
            Some(message) => Arc::unwrap_or_clone(message),
            None => Arc::unwrap_or_clone(so_far),
        };
        if let Some(usage) = usage_in(event)? {
            message.usage = usage;
        }
        Ok(message)
    }

    fn done(&mut self, event: &Value, emit: &mut Emit) -> Result<(), MalformedEvent> {
        let reason = &event["reason"];
        let good = [StopReason::Stop, StopReason::Length, StopReason::ToolUse, StopReason::Deferred];
        let stop_reason = good.into_iter().find(|known| *reason == known.as_str());
        let stop_reason = stop_reason.ok_or_else(|| MalformedEvent(format!("Unhandled stop reason: {reason}")))?;
        let mut message = self.last_message(event)?;
        message.stop_reason = stop_reason;
        self.end(message, None, emit);
        Ok(())
    }

    fn failed(&mut self, event: &Value, emit: &mut Emit) -> Result<(), MalformedEvent> {
        let mut message = self.last_message(event)?;
        let is_aborted = event["reason"] == "aborted";
        message.stop_reason = if is_aborted { StopReason::Aborted } else { StopReason::Error };
        message.error_message = event["errorMessage"].as_str().map(str::to_owned).or(message.error_message);
        let text = message.error_message.clone().unwrap_or_default();
        let error = failure::read(&event["error"]).unwrap_or_else(|| match is_aborted {
            true => LlmError::new(self.model.provider.clone(), LlmErrorKind::Aborted, text),
            false => LlmError::refused(self.model.provider.clone(), None, None, text),
        });
        self.end(message, Some(error), emit);
        Ok(())
    }

    fn end(&mut self, message: AssistantMessage, error: Option<LlmError>, emit: &mut Emit) {
        let emitted = match (self.started, self.blocks.is_empty()) {
            (false, _) => Emitted::Nothing,
            (true, true) => Emitted::Started,
            (true, false) => Emitted::Content,
        };
        let error = error.map(|mut error| {
            error.emitted = emitted;
            Arc::new(error)
        });
        self.ended = true;
        self.emit(StreamEvent::End(Finished { message: Arc::new(message), error }), emit);
    }
}

fn index_in(event: &Value) -> Result<usize, MalformedEvent> {
    let index = event["contentIndex"].as_u64().and_then(|index| usize::try_from(index).ok());
    index.ok_or_else(|| MalformedEvent("Proxy stream names no block".into()))
}

fn usage_in(event: &Value) -> Result<Option<Usage>, MalformedEvent> {
    match event.get("usage") {
        None | Some(Value::Null) => Ok(None),
        Some(usage) => serde_json::from_value(usage.clone()).map(Some).map_err(|why| unreadable("usage", &why)),
    }
}

fn block_of(block: &Value) -> Result<Block, MalformedEvent> {
    serde_json::from_value(block.clone()).map_err(|why| unreadable("block", &why))
}

/// Returns the message of an event, with this content unless it has its own.
fn message_in(event: &Value, content: Vec<Arc<Block>>) -> Result<Option<Arc<AssistantMessage>>, MalformedEvent> {
    let Some(reported) = event.get("message").filter(|reported| reported.is_object()) else { return Ok(None) };
    let brings_content = reported.get("content").is_some();
    match Message::from_value(reported) {
        Ok(Message::Assistant(message)) if brings_content => Ok(Some(message)),
        Ok(Message::Assistant(message)) => {
            let mut message = Arc::unwrap_or_clone(message);
            message.content = content;
            Ok(Some(Arc::new(message)))
        }
        Ok(_) => Err(MalformedEvent("Proxy stream brought a message that is not an answer".into())),
        Err(why) => Err(unreadable("message", &why)),
    }
}

fn unreadable(what: &str, why: &serde_json::Error) -> MalformedEvent {
    MalformedEvent(format!("Proxy stream brought a {what} that cannot be read: {why}"))
}

impl Decoder for LineReader {
    fn push(&mut self, frame: Frame<'_>, emit: &mut Emit) -> FrameKind {
        match lossy::from_str::<Value>(frame.data) {
            Ok(event) => self.take(&event, emit),
            Err(why) => self.refuse(format!("Could not parse proxy event: {why}"), emit),
        }
    }

    fn finish(&mut self, emit: &mut Emit) {
        self.fail(LlmError::new(self.model.provider.clone(), LlmErrorKind::StreamCut, CUT), emit);
    }

    fn fail(&mut self, mut error: LlmError, emit: &mut Emit) {
        if self.ended {
            return;
        }
        let mut message = if self.started { Arc::unwrap_or_clone(self.fold.message()) } else { self.empty.clone() };
        message.stop_reason = StopReason::Error;
        if error.kind == LlmErrorKind::Aborted {
            message.stop_reason = StopReason::Aborted;
            error.text = ABORTED.into();
        }
        message.error_message = Some(error.text.clone());
        self.end(message, Some(error), emit);
    }
}
