//! Responses in the Responses format.
//!
//! An answer is a list of items: reasoning, messages and calls. Each is opened, grows, and is repeated completely at its end, which is
//! authoritative. Items may grow concurrently; their index identifies them.

use std::collections::HashSet;

use http::StatusCode;
use pinch_stdx::json::lossy;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::convert;
use super::error::{self, Manner, ReportedError, ResponseFailure};
use super::events::{ErrorEvent, Item, ResponseEvent, ResponseOutcome, read_part};
use super::grammar::GrammarTools;
use super::models;
use crate::error::{LlmError, LlmErrorKind};
use crate::event::Emit;
use crate::frame::Frame;
use crate::ids::ToolCallId;
use crate::message::{StopReason, Text as TextBlock, Thinking, ToolCall, Usage};
use crate::wire::frame_json::{self, TextQuality};
use crate::wire::reply::{OpenBlock, ReplyBuilder};
use crate::wire::{Decoder, FrameKind, WireCall};

/// Decodes a response.
#[derive(Debug)]
pub(in crate::wire) struct ResponsesDecoder<M> {
    reply: ReplyBuilder,
    manner: M,
    grammar: GrammarTools,
    open: Vec<OpenItem>,
    /// Ids of completed items.
    ended: HashSet<String>,
    has_calls: bool,
}

/// An open item.
#[derive(Debug)]
struct OpenItem {
    /// Its index in the response, if the server reports it.
    number: Option<u64>,
    id: String,
    /// Its position in the message.
    place: usize,
    kind: OutputKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutputKind {
    Reasoning,
    Message,
    Call,
    /// A call with a text argument instead of JSON.
    CustomCall {
        /// Whether the JSON around the text has started.
        begun: bool,
    },
}

impl OutputKind {
    fn of(item: &Item<'_>) -> Option<Self> {
        match item.kind.get()? {
            "reasoning" => Some(Self::Reasoning),
            "message" => Some(Self::Message),
            "function_call" => Some(Self::Call),
            "custom_tool_call" => Some(Self::CustomCall { begun: false }),
            _ => None,
        }
    }
}

impl<M: Manner> ResponsesDecoder<M> {
    pub(in crate::wire) fn new(call: &WireCall<'_>, manner: M) -> Self {
        let mut reply = ReplyBuilder::new(call.request, call.timestamp);
        reply.message.provider_thinking_level = models::announced_effort(call.request);
        Self {
            reply,
            manner,
            grammar: GrammarTools::of_request(call.request),
            open: Vec::new(),
            ended: HashSet::new(),
            has_calls: false,
        }
    }

    fn event(&mut self, event: &ResponseEvent<'_>, data: &str, quality: TextQuality, emit: &mut Emit) {
        let kind = event.kind.get().unwrap_or("");
        let mut scratch = String::new();
        if kind == "response.created" {
            self.known(&read_part(event.response, &mut scratch).value);
            scratch.clear();
        }
        self.reply.start(emit);
        match kind {
            "response.output_item.added" => self.added(event, quality, emit),
            "response.output_item.done" => self.item_done(event, quality, emit),
            "response.output_text.delta" | "response.refusal.delta" => {
                self.delta(event, OutputKind::Message, event.delta.get(), quality, emit);
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.delta(event, OutputKind::Reasoning, event.delta.get(), quality, emit);
            }
            "response.reasoning_summary_part.done" => {
                self.delta(event, OutputKind::Reasoning, Some("\n\n"), TextQuality::Intact, emit);
            }
            "response.function_call_arguments.delta" => {
                self.delta(event, OutputKind::Call, event.delta.get(), quality, emit);
            }
            "response.function_call_arguments.done" => self.arguments_done(event, quality, emit),
            "response.custom_tool_call_input.delta" => self.input_delta(event, event.delta.get(), quality, emit),
            "response.completed" | "response.done" | "response.incomplete" => {
                self.finished(kind, &read_part(event.response, &mut scratch).value, emit);
            }
            "response.failed" => self.failed(&read_part(event.response, &mut scratch).value, emit),
            "error" => {
                let mut mended = String::new();
                let event =
                    frame_json::read(data, &mut mended).map_or_else(|_| ErrorEvent::default(), |read| read.value);
                let nested: Option<ReportedError<'_>> =
                    event.error.map(|error| read_part(Some(error), &mut scratch).value);
                let reported = nested.unwrap_or_else(|| serde_json::from_str(data).unwrap_or_default());
                let status = event.status.and_then(|n| StatusCode::from_u16(u16::try_from(n).ok()?).ok());
                let error = self.manner.error_event(&self.reply.model, status, &reported, data);
                self.reply.fail(error, emit);
            }
            _ => {}
        }
    }

