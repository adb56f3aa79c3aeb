//! Turns visible text into blocks, and collects the texts for the final payloads.

use std::borrow::Cow;
use std::sync::Arc;

use super::Stage;
use super::chunk::{Chunker, Chunking, Drain};
use super::code::CodeState;
use super::dedupe::{Overlap, RepeatDetector};
use super::piece::{BlockReply, Piece, Pieces, ReplySpan};
use super::sent::{is_duplicate, normal_form};

/// When blocks are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlockBreak {
    /// When they are long enough, and at the end of each text block of the answer.
    #[default]
    TextEnd,
    /// At the end of the answer.
    MessageEnd,
    /// At the end of each paragraph.
    Paragraph,
}

/// What happens to blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delivery {
    /// They are delivered during the run.
    Blocks,
    /// They are only collected.
    #[default]
    Final,
    /// Only the last text of each answer is collected, without earlier drafts.
    FinalOnly,
}

/// The stage.
#[derive(Debug)]
pub struct Blocks {
    when: BlockBreak,
    chunking: Option<Chunking>,
    delivery: Delivery,
    chunker: Chunker,
    texts: Vec<String>,
    /// Spans of the texts.
    spans: Vec<ReplySpan>,
    baseline: usize,
    /// Number of the current answer, starting at 1; 0 before the first.
    message: u32,
    /// First number of the current answer: a retry that differs from the delivered text gets a new number.
    answer_from: u32,
    /// Bytes of its visible text that are in blocks.
    n_bytes: u64,
    /// Whether the next answer replaces a failed one, and takes its number.
    is_retry: bool,
    /// Whether the current answer repeated text delivered by a failed attempt.
    has_repeated: bool,
    ended: Option<Arc<str>>,
    sent: Vec<String>,
    repeats: RepeatDetector,
    /// Number of texts before the baseline that were delivered by failed attempts of the current answer.
    n_carried: usize,
}

impl Blocks {
    /// Creates the stage.
    pub fn new(when: BlockBreak, chunking: Option<Chunking>, delivery: Delivery) -> Self {
        let chunking = match when {
            BlockBreak::Paragraph => Some(Chunking { flush_on_paragraph: true, ..chunking.unwrap_or_default() }),
            BlockBreak::TextEnd | BlockBreak::MessageEnd => chunking,
        };
        // Without chunking, nothing is sent before the end, however long it is.
        let whole = Chunking { max_chars: usize::MAX, ..Chunking::default() };
        Self {
            when,
            chunking,
            delivery,
            chunker: Chunker::new(chunking.unwrap_or(whole)),
            texts: Vec::new(),
            spans: Vec::new(),
            baseline: 0,
            message: 0,
            answer_from: 0,
            n_bytes: 0,
            is_retry: false,
            has_repeated: false,
            ended: None,
            sent: Vec::new(),
            repeats: RepeatDetector::default(),
            n_carried: 0,
        }
    }

    /// Returns the texts of the run so far, including directives.
    pub fn texts(&self) -> &[String] {
        &self.texts
    }

    /// Takes the texts with their spans at the end of a run.
    pub(super) fn take_texts(&mut self) -> Vec<(String, ReplySpan)> {
        let taken = std::mem::take(&mut self.texts).into_iter().zip(std::mem::take(&mut self.spans)).collect();
        self.reset();
        taken
    }

    /// Returns the number of the current or last answer, starting at 1.
    pub fn message(&self) -> u32 {
        self.message
    }

    /// Returns whether the current answer has produced a text.
    pub fn has_text(&self) -> bool {
        self.texts.len() > self.baseline || self.has_repeated
    }

