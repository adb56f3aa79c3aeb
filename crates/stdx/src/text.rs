//! Text: measuring and truncating as JavaScript does, and cleaning text before it is shown.

use std::borrow::Cow;

pub mod ansi;

pub mod fuzzy;

pub mod pool;

pub mod utf8;

pub use ansi::strip_ansi;
pub use pool::TextPool;
pub use utf8::Utf8Decoder;

/// Returns the length of the byte order mark at the start of a text: three or zero.
pub fn bom_len(text: &[u8]) -> usize {
    let bom = "\u{feff}".as_bytes();
    if text.starts_with(bom) { bom.len() } else { 0 }
}

/// Returns the text with all line ends replaced by line feeds: `\r
/// ` and `\r` count as one each.
pub fn to_line_feeds(text: &str) -> Cow<'_, str> {
    if !text.contains('\r') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\r') {
        out.push_str(&rest[..at]);
        out.push('\n');
        rest = &rest[at + 1..];
        rest = rest.strip_prefix('\n').unwrap_or(rest);
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Appends to a text that is kept while it grows, such as an answer. Its capacity grows by an eighth, as doubling it would leave up to
/// half of the memory of each of many texts unused; each byte is then copied eight times on average instead of once.
pub fn append(text: &mut String, more: &str) {
    if text.capacity() - text.len() < more.len() {
        text.reserve_exact(more.len().max(text.len() / 8).max(MIN_GROWTH));
    }
    text.push_str(more);
}

/// Minimum number of bytes by which [`append`] enlarges a text.
const MIN_GROWTH: usize = 64;

/// Formats an error with all its causes that it does not mention itself.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}

/// Returns the length in UTF-16 code units, JavaScript's length of a string.
pub fn utf16_len(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

/// Returns the longest prefix of `text` with at most `max` UTF-16 code units. A character outside the basic plane is never split.
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

/// Returns the longest prefix of `text` with at most `max` bytes that ends at a character boundary.
pub fn prefix(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

/// Truncates a text that is longer than `max` bytes and appends an ellipsis; returns a shorter text unchanged.
pub fn shortened(text: &str, max: usize) -> Cow<'_, str> {
    match text.len() > max {
        true => Cow::Owned(format!("{}…", prefix(text, max))),
        false => Cow::Borrowed(text),
    }
}

/// Returns the longest suffix of `text` with at most `max` bytes that starts at a character boundary.
pub fn suffix(text: &str, max: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(max))..]
}

/// Decodes UTF-16 code units, dropping lone surrogates.
pub fn from_utf16_dropping(units: &[u16]) -> String {
    char::decode_utf16(units.iter().copied()).filter_map(Result::ok).collect()
}

/// Removes characters that a terminal could misinterpret and a model cannot read: control characters below U+0020 except tab, line feed and
/// carriage return, and the interlinear marks U+FFF9 to U+FFFB. Remove escape sequences first ([`strip_ansi`]), or their tails stay.
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
    fn every_line_end_becomes_one_line_feed() {
        for (text, expected) in [("a\r\nb\rc\nd\r\r\n", "a\nb\nc\nd\n\n"), ("\r", "\n"), ("a", "a"), ("", "")] {
            assert_eq!(to_line_feeds(text), expected);
        }
    }

    #[test]
    fn repeated_causes_are_shown_once() {
        #[derive(Debug)]
        struct Outer(std::io::Error);
        impl std::fmt::Display for Outer {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("cannot write f")
            }
        }
        impl std::error::Error for Outer {
            fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
                Some(&self.0)
            }
        }
        let error = |cause: &str| Outer(std::io::Error::other(cause.to_owned()));
        assert_eq!(with_causes(&error("the disk is full")), "cannot write f: the disk is full");
        assert_eq!(with_causes(&error("write f")), "cannot write f");
    }

    #[test]
    fn truncation_respects_character_boundaries() {
        let text = "aé😀b";
        assert_eq!(utf16_len(text), 5);
        let prefixes: Vec<&str> = (0..=6).map(|n| utf16_prefix(text, n)).collect();
        assert_eq!(prefixes, ["", "a", "aé", "aé", "aé😀", text, text]);
        assert_eq!((prefix(text, 6), suffix(text, 4), prefix(text, 99)), ("aé", "b", text));
    }

    #[test]
    fn lone_surrogates_are_dropped() {
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
    fn control_characters_are_removed_and_line_ends_stay() {
        assert_eq!(strip_control("a\u{7}b\t\r\nc\u{fffa}\0"), "ab\t\r\nc");
        assert!(matches!(strip_control("plain"), Cow::Borrowed(_)));
    }
}
