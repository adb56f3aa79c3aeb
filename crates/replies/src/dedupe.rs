//! Drops blocks that were already delivered.
//!
//! Blocks have spans: a block whose span was already sent is dropped, and equal texts with different spans are both delivered. Only
//! payloads without a span are compared by content.

use std::collections::HashSet;

use super::Stage;
use super::piece::{BlockReply, Piece, Pieces, ReplySpan};

/// The stage.
#[derive(Debug, Default)]
pub struct Dedupe {
    places: HashSet<ReplySpan>,
    keys: HashSet<String>,
}

impl Dedupe {
    /// Returns whether a block is new, and records it.
    pub fn is_new(&mut self, block: &BlockReply) -> bool {
        match &block.span {
            Some(span) => self.places.insert(span.clone()),
            None if block.is_reasoning => true,
            None => self.keys.insert(key(block)),
        }
    }
}

/// Returns the key by which two payloads are considered equal.
pub fn key(block: &BlockReply) -> String {
    serde_json::json!([block.text.trim(), block.media_urls, block.reply_to_id]).to_string()
}

impl Stage for Dedupe {
    fn push(&mut self, piece: Piece, out: &mut Pieces) {
        match piece {
            Piece::Block(block) => {
                if self.is_new(&block) {
                    out.push(Piece::Block(block));
                }
            }
            other => out.push(other),
        }
    }

    fn finish(&mut self, _: &mut Pieces) {}
}

/// Recognises, after a restart, text of the new answer that repeats what the failed attempt delivered.
#[derive(Clone, Debug, Default)]
pub struct RepeatDetector {
    /// Delivered text without white space.
    delivered: String,
    /// Bytes of it that were repeated so far.
    n_repeated: usize,
}

/// Comparison of a block with the delivered text expected next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlap {
    /// Nothing is expected any more; the block is new.
    None,
    /// The whole block was already delivered.
    All,
    /// The block was delivered up to this byte; the rest is new.
    Until(usize),
    /// The block differs from what the failed attempt delivered. Lines before this byte were delivered.
    Differs(usize),
}

impl RepeatDetector {
    /// Expects the new answer to begin with the delivered texts.
    pub fn of<'a>(delivered: impl IntoIterator<Item = &'a str>) -> Self {
        Self { delivered: delivered.into_iter().map(squeezed).collect(), n_repeated: 0 }
    }

    /// Compares the next block. After the first difference nothing is expected any more. White space is ignored, so it does not matter how
    /// the texts were split.
    pub fn compare(&mut self, text: &str) -> Overlap {
        let expected = &self.delivered[self.n_repeated..];
        if expected.is_empty() {
            return Overlap::None;
        }
        let mut rest = expected.chars();
        for (at, c) in compared(text) {
            match rest.next() {
                Some(next) if next == c => {}
                Some(_) => {
                    *self = Self::default();
                    // Delivered lines are not repeated, but half a line would not make sense.
                    return Overlap::Differs(text[..at].rfind('\n').map_or(0, |at| at + 1));
                }
                None => {
                    *self = Self::default();
                    return Overlap::Until(at);
                }
            }
        }
        self.n_repeated = self.delivered.len() - rest.as_str().len();
        Overlap::All
    }
}

/// Returns the compared characters of a text, which do not depend on how blocks were split and joined.
fn squeezed(text: &str) -> String {
    compared(text).map(|(_, c)| c).collect()
}

/// Returns the compared characters with their positions: no white space, and no lines that open or close a fence, because such lines are
/// added when a block is split inside a fence.
fn compared(text: &str) -> impl Iterator<Item = (usize, char)> {
    let mut at = 0;
    let lines = text.split_inclusive('\n').map(move |line| {
        let start = at;
        at += line.len();
        (start, line)
    });
    lines.filter(|(_, line)| !is_fence_line(line)).flat_map(|(start, line)| {
        line.char_indices().filter(|(_, c)| !c.is_whitespace()).map(move |(at, c)| (start + at, c))
    })
}

fn is_fence_line(line: &str) -> bool {
    let line = line.trim();
    ["```", "~~~"]
        .iter()
        .any(|marker| line.strip_prefix(marker).is_some_and(|rest| !rest.trim_start_matches('`').contains('`')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_repeated_beginning_is_recognised() {
        let mut repeats = RepeatDetector::of(["One.", "Two."]);
        let seen: Vec<Overlap> = ["One.\n\nTwo.", "Three.", "One."].iter().map(|text| repeats.compare(text)).collect();
        assert_eq!(seen, [Overlap::All, Overlap::None, Overlap::None]);
        let mut other = RepeatDetector::of(["One."]);
        assert_eq!((other.compare("Other."), other.compare("One.")), (Overlap::Differs(0), Overlap::None));
        let mut later = RepeatDetector::of(["One.", "Two."]);
        assert_eq!(later.compare("One.\nThree."), Overlap::Differs(5));
    }

    #[test]
    fn fence_lines_are_ignored() {
        let mut repeats = RepeatDetector::of(["```rs\nlet a;\n```", "```rs\nlet b;\n```"]);
        let text = "```rs\nlet a;\nlet b;\nlet c;\n```";
        assert_eq!(repeats.compare(text), Overlap::Until(text.find("let c").unwrap()));
    }

    #[test]
    fn a_block_that_extends_the_delivered_text_is_split_where_it_is_new() {
        let mut repeats = RepeatDetector::of(["One."]);
        let text = "On e.\n\nTwo.";
        assert_eq!(repeats.compare(text), Overlap::Until(text.find("Two").unwrap()));
        assert_eq!(repeats.compare("One."), Overlap::None);
    }

    #[test]
    fn equal_texts_are_dropped_only_if_nothing_tells_them_apart() {
        let text = |text: &str| BlockReply::text(text);
        let at = |message| Some(ReplySpan { message, bytes: 0..1 });
        for (first, second, is_new) in [
            (text("a"), text(" a "), false),
            (text("a"), text("b"), true),
            (text("a"), BlockReply { media_urls: vec!["m".into()], ..text("a") }, true),
            (text("a"), BlockReply { reply_to_id: Some("7".into()), ..text("a") }, true),
            (BlockReply { span: at(1), ..text("a") }, BlockReply { span: at(1), ..text("b") }, false),
            (BlockReply { span: at(1), ..text("a") }, BlockReply { span: at(2), ..text("a") }, true),
            (BlockReply { is_reasoning: true, ..text("a") }, BlockReply { is_reasoning: true, ..text("a") }, true),
        ] {
            let mut dedupe = Dedupe::default();
            assert!(dedupe.is_new(&first));
            assert_eq!(dedupe.is_new(&second), is_new, "{first:?} {second:?}");
        }
    }
}
