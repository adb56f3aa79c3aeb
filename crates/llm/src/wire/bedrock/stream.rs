//! Responses in the Converse format.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Map, json};

use super::error;
use crate::error::{LlmError, LlmErrorKind};
use crate::event::Emit;
use crate::frame::Frame;
use crate::frame::aws_event::{ERROR, EXCEPTION};
use crate::ids::ToolCallId;
use crate::message::{StopReason, Text as TextBlock, Thinking, ToolCall, Usage};
use crate::wire::frame_json::{self, RareText, ReadFrame, TextMember, TextQuality};
use crate::wire::reply::{OpenBlock, ReplyBuilder};
use crate::wire::{Decoder, FrameKind, WireCall};

/// Decodes a response in the Converse format.
pub(super) struct BedrockDecoder {
    reply: ReplyBuilder,
    /// Positions of our blocks by the provider's index.
    places: Vec<(u64, usize)>,
    /// How the answer ended, if known: the usage follows.
    stop: Option<ConverseStop>,
}

/// How an answer ended.
enum ConverseStop {
    Well(StopReason),
    Badly(LlmErrorKind, String),
}

#[derive(Deserialize)]
struct ConverseStart<'a> {
    #[serde(borrow, default)]
    role: TextMember<'a>,
}

#[derive(Deserialize)]
struct ContentBlockStart<'a> {
    #[serde(default, rename = "contentBlockIndex")]
    index: u64,
    #[serde(borrow, default)]
    start: Option<WireStart<'a>>,
}

#[derive(Deserialize)]
struct WireStart<'a> {
    #[serde(borrow, default, rename = "toolUse")]
    tool_use: Option<ToolUseStart<'a>>,
}

#[derive(Deserialize)]
struct ToolUseStart<'a> {
    #[serde(borrow, default, rename = "toolUseId")]
    id: TextMember<'a>,
    #[serde(borrow, default)]
    name: TextMember<'a>,
}

#[derive(Deserialize)]
struct ContentBlockDelta<'a> {
    #[serde(default, rename = "contentBlockIndex")]
    index: u64,
    #[serde(borrow, default)]
    delta: ConverseDelta<'a>,
}

#[derive(Deserialize, Default)]
struct ConverseDelta<'a> {
    #[serde(borrow, default)]
    text: TextMember<'a>,
    #[serde(borrow, default, rename = "toolUse")]
    tool_use: Option<ToolDelta<'a>>,
    /// Boxed because it is large and rare, and the parser moves its values several times.
    #[serde(borrow, default, rename = "reasoningContent")]
    reasoning: Option<Box<ReasoningDelta<'a>>>,
}

#[derive(Deserialize)]
struct ToolDelta<'a> {
    #[serde(borrow, default)]
    input: TextMember<'a>,
}

#[derive(Deserialize)]
struct ReasoningDelta<'a> {
    #[serde(borrow, default)]
    text: TextMember<'a>,
    #[serde(borrow, default)]
    signature: RareText<'a>,
    #[serde(borrow, default, rename = "redactedContent")]
    redacted: RareText<'a>,
}

#[derive(Deserialize)]
struct ContentBlockStop {
    #[serde(default, rename = "contentBlockIndex")]
    index: u64,
}

