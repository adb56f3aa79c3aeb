//! The pipeline of all stages, into which the runner pushes events.

use std::borrow::Cow;
use std::sync::Arc;

use pinch_agent_core::event::{AgentEvent, RunEnd};
use pinch_coding_agent::event::SessionEvent;
use pinch_llm::event::{BlockKind, StreamEvent};
use pinch_llm::message::{AssistantMessage, Block, Message, StopReason};
use pinch_llm::model::Model;
use pinch_llm::thinking::ThinkingLevel;
use pinch_stdx::cancel::Deadline;
use serde_json::{Value, json};

use super::blocks::{Blocks, Delivery};
use super::compose::Stages;
use super::normalise::normalise_reply;
use super::partial::PartialText;
use super::piece::{AgentNote, AgentStream, BlockReply, Growth, Piece, Pieces, ReplySpan};
use super::prefix::ResponsePrefix;
use super::preview::{Drafts, Preview};
use super::raw_log::RawLog;
use super::reasoning::{ReasoningTracker, format_reasoning, promote, reasoning_of};
use super::scan::{FinalTag, Scan};
use super::tool_notes::{ToolNotes, progress_of};
use super::user_text::visible_text;
use crate::texts::Phrase;

use super::{ReasoningLevel, ReplyOptions, Stage, directives, finish_through, push_through};

mod open_block;
mod results;
mod token_guard;

use open_block::{DeltaKind, StreamedBlocks};
use token_guard::TokenGuard;

/// Turns the events of a session into replies.
pub struct Replies {
    options: ReplyOptions,
    final_tag: FinalTag,
    scan: Scan,
    blocks: Blocks,
    /// Stages that the host inserted before `scan`.
    raw: Vec<Box<dyn Stage>>,
    /// Stages between `scan` and `chunk`.
    words: Vec<Box<dyn Stage>>,
    /// Everything after `chunk`.
    stages: Vec<Box<dyn Stage>>,
    partial: PartialText,
    has_reported_text: bool,
    /// Holds back the end of the text while it may be a token.
    tokens: TokenGuard,
    reasoning: ReasoningTracker,
    reasoning_block: String,
    tools: ToolNotes,
    drafts: Drafts,
    open: StreamedBlocks,
    has_text: bool,
    /// Whether the current answer has reasoning that is not part of its text.
    has_native_reasoning: bool,
    /// Blocks of the current answer that were delivered.
    delivered: Vec<BlockReply>,
    /// Whether the next answer replaces a failed one.
    restarted: bool,
    ignored: bool,
    /// Empty; kept to reuse their allocations.
    scanned: Pieces,
    between: Pieces,
    last_assistant: Option<Arc<AssistantMessage>>,
    prefix: Option<ResponsePrefix>,
    raw_log: Option<RawLog>,
}

impl Replies {
    /// Creates a pipeline with the default stages.
    pub fn new(options: ReplyOptions) -> Self {
        let stages = Stages::new(&options);
        Self::with_stages(options, stages)
    }

    /// Creates a pipeline with these stages.
    pub fn with_stages(options: ReplyOptions, stages: Stages) -> Self {
        let [raw, words, stages] = stages.into_chains();
        let delivery = match (options.block_streaming, options.reasoning) {
            (true, _) => Delivery::Blocks,
            (false, ReasoningLevel::On) => Delivery::FinalOnly,
            (false, ReasoningLevel::Off | ReasoningLevel::Stream) => Delivery::Final,
        };
        let tools = ToolNotes::new(
            options.verbose,
            options.tool_result_format,
            options.home.clone(),
            options.directives.media_roots.clone(),
        )
        .with_texts(options.texts.clone())
        .with_verbose_now(options.verbose_now.clone());
        Self {
            final_tag: FinalTag::Optional,
            scan: Scan::new(FinalTag::Optional),
            blocks: Blocks::new(options.block_reply_break, options.chunking, delivery),
            raw,
            words,
            stages,
            partial: PartialText::new(options.directives.clone()),
            has_reported_text: false,
            tokens: TokenGuard::default(),
            reasoning: ReasoningTracker::new(options.texts.get(Phrase::Reasoning)),
            reasoning_block: String::new(),
            tools,
            // Blocks sent during the run make a draft unnecessary.
            drafts: Drafts::new(
                if options.block_streaming { Preview::default() } else { options.preview },
                options.text_limit,
            ),
            open: StreamedBlocks::default(),
            has_text: false,
            has_native_reasoning: false,
            delivered: Vec::new(),
            restarted: false,
            ignored: false,
            scanned: Pieces::new(),
            between: Pieces::new(),
            last_assistant: None,
            prefix: options.prefix.clone(),
            raw_log: None,
            options,
        }
    }

