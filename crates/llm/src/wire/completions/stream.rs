//! Responses in OpenAI's format.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::convert::REASONING_MEMBERS;
use super::error;
use crate::error::{LlmError, LlmErrorKind, classify};
use crate::event::Emit;
use crate::frame::Frame;
use crate::ids::ToolCallId;
use crate::message::{StopReason, Text as TextBlock, Thinking, ToolCall, Usage};
use crate::wire::frame_json::{self, First, JsonText, RareText, TextMember, TextQuality};
use crate::wire::reply::{OpenBlock, ReplyBuilder};
use crate::wire::{Decoder, FrameKind, WireCall};

/// Decodes a response: one text block, one thinking block, and one block per call. All stay open to the end, because servers alternate
/// between them.
#[derive(Debug)]
pub(super) struct CompletionsDecoder {
    reply: ReplyBuilder,
    text: Option<usize>,
    thinking: Option<usize>,
    calls: Vec<CallPlace>,
    /// Opaque details of the reasoning, to be returned unchanged.
    details: Vec<Value>,
    finish_reason: Option<String>,
}

/// The position of a call in the message.
#[derive(Debug)]
pub(in crate::wire) struct CallPlace {
    /// The provider's index of the call.
    pub(in crate::wire) number: Option<u64>,
    pub(in crate::wire) place: usize,
}

// Members that most chunks lack are boxed: the parser moves these values several times.

#[derive(Deserialize)]
struct CompletionChunk<'a> {
    #[serde(borrow, default)]
    id: TextMember<'a>,
    #[serde(borrow, default)]
    model: TextMember<'a>,
    #[serde(borrow, default)]
    choices: First<CompletionChoice<'a>>,
    #[serde(default)]
    usage: Option<Box<CompletionUsage>>,
    #[serde(default)]
    error: Option<Box<Value>>,
}

#[derive(Deserialize)]
struct CompletionChoice<'a> {
    #[serde(borrow, default)]
    delta: Option<CompletionDelta<'a>>,
    #[serde(borrow, default)]
    finish_reason: RareText<'a>,
    #[serde(default)]
    usage: Option<Box<CompletionUsage>>,
}

#[derive(Deserialize)]
struct CompletionDelta<'a> {
    #[serde(borrow, default)]
    content: TextMember<'a>,
    #[serde(borrow, default)]
    reasoning_content: TextMember<'a>,
    #[serde(borrow, default)]
    reasoning: RareText<'a>,
    #[serde(borrow, default)]
    reasoning_text: RareText<'a>,
    #[serde(default)]
    reasoning_details: Option<Box<Value>>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<CallDelta<'a>>>,
}

/// A chunk of a call, also used for Mistral.
#[derive(Deserialize)]
pub(in crate::wire) struct CallDelta<'a> {
    #[serde(default, deserialize_with = "frame_json::count")]
    pub(in crate::wire) index: Option<u64>,
    #[serde(borrow, default)]
    pub(in crate::wire) id: TextMember<'a>,
    #[serde(borrow, default)]
    pub(in crate::wire) function: Option<FunctionDelta<'a>>,
}

#[derive(Deserialize)]
pub(in crate::wire) struct FunctionDelta<'a> {
    #[serde(borrow, default)]
    pub(in crate::wire) name: TextMember<'a>,
    #[serde(borrow, default)]
    pub(in crate::wire) arguments: JsonText<'a>,
}

#[derive(Deserialize)]
struct CompletionUsage {
    #[serde(default, deserialize_with = "frame_json::count")]
    prompt_tokens: Option<u64>,
    #[serde(default, deserialize_with = "frame_json::count")]
    completion_tokens: Option<u64>,
    #[serde(default, deserialize_with = "frame_json::count")]
    prompt_cache_hit_tokens: Option<u64>,
    #[serde(default, deserialize_with = "frame_json::count")]
    cached_tokens: Option<u64>,
    #[serde(default)]
    prompt_tokens_details: Option<PromptTokensDetails>,
    #[serde(default)]
    completion_tokens_details: Option<CompletionDetails>,
    #[serde(default)]
    cost: Option<Value>,
}

#[derive(Deserialize)]
struct PromptTokensDetails {
    #[serde(default, deserialize_with = "frame_json::count")]
    cached_tokens: Option<u64>,
    #[serde(default, deserialize_with = "frame_json::count")]
    cache_write_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct CompletionDetails {
    #[serde(default, deserialize_with = "frame_json::count")]
    reasoning_tokens: Option<u64>,
}

impl CompletionChunk<'_> {
    /// Returns whether it has content that is kept without an event.
    fn has_silent_content(&self) -> bool {
        self.choices.0.as_ref().is_some_and(|choice| {
            let details = choice.delta.as_ref().and_then(|delta| delta.reasoning_details.as_deref());
            choice.finish_reason.non_empty().is_some()
                || details.and_then(Value::as_array).is_some_and(|details| !details.is_empty())
        })
    }
}