#[derive(Deserialize)]
struct MessageStop<'a> {
    #[serde(borrow, default, rename = "stopReason")]
    reason: TextMember<'a>,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(default)]
    usage: Option<ConverseUsage>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ConverseUsage {
    #[serde(deserialize_with = "frame_json::count")]
    input_tokens: Option<u64>,
    #[serde(deserialize_with = "frame_json::count")]
    output_tokens: Option<u64>,
    #[serde(deserialize_with = "frame_json::count")]
    total_tokens: Option<u64>,
    #[serde(deserialize_with = "frame_json::count")]
    cache_read_input_tokens: Option<u64>,
    #[serde(deserialize_with = "frame_json::count")]
    cache_write_input_tokens: Option<u64>,
    cache_details: Option<Vec<CacheDetail>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CacheDetail {
    #[serde(default)]
    ttl: String,
    #[serde(default, deserialize_with = "frame_json::count")]
    input_tokens: Option<u64>,
}

impl BedrockDecoder {
    pub(super) fn new(call: &WireCall<'_>) -> Self {
        Self { reply: ReplyBuilder::new(call.request, call.timestamp), places: Vec::new(), stop: None }
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
                let text = format!("Could not parse Bedrock event {}: {why}", frame.event);
                self.reply.fail_with(LlmErrorKind::Protocol, text, emit);
                None
            }
        }
    }

    fn place(&self, index: u64) -> Option<usize> {
        // The block being written is nearly always the last one.
        self.places.iter().rev().find(|(known, _)| *known == index).map(|(_, place)| *place)
    }

    fn open(&mut self, index: u64, slot: OpenBlock, emit: &mut Emit) -> usize {
        let place = self.reply.open(slot, emit);
        self.places.retain(|(known, _)| *known != index);
        self.places.push((index, place));
        place
    }

    fn message_start(&mut self, read: &ConverseStart<'_>, emit: &mut Emit) {
        match read.role.get() {
            Some("assistant") => self.reply.start(emit),
            _ => {
                let text = "Unexpected assistant message start but got user message start instead";
                self.reply.fail_with(LlmErrorKind::Protocol, text, emit);
            }
        }
    }

    fn block_start(&mut self, read: &ContentBlockStart<'_>, emit: &mut Emit) {
        let Some(tool) = read.start.as_ref().and_then(|start| start.tool_use.as_ref()) else { return };
        let call = ToolCall::new(
            ToolCallId::from(tool.id.get().unwrap_or("").to_owned()),
            tool.name.get().unwrap_or("").to_owned(),
            Map::new(),
        );
        self.open(read.index, OpenBlock::Call { call, json: String::new() }, emit);
    }

    fn block_delta(&mut self, read: &ContentBlockDelta<'_>, quality: TextQuality, emit: &mut Emit) {
        let place = self.place(read.index);
        if let Some(text) = read.delta.text.get() {
            let place = place.unwrap_or_else(|| self.open(read.index, OpenBlock::Text(TextBlock::default()), emit));
            if matches!(self.reply.block_mut(place), Some(OpenBlock::Text(_))) {
                self.reply.delta(place, text, quality, emit);
            }
        } else if let Some(tool) = &read.delta.tool_use {
            if let Some((place, input)) = place.zip(tool.input.get())
                && matches!(self.reply.block_mut(place), Some(OpenBlock::Call { .. }))
            {
                self.reply.delta(place, input, quality, emit);
            }
        } else if let Some(reasoning) = &read.delta.reasoning {
            self.reasoning(read.index, place, reasoning, quality, emit);
        }
    }

    fn reasoning(
        &mut self,
        index: u64,
        place: Option<usize>,
        delta: &ReasoningDelta<'_>,
        quality: TextQuality,
        emit: &mut Emit,
    ) {
        let hidden = delta.redacted.non_empty();
        let place = place.unwrap_or_else(|| {
            let thinking = match hidden {
                Some(_) => Thinking { thinking: "[Reasoning redacted]".into(), redacted: true, ..Thinking::default() },
                None => Thinking::default(),
            };
            let thinking = Thinking { signature: Some(String::new()), ..thinking };
            self.open(index, OpenBlock::Thinking(thinking), emit)
        });
        let Some(OpenBlock::Thinking(thinking)) = self.reply.block_mut(place) else { return };
        if thinking.redacted {
            append_base64(thinking.signature.get_or_insert_default(), hidden.unwrap_or(""));
            return;
        }
        if let Some(signature) = delta.signature.get() {
            thinking.signature.get_or_insert_default().push_str(signature);
        }
        if let Some(text) = delta.text.non_empty() {
            self.reply.delta(place, text, quality, emit);
        }
    }

    fn message_stop(&mut self, read: &MessageStop<'_>) {
        let word = read.reason.get().unwrap_or("");
        self.reply.message.raw_stop_reason = Some(word.to_owned()).filter(|word| !word.is_empty());
        self.stop = Some(match word {
            "end_turn" | "stop_sequence" => ConverseStop::Well(StopReason::Stop),
            "max_tokens" | "model_context_window_exceeded" => ConverseStop::Well(StopReason::Length),
            "tool_use" => ConverseStop::Well(StopReason::ToolUse),
            "guardrail_intervened" | "content_filtered" => {
                ConverseStop::Badly(LlmErrorKind::ContentFiltered, format!("Provider stopped with: {word}"))
            }
            word if word.starts_with("malformed_") => {
                ConverseStop::Badly(LlmErrorKind::Protocol, format!("Provider stopped with: {word}"))
            }
            "" => ConverseStop::Badly(LlmErrorKind::Protocol, "Bedrock stream ended without a stop reason".into()),
            word => ConverseStop::Badly(LlmErrorKind::Protocol, format!("Unhandled stop reason: {word}")),
        });
    }

    fn usage(&mut self, reported: &ConverseUsage, emit: &mut Emit) {
        let (input, output) = (reported.input_tokens.unwrap_or(0), reported.output_tokens.unwrap_or(0));
        let details = reported.cache_details.as_deref().unwrap_or_default();
        let hour = |detail: &&CacheDetail| detail.ttl == "1h";
        let for_an_hour = details.iter().find(hour).and_then(|detail| detail.input_tokens);
        let usage = Usage {
            input,
            output,
            cache_read: reported.cache_read_input_tokens.unwrap_or(0),
            cache_write: reported.cache_write_input_tokens.unwrap_or(0),
            cache_write_1h: for_an_hour,
            total_tokens: reported.total_tokens.filter(|total| *total > 0).unwrap_or(input + output),
            ..self.reply.message.usage
        };
        self.reply.set_usage(usage, emit);
    }

    /// Ends the answer with the reason received before.
    fn end(&mut self, emit: &mut Emit) {
        match self.stop.take() {
            Some(ConverseStop::Well(reason)) => {
                self.reply.close_all(emit);
                self.reply.done(reason, emit);
            }
            Some(ConverseStop::Badly(kind, text)) => {
                self.reply.close_all(emit);
                self.reply.fail_with(kind, text, emit);
            }
            None => {
                self.reply.close_all(emit);
                self.reply.fail_with(LlmErrorKind::StreamCut, "Bedrock stream ended before messageStop", emit);
            }
        }
    }

    /// Records the provider's failure code in the message.
    fn note(&mut self, error: &LlmError) {
        if let Some(code) = error.code.as_deref().filter(|code| !code.is_empty()) {
            let note = json!([{"type": "bedrock_response_failure", "details": {"errorCode": code}}]);
            self.reply.message.diagnostics = Some(note);
        }
    }
}