    /// Discards undelivered text of the current answer, and expects the next one to begin with the delivered text.
    pub fn restart(&mut self, delivered: &[BlockReply]) {
        // A complete answer is not requested again.
        self.is_retry = self.message > 0 && self.ended.is_none();
        if !self.is_retry {
            return;
        }
        let spans = delivered.iter().filter_map(|block| block.span.as_ref());
        let last =
            spans.filter(|span| span.message >= self.answer_from).map(|span| (span.message, span.bytes.end)).max();
        let kept = self.baseline.saturating_sub(self.n_carried);
        let (texts, spans) = (self.texts.split_off(kept), self.spans.split_off(kept));
        // Compare the model's text, not its cleaned form.
        for (mut text, mut span) in texts.into_iter().zip(spans) {
            let Some(last) = last.filter(|last| (span.message, span.bytes.start) < *last) else { continue };
            let left = if span.message == last.0 { span.bytes.end.saturating_sub(last.1) } else { 0 };
            // An unfinished tag at the end of a block was held back.
            let left = usize::try_from(left).unwrap_or(usize::MAX);
            text.truncate(text.floor_char_boundary(text.len().saturating_sub(left)));
            span.bytes.end = span.bytes.end.saturating_sub(left as u64);
            self.remember(text, span);
        }
        self.n_carried = self.texts.len() - kept;
        self.repeats = RepeatDetector::of(self.texts[kept..].iter().map(String::as_str));
        self.begin();
    }

    /// Discards all texts, because the run begins again after a compaction.
    pub fn reset(&mut self) {
        self.texts.clear();
        self.spans.clear();
        self.sent.clear();
        self.n_carried = 0;
        self.is_retry = false;
        self.begin();
    }

    fn begin(&mut self) {
        self.chunker.reset();
        self.baseline = self.texts.len();
        self.n_bytes = 0;
        self.has_repeated = false;
        self.ended = None;
    }

    fn drain(&mut self, drain: Drain, out: &mut Pieces) {
        let mut pieces = Vec::new();
        self.chunker.drain(drain, &mut |piece, end| pieces.push((piece, end as u64)));
        for (piece, end) in pieces {
            self.emit(&piece, end, out);
        }
    }

    /// Emits a piece of the answer's visible text; `end` is its end in bytes.
    fn emit(&mut self, piece: &str, end: u64, out: &mut Pieces) {
        let mut start = std::mem::replace(&mut self.n_bytes, end);
        let mut shown = Cow::Borrowed(without_blank_start(piece.trim_end()));
        if shown.is_empty() || is_duplicate(&shown, &self.sent) {
            return;
        }
        match self.repeats.compare(&shown) {
            Overlap::None => {}
            Overlap::All => {
                self.has_repeated = true;
                return;
            }
            Overlap::Until(at) => {
                start = (start + at as u64).min(end);
                shown = Cow::Owned(from(&shown, at));
            }
            // The text differs from what was delivered, so its id must differ, too.
            Overlap::Differs(at) => {
                start = (start + at as u64).min(end);
                shown = Cow::Owned(without_blank_start(&from(&shown, at)).to_owned());
                self.message += 1;
            }
        }
        let span = ReplySpan { message: self.message, bytes: start..end };
        if self.delivery == Delivery::Blocks {
            out.push(Piece::Block(BlockReply { span: Some(span.clone()), ..BlockReply::text(&*shown) }));
        }
        self.remember(shown.into_owned(), span);
    }

    fn remember(&mut self, text: String, span: ReplySpan) {
        self.texts.push(text);
        self.spans.push(span);
    }

    /// Returns the span of the whole text of the current answer.
    fn whole(&self, text: &str) -> ReplySpan {
        ReplySpan { message: self.message, bytes: 0..text.len() as u64 }
    }

    fn message_end(&mut self, text: &Arc<str>, out: &mut Pieces) {
        if let Some(ended) = &self.ended {
            if is_same(ended, text) {
                return;
            }
            self.message += 1;
            self.begin();
        }
        self.ended = Some(Arc::clone(text));
        match self.delivery {
            Delivery::FinalOnly => {
                if !text.is_empty() {
                    self.texts.truncate(self.baseline);
                    self.spans.truncate(self.baseline);
                    self.remember(text.to_string(), self.whole(text));
                }
            }
            Delivery::Final => {
                if !self.has_text() && !text.is_empty() {
                    self.remember(text.to_string(), self.whole(text));
                }
            }
            Delivery::Blocks if !self.chunker.has_buffered() || self.is_whole() => {
                if !self.has_text() {
                    self.chunker.reset();
                    self.n_bytes = 0;
                    self.chunker.append(text);
                    self.drain(Drain::All, out);
                }
            }
            Delivery::Blocks => self.drain(Drain::All, out),
        }
        self.chunker.reset();
        (self.baseline, self.n_carried) = (self.texts.len(), 0);
    }