impl CompletionsDecoder {
    pub(super) fn new(call: &WireCall<'_>) -> Self {
        Self {
            reply: ReplyBuilder::new(call.request, call.timestamp),
            text: None,
            thinking: None,
            calls: Vec::new(),
            details: Vec::new(),
            finish_reason: None,
        }
    }

    fn chunk(&mut self, chunk: CompletionChunk<'_>, quality: TextQuality, emit: &mut Emit) {
        self.reply.identify(chunk.id.non_empty(), chunk.model.non_empty());
        self.reply.start(emit);
        if let Some(error) = &chunk.error {
            let error = error::in_stream(&self.reply.model, error);
            return self.reply.fail(error, emit);
        }
        let choice = chunk.choices.0;
        let usage = chunk.usage.as_deref().or_else(|| choice.as_ref()?.usage.as_deref());
        if let Some(usage) = usage {
            self.usage(usage, emit);
        }
        let Some(choice) = choice else { return };
        if let Some(word) = choice.finish_reason.non_empty() {
            self.finish_reason = Some(word.to_owned());
            self.reply.message.raw_stop_reason = Some(word.to_owned());
        }
        if let Some(delta) = choice.delta {
            self.delta(delta, quality, emit);
        }
    }

    fn delta(&mut self, delta: CompletionDelta<'_>, quality: TextQuality, emit: &mut Emit) {
        let members =
            [delta.reasoning_content.non_empty(), delta.reasoning.non_empty(), delta.reasoning_text.non_empty()];
        let reasoning = REASONING_MEMBERS.iter().zip(members).find_map(|(name, text)| Some((*name, text?)));
        if let Some((member, text)) = reasoning {
            let place = self.thinking_place(Some(member), emit);
            self.reply.delta(place, text, quality, emit);
        }
        if let Some(Value::Array(details)) = delta.reasoning_details.map(|details| *details)
            && !details.is_empty()
        {
            self.thinking_place(None, emit);
            details.into_iter().for_each(|detail| add_detail(&mut self.details, detail));
        }
        if let Some(text) = delta.content.non_empty() {
            let place = match self.text {
                Some(place) => place,
                None => *self.text.insert(self.reply.open(OpenBlock::Text(TextBlock::default()), emit)),
            };
            self.reply.delta(place, text, quality, emit);
        }
        for call in delta.tool_calls.iter().flatten() {
            self.call(call, quality, emit);
        }
    }

    /// Returns the thinking block, which is opened on first use. Its signature is the member that contained its first text.
    fn thinking_place(&mut self, member: Option<&str>, emit: &mut Emit) -> usize {
        let signature = member.map(str::to_owned);
        match self.thinking {
            Some(place) => {
                if let Some(OpenBlock::Thinking(thinking)) = self.reply.block_mut(place) {
                    thinking.signature = thinking.signature.take().or(signature);
                }
                place
            }
            None => {
                let slot = OpenBlock::Thinking(Thinking { signature, ..Thinking::default() });
                *self.thinking.insert(self.reply.open(slot, emit))
            }
        }
    }

    fn call(&mut self, delta: &CallDelta<'_>, quality: TextQuality, emit: &mut Emit) {
        let id = delta.id.non_empty();
        let function = delta.function.as_ref();
        let name = function.and_then(|function| function.name.non_empty());
        let place = match self.find_call(delta.index, id) {
            Some(place) => {
                if let Some(OpenBlock::Call { call, .. }) = self.reply.block_mut(place) {
                    if let Some(id) = id.filter(|_| call.id.as_str().is_empty()) {
                        call.id = id.into();
                    }
                    if let Some(name) = name.filter(|_| call.name.is_empty()) {
                        name.clone_into(&mut call.name);
                    }
                }
                place
            }
            None => {
                let call = ToolCall::new(ToolCallId::new(id.unwrap_or("")), name.unwrap_or("").to_owned(), Map::new());
                let place = self.reply.open(OpenBlock::Call { call, json: String::new() }, emit);
                self.calls.push(CallPlace { number: delta.index, place });
                place
            }
        };
        let arguments = function.and_then(|function| function.arguments.0.as_deref());
        self.reply.delta(place, arguments.unwrap_or(""), quality, emit);
    }

    /// Returns the call of a chunk: by index, else by id; a chunk with neither continues the last call.
    fn find_call(&self, number: Option<u64>, id: Option<&str>) -> Option<usize> {
        let has_id = |place: usize, id: &str| matches!(self.reply.blocks().get(place), Some(OpenBlock::Call { call, .. }) if call.id == *id);
        let found = match (number, id) {
            (Some(_), _) => self.calls.iter().rev().find(|call| call.number == number),
            (None, Some(id)) => self.calls.iter().find(|call| has_id(call.place, id)),
            (None, None) => self.calls.last(),
        };
        found.map(|call| call.place)
    }

