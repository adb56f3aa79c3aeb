//! The answer as it is put together: what every decoder shares.

use std::sync::Arc;

use pinch_stdx::json::repair;

use super::json_read::Surrogates;
use crate::error::{Emitted, LlmError, LlmErrorKind};
use crate::event::stream::failure;
use crate::event::{BlockKind, Emit, Finished, StreamEvent};
use crate::message::{AssistantMessage, Block, StopReason, Text, Thinking, ToolCall, Usage};
use crate::model::{Model, Rates};
use crate::request::{Request, ThinkingChoice};

/// Collects an answer and emits its events. After the end it takes nothing more.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) model: Arc<Model>,
    pub(crate) message: AssistantMessage,
    /// Prices of the model that answers: not always those of the one that was asked.
    pub(crate) rates: Option<Rates>,
    slots: Vec<Slot>,
    surrogates: Surrogates,
    started: bool,
    ended: bool,
}

/// A block that is open, or done.
#[derive(Debug)]
pub(crate) enum Slot {
    Text(Text),
    Thinking(Thinking),
    Call { call: ToolCall, json: String },
    Done(Arc<Block>),
}

impl Reply {
    pub(crate) fn new(request: &Request, timestamp: i64) -> Self {
        let model = Arc::clone(&request.model);
        let mut message =
            AssistantMessage::pending(model.api.clone(), model.provider.clone(), model.id.clone(), timestamp);
        if let ThinkingChoice::Level(level) = request.options.thinking {
            message.thinking_level = Some(level);
        }
        Self {
            model,
            message,
            rates: None,
            slots: Vec::new(),
            surrogates: Surrogates::default(),
            started: false,
            ended: false,
        }
    }

    /// Whether the end was emitted.
    pub(crate) fn is_ended(&self) -> bool {
        self.ended
    }

    /// What the consumer has seen so far.
    pub(crate) fn emitted(&self) -> Emitted {
        match (self.started, self.slots.is_empty()) {
            (false, _) => Emitted::Nothing,
            (true, true) => Emitted::Started,
            (true, false) => Emitted::Content,
        }
    }

    /// Emits the start unless it was.
    pub(crate) fn start(&mut self, emit: &mut Emit) {
        if !self.started && !self.ended {
            self.started = true;
            emit.push(StreamEvent::Start(Arc::new(self.message.clone())));
        }
    }

    /// Takes the usage known by now; prices it, and emits it when it is news.
    pub(crate) fn set_usage(&mut self, mut usage: Usage, emit: &mut Emit) {
        if !usage.cost.total_from_provider {
            usage.cost = self.rates.as_ref().unwrap_or(&self.model.rates).cost(&usage);
        }
        if usage != self.message.usage {
            self.message.usage = usage;
            if self.started {
                emit.push(StreamEvent::Usage(Box::new(usage)));
            }
        }
    }

    /// Opens a block and returns its place.
    pub(crate) fn open(&mut self, slot: Slot, emit: &mut Emit) -> usize {
        self.start(emit);
        let index = self.slots.len();
        let kind = match &slot {
            Slot::Text(_) | Slot::Done(_) => BlockKind::Text,
            Slot::Thinking(thinking) => BlockKind::Thinking { redacted: thinking.redacted },
            Slot::Call { call, .. } => BlockKind::ToolCall { id: call.id.clone(), name: call.name.clone() },
        };
        self.slots.push(slot);
        emit.push(StreamEvent::BlockStart { index, kind });
        index
    }

    /// Appends to an open block. `mended`: the frame's text had to be mended.
    pub(crate) fn delta(&mut self, index: usize, text: &str, mended: bool, emit: &mut Emit) {
        let text = self.surrogates.clean(index, text, mended);
        match self.slots.get_mut(index) {
            Some(Slot::Text(block)) => block.text.push_str(&text),
            Some(Slot::Thinking(block)) => block.thinking.push_str(&text),
            Some(Slot::Call { json, .. }) => json.push_str(&text),
            Some(Slot::Done(_)) | None => return,
        }
        emit.push(StreamEvent::Delta { index, text: text.into() });
    }

