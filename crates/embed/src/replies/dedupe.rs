//! What need not be delivered again.
//!
//! Blocks have places; a block whose place went out already is dropped, and equal texts with different places are both delivered. Only
//! payloads without a place are compared by what they say.

use std::collections::HashSet;

use super::Stage;
use super::piece::{BlockReply, Out, Piece, ReplySpan};

/// The stage.
#[derive(Debug, Default)]
pub struct Dedupe {
    places: HashSet<ReplySpan>,
    keys: HashSet<String>,
}

impl Dedupe {
    /// Whether a block was not seen before; it counts as seen from now on.
    pub fn is_new(&mut self, block: &BlockReply) -> bool {
        match &block.span {
            Some(span) => self.places.insert(span.clone()),
            None if block.is_reasoning => true,
            None => self.keys.insert(key(block)),
        }
    }
}

/// What two payloads must share to be the same.
pub fn key(block: &BlockReply) -> String {
    serde_json::json!([block.text.trim(), block.media_urls, block.reply_to_id]).to_string()
}

impl Stage for Dedupe {
    fn push(&mut self, piece: Piece, out: &mut Out) {
        match piece {
            Piece::Block(block) => {
                if self.is_new(&block) {
                    out.push(Piece::Block(block));
                }
            }
            other => out.push(other),
        }
    }

    fn finish(&mut self, _: &mut Out) {}
}

/// After a restart: recognises text of the new answer that repeats what the failed attempt delivered.
#[derive(Clone, Debug, Default)]
pub struct Repeats {
    /// The delivered text without white space.
    delivered: String,
    /// Bytes of it that were repeated so far.
    n_repeated: usize,
}

/// How a block compares with the delivered text that is expected next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlap {
    /// Nothing more is expected: the block is new.
    None,
    /// The whole block was delivered before.
    All,
    /// The block was delivered up to this byte; the rest is new.
    Until(usize),
    /// The block says something else than the failed attempt did. Lines before this byte were delivered.
    Differs(usize),
}

impl Repeats {
    /// Expects the new answer to begin with the delivered texts.
    pub fn of<'a>(delivered: impl IntoIterator<Item = &'a str>) -> Self {
        Self { delivered: delivered.into_iter().map(squeezed).collect(), n_repeated: 0 }
    }

    /// Compares the next block. After the first that differs nothing is expected any more. White space does not count, so it does not
    /// matter how the texts were cut.
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
                    // Whole lines that were delivered are not repeated; half a line would not be understood.
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

/// What is compared of a text: how blocks were cut and joined does not matter.
fn squeezed(text: &str) -> String {
    compared(text).map(|(_, c)| c).collect()
}

/// The characters that count, with their places: no white space, and no lines that open or close a fence. Where a block is cut inside a
/// fence, such lines are added.
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
        let mut repeats = Repeats::of(["One.", "Two."]);
        let seen: Vec<Overlap> = ["One.\n\nTwo.", "Three.", "One."].iter().map(|text| repeats.compare(text)).collect();
        assert_eq!(seen, [Overlap::All, Overlap::None, Overlap::None]);
        let mut other = Repeats::of(["One."]);
        assert_eq!((other.compare("Other."), other.compare("One.")), (Overlap::Differs(0), Overlap::None));
        let mut later = Repeats::of(["One.", "Two."]);
        assert_eq!(later.compare("One.\nThree."), Overlap::Differs(5));
    }

    #[test]
    fn lines_of_fences_do_not_count() {
        let mut repeats = Repeats::of(["```rs\nlet a;\n```", "```rs\nlet b;\n```"]);
        let text = "```rs\nlet a;\nlet b;\nlet c;\n```";
        assert_eq!(repeats.compare(text), Overlap::Until(text.find("let c").unwrap()));
    }

    #[test]
    fn a_block_that_reaches_further_is_cut_where_the_new_text_begins() {
        let mut repeats = Repeats::of(["One."]);
        let text = "On e.\n\nTwo.";
        assert_eq!(repeats.compare(text), Overlap::Until(text.find("Two").unwrap()));
        assert_eq!(repeats.compare("One."), Overlap::None);
    }
}
