//! Width of text in columns.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Returns the width of a text without line breaks, in columns. A tab counts as three columns, as it is drawn.
pub fn width(text: &str) -> usize {
    if text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
        return text.len();
    }
    text.graphemes(true).map(grapheme_width).sum()
}

/// Returns the width of one grapheme: 0, 1, 2, or 3 for a tab.
///
/// A regional indicator is two columns wide even if its partner has not arrived, so that completing a flag does not move what follows.
pub fn grapheme_width(grapheme: &str) -> usize {
    let mut chars = grapheme.chars();
    let Some(first) = chars.next() else { return 0 };
    match first {
        '\t' => return 3,
        ' '..='\u{7e}' if chars.as_str().is_empty() => return 1,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' => return 0,
        '\u{1f1e6}'..='\u{1f1ff}' => return 2,
        _ => {}
    }
    let base = UnicodeWidthStr::width(grapheme).min(2);
    // The Thai and Lao vowel AM follows its base, and terminals show it in a separate column.
    let has_am = chars.as_str().contains(['\u{e33}', '\u{eb3}']);
    if has_am && base < 2 { base + 1 } else { base }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_match_those_of_terminals() {
        for (text, columns) in [
            ("plain", 5),
            ("", 0),
            ("日本", 4),
            ("👨‍👩‍👧", 2),
            ("🇩🇪", 2),
            ("🇩", 2),
            ("e\u{301}", 1),
            ("a\tb", 5),
            ("\u{200b}", 0),
        ] {
            assert_eq!(width(text), columns, "{text:?}");
        }
    }
}