    // Items.

    fn added(&mut self, event: &ResponseEvent<'_>, quality: TextQuality, emit: &mut Emit) {
        let mut scratch = String::new();
        let read = read_part::<Item<'_>>(event.item, &mut scratch);
        let (item, quality) = (read.value, quality.worse(read.quality));
        let Some(kind) = OutputKind::of(&item) else { return };
        let place = self.open_item(event, &item, kind, emit);
        match kind {
            OutputKind::Message => {
                let text = item.text();
                if !text.is_empty() {
                    self.reply.delta(place, &text, quality, emit);
                }
            }
            OutputKind::Call => self.set_json(place, item.arguments.0.as_deref().unwrap_or(""), quality),
            OutputKind::CustomCall { .. } => self.input_delta(event, item.input.non_empty(), quality, emit),
            OutputKind::Reasoning => {}
        }
    }

    fn open_item(&mut self, event: &ResponseEvent<'_>, item: &Item<'_>, kind: OutputKind, emit: &mut Emit) -> usize {
        let id = item.id.get().unwrap_or("");
        let slot = match kind {
            OutputKind::Reasoning => OpenBlock::Thinking(Thinking::default()),
            OutputKind::Message => {
                let signature = item.phase.non_empty().map(|phase| convert::write_signature("", Some(phase)));
                OpenBlock::Text(TextBlock { signature, ..TextBlock::default() })
            }
            OutputKind::Call | OutputKind::CustomCall { .. } => {
                self.has_calls = true;
                let call_id = item.call_id.get().unwrap_or("");
                let both = if id.is_empty() { call_id.to_owned() } else { format!("{call_id}|{id}") };
                OpenBlock::Call { call: new_call(both, item), json: String::new() }
            }
        };
        let place = self.reply.open(slot, emit);
        self.open.push(OpenItem { number: event.output_index, id: id.to_owned(), place, kind });
        place
    }

    /// Returns the open item of an event: by index, else by id, else the only one of its kind.
    fn find(
        &self,
        number: Option<u64>,
        id: &str,
        wanted: impl Fn(OutputKind) -> bool,
    ) -> Result<Option<usize>, Ambiguous> {
        let mut fitting = self.open.iter().enumerate().rev().filter(|(_, item)| wanted(item.kind));
        if number.is_some() {
            return Ok(fitting.find(|(_, item)| item.number == number).map(|(at, _)| at));
        }
        if let Some((at, _)) = fitting.clone().find(|(_, item)| !id.is_empty() && item.id == id) {
            return Ok(Some(at));
        }
        let first = fitting.next().map(|(at, _)| at);
        if fitting.next().is_some() { Err(Ambiguous) } else { Ok(first) }
    }

    /// Like [`Self::find`]; a failure ends the answer.
    fn find_or_fail(
        &mut self,
        event: &ResponseEvent<'_>,
        id: &str,
        wanted: impl Fn(OutputKind) -> bool,
        emit: &mut Emit,
    ) -> Option<usize> {
        match self.find(event.output_index, id, wanted) {
            Ok(found) => found,
            Err(Ambiguous) => {
                let text = "OpenAI Responses stream has parallel items that cannot be distinguished";
                self.reply.fail_with(LlmErrorKind::Protocol, text, emit);
                None
            }
        }
    }

    fn delta(
        &mut self,
        event: &ResponseEvent<'_>,
        kind: OutputKind,
        text: Option<&str>,
        quality: TextQuality,
        emit: &mut Emit,
    ) {
        let Some(text) = text else { return };
        if let Some(at) = self.find_or_fail(event, event.item_id.get().unwrap_or(""), |of| of == kind, emit) {
            self.reply.delta(self.open[at].place, text, quality, emit);
        }
    }

