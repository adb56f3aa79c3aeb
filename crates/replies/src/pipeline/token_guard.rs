//! Keeps tokens that are not for people out of partial text.

use std::borrow::Cow;

use super::super::tokens::{HEARTBEAT, SILENT, is_silent, may_become, may_become_silent};

/// The longest end of a text that is held back, in bytes: white space around a token.
const MAX_HELD: usize = 4_096;

/// Holds back the end of a growing text while it may be a token; it is only shown if more words follow.
#[derive(Debug, Default)]
pub(super) struct TokenGuard {
    held: String,
    has_passed: bool,
    /// Whether the shown text ends inside a word.
    in_word: bool,
}

impl TokenGuard {
    /// Appends text and returns what may be shown.
    pub(super) fn push<'a>(&mut self, text: Cow<'a, str>) -> Cow<'a, str> {
        let mut text = match self.held.is_empty() {
            true => text,
            false => Cow::Owned(std::mem::take(&mut self.held) + &text),
        };
        let is_silent_so_far = !self.has_passed && text.len() <= MAX_HELD && may_become_silent(&text);
        let kept = if is_silent_so_far { 0 } else { undecided_from(&text, self.in_word) };
        if text.len() - kept <= MAX_HELD {
            text[kept..].clone_into(&mut self.held);
            match &mut text {
                Cow::Borrowed(borrowed) => *borrowed = &borrowed[..kept],
                Cow::Owned(owned) => owned.truncate(kept),
            }
        }
        // A token before an answer acknowledges a heartbeat and is not part of the answer.
        if !self.has_passed
            && let Some(rest) =
                text.trim_start().strip_prefix(HEARTBEAT).filter(|rest| rest.starts_with(char::is_whitespace))
        {
            text = Cow::Owned(rest.trim_start().to_owned());
        }
        self.has_passed |= !text.trim().is_empty();
        self.in_word = text.chars().next_back().map_or(self.in_word, |last| !last.is_whitespace());
        text
    }

    /// Ends the text and returns held-back text that is not a token.
    pub(super) fn settle(&mut self) -> String {
        let held = std::mem::take(&mut self.held);
        let is_dropped = is_token(last_word(&held).1) || (!self.has_passed && is_silent(&held));
        if is_dropped { String::new() } else { held }
    }
}

/// Returns where a trailing token or prefix of one begins, including the white space around it.
fn undecided_from(text: &str, in_word: bool) -> usize {
    let (before, word) = last_word(text);
    let start = word.trim_start_matches('*');
    let may_grow = !word.is_empty() && text.ends_with(word);
    let is_first = ["", "N", "H"].contains(&start);
    let is_start = may_grow && (is_first || may_become(SILENT, start) || may_become(HEARTBEAT, start));
    if (in_word && before.is_empty()) || (!is_start && !is_token(word)) {
        return text.len();
    }
    let mut kept = before.trim_end();
    while let (before, word) = last_word(kept)
        && is_token(word)
        && !(in_word && before.is_empty())
    {
        kept = before.trim_end();
    }
    kept.len()
}

/// Returns the last word of a text, and the text before it.
fn last_word(text: &str) -> (&str, &str) {
    let words = text.trim_end();
    let is_space = |(_, c): &(usize, char)| c.is_whitespace();
    let start = words.char_indices().rev().find(is_space).map_or(0, |(at, c)| at + c.len_utf8());
    words.split_at(start)
}

fn is_token(word: &str) -> bool {
    [SILENT, HEARTBEAT].contains(&word.trim_matches('*'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(parts: &[&str]) -> Vec<String> {
        let mut guard = TokenGuard::default();
        let mut shown: Vec<String> = parts.iter().map(|part| guard.push((*part).into()).into_owned()).collect();
        shown.push(guard.settle());
        shown
    }

    #[test]
    fn tokens_are_shown_only_as_words_of_a_sentence() {
        assert_eq!(shown(&["Done.\n\nNO", "_REPLY", "\n"]), ["Done.", "", "", ""]);
        assert_eq!(shown(&["The word NO_REPLY", " means nothing."]), ["The word", " NO_REPLY means nothing.", ""]);
        assert_eq!(shown(&["I said NO", "."]), ["I said", " NO.", ""]);
        assert_eq!(shown(&["no", "_reply"]), ["", "", ""]);
        assert_eq!(shown(&["{\"action\": ", "\"NO_REPLY\"}"]), ["", "", ""]);
        assert_eq!(shown(&["**No", ", thanks."]), ["", "**No, thanks.", ""]);
        assert_eq!(shown(&["I said NO"]), ["I said", " NO"]);
        assert_eq!(shown(&["HEARTBEAT_OK\n\n", "All fine."]), ["", "All fine.", ""]);
        assert_eq!(shown(&["NO_RE", "TURN is a flag"]), ["", "NO_RETURN is a flag", ""]);
        assert_eq!(shown(&["**No"]), ["", "**No"]);
        assert_eq!(shown(&["I said NO ", "way"]), ["I said NO ", "way", ""]);
    }

    #[test]
    fn a_token_after_a_long_answer_is_not_shown() {
        let text = "word ".repeat(MAX_HELD);
        assert_eq!(shown(&[&(text.clone() + "NO_RE"), "PLY"]), [text.trim_end(), "", ""]);
    }

    proptest! {
        #[test]
        fn chunking_does_not_matter(
            words in prop::collection::vec(prop::sample::select(vec!["NO_REPLY", "NO", "_REPLY", "HEARTBEAT_OK", "HE", " ", "\n", "a", "*", "."]), 0..20),
        ) {
            let text = words.concat();
            let chars: Vec<String> = text.chars().map(String::from).collect();
            let chars: Vec<&str> = chars.iter().map(String::as_str).collect();
            let whole = |parts: &[&str]| shown(parts).concat().trim().to_owned();
            prop_assert_eq!(whole(&words), whole(&[&text]));
            prop_assert_eq!(whole(&chars), whole(&[&text]));
        }
    }
}