/// Appends base64 data to base64 data.
fn append_base64(all: &mut String, more: &str) {
    if all.is_empty() || !all.ends_with('=') {
        all.push_str(more);
        return;
    }
    if let (Ok(mut bytes), Ok(more)) = (STANDARD.decode(&*all), STANDARD.decode(more)) {
        bytes.extend(more);
        *all = STANDARD.encode(bytes);
    }
}

impl Decoder for BedrockDecoder {
    fn push(&mut self, frame: Frame<'_>, emit: &mut Emit) -> FrameKind {
        if self.reply.is_ended() {
            return FrameKind::KeepAlive;
        }
        let scratch = &mut String::new();
        match frame.event {
            "contentBlockDelta" => {
                if let Some(read) = self.read::<ContentBlockDelta<'_>>(frame, scratch, emit) {
                    self.block_delta(&read.value, read.quality, emit);
                }
            }
            "contentBlockStart" => {
                if let Some(read) = self.read::<ContentBlockStart<'_>>(frame, scratch, emit) {
                    self.block_start(&read.value, emit);
                }
            }
            "contentBlockStop" => {
                if let Some(read) = self.read::<ContentBlockStop>(frame, scratch, emit)
                    && let Some(place) = self.place(read.value.index)
                {
                    self.reply.close(place, emit);
                }
            }
            "messageStart" => {
                if let Some(read) = self.read::<ConverseStart<'_>>(frame, scratch, emit) {
                    self.message_start(&read.value, emit);
                }
            }
            "messageStop" => {
                if let Some(read) = self.read::<MessageStop<'_>>(frame, scratch, emit) {
                    self.message_stop(&read.value);
                }
            }
            "metadata" => {
                if let Some(read) = self.read::<Metadata>(frame, scratch, emit) {
                    if let Some(usage) = &read.value.usage {
                        self.usage(usage, emit);
                    }
                    // This is the last event, but the connection may stay open for a while.
                    if self.stop.is_some() {
                        self.end(emit);
                    }
                }
            }
            other => {
                let Some(name) = other.strip_prefix(EXCEPTION).or_else(|| other.strip_prefix(ERROR)) else {
                    return FrameKind::KeepAlive;
                };
                let error = error::in_stream(&self.reply.model, name, frame.data);
                self.note(&error);
                self.reply.start(emit);
                self.reply.fail(error, emit);
            }
        }
        FrameKind::Content
    }

    fn finish(&mut self, emit: &mut Emit) {
        if !self.reply.is_ended() {
            self.end(emit);
        }
    }

    fn fail(&mut self, error: LlmError, emit: &mut Emit) {
        if !self.reply.is_ended() {
            self.note(&error);
        }
        self.reply.fail(error, emit);
    }
}