    /// An open block.
    pub(crate) fn slot(&mut self, index: usize) -> Option<&mut Slot> {
        self.slots.get_mut(index)
    }

    /// All blocks in order.
    pub(crate) fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// Ends a block unless it is ended.
    pub(crate) fn close(&mut self, index: usize, emit: &mut Emit) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        if matches!(slot, Slot::Done(_)) {
            return;
        }
        let block = Arc::new(take_block(slot, Completeness::Whole));
        *slot = Slot::Done(Arc::clone(&block));
        emit.push(StreamEvent::BlockEnd { index, block });
    }

    /// Ends all blocks that are open, in order.
    pub(crate) fn close_all(&mut self, emit: &mut Emit) {
        (0..self.slots.len()).for_each(|index| self.close(index, emit));
    }

    /// Ends the answer well.
    pub(crate) fn done(&mut self, stop_reason: StopReason, emit: &mut Emit) {
        if self.ended {
            return;
        }
        self.start(emit);
        let mut message = self.take_message();
        message.stop_reason = stop_reason;
        emit.push(StreamEvent::End(Finished { message: Arc::new(message), error: None }));
    }

    /// Ends the answer with a failure; what was collected stays in the message.
    pub(crate) fn fail(&mut self, mut error: LlmError, emit: &mut Emit) {
        if self.ended {
            return;
        }
        error.emitted = self.emitted();
        let message = self.take_message();
        emit.push(StreamEvent::End(failure(message, error)));
    }

    /// The same, with an error of this kind and text. Whatever a response says, it began: the start comes before its failure too.
    pub(crate) fn fail_with(&mut self, kind: LlmErrorKind, text: impl Into<String>, emit: &mut Emit) {
        let error = LlmError::new(self.model.provider.clone(), kind, text);
        self.start(emit);
        self.fail(error, emit);
    }

    /// Takes the names of the answer and of the model that gives it, where they were not told before. The model that was asked is no news.
    pub(crate) fn identify(&mut self, id: Option<&str>, model: Option<&str>) {
        if let Some(id) = id.filter(|_| self.message.response_id.is_none()) {
            self.message.response_id = Some(id.to_owned());
        }
        if let Some(model) = model.filter(|model| self.message.response_model.is_none() && self.model.id != **model) {
            self.message.response_model = Some(model.to_owned());
        }
    }

    fn take_message(&mut self) -> AssistantMessage {
        self.ended = true;
        let blocks = self.slots.iter_mut().map(|slot| match slot {
            Slot::Done(block) => Arc::clone(block),
            open => Arc::new(take_block(open, Completeness::CutOff)),
        });
        let mut message = self.message.clone();
        message.content = blocks.collect();
        message
    }
}

/// Whether the text of a call's arguments came to its end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Completeness {
    Whole,
    CutOff,
}

fn take_block(slot: &mut Slot, completeness: Completeness) -> Block {
    match slot {
        Slot::Text(text) => Block::Text(std::mem::take(text)),
        Slot::Thinking(thinking) => Block::Thinking(std::mem::take(thinking)),
        Slot::Call { call, json } => {
            let mut call = call.clone();
            if json.is_empty() {
                // The arguments may have come with the block's start.
            } else if completeness == Completeness::CutOff {
                call.arguments = repair::parse_streaming(json);
            } else {
                match repair::parse_object(json) {
                    Ok(arguments) => call.arguments = arguments,
                    Err(why) => {
                        call.arguments.clear();
                        call.arguments_error = Some(format!("{why}\n\nReceived arguments:\n{json}"));
                    }
                }
            }
            Block::ToolCall(call)
        }
        Slot::Done(block) => (**block).clone(),
    }
}
