//! What need not be delivered again.
//!
//! Blocks have places; a block whose place went out already is dropped, and equal texts with different places are both delivered. Only
//! payloads without a place are compared by what they say.

use std::collections::HashSet;

use super::Stage;
use super::piece::{BlockId, BlockReply, Out, Piece};

/// The stage.
#[derive(Debug, Default)]
pub struct Dedupe {
    places: HashSet<BlockId>,
    keys: HashSet<String>,
}

impl Dedupe {
    /// Whether a block was not seen before; it counts as seen from now on.
    pub fn is_new(&mut self, block: &BlockReply) -> bool {
        match block.id {
            Some(id) => self.places.insert(id),
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

/// After a restart: recognises blocks of the new answer that say again what the failed one had delivered.
#[derive(Clone, Debug, Default)]
pub struct Repeats {
    delivered: String,
    /// So much of it was said again.
    n_seen: usize,
}

impl Repeats {
    /// Expects the new answer to begin with what was delivered.
    pub fn of(delivered: &[String]) -> Self {
        Self { delivered: delivered.iter().map(|text| squeezed(text)).collect(), n_seen: 0 }
    }

    /// Whether a block repeats what comes next of the delivered text. The first that does not ends the comparison.
    pub fn is_repeat(&mut self, text: &str) -> bool {
        let rest = &self.delivered[self.n_seen..];
        if rest.is_empty() {
            return false;
        }
        let text = squeezed(text);
        if !text.is_empty() && rest.starts_with(&text) {
            self.n_seen += text.len();
            true
        } else {
            *self = Self::default();
            false
        }
    }
}

/// Text without white space: how blocks were cut and joined does not matter.
fn squeezed(text: &str) -> String {
    text.split_whitespace().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_repeated_beginning_is_dropped() {
        let mut repeats = Repeats::of(&["One.".into(), "Two.".into()]);
        let seen: Vec<bool> = ["One.\n\nTwo.", "Three.", "One."].iter().map(|text| repeats.is_repeat(text)).collect();
        assert_eq!(seen, [true, false, false]);
        let mut other = Repeats::of(&["One.".into()]);
        assert!(!other.is_repeat("Other.") && !other.is_repeat("One."));
    }
}
