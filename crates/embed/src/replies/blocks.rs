//! From visible text to blocks, and the list of texts the final payloads are made of.

use std::sync::Arc;

use super::Stage;
use super::chunk::{Chunker, Chunking, Drain};
use super::dedupe::Repeats;
use super::markup::{and_then, strip_channels, strip_tool_text};
use super::piece::{BlockId, BlockReply, Out, Piece};
use super::sent::{is_duplicate, normal_form};

/// When blocks leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlockBreak {
    /// When they are long enough, and when a text block of the answer ends.
    #[default]
    TextEnd,
    /// When the answer ends.
    MessageEnd,
    /// As soon as a paragraph is finished.
    Paragraph,
}

/// What blocks are for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delivery {
    /// They are delivered while the run goes on.
    Blocks,
    /// They are only remembered.
    #[default]
    Final,
    /// Only the last text of each answer is remembered: drafts are not.
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
    baseline: usize,
    next: BlockId,
    ended: Option<Arc<str>>,
    sent: Vec<String>,
    repeats: Repeats,
    /// Texts before the baseline that failed attempts of the answer under way delivered.
    n_carried: usize,
}

impl Blocks {
    /// Nothing seen yet.
    pub fn new(when: BlockBreak, chunking: Option<Chunking>, delivery: Delivery) -> Self {
        let chunking = match when {
            BlockBreak::Paragraph => Some(Chunking { flush_on_paragraph: true, ..chunking.unwrap_or_default() }),
            BlockBreak::TextEnd | BlockBreak::MessageEnd => chunking,
        };
        // Without chunking nothing leaves before its end, however long it is.
        let whole = Chunking { max_chars: usize::MAX, ..Chunking::default() };
        Self {
            when,
            chunking,
            delivery,
            chunker: Chunker::new(chunking.unwrap_or(whole)),
            texts: Vec::new(),
            baseline: 0,
            next: BlockId { message: 0, block: 0 },
            ended: None,
            sent: Vec::new(),
            repeats: Repeats::default(),
            n_carried: 0,
        }
    }

    /// The texts of the run so far, directives included.
    pub fn texts(&self) -> &[String] {
        &self.texts
    }

    /// Whether the answer under way gave a text already.
    pub fn has_spoken(&self) -> bool {
        self.texts.len() > self.baseline
    }

    /// Forgets what was not delivered of the answer under way, and expects the next one to begin with what was.
    pub fn restart(&mut self, delivered: &[String]) {
        self.texts.truncate(self.baseline.saturating_sub(self.n_carried));
        self.texts.extend_from_slice(delivered);
        self.begin();
        self.n_carried = delivered.len();
        self.repeats = Repeats::of(delivered);
    }

    /// Forgets all texts: the run begins again after a compaction.
    pub fn reset(&mut self) {
        self.texts.clear();
        self.sent.clear();
        self.n_carried = 0;
        self.begin();
    }

    fn begin(&mut self) {
        self.chunker.reset();
        self.baseline = self.texts.len();
        self.next = BlockId { message: self.next.message + 1, block: 0 };
        self.ended = None;
    }

    fn drain(&mut self, drain: Drain, out: &mut Out) {
        let mut pieces = Vec::new();
        self.chunker.drain(drain, &mut |piece| pieces.push(piece));
        for piece in pieces {
            self.emit(piece, out);
        }
    }

    fn emit(&mut self, piece: String, out: &mut Out) {
        let text = and_then(strip_channels(&piece), strip_tool_text);
        let shown = without_blank_start(text.trim_end());
        if shown.is_empty() || is_duplicate(shown, &self.sent) || self.repeats.is_repeat(shown) {
            return;
        }
        let shown = if shown.len() == piece.len() { piece } else { shown.to_owned() };
        if self.delivery == Delivery::Blocks {
            out.push(Piece::Block(BlockReply { id: Some(self.next), ..BlockReply::text(shown.as_str()) }));
        }
        self.texts.push(shown);
        // Two numbers a block: its directives may keep a part back, which comes after it.
        self.next.block += 2;
    }

    fn message_end(&mut self, text: &Arc<str>, out: &mut Out) {
        if let Some(ended) = &self.ended {
            if is_same(ended, text) {
                return;
            }
            self.begin();
        }
        self.ended = Some(Arc::clone(text));
        match self.delivery {
            Delivery::FinalOnly => {
                if !text.is_empty() {
                    self.texts.truncate(self.baseline);
                    self.texts.push(text.to_string());
                }
            }
            Delivery::Final => {
                if !self.has_spoken() && !text.is_empty() && !self.repeats.is_repeat(text) {
                    self.texts.push(text.to_string());
                }
            }
            Delivery::Blocks if !self.chunker.has_buffered() || self.is_whole() => {
                if !self.has_spoken() {
                    self.chunker.reset();
                    self.chunker.append(text);
                    self.drain(Drain::All, out);
                }
            }
            Delivery::Blocks => self.drain(Drain::All, out),
        }
        self.chunker.reset();
        (self.baseline, self.n_carried) = (self.texts.len(), 0);
    }

    /// The answer goes out as one, so its end says best what it is.
    fn is_whole(&self) -> bool {
        self.when == BlockBreak::MessageEnd && self.chunking.is_none()
    }
}

fn without_blank_start(text: &str) -> &str {
    let n_blank = text.len() - text.trim_start().len();
    text[..n_blank].rfind('\n').map_or(text, |at| &text[at + 1..])
}

/// Whether two ends of an answer say the same.
fn is_same(a: &str, b: &str) -> bool {
    a.trim_end() == b.trim_end() || normal_form(a) == normal_form(b)
}

impl Stage for Blocks {
    fn push(&mut self, piece: Piece, out: &mut Out) {
        match piece {
            Piece::MessageStart => {
                self.begin();
                out.push(piece);
            }
            Piece::Visible(text) => {
                // Late words of an answer that is over: its end said all.
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

    fn finish(&mut self, out: &mut Out) {
        if self.delivery == Delivery::Blocks {
            self.drain(Drain::All, out);
        }
    }
}
