//! Builds an answer from the chunks of a response; shared by all decoders.
//!
//! A [`Decoder`](super::Decoder) owns one [`ReplyBuilder`], opens blocks, appends deltas, and ends the answer. The builder emits the events
//! in the order required by [`event`](crate::event), prices the usage, parses the arguments of calls, and keeps what has arrived if the
//! response fails.

use std::sync::Arc;

use pinch_stdx::json::repair;
use pinch_stdx::text::append;

use super::frame_json::{Surrogates, TextQuality};
use crate::error::{Emitted, LlmError, LlmErrorKind};
use crate::event::stream::failure;
use crate::event::{BlockKind, Emit, Finished, StreamEvent};
use crate::message::{AssistantMessage, Block, StopReason, Text, Thinking, ToolCall, Usage};
use crate::model::{Model, Rates};
use crate::request::{Request, ThinkingChoice};

/// Collects an answer and emits its events. After the end all calls are ignored.
#[derive(Debug)]
pub struct ReplyBuilder {
    /// The requested model.
    pub model: Arc<Model>,
    /// The message so far, without its content: set the provider's stop reason and the like here.
    pub message: AssistantMessage,
    /// Prices of the answering model, if it is not the requested one.
    pub rates: Option<Rates>,
    slots: Vec<OpenBlock>,
    surrogates: Surrogates,
    started: bool,
    ended: bool,
}

/// A block of the answer. Its non-text members (ids, names, signatures) may be set at any time before it is closed.
#[derive(Debug)]
pub enum OpenBlock {
    /// Text.
    Text(Text),
    /// Thinking.
    Thinking(Thinking),
    /// A tool call.
    Call {
        /// The call. Its arguments are used only while `json` is empty.
        call: ToolCall,
        /// The JSON text of its arguments so far.
        json: String,
    },
    /// A closed block, which does not change any more.
    Done(Arc<Block>),
}

impl OpenBlock {
    /// Creates a call without arguments.
    pub fn call(call: ToolCall) -> Self {
        Self::Call { call, json: String::new() }
    }
}

