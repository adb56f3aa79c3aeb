//! What channels count the length of a text in.

use pinch_stdx::text::{prefix, utf16_len, utf16_prefix};
use unicode_segmentation::UnicodeSegmentation as _;

/// What the length of a text is counted in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TextUnit {
    /// UTF-16 code units: what JavaScript counts, and Telegram and Discord.
    #[default]
    Utf16,
    /// Unicode scalar values.
    Chars,
    /// Bytes of UTF-8.
    Bytes,
    /// What people see as one character.
    Graphemes,
}

impl TextUnit {
    /// The length of a text.
    pub fn len(self, text: &str) -> usize {
        match self {
            Self::Utf16 => utf16_len(text),
            Self::Chars => text.chars().count(),
            Self::Bytes => text.len(),
            Self::Graphemes => text.graphemes(true).count(),
        }
    }

    /// The longest start of a text that has at most this length. No character is cut apart.
    pub fn prefix(self, text: &str, max: usize) -> &str {
        let cut = |at: Option<usize>| at.map_or(text, |at| &text[..at]);
        match self {
            // No text has more of any unit than it has bytes.
            _ if text.len() <= max => text,
            Self::Utf16 => utf16_prefix(text, max),
            Self::Chars => cut(text.char_indices().nth(max).map(|(at, _)| at)),
            Self::Bytes => prefix(text, max),
            Self::Graphemes => cut(text.grapheme_indices(true).nth(max).map(|(at, _)| at)),
        }
    }
}

/// The longest text that a channel takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextLimit {
    /// How much of the unit.
    pub max: usize,
    /// What is counted.
    pub unit: TextUnit,
}

impl TextLimit {
    /// Whether a text is within the limit.
    pub fn fits(self, text: &str) -> bool {
        text.len() <= self.max || self.unit.len(text) <= self.max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_counts_and_cuts_in_its_own_way() {
        let text = "é\u{301}👩‍👩‍👧a";
        let all = [TextUnit::Utf16, TextUnit::Chars, TextUnit::Bytes, TextUnit::Graphemes];
        assert_eq!(all.map(|unit| unit.len(text)), [11, 8, 23, 3]);
        for unit in all {
            for max in 0..=unit.len(text) {
                let cut = unit.prefix(text, max);
                assert!(unit.len(cut) <= max && text.starts_with(cut), "{unit:?} {max} {cut:?}");
            }
            assert_eq!(unit.prefix(text, unit.len(text)), text);
        }
        assert_eq!(TextUnit::Graphemes.prefix(text, 2), "é\u{301}👩‍👩‍👧");
    }
}
