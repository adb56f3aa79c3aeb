//! Responses in Anthropic's format.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::names::sent_name;
use super::{error, request};
use crate::error::{LlmError, LlmErrorKind};
use crate::event::Emit;
use crate::frame::Frame;
use crate::message::{StopReason, Text as TextBlock, Thinking, ToolCall, Usage};
use crate::wire::frame_json::{self, ReadFrame, TextMember, TextQuality};
use crate::wire::headers;
use crate::wire::reply::{OpenBlock, ReplyBuilder};
use crate::wire::{Decoder, FrameKind, WireCall};

/// Decodes a response.
#[derive(Debug)]
pub(super) struct AnthropicDecoder {
    reply: ReplyBuilder,
    /// Tool names as the caller spells them, by the names under which they were sent.
    names: Vec<(String, String)>,
    /// Positions of the blocks by the provider's index. Ignored blocks have none.
    places: Vec<(u64, usize)>,
    stop: Option<AnthropicStop>,
    /// Whether a `message_start` was seen.
    has_begun: bool,
}

/// The stop reason.
#[derive(Debug)]
struct AnthropicStop {
    reason: StopReason,
    /// The failure, if the stop reason means one.
    failure: Option<(LlmErrorKind, String)>,
}

#[derive(Deserialize)]
struct MessageStart<'a> {
    #[serde(borrow, default)]
    message: WireMessage<'a>,
}

#[derive(Deserialize, Default)]
struct WireMessage<'a> {
    #[serde(borrow, default)]
    id: TextMember<'a>,
    #[serde(borrow, default)]
    model: TextMember<'a>,
    #[serde(default)]
    usage: Option<MessageUsage>,
}

#[derive(Deserialize, Default)]
struct MessageUsage {
    #[serde(default, deserialize_with = "frame_json::count")]
    input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "frame_json::count")]
    output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "frame_json::count")]
    cache_read_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "frame_json::count")]
    cache_creation_input_tokens: Option<u64>,
    #[serde(default)]
    cache_creation: Option<CacheCreation>,
    #[serde(default)]
    output_tokens_details: Option<OutputTokensDetails>,
}

#[derive(Deserialize, Default)]
struct OutputTokensDetails {
    #[serde(default, deserialize_with = "frame_json::count")]
    thinking_tokens: Option<u64>,
}

#[derive(Deserialize, Default)]
struct CacheCreation {
    #[serde(default, deserialize_with = "frame_json::count")]
    ephemeral_1h_input_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct BlockStart<'a> {
    #[serde(default)]
    index: u64,
    #[serde(borrow)]
    content_block: WireBlock<'a>,
}

#[derive(Deserialize)]
struct WireBlock<'a> {
    #[serde(borrow, rename = "type", default)]
    kind: TextMember<'a>,
    #[serde(borrow, default)]
    text: TextMember<'a>,
    #[serde(borrow, default)]
    thinking: TextMember<'a>,
    #[serde(borrow, default)]
    signature: TextMember<'a>,
    #[serde(borrow, default)]
    data: TextMember<'a>,
    #[serde(borrow, default)]
    id: TextMember<'a>,
    #[serde(borrow, default)]
    name: TextMember<'a>,
    #[serde(default)]
    input: Option<Value>,
}

#[derive(Deserialize)]
struct BlockDelta<'a> {
    #[serde(default)]
    index: u64,
    #[serde(borrow)]
    delta: WireDelta<'a>,
}

#[derive(Deserialize)]
struct WireDelta<'a> {
    #[serde(borrow, default)]
    text: TextMember<'a>,
    #[serde(borrow, default)]
    thinking: TextMember<'a>,
    #[serde(borrow, default)]
    partial_json: TextMember<'a>,
    #[serde(borrow, default)]
    signature: TextMember<'a>,
}

#[derive(Deserialize)]
struct BlockStop {
    #[serde(default)]
    index: u64,
}

#[derive(Deserialize)]
struct MessageDelta<'a> {
    #[serde(borrow, default)]
    delta: StopDelta<'a>,
    #[serde(default)]
    usage: Option<MessageUsage>,
}

#[derive(Deserialize, Default)]
struct StopDelta<'a> {
    #[serde(borrow, default)]
    stop_reason: TextMember<'a>,
    #[serde(borrow, default)]
    stop_details: Option<StopDetails<'a>>,
}

#[derive(Deserialize)]
struct StopDetails<'a> {
    #[serde(borrow, default)]
    explanation: TextMember<'a>,
}

#[derive(Deserialize)]
struct Typed<'a> {
    #[serde(borrow, rename = "type", default)]
    kind: TextMember<'a>,
}

impl AnthropicDecoder {
    pub(super) fn new(call: &WireCall<'_>) -> Self {
        let request = call.request;
        let mut reply = ReplyBuilder::new(request, call.timestamp);
        let (thinking, _) = request::thinking(request);
        reply.message.provider_thinking_level = request::marked_effort(request, &thinking).map(str::to_owned);
        let key = headers::key(request).ok().flatten();
        let names = if request::is_subscription(request, key.as_ref()) { names_by_sent(call) } else { Vec::new() };
        Self { reply, names, places: Vec::new(), stop: None, has_begun: false }
    }

