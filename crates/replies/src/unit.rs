//! Units in which channels measure the length of a text.

use pinch_stdx::text::{prefix, utf16_len, utf16_prefix};
use unicode_segmentation::UnicodeSegmentation as _;

/// Unit of text length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TextUnit {
    /// UTF-16 code units, as in JavaScript, Telegram and Discord.
    #[default]
    Utf16,
    /// Unicode scalar values.
    Chars,
    /// Bytes of UTF-8.
    Bytes,
    /// Grapheme clusters.
    Graphemes,
}

impl TextUnit {
    /// Returns the length of a text.
    pub fn len(self, text: &str) -> usize {
        match self {
            Self::Utf16 => utf16_len(text),
            Self::Chars => text.chars().count(),
            Self::Bytes => text.len(),
            Self::Graphemes => text.graphemes(true).count(),
        }
    }

    /// Returns the length of the longest character.
    pub(super) fn widest(self) -> usize {
        match self {
            Self::Utf16 => 2,
            Self::Chars | Self::Graphemes => 1,
            Self::Bytes => 4,
        }
    }

    /// Returns the longest prefix of a text with at most this length. Characters are not split.
    pub fn prefix(self, text: &str, max: usize) -> &str {
        let cut = |at: Option<usize>| at.map_or(text, |at| &text[..at]);
        match self {
            // In any unit, a text is at most as long as in bytes.
            _ if text.len() <= max => text,
            Self::Utf16 => utf16_prefix(text, max),
            Self::Chars => cut(text.char_indices().nth(max).map(|(at, _)| at)),
            Self::Bytes => prefix(text, max),
            Self::Graphemes => cut(text.grapheme_indices(true).nth(max).map(|(at, _)| at)),
        }
    }
}

/// Maximum text length of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextLimit {
    /// Maximum in this unit.
    pub max: usize,
    /// The unit.
    pub unit: TextUnit,
}

impl TextLimit {
    /// Returns whether a text is within the limit.
    pub fn fits(self, text: &str) -> bool {
        text.len() <= self.max || self.unit.len(text) <= self.max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_measures_and_truncates_correctly() {
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