    fn arguments_done(&mut self, event: &ResponseEvent<'_>, quality: TextQuality, emit: &mut Emit) {
        let Some(arguments) = event.arguments.get() else { return };
        let Some(at) =
            self.find_or_fail(event, event.item_id.get().unwrap_or(""), |kind| kind == OutputKind::Call, emit)
        else {
            return;
        };
        let place = self.open[at].place;
        let arguments = frame_json::unmarked(arguments, quality);
        let Some(OpenBlock::Call { json, .. }) = self.reply.block_mut(place) else { return };
        match arguments.strip_prefix(json.as_str()).map(str::to_owned) {
            Some(rest) if rest.is_empty() => {}
            Some(rest) => self.reply.delta(place, &rest, TextQuality::Intact, emit),
            None => json.replace_range(.., &arguments),
        }
    }

    /// Processes more of a call's text argument, which is converted to JSON.
    fn input_delta(&mut self, event: &ResponseEvent<'_>, text: Option<&str>, quality: TextQuality, emit: &mut Emit) {
        let Some(text) = text else { return };
        let is_custom = |kind| matches!(kind, OutputKind::CustomCall { .. });
        let Some(at) = self.find_or_fail(event, event.item_id.get().unwrap_or(""), is_custom, emit) else { return };
        let OpenItem { place, kind, .. } = &mut self.open[at];
        let place = *place;
        let was_begun =
            std::mem::replace(kind, OutputKind::CustomCall { begun: true }) == OutputKind::CustomCall { begun: true };
        let mut piece = if was_begun { String::new() } else { self.input_begin(place) };
        push_escaped(&mut piece, text);
        self.reply.delta(place, &piece, quality, emit);
    }

    /// Returns the JSON before the text argument of a call.
    fn input_begin(&self, place: usize) -> String {
        let name = match self.reply.blocks().get(place) {
            Some(OpenBlock::Call { call, .. }) => call.name.as_str(),
            _ => "",
        };
        let mut begin = String::from("{\"");
        push_escaped(&mut begin, self.grammar.argument_of(name));
        begin.push_str("\":\"");
        begin
    }

    fn set_json(&mut self, place: usize, text: &str, quality: TextQuality) {
        if let Some(OpenBlock::Call { json, .. }) = self.reply.block_mut(place) {
            json.replace_range(.., &frame_json::unmarked(text, quality));
        }
    }

    fn item_done(&mut self, event: &ResponseEvent<'_>, quality: TextQuality, emit: &mut Emit) {
        let mut scratch = String::new();
        let read = read_part::<Item<'_>>(event.item, &mut scratch);
        let (item, quality) = (read.value, quality.worse(read.quality));
        let Some(kind) = OutputKind::of(&item) else { return };
        let same = |of: OutputKind| std::mem::discriminant(&of) == std::mem::discriminant(&kind);
        let id = item.id.get().unwrap_or("");
        let found = self.find_or_fail(event, id, same, emit);
        // An item ends only once.
        if self.reply.is_ended() || (!id.is_empty() && !self.ended.insert(id.to_owned())) {
            return;
        }
        let at = found.unwrap_or_else(|| {
            self.open_item(event, &item, kind, emit);
            self.open.len() - 1
        });
        let OpenItem { place, kind, .. } = self.open.swap_remove(at);
        match kind {
            OutputKind::Reasoning => self.end_reasoning(place, &item, event.item, quality),
            OutputKind::Message => self.end_message(place, &item, quality),
            OutputKind::Call => {
                self.complete_call(place, &item);
                if let Some(arguments) = item.arguments.0.as_deref().filter(|text| !text.is_empty()) {
                    self.set_json(place, arguments, quality);
                }
            }
            OutputKind::CustomCall { begun } => {
                self.complete_call(place, &item);
                self.end_input(place, &item, begun, quality, emit);
            }
        }
        self.reply.close(place, emit);
    }