    /// Returns whether the answer is sent as one block, so that the text at its end is authoritative.
    fn is_whole(&self) -> bool {
        self.when == BlockBreak::MessageEnd && self.chunking.is_none()
    }
}

/// Returns the rest of a block. If it begins inside a fence, the fence is reopened.
fn from(text: &str, at: usize) -> String {
    let (mut code, mut opening) = (CodeState::default(), "");
    for line in text[..at].split_inclusive('\n') {
        let was_open = code.in_fence();
        line.chars().for_each(|c| {
            code.push(c);
        });
        if code.in_fence() && !was_open {
            opening = line;
        }
    }
    let reopened = if code.in_fence() && opening.ends_with('\n') { opening } else { "" };
    format!("{reopened}{}", &text[at..])
}

fn without_blank_start(text: &str) -> &str {
    let n_blank = text.len() - text.trim_start().len();
    text[..n_blank].rfind('\n').map_or(text, |at| &text[at + 1..])
}

/// Returns whether two versions of an answer's end are equivalent.
fn is_same(a: &str, b: &str) -> bool {
    a.trim_end() == b.trim_end() || normal_form(a) == normal_form(b)
}

impl Stage for Blocks {
    fn push(&mut self, piece: Piece, out: &mut Pieces) {
        match piece {
            Piece::MessageStart => {
                if !std::mem::take(&mut self.is_retry) {
                    self.message += 1;
                    (self.answer_from, self.n_carried) = (self.message, 0);
                    self.repeats = RepeatDetector::default();
                }
                self.begin();
                out.push(piece);
            }
            Piece::Visible(text) => {
                // Ignore late text of a completed answer: its end had the whole text.
                if self.ended.is_none() {
                    self.chunker.append(&text);
                    let is_due = self.when != BlockBreak::MessageEnd && self.chunking.is_some();
                    if is_due && self.delivery == Delivery::Blocks {
                        self.drain(Drain::Ready, out);
                    }
                }
            }
            Piece::TextEnd => {
                if self.when != BlockBreak::MessageEnd {
                    self.drain(Drain::All, out);
                }
                out.push(piece);
            }
            Piece::Flush => {
                if self.delivery == Delivery::Blocks {
                    self.drain(Drain::All, out);
                }
                out.push(piece);
            }
            Piece::MessageEnd(text) => {
                self.message_end(&text, out);
                out.push(Piece::MessageEnd(text));
            }
            Piece::Sent(text) => self.sent.push(text),
            other => out.push(other),
        }
    }

