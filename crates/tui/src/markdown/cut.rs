//! Splits long paragraphs, so that their beginning is finished while their end is still arriving.

use pulldown_cmark::{Event, Parser};
use unicode_segmentation::UnicodeSegmentation;

use super::options::EXTENSIONS;

/// Size from which an open block counts as long, in bytes.
pub(super) const LONG: usize = 8192;

/// Prepended to text from the middle of a paragraph, so that nothing in it begins a block.
pub(super) const MIDDLE: &str = "x";

/// Counts bytes that are parsed or laid out, for complexity tests.
pub(super) fn count_work(n_bytes: usize) {
    #[cfg(test)]
    WORK.with(|work| work.set(work.get() + n_bytes));
    #[cfg(not(test))]
    let _: usize = n_bytes;
}

#[cfg(test)]
thread_local! {
    /// Bytes counted by [`count_work`] in this thread.
    pub(super) static WORK: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Returns a split position in the second half of the beginning of a paragraph: after a word, outside emphasis, code and links, if there is
/// one.
pub(super) fn cut_point(window: &str, is_middle: bool) -> usize {
    count_work(window.len());
    let prefix = if is_middle { MIDDLE } else { "" };
    let text = format!("{prefix}{window}");
    let least = prefix.len() + window.len() / 2;
    // The last position before anything that may be closed later, and the last one of all.
    let (mut safe, mut last, mut is_open) = (None, None, false);
    let mut depth = 0_usize;
    for (event, range) in Parser::new_ext(&text, EXTENSIONS).into_offset_iter() {
        match event {
            Event::Start(tag) if is_inline(&tag.to_end()) => depth += 1,
            Event::End(tag) if is_inline(&tag) => depth = depth.saturating_sub(1),
            Event::Text(_) if depth == 0 => {
                for at in range.start.max(least)..range.end {
                    is_open |= may_open(text.as_bytes(), at);
                    if is_between_words(text.as_bytes(), at) {
                        last = Some(at);
                        if !is_open {
                            safe = last;
                        }
                    }
                }
            }
            _ => {}
        }
    }
    let between_words = || (least..text.len()).rev().find(|at| is_between_words(text.as_bytes(), *at));
    safe.or(last).or_else(between_words).map_or_else(|| last_grapheme(window), |at| at - prefix.len())
}

fn is_inline(tag: &pulldown_cmark::TagEnd) -> bool {
    use pulldown_cmark::TagEnd;
    matches!(tag, TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough | TagEnd::Link | TagEnd::Image)
}

/// Returns whether markup may begin here whose end has not arrived.
fn may_open(text: &[u8], at: usize) -> bool {
    let next = text.get(at + 1).copied().unwrap_or(b' ');
    match text[at] {
        b'`' | b'[' => true,
        b'*' | b'~' => !next.is_ascii_whitespace(),
        b'_' => !(next.is_ascii_whitespace() || at > 0 && text[at - 1].is_ascii_alphanumeric()),
        b'<' => next.is_ascii_alphabetic() || next == b'/' || next == b'!',
        _ => false,
    }
}

/// Returns whether there is a single space here between two words of a line.
fn is_between_words(text: &[u8], at: usize) -> bool {
    let is_word = |byte: Option<&u8>| byte.is_some_and(|byte| !byte.is_ascii_whitespace() && *byte != b'\\');
    text[at] == b' ' && at > 0 && is_word(text.get(at - 1)) && is_word(text.get(at + 1))
}

/// Returns the start of the last grapheme, which may still grow.
pub(super) fn last_grapheme(window: &str) -> usize {
    let from = window.floor_char_boundary(window.len().saturating_sub(256));
    window[from..].grapheme_indices(true).next_back().map_or(window.len(), |(at, _)| (from + at).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(window: &str, expected: &str) {
        assert_eq!(&window[..cut_point(window, false)], expected, "{window}");
        assert_eq!(&window[..cut_point(window, true)], expected, "in the middle: {window}");
    }

    #[test]
    fn paragraphs_are_split_between_words_outside_markup() {
        check("one two three four", "one two three");
        check("one two three **four five", "one two three");
        check("one two three **four** five", "one two three **four**");
        check("one two [three](four) five `six", "one two [three](four) five");
        check("one **two three four five six** se", "one **two three four five six**");
        check("日本語日本語", "日本語日本");
        check("a b c d e  f", "a b c d");
        check("a snake_case word", "a snake_case");
    }
}