    /// Records everything that the model writes.
    #[must_use]
    pub fn with_raw_log(self, raw_log: Option<RawLog>) -> Self {
        Self { raw_log, ..self }
    }

    /// Processes an event of the session.
    pub fn push(&mut self, event: &SessionEvent, out: &mut Pieces) {
        if let Some(log) = &mut self.raw_log {
            log.record(event);
        }
        match event {
            SessionEvent::Agent(event) => self.agent_event(event, out),
            SessionEvent::RunEnd { end, .. } => self.run_end(end, out),
            SessionEvent::CompactionStart { .. } => out.push(compaction_note(json!({"phase": "start"}))),
            SessionEvent::CompactionEnd { will_retry, .. } => {
                if *will_retry {
                    self.begin_again();
                }
                out.push(compaction_note(json!({"phase": "end", "willRetry": will_retry})));
            }
            // No other event changes what the user sees.
            _ => {}
        }
    }

    /// Restarts after a failed attempt. What was delivered stays, the rest is discarded, and blocks of the new answer that repeat the
    /// delivered ones from its start are dropped.
    pub fn restart(&mut self) {
        let delivered = std::mem::take(&mut self.delivered);
        let mut dropped = Pieces::new();
        self.scan.push(Piece::Restart, &mut dropped);
        push_through(&mut self.raw, Piece::Restart, &mut dropped);
        push_through(&mut self.words, Piece::Restart, &mut dropped);
        push_through(&mut self.stages, Piece::Restart, &mut dropped);
        self.blocks.restart(&delivered);
        self.delivered = delivered;
        self.restarted = true;
        self.reset_message();
    }

    /// Sets whether only text inside final tags is for people in the answers that follow.
    pub fn enforce_final_tag(&mut self, is_enforced: bool) {
        self.final_tag = if is_enforced { FinalTag::Enforced } else { FinalTag::Optional };
        self.scan = Scan::new(self.final_tag);
    }

    /// Sets the model that answers from now on.
    pub fn set_model(&mut self, model: &Model, thinking: ThinkingLevel) {
        if let Some(prefix) = &mut self.prefix {
            prefix.set_model(model, thinking);
        }
    }

    /// Puts the configured prefix before the text of a reply.
    pub fn put_prefix(&self, text: &mut String) {
        if let Some(prefix) = &self.prefix {
            prefix.put_before(text);
        }
    }

    /// Flushes all buffers. Nothing more will come.
    pub fn finish(&mut self, out: &mut Pieces) {
        let (mut raw, mut scanned, mut between) = (Pieces::new(), Pieces::new(), Pieces::new());
        finish_through(&mut self.raw, &mut raw);
        raw.into_iter().for_each(|piece| self.scan.push(piece, &mut scanned));
        self.scan.finish(&mut scanned);
        scanned.into_iter().for_each(|piece| push_through(&mut self.words, piece, &mut between));
        finish_through(&mut self.words, &mut between);
        self.after_scan(&mut between, out);
        let mut between = Pieces::new();
        self.blocks.finish(&mut between);
        self.through_stages(between, out);
        let mut last = Pieces::new();
        finish_through(&mut self.stages, &mut last);
        self.deliver(last, out);
    }

    /// Returns when [`Replies::wake`] should be called, unless an event arrives earlier.
    pub fn wake_at(&self) -> Option<Deadline> {
        let all = self.raw.iter().chain(&self.words).chain(&self.stages);
        all.filter_map(|stage| stage.wake_at()).chain(self.drafts.wake_at()).min()
    }

