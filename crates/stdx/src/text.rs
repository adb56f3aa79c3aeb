//! Text: lengths and cuts as JavaScript counts them, and what has to go before text is shown.

use std::borrow::Cow;

pub mod ansi;

pub mod fuzzy;

pub mod utf8;

pub use ansi::strip_ansi;
pub use utf8::Utf8Decoder;

/// Length in UTF-16 code units: what JavaScript calls the length of a string.
pub fn utf16_len(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

/// The longest start of `text` of at most `max` UTF-16 code units. A character outside the basic plane is never halved.
pub fn utf16_prefix(text: &str, max: usize) -> &str {
    if text.len() <= max {
        return text;
    }
    let mut left = max;
    for (at, c) in text.char_indices() {
        match left.checked_sub(c.len_utf16()) {
            Some(rest) => left = rest,
            None => return &text[..at],
        }
    }
    text
}

/// The longest end of `text` of at most `max` UTF-16 code units.
pub fn utf16_suffix(text: &str, max: usize) -> &str {
    let mut left = max;
    for (at, c) in text.char_indices().rev() {
        match left.checked_sub(c.len_utf16()) {
            Some(rest) => left = rest,
            None => return &text[at + c.len_utf8()..],
        }
    }
    text
}

/// The longest start of `text` of at most `max` bytes that ends between two characters.
pub fn prefix(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

/// The longest end of `text` of at most `max` bytes that begins between two characters.
pub fn suffix(text: &str, max: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(max))..]
}

/// Makes text of UTF-16 code units, leaving out halves of surrogate pairs.
pub fn from_utf16_dropping(units: &[u16]) -> String {
    char::decode_utf16(units.iter().copied()).filter_map(Result::ok).collect()
}

/// Removes what a terminal could misunderstand and a model cannot read: control characters below U+0020 except tab, line feed and carriage
/// return, and the interlinear marks U+FFF9 to U+FFFB. Escape sequences should be gone before ([`strip_ansi`]), or their tails stay.
pub fn strip_control(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unwanted) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().filter(|c| !is_unwanted(*c)).collect())
}

fn is_unwanted(c: char) -> bool {
    matches!(c, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fff9}'..='\u{fffb}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_fall_between_characters() {
        let text = "aé😀b";
        assert_eq!(utf16_len(text), 5);
        let prefixes: Vec<&str> = (0..=6).map(|n| utf16_prefix(text, n)).collect();
        assert_eq!(prefixes, ["", "a", "aé", "aé", "aé😀", text, text]);
        let suffixes: Vec<&str> = (0..=5).map(|n| utf16_suffix(text, n)).collect();
        assert_eq!(suffixes, ["", "b", "b", "😀b", "é😀b", text]);
        assert_eq!((prefix(text, 6), suffix(text, 4), prefix(text, 99)), ("aé", "b", text));
    }

    #[test]
    fn halves_of_pairs_are_dropped() {
        for (units, text) in [
            (&[72, 105][..], "Hi"),
            (&[0xD83D, 0xDE00], "😀"),
            (&[97, 0xD83D, 98], "ab"),
            (&[0xD83D, 0xD83D, 0xDE00], "😀"),
        ] {
            assert_eq!(from_utf16_dropping(units), text);
        }
    }

    #[test]
    fn control_characters_go_and_line_ends_stay() {
        assert_eq!(strip_control("a\u{7}b\t\r\nc\u{fffa}\0"), "ab\t\r\nc");
        assert!(matches!(strip_control("plain"), Cow::Borrowed(_)));
    }
}
