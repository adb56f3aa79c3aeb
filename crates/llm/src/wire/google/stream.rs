//! Responses in Google's format.

use std::collections::HashSet;

use pinch_stdx::host::Host;
use pinch_stdx::json::write;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::error;
use crate::error::{LlmError, LlmErrorKind};
use crate::event::Emit;
use crate::frame::Frame;
use crate::ids::ToolCallId;
use crate::message::{StopReason, Text as TextBlock, Thinking, ToolCall, Usage};
use crate::wire::frame_json::{self, First, RareText, TextMember, TextQuality};
use crate::wire::reply::{OpenBlock, ReplyBuilder};
use crate::wire::{Decoder, FrameKind, WireCall};

/// Decodes a response. One block is open at a time; calls arrive complete.
#[derive(Debug)]
pub(in crate::wire) struct GoogleDecoder {
    reply: ReplyBuilder,
    /// Creates ids for calls without one.
    host: Host,
    open: Option<GoogleBlock>,
    ids: HashSet<String>,
    stop: Option<FinishReason>,
}

#[derive(Clone, Copy, Debug)]
struct GoogleBlock {
    place: usize,
    is_thinking: bool,
}

/// The reported finish reason.
#[derive(Debug)]
struct FinishReason {
    word: String,
    message: Option<String>,
}

// Members that most chunks lack are boxed: the parser moves these values several times.

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GoogleChunk<'a> {
    #[serde(borrow, default)]
    response_id: TextMember<'a>,
    #[serde(borrow, default)]
    model_version: TextMember<'a>,
    #[serde(borrow, default)]
    candidates: First<GoogleCandidate<'a>>,
    #[serde(default)]
    usage_metadata: Option<Box<UsageMetadata>>,
    #[serde(borrow, default)]
    prompt_feedback: Option<Box<Feedback<'a>>>,
    #[serde(default)]
    error: Option<Box<Value>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GoogleCandidate<'a> {
    #[serde(borrow, default)]
    content: Option<GoogleContent<'a>>,
    #[serde(borrow, default)]
    finish_reason: RareText<'a>,
    #[serde(borrow, default)]
    finish_message: RareText<'a>,
}

#[derive(Deserialize)]
struct GoogleContent<'a> {
    #[serde(borrow, default)]
    parts: Option<Vec<GooglePart<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GooglePart<'a> {
    #[serde(borrow, default)]
    text: TextMember<'a>,
    #[serde(default)]
    thought: Option<bool>,
    #[serde(borrow, default)]
    thought_signature: RareText<'a>,
    #[serde(borrow, default)]
    function_call: Option<Box<FunctionCall<'a>>>,
}

#[derive(Deserialize)]
struct FunctionCall<'a> {
    #[serde(borrow, default)]
    id: TextMember<'a>,
    #[serde(borrow, default)]
    name: TextMember<'a>,
    #[serde(default)]
    args: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback<'a> {
    #[serde(borrow, default)]
    block_reason: TextMember<'a>,
    #[serde(borrow, default)]
    block_reason_message: TextMember<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct UsageMetadata {
    #[serde(default, deserialize_with = "frame_json::count")]
    prompt_token_count: Option<u64>,
    #[serde(default, deserialize_with = "frame_json::count")]
    candidates_token_count: Option<u64>,
    #[serde(default, deserialize_with = "frame_json::count")]
    thoughts_token_count: Option<u64>,
    #[serde(default, deserialize_with = "frame_json::count")]
    cached_content_token_count: Option<u64>,
    #[serde(default, deserialize_with = "frame_json::count")]
    total_token_count: Option<u64>,
}

impl GoogleDecoder {
    pub(in crate::wire) fn new(call: &WireCall<'_>) -> Self {
        Self {
            reply: ReplyBuilder::new(call.request, call.timestamp),
            host: call.request.host.clone(),
            open: None,
            ids: HashSet::new(),
            stop: None,
        }
    }