    /// Wakes the stages that asked for this time.
    pub fn wake(&mut self, out: &mut Pieces) {
        self.drafts.show(out);
        self.feed(Piece::Wake, out);
    }

    fn agent_event(&mut self, event: &AgentEvent, out: &mut Pieces) {
        match event {
            AgentEvent::AgentStart => self.lifecycle(json!({"phase": "start"}), out),
            AgentEvent::MessageStart(message) => {
                if let Message::Assistant(message) = &**message {
                    self.message_start(message, out);
                }
            }
            AgentEvent::MessageUpdate(event) if !self.ignored => self.stream_event(event, out),
            AgentEvent::MessageEnd { message, .. } => {
                if let Message::Assistant(message) = &**message {
                    self.message_end(message, out);
                }
            }
            AgentEvent::ToolStart(start) => {
                if self.options.block_streaming {
                    self.feed(Piece::Flush, out);
                }
                out.push(Piece::Flushed);
                let n_before = out.len();
                self.tools.start(start, out);
                self.prefix_notes(&mut out[n_before..]);
                if self.drafts.lists_tools() {
                    let line = self.tools.summary(start, self.drafts.commands());
                    self.drafts.tool(&line, out);
                }
            }
            AgentEvent::ToolUpdate { start, so_far } => {
                self.tools.update(start, so_far, out);
                if let Some(text) = progress_of(so_far) {
                    self.drafts.tool_progress(text, out);
                }
            }
            AgentEvent::ToolEnd { start, output, .. } => {
                let mut notes = Pieces::new();
                self.tools.end(start, output, &mut notes);
                self.prefix_notes(&mut notes);
                for piece in notes {
                    match piece {
                        Piece::Sent(_) => self.blocks.push(piece, &mut Pieces::new()),
                        other => out.push(other),
                    }
                }
            }
            AgentEvent::AgentEnd(end) => self.run_end(end, out),
            _ => {}
        }
    }

    /// Puts the prefix before messages about tools.
    fn prefix_notes(&self, pieces: &mut [Piece]) {
        for piece in pieces {
            if let Piece::ToolResult(note) = piece {
                self.put_prefix(&mut note.text);
            }
        }
    }

    fn message_start(&mut self, message: &AssistantMessage, out: &mut Pieces) {
        self.ignored = is_mirror(message);
        if self.ignored {
            return;
        }
        self.reset_message();
        if !std::mem::take(&mut self.restarted) {
            self.delivered.clear();
        }
        self.feed(Piece::MessageStart, out);
        self.drafts.begin();
        out.push(Piece::AssistantStart);
    }

    fn reset_message(&mut self) {
        self.partial = PartialText::new(self.options.directives.clone());
        self.has_reported_text = false;
        self.tokens = TokenGuard::default();
        self.reasoning.reset();
        self.open = StreamedBlocks::default();
        self.has_text = false;
        self.has_native_reasoning = false;
    }

    /// Returns whether the reasoning of the current answer, which is not part of its text, is hidden.
    fn hides_reasoning(&self) -> bool {
        self.options.hide_native_reasoning && self.has_native_reasoning
    }

    fn stream_event(&mut self, event: &StreamEvent, out: &mut Pieces) {
        match event {
            StreamEvent::BlockStart { index, kind } => {
                if matches!(kind, BlockKind::Text) && self.has_text {
                    // Blocks are joined by a line break, as in the finished message.
                    self.text("\n", out);
                }
                if matches!(kind, BlockKind::Thinking { .. }) {
                    self.has_native_reasoning = true;
                    self.reasoning.begin_block(*index);
                }
                self.open.start(*index, kind);
            }
            StreamEvent::Delta { index, text } => match self.open.add(*index, text) {
                DeltaKind::Text => self.text(text, out),
                DeltaKind::Thinking if self.hides_reasoning() => {}
                DeltaKind::Thinking => self.thought(text, out),
                DeltaKind::Nothing => {}
            },
            StreamEvent::BlockEnd { index, block } => match &**block {
                Block::Text(text) if text.is_commentary() => {}
                Block::Text(text) => {
                    let missing = self.open.end_text(*index, &text.text);
                    if !missing.is_empty() {
                        self.text(missing, out);
                    }
                    self.feed(Piece::TextEnd, out);
                }
                Block::Thinking(_) if self.hides_reasoning() => {}
                Block::Thinking(thinking) => {
                    if self.options.reasoning == ReasoningLevel::Stream {
                        out.extend(self.reasoning.end_block(*index, &thinking.thinking).map(Piece::Reasoning));
                    }
                    self.end_reasoning(out);
                }
                Block::Image(_) | Block::ToolCall(_) | Block::Other(_) => {}
            },
            StreamEvent::Start(_) | StreamEvent::Usage(_) | StreamEvent::End(_) => {}
        }
    }