    /// Parses the JSON of a frame, or ends the answer.
    fn read<'a, T: Deserialize<'a>>(
        &mut self,
        frame: Frame<'a>,
        scratch: &'a mut String,
        emit: &mut Emit,
    ) -> Option<ReadFrame<T>> {
        match frame_json::read(frame.data, scratch) {
            Ok(read) => Some(read),
            Err(why) => {
                let raw = String::from_utf8_lossy(frame.raw);
                let raw: Vec<&str> = raw.lines().collect();
                let (name, data) = (frame.event, frame.data);
                let text = format!(
                    "Could not parse Anthropic SSE event {name}: {why}; data={data}; raw={}",
                    raw.join("\\n").trim_end_matches("\\n")
                );
                self.reply.fail_with(frame_json::error_kind(&why), text, emit);
                None
            }
        }
    }

    fn message_start(&mut self, message: &WireMessage<'_>, emit: &mut Emit) {
        self.has_begun = true;
        let answer = &mut self.reply.message;
        answer.response_id = message.id.non_empty().map(str::to_owned);
        answer.response_model =
            message.model.non_empty().filter(|model| self.reply.model.id != **model).map(str::to_owned);
        if let Some(model) = message.model.non_empty() {
            let asked = &self.reply.model;
            let other = asked.dialect.wire.fallbacks.iter().find(|f| f.model == model && asked.id != *model);
            self.reply.rates = other.map(|fallback| fallback.rates.clone());
        }
        self.add_usage(message.usage.as_ref(), emit);
        self.reply.start(emit);
    }

    /// Applies reported usage: present fields replace earlier values; missing ones do not.
    fn add_usage(&mut self, reported: Option<&MessageUsage>, emit: &mut Emit) {
        let Some(reported) = reported else { return };
        let old = self.reply.message.usage;
        let mut usage = Usage {
            input: reported.input_tokens.unwrap_or(old.input),
            output: reported.output_tokens.unwrap_or(old.output),
            cache_read: reported.cache_read_input_tokens.unwrap_or(old.cache_read),
            cache_write: reported.cache_creation_input_tokens.unwrap_or(old.cache_write),
            ..old
        };
        let hour = reported.cache_creation.as_ref().and_then(|split| split.ephemeral_1h_input_tokens);
        usage.cache_write_1h = Some(hour.or(old.cache_write_1h).unwrap_or(0));
        let thinking = reported.output_tokens_details.as_ref().and_then(|details| details.thinking_tokens);
        usage.reasoning = thinking.or(old.reasoning);
        usage.total_tokens = usage.input + usage.output + usage.cache_read + usage.cache_write;
        self.reply.set_usage(usage, emit);
    }

    fn block_start(&mut self, start: &BlockStart<'_>, quality: TextQuality, emit: &mut Emit) {
        let block = &start.content_block;
        let text = |text: &TextMember<'_>| text.get().unwrap_or("").to_owned();
        let (slot, first) = match block.kind.get() {
            Some("text") => (OpenBlock::Text(TextBlock::default()), block.text.non_empty()),
            Some("thinking") => {
                let signature = Some(text(&block.signature));
                (OpenBlock::Thinking(Thinking { signature, ..Thinking::default() }), block.thinking.non_empty())
            }
            Some("redacted_thinking") => {
                let thinking = Thinking {
                    thinking: "[Reasoning redacted]".into(),
                    signature: Some(text(&block.data)),
                    redacted: true,
                };
                (OpenBlock::Thinking(thinking), None)
            }
            Some("tool_use") => {
                let input = match &block.input {
                    Some(Value::Object(input)) => input.clone(),
                    _ => Map::new(),
                };
                let call = ToolCall::new(text(&block.id), self.own_name(block.name.get().unwrap_or("")), input);
                (OpenBlock::Call { call, json: String::new() }, None)
            }
            // Server-side tools and their results.
            _ => return,
        };
        let place = self.reply.open(slot, emit);
        self.places.retain(|(index, _)| *index != start.index);
        self.places.push((start.index, place));
        if let Some(first) = first {
            self.reply.delta(place, first, quality, emit);
        }
    }

    fn own_name(&self, sent: &str) -> String {
        let own = self.names.iter().find(|(known, _)| known.eq_ignore_ascii_case(sent));
        own.map_or_else(|| sent.to_owned(), |(_, own)| own.clone())
    }

    fn place(&self, index: u64) -> Option<usize> {
        // The block being written is nearly always the last one.
        self.places.iter().rev().find(|(known, _)| *known == index).map(|(_, place)| *place)
    }

    fn block_delta(&mut self, read: &BlockDelta<'_>, quality: TextQuality, emit: &mut Emit) {
        let Some(place) = self.place(read.index) else { return };
        let delta = &read.delta;
        let text = match self.reply.block_mut(place) {
            Some(OpenBlock::Text(_)) => delta.text.get(),
            Some(OpenBlock::Thinking(thinking)) => {
                if let Some(more) = delta.signature.get() {
                    thinking.signature.get_or_insert_default().push_str(more);
                }
                delta.thinking.get()
            }
            Some(OpenBlock::Call { .. }) => delta.partial_json.get(),
            Some(OpenBlock::Done(_)) | None => None,
        };
        if let Some(text) = text {
            self.reply.delta(place, text, quality, emit);
        }
    }