    /// Processes a chunk. `data` is its original text.
    fn chunk(&mut self, chunk: &GoogleChunk<'_>, data: &str, quality: TextQuality, emit: &mut Emit) {
        self.reply.identify(chunk.response_id.non_empty(), chunk.model_version.non_empty());
        self.reply.start(emit);
        if let Some(error) = &chunk.error {
            let error = error::in_stream(&self.reply.model, error, data);
            return self.reply.fail(error, emit);
        }
        if let Some(usage) = &chunk.usage_metadata {
            self.usage(usage, emit);
        }
        let Some(candidate) = &chunk.candidates.0 else {
            return self.feedback(chunk.prompt_feedback.as_deref(), emit);
        };
        let parts = candidate.content.as_ref().and_then(|content| content.parts.as_ref());
        for part in parts.into_iter().flatten() {
            if let Some(text) = part.text.get() {
                self.text(part, text, quality, emit);
            }
            if let Some(call) = &part.function_call {
                self.call(call, part.thought_signature.non_empty(), quality, emit);
            }
        }
        if let Some(word) = candidate.finish_reason.non_empty() {
            self.reply.message.raw_stop_reason = Some(word.to_owned());
            let message = candidate.finish_message.non_empty().map(str::to_owned);
            self.stop = Some(FinishReason { word: word.to_owned(), message });
        }
    }

    fn feedback(&mut self, feedback: Option<&Feedback<'_>>, emit: &mut Emit) {
        let began = self.stop.is_some() || !self.reply.blocks().is_empty();
        let reason = feedback.and_then(|feedback| Some((feedback, feedback.block_reason.non_empty()?)));
        if let Some((feedback, reason)) = reason.filter(|_| !began) {
            let text = with_message(format!("Prompt blocked: {reason}"), feedback.block_reason_message.non_empty());
            self.reply.fail_with(LlmErrorKind::ContentFiltered, text, emit);
        }
    }

    fn text(&mut self, part: &GooglePart<'_>, text: &str, quality: TextQuality, emit: &mut Emit) {
        let is_thinking = part.thought == Some(true);
        let place = match self.open {
            Some(open) if open.is_thinking == is_thinking => open.place,
            _ => {
                self.close(emit);
                let slot = if is_thinking {
                    OpenBlock::Thinking(Thinking::default())
                } else {
                    OpenBlock::Text(TextBlock::default())
                };
                let place = self.reply.open(slot, emit);
                self.open = Some(GoogleBlock { place, is_thinking });
                place
            }
        };
        let given = part.thought_signature.non_empty().map(str::to_owned);
        if let (
            Some(given),
            Some(OpenBlock::Text(TextBlock { signature, .. }) | OpenBlock::Thinking(Thinking { signature, .. })),
        ) = (given, self.reply.block_mut(place))
        {
            *signature = Some(given);
        }
        self.reply.delta(place, text, quality, emit);
    }

    fn call(&mut self, reported: &FunctionCall<'_>, signature: Option<&str>, quality: TextQuality, emit: &mut Emit) {
        self.close(emit);
        let name = reported.name.get().unwrap_or("");
        let id = match reported.id.non_empty().filter(|id| !self.ids.contains(*id)) {
            Some(id) => id.to_owned(),
            None => self.new_id(name),
        };
        self.ids.insert(id.clone());
        let thought_signature = signature.map(str::to_owned);
        let call = ToolCall { thought_signature, ..ToolCall::new(ToolCallId::from(id), name, Map::new()) };
        // Gateways sometimes pass arguments as text, possibly broken.
        let arguments = match &reported.args {
            None | Some(Value::Null) => "{}".to_owned(),
            Some(Value::String(text)) => text.clone(),
            Some(args) => write::to_string(args).unwrap_or_default(),
        };
        let place = self.reply.open(OpenBlock::Call { call, json: String::new() }, emit);
        self.reply.delta(place, &arguments, quality, emit);
        self.reply.close(place, emit);
    }

    /// Returns a globally unique call id.
    fn new_id(&self, name: &str) -> String {
        let number = u32::from_str_radix(&self.host.ids().hex8(), 16).unwrap_or_default();
        format!("{name}_{}_{number}", self.host.now_ms())
    }