    fn usage(&mut self, reported: &CompletionUsage, emit: &mut Emit) {
        if reported.prompt_tokens.is_none() && reported.completion_tokens.is_none() {
            return;
        }
        let prompt = reported.prompt_tokens.unwrap_or(0);
        let details = reported.prompt_tokens_details.as_ref();
        let cached = details.and_then(|details| details.cached_tokens);
        let cached = cached.or(reported.prompt_cache_hit_tokens).or(reported.cached_tokens).unwrap_or(0);
        let written = details.and_then(|details| details.cache_write_tokens).unwrap_or(0);
        let reasoning = reported.completion_tokens_details.as_ref().and_then(|details| details.reasoning_tokens);
        let mut usage = Usage {
            input: prompt.saturating_sub(cached).saturating_sub(written),
            output: reported.completion_tokens.unwrap_or(0),
            cache_read: cached,
            cache_write: written,
            reasoning: Some(reasoning.unwrap_or(0)),
            ..Usage::default()
        };
        usage.total_tokens = usage.input + usage.output + usage.cache_read + usage.cache_write;
        let billed = reported.cost.as_ref().and_then(Value::as_f64);
        if let Some(total) = billed.filter(|_| self.reply.model.dialect.replies.billed_cost) {
            usage.cost = self.reply.model.rates.cost(&usage);
            usage.cost.total = total;
            usage.cost.total_from_provider = Some(true);
        }
        self.reply.set_usage(usage, emit);
    }

    /// Ends the answer. `marked` means that the server sent an end marker.
    fn end(&mut self, marked: bool, emit: &mut Emit) {
        if self.reply.is_ended() {
            return;
        }
        self.reply.start(emit);
        if let (Some(place), false) = (self.thinking, self.details.is_empty())
            && let Some(OpenBlock::Thinking(thinking)) = self.reply.block_mut(place)
        {
            thinking.signature = serde_json::to_string(&self.details).ok();
        }
        self.reply.close_all(emit);
        let has_content = !self.reply.blocks().is_empty();
        let inferred = has_content && (marked || !self.reply.model.dialect.replies.finish_reason);
        let by_calls = if self.calls.is_empty() { StopReason::Stop } else { StopReason::ToolUse };
        match self.finish_reason.as_deref() {
            Some("stop" | "end") => self.reply.done(by_calls, emit),
            Some("length") => self.reply.done(StopReason::Length, emit),
            Some("tool_calls" | "function_call") => self.reply.done(StopReason::ToolUse, emit),
            Some(word) => {
                let text = format!("Provider finish_reason: {word}");
                let kind = classify::classify(None, Some(word), &text);
                self.reply.fail_with(kind, text, emit);
            }
            None if inferred => self.reply.done(by_calls, emit),
            None => self.reply.fail_with(LlmErrorKind::StreamCut, "Stream ended without finish_reason", emit),
        }
    }
}

/// Adds a detail, or continues the last one with its index: texts arrive in chunks, everything else at once.
fn add_detail(details: &mut Vec<Value>, detail: Value) {
    let last = details.last_mut().filter(|last| {
        let same = |member: &str| last[member] == detail[member];
        !detail["index"].is_null() && same("index") && same("type")
    });
    let (Some(Value::Object(last)), Value::Object(piece)) = (last, &detail) else {
        details.push(detail);
        return;
    };
    for (member, value) in piece {
        match (last.get_mut(member), value) {
            (_, Value::Null) => {}
            (Some(Value::String(text)), Value::String(more))
                if matches!(member.as_str(), "text" | "summary" | "data") =>
            {
                text.push_str(more);
            }
            _ => drop(last.insert(member.clone(), value.clone())),
        }
    }
}

impl Decoder for CompletionsDecoder {
    fn push(&mut self, frame: Frame<'_>, emit: &mut Emit) -> FrameKind {
        if self.reply.is_ended() || frame.data.is_empty() {
            return FrameKind::KeepAlive;
        }
        if frame.data.starts_with("[DONE]") {
            self.end(true, emit);
            return FrameKind::Content;
        }
        let mut scratch = String::new();
        let n_waiting = emit.len();
        let mut has_silent_content = false;
        match frame_json::read::<CompletionChunk<'_>>(frame.data, &mut scratch) {
            Ok(read) => {
                has_silent_content = read.value.has_silent_content();
                self.chunk(read.value, read.quality, emit);
            }
            Err(why) => {
                self.reply.fail_with(frame_json::error_kind(&why), format!("Could not parse chunk: {why}"), emit)
            }
        }
        FrameKind::content_if(has_silent_content || emit.has_content_after(n_waiting))
    }

    fn finish(&mut self, emit: &mut Emit) {
        self.end(false, emit);
    }

    fn fail(&mut self, error: LlmError, emit: &mut Emit) {
        self.reply.fail(error, emit);
    }
}