impl ReplyBuilder {
    /// Creates an empty answer to a request made at `timestamp` (Unix milliseconds).
    pub fn new(request: &Request, timestamp: i64) -> Self {
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
            slots: Vec::with_capacity(1),
            surrogates: Surrogates::default(),
            started: false,
            ended: false,
        }
    }

    /// Returns whether the answer has ended.
    pub fn is_ended(&self) -> bool {
        self.ended
    }

    /// Returns what the consumer has received so far.
    pub fn emitted(&self) -> Emitted {
        match (self.started, self.slots.is_empty()) {
            (false, _) => Emitted::Nothing,
            (true, true) => Emitted::Started,
            (true, false) => Emitted::Content,
        }
    }

    /// Emits the start, once. Opening a block and ending the answer do so as well.
    pub fn start(&mut self, emit: &mut Emit) {
        if !self.started && !self.ended {
            self.started = true;
            // The level is recorded when the answer ends, as in pi.
            let message = AssistantMessage { thinking_level: None, ..self.message.clone() };
            emit.push(StreamEvent::Start(Arc::new(message)));
        }
    }

    /// Sets the usage known so far, priced by the model's rates unless the provider billed it; emits it if it has changed.
    pub fn set_usage(&mut self, mut usage: Usage, emit: &mut Emit) {
        if usage.cost.total_from_provider != Some(true) {
            usage.cost = self.rates.as_ref().unwrap_or(&self.model.rates).cost(&usage);
        }
        if usage != self.message.usage {
            self.message.usage = usage;
            if self.started {
                emit.push(StreamEvent::Usage(Box::new(usage)));
            }
        }
    }

    /// Opens a block and returns its index. Several may be open at the same time.
    pub fn open(&mut self, slot: OpenBlock, emit: &mut Emit) -> usize {
        self.start(emit);
        let index = self.slots.len();
        let kind = match &slot {
            OpenBlock::Text(text) if text.is_commentary() => BlockKind::Commentary,
            OpenBlock::Text(_) | OpenBlock::Done(_) => BlockKind::Text,
            OpenBlock::Thinking(thinking) => BlockKind::Thinking { redacted: thinking.redacted },
            OpenBlock::Call { call, .. } => BlockKind::ToolCall { id: call.id.clone(), name: call.name.clone() },
        };
        self.slots.push(slot);
        emit.push(StreamEvent::BlockStart { index, kind });
        index
    }

    /// Appends text to an open block: text, thinking, or JSON of a call's arguments. `quality` is that of its frame.
    pub fn delta(&mut self, index: usize, text: &str, quality: TextQuality, emit: &mut Emit) {
        let text = self.surrogates.clean(index, text, quality);
        match self.slots.get_mut(index) {
            Some(OpenBlock::Text(block)) => append(&mut block.text, &text),
            Some(OpenBlock::Thinking(block)) => append(&mut block.thinking, &text),
            Some(OpenBlock::Call { json, .. }) => append(json, &text),
            Some(OpenBlock::Done(_)) | None => return,
        }
        emit.push(StreamEvent::Delta { index, text: text.into() });
    }

    /// Returns a block, to set its members.
    pub fn block_mut(&mut self, index: usize) -> Option<&mut OpenBlock> {
        self.slots.get_mut(index)
    }

    /// Returns all blocks in order.
    pub fn blocks(&self) -> &[OpenBlock] {
        &self.slots
    }

    /// Closes a block unless it is closed. This parses the arguments of a call; JSON that is not an object becomes its `arguments_error`.
    pub fn close(&mut self, index: usize, emit: &mut Emit) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        if matches!(slot, OpenBlock::Done(_)) {
            return;
        }
        let block = Arc::new(take_block(slot, Completeness::Whole));
        *slot = OpenBlock::Done(Arc::clone(&block));
        emit.push(StreamEvent::BlockEnd { index, block });
    }

    /// Closes all open blocks, in order.
    pub fn close_all(&mut self, emit: &mut Emit) {
        (0..self.slots.len()).for_each(|index| self.close(index, emit));
    }

    /// Ends the answer successfully. Close the blocks first.
    pub fn done(&mut self, stop_reason: StopReason, emit: &mut Emit) {
        if self.ended {
            return;
        }
        self.start(emit);
        let mut message = self.take_message();
        message.stop_reason = stop_reason;
        emit.push(StreamEvent::End(Finished { message: Arc::new(message), error: None }));
    }

    /// Ends the answer with a failure; the part that has arrived stays in the message.
    pub fn fail(&mut self, mut error: LlmError, emit: &mut Emit) {
        if self.ended {
            return;
        }
        error.emitted = self.emitted();
        let message = self.take_message();
        emit.push(StreamEvent::End(failure(message, error)));
    }

    /// Ends the answer with a failure of this kind and text, for errors within a response: the start is emitted first.
    pub fn fail_with(&mut self, kind: LlmErrorKind, text: impl Into<String>, emit: &mut Emit) {
        let error = LlmError::new(self.model.provider.clone(), kind, text);
        self.start(emit);
        self.fail(error, emit);
    }

    /// Sets the provider's id of the answer and the answering model, unless they are set. The requested model is not recorded again.
    pub fn identify(&mut self, id: Option<&str>, model: Option<&str>) {
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
            OpenBlock::Done(block) => Arc::clone(block),
            open => Arc::new(take_block(open, Completeness::CutOff)),
        });
        let mut message = self.message.clone();
        message.content = blocks.collect();
        message
    }
}

/// Whether the text of a call's arguments is complete.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Completeness {
    Whole,
    CutOff,
}

fn take_block(slot: &mut OpenBlock, completeness: Completeness) -> Block {
    match slot {
        // A message lives as long as its session, without the spare capacity of text that grew.
        OpenBlock::Text(text) => {
            let mut text = std::mem::take(text);
            text.text.shrink_to_fit();
            Block::Text(text)
        }
        OpenBlock::Thinking(thinking) => {
            let mut thinking = std::mem::take(thinking);
            thinking.thinking.shrink_to_fit();
            Block::Thinking(thinking)
        }
        OpenBlock::Call { call, json } => {
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
        OpenBlock::Done(block) => (**block).clone(),
    }
}