    fn close(&mut self, emit: &mut Emit) {
        if let Some(open) = self.open.take() {
            self.reply.close(open.place, emit);
        }
    }

    fn usage(&mut self, reported: &UsageMetadata, emit: &mut Emit) {
        let cached = reported.cached_content_token_count.unwrap_or(0);
        let thoughts = reported.thoughts_token_count.unwrap_or(0);
        let mut usage = Usage {
            input: reported.prompt_token_count.unwrap_or(0).saturating_sub(cached),
            output: reported.candidates_token_count.unwrap_or(0).saturating_add(thoughts),
            cache_read: cached,
            reasoning: Some(thoughts),
            ..Usage::default()
        };
        let sum = usage.input.saturating_add(usage.output).saturating_add(cached);
        usage.total_tokens = reported.total_token_count.unwrap_or(sum);
        self.reply.set_usage(usage, emit);
    }
}

/// Interprets a finish reason; returns `None` if it is unknown.
fn stop(word: &str) -> Option<Result<StopReason, LlmErrorKind>> {
    Some(match word {
        "STOP" => Ok(StopReason::Stop),
        "MAX_TOKENS" => Ok(StopReason::Length),
        "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION" => Err(LlmErrorKind::ContentFiltered),
        "FINISH_REASON_UNSPECIFIED"
        | "OTHER"
        | "IMAGE_OTHER"
        | "NO_IMAGE"
        | "MALFORMED_FUNCTION_CALL"
        | "UNEXPECTED_TOOL_CALL" => Err(LlmErrorKind::Protocol),
        _ => return None,
    })
}

fn with_message(text: String, message: Option<&str>) -> String {
    match message {
        Some(message) => format!("{text}: {message}"),
        None => text,
    }
}

impl Decoder for GoogleDecoder {
    fn push(&mut self, frame: Frame<'_>, emit: &mut Emit) -> FrameKind {
        if self.reply.is_ended() || frame.data.is_empty() {
            return FrameKind::KeepAlive;
        }
        // Errors sometimes come as a list.
        if frame.data.starts_with('[')
            && let Ok(chunks) = serde_json::from_str::<Vec<GoogleChunk<'_>>>(frame.data)
        {
            chunks.iter().for_each(|chunk| self.chunk(chunk, frame.data, TextQuality::Intact, emit));
            return FrameKind::Content;
        }
        let mut scratch = String::new();
        let (n_waiting, had_stop) = (emit.len(), self.stop.is_some());
        match frame_json::read::<GoogleChunk<'_>>(frame.data, &mut scratch) {
            Ok(read) => self.chunk(&read.value, frame.data, read.quality, emit),
            Err(why) if why.is_eof() => {
                self.reply.fail_with(LlmErrorKind::StreamCut, "Incomplete JSON segment at the end", emit);
            }
            Err(why) => self.reply.fail_with(LlmErrorKind::Protocol, format!("Could not parse chunk: {why}"), emit),
        }
        FrameKind::content_if(self.stop.is_some() != had_stop || emit.has_content_after(n_waiting))
    }

    fn finish(&mut self, emit: &mut Emit) {
        if self.reply.is_ended() {
            return;
        }
        self.reply.start(emit);
        self.close(emit);
        let Some(FinishReason { word, message }) = self.stop.take() else {
            return self.reply.fail_with(LlmErrorKind::StreamCut, "Google stream ended without a finish reason", emit);
        };
        match stop(&word) {
            // Calls do not turn other reasons into `ToolUse`: a truncated or refused answer stays one.
            Some(Ok(StopReason::Stop)) if !self.ids.is_empty() => self.reply.done(StopReason::ToolUse, emit),
            Some(Ok(reason)) => self.reply.done(reason, emit),
            Some(Err(kind)) => {
                let text = with_message(format!("Provider stopped with: {word}"), message.as_deref());
                self.reply.fail_with(kind, text, emit);
            }
            None => self.reply.fail_with(LlmErrorKind::Protocol, format!("Unhandled stop reason: {word}"), emit),
        }
    }

    fn fail(&mut self, error: LlmError, emit: &mut Emit) {
        self.reply.fail(error, emit);
    }
}
