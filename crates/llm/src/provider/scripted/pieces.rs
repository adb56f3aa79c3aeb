//! Splitting texts into deltas.

use std::ops::RangeInclusive;

/// Characters per token.
const TOKEN_CHARACTERS: usize = 4;

/// Draws delta sizes from a seed.
#[derive(Debug)]
pub(super) struct DeltaSizes {
    tokens: RangeInclusive<usize>,
    state: u64,
}

impl DeltaSizes {
    pub(super) fn new(tokens: RangeInclusive<usize>, seed: u64) -> Self {
        let min = (*tokens.start()).max(1);
        let max = (*tokens.end()).max(min);
        Self { tokens: min..=max, state: seed }
    }

    /// Returns another source of sizes, for one answer.
    pub(super) fn fork(&mut self) -> Self {
        let seed = self.draw();
        Self { tokens: self.tokens.clone(), state: seed }
    }

    /// Splits the text; returns one empty chunk for an empty text.
    pub(super) fn cut(&mut self, text: &str) -> Vec<String> {
        let mut pieces = Vec::new();
        let mut rest = text.chars();
        loop {
            let (min, max) = (*self.tokens.start(), *self.tokens.end());
            // The remainder fits, because the span is a usize.
            let n_tokens = min + (self.draw() % (max - min + 1) as u64) as usize;
            let piece: String = rest.by_ref().take(n_tokens.saturating_mul(TOKEN_CHARACTERS)).collect();
            if piece.is_empty() && !pieces.is_empty() {
                return pieces;
            }
            pieces.push(piece);
        }
    }

    /// Returns the upper half of the next number of a linear congruential generator (with Knuth's constants).
    fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.state >> 33
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_concatenate_to_the_text() {
        let mut pieces = DeltaSizes::new(1..=3, 7);
        let cut = pieces.cut("grüße und mehr, viel mehr");
        assert_eq!(cut.concat(), "grüße und mehr, viel mehr");
        assert!(cut.len() > 1 && cut.iter().all(|piece| piece.chars().count() <= 12), "{cut:?}");
        assert_eq!(cut, DeltaSizes::new(1..=3, 7).cut("grüße und mehr, viel mehr"), "a seed repeats");
        assert_eq!(pieces.cut(""), [""]);
        assert_eq!(DeltaSizes::new(0..=0, 0).cut("abcde"), ["abcd", "e"]);
    }
}