    fn text(&mut self, text: &str, out: &mut Pieces) {
        self.has_text = true;
        self.feed(Piece::Text(text.to_owned()), out);
    }

    fn thought(&mut self, text: &str, out: &mut Pieces) {
        if self.options.reasoning == ReasoningLevel::Stream {
            out.extend(self.reasoning.add(text).map(Piece::Reasoning));
        }
    }

    fn whole_thought(&mut self, text: &str, out: &mut Pieces) {
        if self.options.reasoning == ReasoningLevel::Stream {
            out.extend(self.reasoning.set(text).map(Piece::Reasoning));
        }
    }

    fn end_reasoning(&mut self, out: &mut Pieces) {
        if self.reasoning.end() && self.options.reasoning == ReasoningLevel::Stream {
            out.push(Piece::ReasoningEnd);
        }
    }

    fn message_end(&mut self, message: &Arc<AssistantMessage>, out: &mut Pieces) {
        if is_mirror(message) {
            return;
        }
        self.last_assistant = Some(Arc::clone(message));
        // Tagged reasoning is treated like thinking blocks.
        let promoted = promote(&message.content);
        let content = promoted.as_deref().unwrap_or(&message.content);
        let text = visible_text(content, self.final_tag, &self.options.texts);
        if !self.has_reported_text {
            self.report_whole(&text, out);
        }
        let level = self.reasoning_level();
        let thinking = if level == ReasoningLevel::Off { String::new() } else { reasoning_of(content) };
        let formatted = format_reasoning(&thinking, self.options.texts.get(Phrase::Reasoning));
        let sends = level == ReasoningLevel::On
            && self.options.block_streaming
            && !formatted.is_empty()
            && formatted != self.reasoning_block;
        let is_first = !self.blocks.has_text();
        let span = Some(ReplySpan { message: self.blocks.message(), bytes: 0..0 });
        let block = BlockReply { is_reasoning: true, span, ..BlockReply::text(formatted.clone()) };
        if sends {
            self.reasoning_block = formatted;
        }
        let is_before = sends && is_first;
        if is_before {
            self.through_stages(vec![Piece::Block(block.clone())], out);
        }
        self.drafts.settle(out);
        self.feed(Piece::MessageEnd(text.into()), out);
        if sends && !is_before {
            self.through_stages(vec![Piece::Block(block)], out);
        }
        if level == ReasoningLevel::Stream {
            self.whole_thought(&thinking, out);
            self.end_reasoning(out);
        }
    }

    /// Reports the text of an answer that arrived all at once.
    fn report_whole(&mut self, text: &str, out: &mut Pieces) {
        let parsed = directives::parse_text(text.into(), None, &self.options.directives);
        let Some(delta) = normalise_reply(parsed.text, !parsed.media_urls.is_empty(), None, &self.options.texts) else {
            return;
        };
        self.has_reported_text = true;
        self.partial_reply(Growth { delta, media_urls: parsed.media_urls, ..Growth::default() }, out);
    }

    fn run_end(&mut self, end: &RunEnd, out: &mut Pieces) {
        let failed = end.messages.iter().rev().find_map(|message| message.as_assistant());
        let failed = failed.or(self.last_assistant.as_ref()).filter(|message| message.stop_reason == StopReason::Error);
        let data = match failed {
            Some(message) => json!({"phase": "error", "error": message.error_message.as_deref().unwrap_or_default()}),
            None => json!({"phase": "end"}),
        };
        self.lifecycle(data, out);
        if self.options.block_streaming {
            self.feed(Piece::Flush, out);
        }
    }

