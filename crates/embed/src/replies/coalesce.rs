//! Joins small blocks that arrive in quick succession. The stage never sleeps; it reports when it needs to be woken.

use std::time::Duration;

use pinch_stdx::cancel::Deadline;

use super::Stage;
use super::piece::{BlockReply, Piece, Pieces};
use super::unit::TextUnit;

/// How blocks are joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coalescing {
    /// Shorter text waits for more text or the end of the answer.
    pub min_chars: usize,
    /// Maximum length of joined blocks.
    pub max_chars: usize,
    /// Idle time after which a text is sent.
    pub idle: Duration,
    /// Separator between joined blocks.
    pub joiner: String,
    /// Whether each block is sent immediately.
    pub flush_on_enqueue: bool,
    /// Unit of the lengths.
    pub unit: TextUnit,
}

impl Default for Coalescing {
    fn default() -> Self {
        Self {
            min_chars: 800,
            max_chars: 1200,
            idle: Duration::from_secs(1),
            joiner: "\n\n".into(),
            flush_on_enqueue: false,
            unit: TextUnit::Utf16,
        }
    }
}

/// A short text is sent after this many idle times regardless.
const MAX_IDLES: u32 = 5;

/// The stage.
#[derive(Debug)]
pub struct Coalesce {
    options: Coalescing,
    held: Option<BlockReply>,
    wake_at: Option<Deadline>,
    n_idles: u32,
}

impl Coalesce {
    /// Creates a stage with an empty buffer.
    pub fn new(options: Coalescing) -> Self {
        Self { options, held: None, wake_at: None, n_idles: 0 }
    }

    /// Returns whether the buffer contains a text.
    pub fn has_buffered(&self) -> bool {
        self.held.is_some()
    }

    fn hold(&mut self, block: BlockReply, out: &mut Pieces) {
        let is_full = self.options.unit.len(&block.text) >= self.options.max_chars;
        self.held = Some(block);
        if is_full {
            self.flush(out);
        } else {
            self.n_idles = 0;
            self.wake_at = Some(Deadline::after(self.options.idle));
        }
    }

    fn enqueue(&mut self, block: BlockReply, out: &mut Pieces) {
        if !block.media_urls.is_empty() || block.is_reasoning || (block.text.trim().is_empty() && block.audio_as_voice)
        {
            self.flush(out);
            out.push(Piece::Block(block));
            return;
        }
        if block.text.trim().is_empty() {
            return;
        }
        if self.options.flush_on_enqueue {
            self.flush(out);
            out.push(Piece::Block(block));
            return;
        }
        if self.held.as_ref().is_some_and(|held| !is_same_delivery(held, &block)) {
            self.flush(out);
        }
        let Some(held) = &self.held else {
            return if self.options.unit.len(&block.text) > self.options.max_chars {
                out.push(Piece::Block(block));
            } else {
                self.hold(block, out);
            };
        };
        let joined = format!("{}{}{}", held.text, self.options.joiner, block.text);
        if self.options.unit.len(&joined) <= self.options.max_chars {
            let span = match (&held.span, &block.span) {
                (Some(first), Some(last)) => Some(first.through(last)),
                (first, last) => first.clone().or_else(|| last.clone()),
            };
            let block = BlockReply { text: joined, span, ..held.clone() };
            return self.hold(block, out);
        }
        self.flush(out);
        if self.options.unit.len(&block.text) >= self.options.max_chars {
            out.push(Piece::Block(block));
        } else {
            self.hold(block, out);
        }
    }

    fn flush(&mut self, out: &mut Pieces) {
        (self.wake_at, self.n_idles) = (None, 0);
        out.extend(self.held.take().map(Piece::Block));
    }

    fn wake(&mut self, out: &mut Pieces) {
        let Some(held) = &self.held else { return };
        if self.wake_at.is_none_or(|at| !at.left().is_zero()) {
            return;
        }
        self.n_idles += 1;
        if self.options.unit.len(&held.text) >= self.options.min_chars || self.n_idles >= MAX_IDLES {
            self.flush(out);
        } else {
            self.wake_at = Some(Deadline::after(self.options.idle));
        }
    }
}

/// Returns whether two blocks may be sent as one.
fn is_same_delivery(a: &BlockReply, b: &BlockReply) -> bool {
    let message = |block: &BlockReply| block.span.as_ref().map(|span| span.message);
    a.reply_to_id == b.reply_to_id && a.audio_as_voice == b.audio_as_voice && message(a) == message(b)
}

impl Stage for Coalesce {
    fn push(&mut self, piece: Piece, out: &mut Pieces) {
        match piece {
            Piece::Block(block) => self.enqueue(block, out),
            Piece::Wake => self.wake(out),
            Piece::Restart => {
                (self.held, self.wake_at, self.n_idles) = (None, None, 0);
                out.push(piece);
            }
            Piece::Flush | Piece::Flushed => {
                self.flush(out);
                out.push(piece);
            }
            other => out.push(other),
        }
    }

    fn finish(&mut self, out: &mut Pieces) {
        self.flush(out);
    }

    fn wake_at(&self) -> Option<Deadline> {
        self.wake_at
    }
}
