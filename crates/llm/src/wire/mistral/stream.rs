//! Responses in Mistral's format.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::content::ContentChunks;
use super::{error, ids};
use crate::error::{LlmError, LlmErrorKind, classify};
use crate::event::Emit;
use crate::frame::Frame;
use crate::ids::ToolCallId;
use crate::message::{StopReason, Text as TextBlock, Thinking, ToolCall, Usage};
use crate::wire::completions::stream::{CallDelta, CallPlace};
use crate::wire::frame_json::{self, First, RareText, TextMember, TextQuality};
use crate::wire::reply::{OpenBlock, ReplyBuilder};
use crate::wire::{Decoder, FrameKind, WireCall};

/// Decodes a response. One block of text or thinking is open at a time; calls stay open until text follows or the answer ends.
#[derive(Debug)]
pub(super) struct MistralDecoder {
    reply: ReplyBuilder,
    open: Option<MistralBlock>,
    calls: Vec<CallPlace>,
    finish_reason: Option<String>,
}

#[derive(Clone, Copy, Debug)]
struct MistralBlock {
    place: usize,
    is_thinking: bool,
}

// Members that most chunks lack are boxed: the parser moves these values several times.

#[derive(Deserialize)]
struct MistralChunk<'a> {
    #[serde(borrow, default)]
    object: TextMember<'a>,
    #[serde(borrow, default)]
    id: TextMember<'a>,
    #[serde(borrow, default)]
    model: TextMember<'a>,
    #[serde(borrow, default)]
    choices: First<MistralChoice<'a>>,
    #[serde(default)]
    usage: Option<Box<MistralUsage>>,
    #[serde(default)]
    error: Option<Box<Value>>,
}

#[derive(Deserialize)]
struct MistralChoice<'a> {
    #[serde(borrow, default)]
    delta: Option<MistralDelta<'a>>,
    #[serde(borrow, default)]
    finish_reason: RareText<'a>,
}

#[derive(Deserialize)]
struct MistralDelta<'a> {
    #[serde(borrow, default)]
    content: ContentChunks<'a>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<CallDelta<'a>>>,
}

#[derive(Deserialize)]
struct MistralUsage {
    #[serde(default, deserialize_with = "frame_json::count")]
    prompt_tokens: Option<u64>,
    #[serde(default, deserialize_with = "frame_json::count")]
    completion_tokens: Option<u64>,
    #[serde(default, deserialize_with = "frame_json::count")]
    total_tokens: Option<u64>,
    #[serde(default, deserialize_with = "frame_json::count")]
    num_cached_tokens: Option<u64>,
    #[serde(default)]
    prompt_tokens_details: Option<MistralPromptDetails>,
}

#[derive(Deserialize)]
struct MistralPromptDetails {
    #[serde(default, deserialize_with = "frame_json::count")]
    cached_tokens: Option<u64>,
}

impl MistralDecoder {
    pub(super) fn new(call: &WireCall<'_>) -> Self {
        Self {
            reply: ReplyBuilder::new(call.request, call.timestamp),
            open: None,
            calls: Vec::new(),
            finish_reason: None,
        }
    }

    fn chunk(&mut self, chunk: &MistralChunk<'_>, data: &str, quality: TextQuality, emit: &mut Emit) {
        self.reply.identify(chunk.id.non_empty(), chunk.model.non_empty());
        self.reply.start(emit);
        if chunk.error.is_some() || chunk.object.get() == Some("error") {
            let whole: Value = serde_json::from_str(data).unwrap_or_default();
            let error = error::in_stream(&self.reply.model, chunk.error.as_deref().unwrap_or(&whole));
            return self.reply.fail(error, emit);
        }
        if let Some(usage) = &chunk.usage {
            self.usage(usage, emit);
        }
        let Some(choice) = &chunk.choices.0 else { return };
        if let Some(word) = choice.finish_reason.non_empty() {
            self.finish_reason = Some(word.to_owned());
            self.reply.message.raw_stop_reason = Some(word.to_owned());
        }
        let Some(delta) = &choice.delta else { return };
        for piece in delta.content.0.iter().filter(|piece| !piece.text.is_empty()) {
            let place = self.place(piece.is_thinking, emit);
            self.reply.delta(place, &piece.text, quality, emit);
        }
        for call in delta.tool_calls.iter().flatten() {
            self.call(call, quality, emit);
        }
    }

    /// Returns the open block of a kind. Other open blocks are closed, including calls.
    fn place(&mut self, is_thinking: bool, emit: &mut Emit) -> usize {
        match self.open {
            Some(open) if open.is_thinking == is_thinking => open.place,
            _ => {
                self.reply.close_all(emit);
                let slot = if is_thinking {
                    OpenBlock::Thinking(Thinking::default())
                } else {
                    OpenBlock::Text(TextBlock::default())
                };
                let place = self.reply.open(slot, emit);
                self.open = Some(MistralBlock { place, is_thinking });
                place
            }
        }
    }