    fn finish(&mut self, out: &mut Pieces) {
        if self.delivery == Delivery::Blocks {
            self.drain(Drain::All, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::BreakPreference;

    /// Pushes pieces and returns what comes out, a line for each.
    fn pushed(stage: &mut Blocks, pieces: impl IntoIterator<Item = Piece>) -> String {
        let mut out = Pieces::new();
        pieces.into_iter().for_each(|piece| stage.push(piece, &mut out));
        let lines = out.iter().map(|piece| match piece {
            Piece::Block(block) => {
                let span = block.span.as_ref().unwrap();
                format!("{:?} at {}:{:?}\n", block.text, span.message, span.bytes)
            }
            other => format!("{other:?}\n"),
        });
        lines.collect()
    }

    fn visible(text: &str) -> Piece {
        Piece::Visible(text.to_owned())
    }

    fn end(text: &str) -> Piece {
        Piece::MessageEnd(text.into())
    }

    fn finished(stage: &mut Blocks) -> String {
        let mut out = Pieces::new();
        stage.finish(&mut out);
        out.iter().map(|piece| format!("finished {piece:?}\n")).collect()
    }

    fn small() -> Chunking {
        Chunking { min_chars: 4, max_chars: 10, preference: BreakPreference::Paragraph, ..Chunking::default() }
    }

    #[test]
    fn blocks_are_sent_according_to_the_settings() {
        let mut all = String::new();
        for when in [BlockBreak::TextEnd, BlockBreak::MessageEnd, BlockBreak::Paragraph] {
            for chunking in [None, Some(small())] {
                for delivery in [Delivery::Blocks, Delivery::Final, Delivery::FinalOnly] {
                    let mut stage = Blocks::new(when, chunking, delivery);
                    all += &format!("== {when:?} {delivery:?} chunked {}\n", chunking.is_some());
                    all += &pushed(
                        &mut stage,
                        [Piece::MessageStart, visible("\n\nOne.\n\nTwo t"), visible("hree four five")],
                    );
                    all += "-- flush\n";
                    all += &pushed(&mut stage, [Piece::Flush, visible("\n\nSix"), visible(" seven ")]);
                    all += "-- end of text\n";
                    all += &pushed(&mut stage, [Piece::TextEnd]);
                    all += &format!("-- end {}\n", stage.has_text());
                    let text = "One.\n\nTwo three four five\n\nSix seven";
                    all += &pushed(&mut stage, [end(text), visible("late"), end(text), end(&text.to_uppercase())]);
                    all += "-- another end\n";
                    all += &pushed(&mut stage, [end("Other.")]);
                    all += "-- next\n";
                    all += &pushed(&mut stage, [Piece::MessageStart, visible("Rest")]);
                    all += &finished(&mut stage);
                    all += &format!("message {} texts {:?}\n", stage.message(), stage.take_texts());
                    assert!(stage.texts().is_empty() && !stage.has_text());
                }
            }
        }
        insta::assert_snapshot!(all);
    }

    #[test]
    fn an_answer_that_was_not_streamed_is_sent_at_its_end() {
        for (when, chunking) in
            [(BlockBreak::TextEnd, None), (BlockBreak::MessageEnd, None), (BlockBreak::MessageEnd, Some(small()))]
        {
            let mut stage = Blocks::new(when, chunking, Delivery::Blocks);
            let shown = pushed(&mut stage, [Piece::MessageStart, end("One")]);
            assert_eq!(shown, "MessageStart\n\"One\" at 1:0..3\nMessageEnd(\"One\")\n", "{when:?}");
            assert_eq!(stage.texts(), ["One"]);
        }
        // Without chunks the text at the end counts, as it is cleaned as a whole.
        let mut stage = Blocks::new(BlockBreak::MessageEnd, None, Delivery::Blocks);
        let shown = pushed(&mut stage, [Piece::MessageStart, visible("One <"), end("One")]);
        assert_eq!(shown, "MessageStart\n\"One\" at 1:0..3\nMessageEnd(\"One\")\n");
    }

    #[test]
    fn a_text_that_a_tool_sent_is_not_sent_again() {
        let mut stage = Blocks::new(BlockBreak::TextEnd, None, Delivery::Blocks);
        let sent = Piece::Sent("The build is green.".to_owned());
        let text = "The build is GREEN.";
        let shown =
            pushed(&mut stage, [sent, Piece::MessageStart, visible(text), Piece::TextEnd, visible("Bye."), end(text)]);
        assert_eq!(shown, format!("MessageStart\nTextEnd\n\"Bye.\" at 1:19..23\nMessageEnd({text:?})\n"));
        stage.reset();
        let shown = pushed(&mut stage, [Piece::MessageStart, visible(text), Piece::TextEnd]);
        assert_eq!(shown, format!("MessageStart\n{text:?} at 2:0..19\nTextEnd\n"), "a new run may say it again");
    }

    /// Returns the delivered blocks of an answer by paragraph, which fails.
    fn delivered(stage: &mut Blocks, text: &str) -> Vec<BlockReply> {
        let mut out = Pieces::new();
        [Piece::MessageStart, visible(text)].into_iter().for_each(|piece| stage.push(piece, &mut out));
        let blocks = out.into_iter().filter_map(|piece| match piece {
            Piece::Block(block) => Some(block),
            _ => None,
        });
        blocks.collect()
    }

    #[test]
    fn a_retry_continues_after_the_delivered_text_or_gets_a_new_number() {
        let mut all = String::new();
        for second in [
            "One.\n\nTwo.\n\nThree.",
            "One. Two. Three.",
            "One.\n\n",
            "Other.",
            "One.\n\nOther.\n\nMore.",
            "One.\nOther.",
        ] {
            let mut stage = Blocks::new(BlockBreak::Paragraph, None, Delivery::Blocks);
            let mut blocks = delivered(&mut stage, "Zero.\n\n");
            pushed(&mut stage, [end("Zero.")]);
            stage.restart(&blocks);
            assert_eq!(stage.texts(), ["Zero."], "a complete answer is not requested again");
            blocks = delivered(&mut stage, "One.\n\nTwo.\n\nTh");
            // Only the first block was delivered before the second failure.
            stage.restart(&blocks[..1]);
            all += &format!("== {second:?} {:?}\n", stage.texts());
            all += &pushed(&mut stage, [Piece::MessageStart, visible(second)]);
            all += &format!("{}\n", stage.has_text());
            all += &pushed(&mut stage, [end(second)]);
            all += &format!("message {} texts {:?}\n", stage.message(), stage.take_texts());
        }
        insta::assert_snapshot!(all);
    }

    #[test]
    fn a_retry_of_an_answer_without_blocks_keeps_those_before_it() {
        let mut stage = Blocks::new(BlockBreak::Paragraph, None, Delivery::Blocks);
        let blocks = delivered(&mut stage, "Zero.\n\n");
        pushed(&mut stage, [end("Zero.")]);
        for _ in 0..3 {
            assert_eq!(delivered(&mut stage, "On"), []);
            stage.restart(&blocks);
            assert_eq!(stage.texts(), ["Zero."]);
        }
    }

    #[test]
    fn an_answer_after_a_restart_without_one_is_the_first() {
        let mut stage = Blocks::new(BlockBreak::Paragraph, None, Delivery::Blocks);
        stage.restart(&[]);
        delivered(&mut stage, "One.\n\n");
        assert_eq!(stage.message(), 1);
    }

    #[test]
    fn a_retry_that_differs_after_delivered_lines_begins_after_them() {
        let mut stage = Blocks::new(BlockBreak::Paragraph, None, Delivery::Blocks);
        let blocks = delivered(&mut stage, "One.\n\nTwo.\nThree.\n\n");
        stage.restart(&blocks);
        let shown = pushed(&mut stage, [Piece::MessageStart, visible("One.\n\nTwo.\nFour.\n\n")]);
        assert_eq!(shown, "MessageStart\n\"Four.\" at 2:11..18\n");
    }

    #[test]
    fn the_rest_of_a_fence_begins_with_its_opening_line() {
        for (before, rest, expect) in [
            ("```js\na\nb\n", "c\n```", "```js\nc\n```"),
            ("a\n~~~\nb\n", "c", "~~~\nc"),
            ("a\n```\nb\n```\nc ", "d", "d"),
            ("a\n", "b", "b"),
            ("```", "js\na", "js\na"),
        ] {
            assert_eq!(from(&format!("{before}{rest}"), before.len()), expect, "{before}");
        }
    }

    #[test]
    fn a_retry_continues_within_a_fence_and_after_half_a_tag() {
        let mut stage = Blocks::new(BlockBreak::TextEnd, Some(small()), Delivery::Blocks);
        let fence = "```\na\nb\nc\nd\n```\n";
        let blocks = delivered(&mut stage, "```\na\nb\nc");
        stage.restart(&blocks);
        let mut all = format!("{:?}\n", stage.texts());
        all += &pushed(&mut stage, [Piece::MessageStart, visible(fence), Piece::TextEnd]);
        let mut stage = Blocks::new(BlockBreak::Paragraph, None, Delivery::Blocks);
        let mut blocks = delivered(&mut stage, "One é [[voi\n\n");
        // The end of the block was held back, because it may have been a tag.
        blocks[0].span.as_mut().unwrap().bytes.end = 7;
        stage.restart(&blocks);
        all += &format!("{:?}\n", stage.texts());
        all += &pushed(&mut stage, [Piece::MessageStart, visible("One é [[voice]] two.\n\n")]);
        stage.restart(&[]);
        all += &format!("{:?} {}\n", stage.texts(), stage.has_text());
        insta::assert_snapshot!(all);
    }
}
