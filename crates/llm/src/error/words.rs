//! Word searches in lower-cased error texts.

/// Returns the status at the start of a text, with or without `HTTP`, and the rest of the text.
pub fn leading_status(text: &str) -> Option<(u16, &str)> {
    let text = text.trim_start();
    let text = match text.get(..5) {
        Some(head) if head.eq_ignore_ascii_case("http ") => text[5..].trim_start(),
        _ => text,
    };
    let digits = text.get(..3).filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()))?;
    let rest = &text[3..];
    let is_alone = rest.is_empty() || rest.starts_with(|c: char| c == ':' || c.is_whitespace());
    let status = digits.parse().ok().filter(|status| (100..600).contains(status) && is_alone)?;
    Some((status, rest.trim_start_matches(|c: char| c == ':' || c.is_whitespace())))
}

/// Returns whether the text contains any of the words.
pub(super) fn any(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| text.contains(word))
}

/// Returns whether the text contains all of the words.
pub(super) fn all(text: &str, words: &[&str]) -> bool {
    words.iter().all(|word| text.contains(word))
}

/// Returns whether the text contains a whole word: no letter, digit or underscore is next to it.
pub(super) fn word(text: &str, word: &str) -> bool {
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(word).any(|(at, found)| {
        !is_word(text[..at].chars().next_back()) && !is_word(text[at + found.len()..].chars().next())
    })
}

/// Returns whether the words occur in this order, with anything between them.
pub(super) fn in_order(text: &str, words: &[&str]) -> bool {
    let mut rest = text;
    words.iter().all(|word| match rest.find(word) {
        Some(at) => {
            rest = &rest[at + word.len()..];
            true
        }
        None => false,
    })
}

/// Returns whether one of the words of `first` is followed by one of `second`.
pub(super) fn then(text: &str, first: &[&str], second: &[&str]) -> bool {
    first.iter().any(|first| text.find(first).is_some_and(|at| any(&text[at + first.len()..], second)))
}

/// Returns the first number after a phrase, ignoring thousands separators.
pub(super) fn number_after(text: &str, phrase: &str) -> Option<u64> {
    let rest = text[text.find(phrase)? + phrase.len()..].trim_start();
    let digits: String = rest.chars().take_while(|c| c.is_ascii_digit() || *c == ',').filter(|c| *c != ',').collect();
    digits.parse().ok()
}