    fn end_reasoning(&mut self, place: usize, item: &Item<'_>, raw: Option<&RawValue>, quality: TextQuality) {
        let Some(OpenBlock::Thinking(thinking)) = self.reply.block_mut(place) else { return };
        let text = item.thinking();
        if !text.is_empty() {
            thinking.thinking = frame_json::unmarked(&text, quality).into_owned();
        }
        // Parse and rewrite it, so that it is compact whatever the server sent.
        let whole = raw.and_then(|raw| lossy::from_str::<Value>(raw.get()).ok());
        thinking.signature = whole.map(|whole| frame_json::unmarked(&whole.to_string(), quality).into_owned());
    }

    fn end_message(&mut self, place: usize, item: &Item<'_>, quality: TextQuality) {
        let Some(OpenBlock::Text(block)) = self.reply.block_mut(place) else { return };
        let text = item.text();
        if !text.is_empty() {
            block.text = frame_json::unmarked(&text, quality).into_owned();
        }
        block.signature = item.id.non_empty().map(|id| convert::write_signature(id, item.phase.non_empty()));
    }

    /// Adds members that were missing at the start of a call.
    fn complete_call(&mut self, place: usize, item: &Item<'_>) {
        let Some(OpenBlock::Call { call, .. }) = self.reply.block_mut(place) else { return };
        if let Some(name) = item.name.non_empty().filter(|_| call.name.is_empty()) {
            name.clone_into(&mut call.name);
        }
        if call.namespace.is_none() {
            call.namespace = item.namespace.non_empty().map(str::to_owned);
        }
    }

    /// Ends the JSON of a call with a text argument; the item has the complete text.
    fn end_input(&mut self, place: usize, item: &Item<'_>, begun: bool, quality: TextQuality, emit: &mut Emit) {
        let begin = self.input_begin(place);
        let Some(OpenBlock::Call { json, .. }) = self.reply.block_mut(place) else { return };
        let whole = match item.input.get() {
            Some(text) => {
                let mut whole = begin;
                push_escaped(&mut whole, &frame_json::unmarked(text, quality));
                whole + "\"}"
            }
            None if begun => format!("{json}\"}}"),
            None => begin + "\"}",
        };
        match whole.strip_prefix(json.as_str()).map(str::to_owned) {
            Some(rest) if begun => self.reply.delta(place, &rest, TextQuality::Intact, emit),
            _ => *json = whole,
        }
    }

    // The end.

    fn known(&mut self, outcome: &ResponseOutcome<'_>) {
        let message = &mut self.reply.message;
        if let Some(id) = outcome.id.non_empty() {
            message.response_id = Some(id.to_owned());
        }
        if let Some(model) = outcome.model.non_empty().filter(|model| self.reply.model.id != **model) {
            message.response_model = Some(model.to_owned());
        }
    }

    fn finished(&mut self, event: &str, outcome: &ResponseOutcome<'_>, emit: &mut Emit) {
        self.known(outcome);
        self.usage(outcome, emit);
        let reason = outcome.incomplete_details.as_ref().and_then(|details| details.reason.non_empty());
        let status = outcome.status.non_empty();
        let status = if event == "response.incomplete" { status.or(Some("incomplete")) } else { status };
        self.reply.message.raw_stop_reason = match (status, reason) {
            (Some("incomplete"), Some(reason)) => Some(format!("incomplete.{reason}")),
            (status, _) => status.map(str::to_owned),
        };
        self.reply.close_all(emit);
        match status {
            Some("incomplete") if reason == Some("content_filter") => {
                let error = error::filtered(&self.reply.model, "incomplete: content_filter".into());
                self.reply.fail(error, emit);
            }
            Some("incomplete") => self.reply.done(StopReason::Length, emit),
            None | Some("completed" | "in_progress" | "queued") => {
                self.reply.done(if self.has_calls { StopReason::ToolUse } else { StopReason::Stop }, emit);
            }
            Some("failed" | "cancelled") => {
                let model = &self.reply.model;
                let error = match &outcome.error {
                    None => error::in_stream(model, None, None, "An unknown error occurred".into()),
                    reported => {
                        self.manner.failed(model, &ResponseFailure { error: reported.clone(), incomplete: None })
                    }
                };
                self.reply.fail(error, emit);
            }
            Some(word) => {
                let text = format!("Unknown response status: {word}");
                self.reply.fail_with(LlmErrorKind::Protocol, text, emit);
            }
        }
    }