    fn call(&mut self, delta: &CallDelta<'_>, quality: TextQuality, emit: &mut Emit) {
        if let Some(open) = self.open.take() {
            self.reply.close(open.place, emit);
        }
        let id = delta.id.non_empty().filter(|id| *id != "null");
        let function = delta.function.as_ref();
        let name = function.and_then(|function| function.name.non_empty());
        let place = match self.find_call(delta.index, id) {
            Some(place) => {
                if let Some(OpenBlock::Call { call, .. }) = self.reply.block_mut(place)
                    && let Some(name) = name.filter(|_| call.name.is_empty())
                {
                    name.clone_into(&mut call.name);
                }
                place
            }
            None => {
                let number = delta.index.unwrap_or(self.calls.len() as u64);
                let id = id.map_or_else(|| ids::derive(&format!("toolcall:{number}"), 0).into(), ToolCallId::from);
                let call = ToolCall::new(id, name.unwrap_or(""), Map::new());
                let place = self.reply.open(OpenBlock::Call { call, json: String::new() }, emit);
                self.calls.push(CallPlace { number: delta.index, place });
                place
            }
        };
        let arguments = function.and_then(|function| function.arguments.0.as_deref());
        self.reply.delta(place, arguments.unwrap_or(""), quality, emit);
    }

    /// Returns the call of a chunk. Some servers give all calls the same index and distinguish them only by id.
    fn find_call(&self, number: Option<u64>, id: Option<&str>) -> Option<usize> {
        let of = |call: &&CallPlace| {
            let own = match self.reply.blocks().get(call.place) {
                Some(OpenBlock::Call { call, .. }) => Some(call.id.as_str()),
                _ => None,
            };
            match id {
                Some(id) => own == Some(id) && (number.is_none() || call.number == number),
                None => number.is_none() || call.number == number,
            }
        };
        self.calls.iter().rev().find(of).map(|call| call.place)
    }

    fn usage(&mut self, reported: &MistralUsage, emit: &mut Emit) {
        if reported.prompt_tokens.is_none() && reported.completion_tokens.is_none() {
            return;
        }
        let prompt = reported.prompt_tokens.unwrap_or(0);
        let details = reported.prompt_tokens_details.as_ref().and_then(|details| details.cached_tokens);
        let cached = details.or(reported.num_cached_tokens).unwrap_or(0);
        let output = reported.completion_tokens.unwrap_or(0);
        let usage = Usage {
            input: prompt.saturating_sub(cached),
            output,
            cache_read: cached,
            total_tokens: reported.total_tokens.unwrap_or_else(|| prompt.saturating_add(output)),
            ..Usage::default()
        };
        self.reply.set_usage(usage, emit);
    }

    fn end(&mut self, emit: &mut Emit) {
        if self.reply.is_ended() {
            return;
        }
        self.reply.start(emit);
        self.reply.close_all(emit);
        match self.finish_reason.as_deref() {
            Some("stop") if self.calls.is_empty() => self.reply.done(StopReason::Stop, emit),
            Some("stop" | "tool_calls") => self.reply.done(StopReason::ToolUse, emit),
            Some("length" | "model_length") => self.reply.done(StopReason::Length, emit),
            Some(word) => {
                let text = format!("Provider stopped with: {word}");
                let kind = classify::classify(None, Some(word), &text);
                self.reply.fail_with(kind, text, emit);
            }
            None => self.reply.fail_with(LlmErrorKind::StreamCut, "Mistral stream ended without a finish reason", emit),
        }
    }
}

impl Decoder for MistralDecoder {
    fn push(&mut self, frame: Frame<'_>, emit: &mut Emit) -> FrameKind {
        if self.reply.is_ended() || frame.data.is_empty() {
            return FrameKind::KeepAlive;
        }
        if frame.data.starts_with("[DONE]") {
            self.end(emit);
            return FrameKind::Content;
        }
        let mut scratch = String::new();
        let n_waiting = emit.len();
        let mut is_last = false;
        match frame_json::read::<MistralChunk<'_>>(frame.data, &mut scratch) {
            Ok(read) => {
                is_last =
                    read.value.choices.0.as_ref().is_some_and(|choice| choice.finish_reason.non_empty().is_some());
                self.chunk(&read.value, frame.data, read.quality, emit);
            }
            Err(why) => {
                self.reply.fail_with(frame_json::error_kind(&why), format!("Could not parse chunk: {why}"), emit)
            }
        }
        FrameKind::content_if(is_last || emit.has_content_after(n_waiting))
    }

    fn finish(&mut self, emit: &mut Emit) {
        self.end(emit);
    }

    fn fail(&mut self, error: LlmError, emit: &mut Emit) {
        self.reply.fail(error, emit);
    }
}