    fn lifecycle(&self, data: Value, out: &mut Pieces) {
        if !self.options.quiet_lifecycle {
            out.push(Piece::Agent(AgentNote::new(AgentStream::Lifecycle, data)));
        }
    }

    fn begin_again(&mut self) {
        self.blocks.reset();
        self.tools.reset();
        self.delivered.clear();
        self.scan.push(Piece::Restart, &mut Pieces::new());
        self.reset_message();
    }

    /// Pushes a piece through all stages.
    fn feed(&mut self, piece: Piece, out: &mut Pieces) {
        let mut between = std::mem::take(&mut self.between);
        let mut scanned = std::mem::take(&mut self.scanned);
        if self.raw.is_empty() {
            self.scan.push(piece, &mut scanned);
        } else {
            let mut raw = Pieces::new();
            push_through(&mut self.raw, piece, &mut raw);
            raw.into_iter().for_each(|piece| self.scan.push(piece, &mut scanned));
        }
        scanned.drain(..).for_each(|piece| push_through(&mut self.words, piece, &mut between));
        self.after_scan(&mut between, out);
        (self.between, self.scanned) = (between, scanned);
    }

    /// Reports reasoning and partial text between the first stage and the second, before the blocks of the same text.
    fn after_scan(&mut self, pieces: &mut Pieces, out: &mut Pieces) {
        let mut visible = Cow::Borrowed("");
        for piece in pieces.iter() {
            match piece {
                Piece::Visible(text) if visible.is_empty() => visible = Cow::Borrowed(text),
                Piece::Visible(text) => visible.to_mut().push_str(text),
                Piece::Thought(text) => self.thought(text, out),
                Piece::ThoughtEnd => self.end_reasoning(out),
                _ => {}
            }
        }
        let visible = if visible.is_empty() { visible } else { self.tokens.push(visible) };
        let grown = (!visible.is_empty()).then(|| self.partial.push(&visible)).flatten();
        self.report_growth(grown, out);
        if pieces.iter().any(|piece| matches!(piece, Piece::TextEnd)) {
            let rest = self.tokens.settle();
            let grown = (!rest.is_empty()).then(|| self.partial.push(&rest)).flatten();
            self.report_growth(grown, out);
            let settled = self.partial.settle();
            self.report_growth(settled, out);
        }
        for piece in pieces.drain(..) {
            let mut between = Pieces::new();
            self.blocks.push(piece, &mut between);
            self.through_stages(between, out);
        }
    }

    fn report_growth(&mut self, growth: Option<Growth>, out: &mut Pieces) {
        let Some(growth) = growth else { return };
        self.has_reported_text = true;
        let shown = self.options.reasoning != ReasoningLevel::On || self.options.block_streaming;
        self.partial_reply(Growth { shown, ..growth }, out);
    }

    fn partial_reply(&mut self, growth: Growth, out: &mut Pieces) {
        if !self.drafts.is_off() && growth.shown {
            self.drafts.grow(&growth, out);
        }
        out.push(Piece::Partial(growth));
    }

    fn through_stages(&mut self, pieces: Pieces, out: &mut Pieces) {
        for piece in pieces {
            let mut done = Pieces::new();
            push_through(&mut self.stages, piece, &mut done);
            self.deliver(done, out);
        }
    }

    /// Delivers those pieces at the end of the chain that are for the outside.
    fn deliver(&mut self, pieces: Pieces, out: &mut Pieces) {
        for piece in pieces {
            if let Piece::Block(mut block) = piece {
                if !block.is_reasoning {
                    self.delivered.push(block.clone());
                }
                self.put_prefix(&mut block.text);
                out.push(Piece::Block(block));
            }
        }
    }
}

/// Returns whether the message is a copy of something a channel delivered, kept for display, rather than an answer.
pub fn is_mirror(message: &AssistantMessage) -> bool {
    message.model.as_str() == "delivery-mirror"
}

fn compaction_note(data: Value) -> Piece {
    Piece::Agent(AgentNote::new(AgentStream::Compaction, data))
}

#[cfg(test)]
mod tests;
