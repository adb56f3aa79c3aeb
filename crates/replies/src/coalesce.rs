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

    /// Holds a block back, or sends it if it cannot grow.
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
        let Some(held) = &self.held else { return self.hold(block, out) };
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
        self.hold(block, out);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::piece::ReplySpan;

    /// Pushes blocks and returns the texts of those that come out: at once, and at the end.
    fn joined(options: Coalescing, blocks: Vec<BlockReply>) -> (Vec<String>, Vec<String>) {
        let (mut stage, mut out) = (Coalesce::new(options), Pieces::default());
        for block in blocks {
            stage.push(Piece::Block(block), &mut out);
        }
        let texts = |out: &mut Pieces| {
            let texts = std::mem::take(out).into_iter().map(|piece| match piece {
                Piece::Block(block) => block.text + &block.media_urls.concat(),
                other => format!("{other:?}"),
            });
            texts.collect::<Vec<_>>()
        };
        let at_once = texts(&mut out);
        stage.finish(&mut out);
        assert!(!stage.has_buffered());
        (at_once, texts(&mut out))
    }

    fn short(max_chars: usize) -> Coalescing {
        Coalescing { min_chars: 2, max_chars, joiner: " ".into(), ..Coalescing::default() }
    }

    fn texts(all: &[&str]) -> Vec<BlockReply> {
        all.iter().map(|text| BlockReply::text(*text)).collect()
    }

    #[test]
    fn blocks_are_joined_up_to_the_limit() {
        for (max, blocks, at_once, at_end) in [
            (9, &["aaa", "bbb"][..], &[][..], &["aaa bbb"][..]),
            (7, &["aaa", "bbb"], &["aaa bbb"], &[]),
            (6, &["aaa", "bbb"], &["aaa"], &["bbb"]),
            (6, &["aaa", "bbbbbb"], &["aaa", "bbbbbb"], &[]),
            (6, &["aaa", "bbbbb"], &["aaa"], &["bbbbb"]),
            (3, &["aaa"], &["aaa"], &[]),
            (3, &["aaaa", "b"], &["aaaa"], &["b"]),
            (9, &["aaa", " ", "bbb"], &[], &["aaa bbb"]),
        ] {
            let (first, last) = joined(short(max), texts(blocks));
            assert_eq!(
                (first, last),
                (at_once.iter().map(|s| (*s).into()).collect(), at_end.iter().map(|s| (*s).into()).collect()),
                "{max} {blocks:?}"
            );
        }
        let (at_once, at_end) = joined(Coalescing { flush_on_enqueue: true, ..short(9) }, texts(&["a", "b"]));
        assert_eq!((at_once.len(), at_end.len()), (2, 0));
    }

    #[test]
    fn only_texts_of_the_same_delivery_are_joined() {
        let with = |text: &str, change: fn(&mut BlockReply)| {
            let mut block = BlockReply::text(text);
            change(&mut block);
            block
        };
        let changes: [fn(&mut BlockReply); 4] = [
            |block| block.reply_to_id = Some("m1".into()),
            |block| block.audio_as_voice = true,
            |block| block.span = Some(ReplySpan { message: 2, bytes: 0..1 }),
            |block| block.is_reasoning = true,
        ];
        for change in changes {
            let (at_once, _) = joined(short(9), vec![BlockReply::text("a"), with("b", change)]);
            assert_eq!(at_once[0], "a");
        }
        let media = with("b", |block| block.media_urls = vec!["m".into()]);
        assert_eq!(joined(short(9), vec![BlockReply::text("a"), media]).0, ["a", "bm"]);
        let voice = with("", |block| block.audio_as_voice = true);
        assert_eq!(joined(short(9), vec![BlockReply::text("a"), voice]).0, ["a", ""]);
        let span = |bytes| Some(ReplySpan { message: 1, bytes });
        let mut stage = Coalesce::new(short(9));
        let mut out = Pieces::default();
        for (text, bytes) in [("a", 0..1), ("b", 1..2)] {
            stage.push(Piece::Block(BlockReply { span: span(bytes), ..BlockReply::text(text) }), &mut out);
        }
        stage.push(Piece::Flush, &mut out);
        let first = out.into_iter().next();
        assert!(matches!(first, Some(Piece::Block(block)) if block.span == span(0..2)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_short_text_waits_for_a_few_idle_times() {
        for (text, n_wakes) in [("a", MAX_IDLES), ("ab", 1)] {
            let (mut stage, mut out) = (Coalesce::new(short(9)), Pieces::default());
            stage.push(Piece::Block(BlockReply::text(text)), &mut out);
            stage.push(Piece::Wake, &mut out);
            assert!(out.is_empty(), "it is too early");
            for n in 1..=n_wakes {
                assert!(out.is_empty(), "{text} after {n}");
                tokio::time::sleep(stage.wake_at().unwrap().left()).await;
                stage.push(Piece::Wake, &mut out);
            }
            assert_eq!((out.len(), stage.wake_at().is_none()), (1, true), "{text}");
        }
        let (mut stage, mut out) = (Coalesce::new(short(9)), Pieces::default());
        stage.push(Piece::Block(BlockReply::text("a")), &mut out);
        assert!(stage.has_buffered());
        stage.push(Piece::Restart, &mut out);
        assert!(!stage.has_buffered() && stage.wake_at().is_none());
    }
}