    fn message_delta(&mut self, read: &MessageDelta<'_>, emit: &mut Emit) {
        if let Some(word) = read.delta.stop_reason.get() {
            self.reply.message.raw_stop_reason = Some(word.to_owned());
            let explanation = read.delta.stop_details.as_ref().and_then(|details| details.explanation.non_empty());
            self.stop = Some(stop(word, explanation));
        }
        self.add_usage(read.usage.as_ref(), emit);
    }

    fn message_stop(&mut self, emit: &mut Emit) {
        match self.stop.take() {
            None if !self.has_begun => {
                self.reply.fail_with(LlmErrorKind::StreamCut, "Anthropic stream ended without message_start", emit);
            }
            None => self.reply.fail_with(LlmErrorKind::StreamCut, "Anthropic stream ended without a stop reason", emit),
            Some(AnthropicStop { failure: Some((kind, text)), .. }) => self.reply.fail_with(kind, text, emit),
            Some(AnthropicStop { reason, failure: None }) => {
                self.reply.close_all(emit);
                self.reply.done(reason, emit);
            }
        }
    }
}

/// Interprets a stop reason.
fn stop(word: &str, explanation: Option<&str>) -> AnthropicStop {
    let good = |reason| AnthropicStop { reason, failure: None };
    let bad = |kind, text: String| AnthropicStop { reason: StopReason::Error, failure: Some((kind, text)) };
    match word {
        "end_turn" | "pause_turn" | "stop_sequence" => good(StopReason::Stop),
        "max_tokens" | "model_context_window_exceeded" => good(StopReason::Length),
        "tool_use" => good(StopReason::ToolUse),
        "refusal" => {
            let text = explanation.unwrap_or("The model refused to complete the request");
            bad(LlmErrorKind::ContentFiltered, text.to_owned())
        }
        "sensitive" => bad(LlmErrorKind::ContentFiltered, format!("Provider stopped with: {word}")),
        _ => bad(LlmErrorKind::Protocol, format!("Unhandled stop reason: {word}")),
    }
}

/// Returns the tool names as sent, with the caller's spelling.
fn names_by_sent(call: &WireCall<'_>) -> Vec<(String, String)> {
    let request = call.request;
    let current = crate::normalise::system::collapse(&request.system, &request.tools, &request.messages).head;
    current.tools.into_iter().map(|tool| (sent_name(&tool.name, true).to_owned(), tool.name)).collect()
}

impl Decoder for AnthropicDecoder {
    fn push(&mut self, frame: Frame<'_>, emit: &mut Emit) -> FrameKind {
        if self.reply.is_ended() {
            return FrameKind::KeepAlive;
        }
        let scratch = &mut String::new();
        let mut name = frame.event;
        let typed;
        if name.is_empty() {
            let Some(read) = self.read::<Typed<'_>>(frame, scratch, emit) else { return FrameKind::Content };
            typed = read.value.kind.get().unwrap_or("").to_owned();
            name = &typed;
        }
        let scratch = &mut String::new();
        let frame = Frame { event: name, ..frame };
        match name {
            "content_block_delta" => {
                if let Some(read) = self.read::<BlockDelta<'_>>(frame, scratch, emit) {
                    self.block_delta(&read.value, read.quality, emit);
                }
            }
            "content_block_start" => {
                if let Some(read) = self.read::<BlockStart<'_>>(frame, scratch, emit) {
                    self.block_start(&read.value, read.quality, emit);
                }
            }
            "content_block_stop" => {
                if let Some(read) = self.read::<BlockStop>(frame, scratch, emit)
                    && let Some(place) = self.place(read.value.index)
                {
                    self.reply.close(place, emit);
                }
            }
            "message_start" => {
                if let Some(read) = self.read::<MessageStart<'_>>(frame, scratch, emit) {
                    self.message_start(&read.value.message, emit);
                }
            }
            "message_delta" => {
                if let Some(read) = self.read::<MessageDelta<'_>>(frame, scratch, emit) {
                    self.message_delta(&read.value, emit);
                }
            }
            "message_stop" => self.message_stop(emit),
            "error" => {
                let error = error::in_stream(&self.reply.model, frame.data);
                self.reply.start(emit);
                self.reply.fail(error, emit);
            }
            _ => return FrameKind::KeepAlive,
        }
        FrameKind::Content
    }

    fn finish(&mut self, emit: &mut Emit) {
        if self.reply.is_ended() {
            return;
        }
        let text = if self.has_begun {
            "Anthropic stream ended before message_stop"
        } else {
            "Anthropic stream ended without a stop reason"
        };
        self.reply.fail_with(LlmErrorKind::StreamCut, text, emit);
    }

    fn fail(&mut self, error: LlmError, emit: &mut Emit) {
        self.reply.fail(error, emit);
    }
}