    fn failed(&mut self, outcome: &ResponseOutcome<'_>, emit: &mut Emit) {
        self.known(outcome);
        self.usage(outcome, emit);
        let reason = outcome.incomplete_details.as_ref().and_then(|details| details.reason.non_empty());
        self.reply.message.raw_stop_reason = outcome.status.non_empty().map(str::to_owned);
        let failure = ResponseFailure { error: outcome.error.clone(), incomplete: reason };
        let error = self.manner.failed(&self.reply.model, &failure);
        self.reply.fail(error, emit);
    }

    fn usage(&mut self, outcome: &ResponseOutcome<'_>, emit: &mut Emit) {
        let Some(reported) = &outcome.usage else { return };
        let details = reported.input_tokens_details.as_ref();
        let cached = details.and_then(|details| details.cached_tokens).or(reported.cached_tokens).unwrap_or(0);
        let written = details.and_then(|details| details.cache_write_tokens).unwrap_or(0);
        let reasoning = reported.output_tokens_details.as_ref().and_then(|details| details.reasoning_tokens);
        let mut usage = Usage {
            input: reported.input_tokens.unwrap_or(0).saturating_sub(cached).saturating_sub(written),
            output: reported.output_tokens.unwrap_or(0),
            cache_read: cached,
            cache_write: written,
            reasoning: Some(reasoning.unwrap_or(0)),
            ..Usage::default()
        };
        let sum = || usage.input.saturating_add(usage.output).saturating_add(cached).saturating_add(written);
        usage.total_tokens = reported.total_tokens.unwrap_or_else(sum);
        let factor = self.manner.price_factor(&self.reply.model, outcome.service_tier.non_empty());
        if factor != 1.0 {
            self.reply.rates = Some(self.reply.model.rates.scaled(factor));
        }
        self.reply.set_usage(usage, emit);
    }
}

/// Events that only report progress of the server.
const WITHOUT_CONTENT: [&str; 4] = ["response.created", "response.in_progress", "response.queued", "keepalive"];

/// Several items match.
struct Ambiguous;

fn new_call(id: String, item: &Item<'_>) -> ToolCall {
    ToolCall {
        id: ToolCallId::from(id),
        name: item.name.get().unwrap_or("").to_owned(),
        arguments: Map::new(),
        thought_signature: None,
        arguments_error: None,
        namespace: item.namespace.non_empty().map(str::to_owned),
    }
}

/// Appends a text as the inside of a JSON string.
fn push_escaped(to: &mut String, text: &str) {
    let quoted = Value::from(text).to_string();
    to.push_str(&quoted[1..quoted.len() - 1]);
}

impl<M: Manner> Decoder for ResponsesDecoder<M> {
    fn push(&mut self, frame: Frame<'_>, emit: &mut Emit) -> FrameKind {
        if self.reply.is_ended() || frame.data.is_empty() || frame.data.starts_with("[DONE]") {
            return FrameKind::KeepAlive;
        }
        let mut scratch = String::new();
        let mut has_content = true;
        match frame_json::read::<ResponseEvent<'_>>(frame.data, &mut scratch) {
            Ok(read) => {
                has_content = !read.value.kind.get().is_some_and(|kind| WITHOUT_CONTENT.contains(&kind));
                self.event(&read.value, frame.data, read.quality, emit);
            }
            Err(why) => {
                let text = format!("{}: {why}", self.manner.bad_json());
                self.reply.fail_with(frame_json::error_kind(&why), text, emit);
            }
        }
        FrameKind::content_if(has_content)
    }

    fn finish(&mut self, emit: &mut Emit) {
        if !self.reply.is_ended() {
            let text = "OpenAI Responses stream ended before a terminal response event";
            self.reply.fail_with(LlmErrorKind::StreamCut, text, emit);
        }
    }

    fn fail(&mut self, error: LlmError, emit: &mut Emit) {
        self.reply.fail(error, emit);
    }
}
