//! Words of names, descriptions and queries, in any script.

use std::iter::Peekable;
use std::str::Chars;

/// Words that say nothing about a tool.
const STOP_WORDS: [&str; 36] = [
    "a", "an", "and", "any", "are", "as", "at", "be", "by", "can", "do", "for", "from", "how", "i", "in", "is", "it",
    "me", "my", "of", "on", "or", "some", "that", "the", "this", "to", "tool", "tools", "want", "what", "which",
    "with", "you", "your",
];

/// Returns the stems of a text's words, in order.
pub(super) fn stems(text: &str) -> Vec<String> {
    words(text).into_iter().map(stem).collect()
}

/// Returns the distinct stems of a query without words that say nothing, unless there are no others.
pub(super) fn query_stems(query: &str, max: usize) -> Vec<String> {
    let all = words(query);
    let says_something = |word: &String| !STOP_WORDS.contains(&word.as_str());
    let only_stop_words = !all.iter().any(says_something);
    let mut kept: Vec<String> = Vec::new();
    for stem in all.into_iter().filter(|word| only_stop_words || says_something(word)).map(stem) {
        if kept.len() < max && !kept.contains(&stem) {
            kept.push(stem);
        }
    }
    kept
}

/// Returns the words of a text in lower case. A run of letters and digits is a word, as are its parts between changes of case (`GitHub`:
/// `git`, `hub`, `github`). Text in scripts without spaces consists of its characters and pairs of characters.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(first) = chars.peek().copied() {
        if is_unspaced(first) {
            add_unspaced(&take_while(&mut chars, is_unspaced), &mut words);
        } else if first.is_alphanumeric() {
            add_word(&take_while(&mut chars, |c| c.is_alphanumeric() && !is_unspaced(c)), &mut words);
        } else {
            chars.next();
        }
    }
    words
}

fn take_while(chars: &mut Peekable<Chars<'_>>, belongs: impl Fn(char) -> bool) -> Vec<char> {
    std::iter::from_fn(|| chars.next_if(|c| belongs(*c))).collect()
}

/// Returns whether a character belongs to a script that is usually written without spaces between words, or with words that change at their
/// ends: Han, kana and Hangul.
fn is_unspaced(c: char) -> bool {
    matches!(u32::from(c),
        0x1100..=0x11FF | 0x3040..=0x30FF | 0x3130..=0x318F | 0x31F0..=0x31FF | 0x3400..=0x4DBF | 0x4E00..=0x9FFF
        | 0xAC00..=0xD7AF | 0xF900..=0xFAFF | 0xFF66..=0xFF9D | 0x20000..=0x3FFFF)
}

fn add_unspaced(run: &[char], words: &mut Vec<String>) {
    words.extend(run.iter().map(char::to_string));
    words.extend(run.windows(2).map(|pair| pair.iter().collect()));
}

fn add_word(word: &[char], words: &mut Vec<String>) {
    let lower = |chars: &[char]| chars.iter().flat_map(|c| c.to_lowercase()).collect::<String>();
    let mut start = 0;
    for at in 1..word.len() {
        let (before, here, next) = (word[at - 1], word[at], word.get(at + 1));
        let begins = here.is_uppercase() && (before.is_lowercase() || next.is_some_and(|next| next.is_lowercase()));
        if begins {
            words.push(lower(&word[start..at]));
            start = at;
        }
    }
    if start > 0 {
        words.push(lower(&word[start..]));
    }
    words.push(lower(word));
}

/// Removes common English endings, so that `files`, `file` and `filing` are the same. The result need not be a word.
fn stem(mut word: String) -> String {
    if word.len() < 3 || !word.bytes().all(|b| b.is_ascii_lowercase()) {
        return word;
    }
    without_plural(&mut word);
    let endings = [("ing", ""), ("ed", ""), ("ion", "st")];
    for (ending, only_after) in endings {
        let Some(rest) = word.strip_suffix(ending) else { continue };
        let fits = only_after.is_empty() || rest.ends_with(|c| only_after.contains(c));
        if rest.len() >= 2 && fits && has_vowel(rest) && !word.ends_with("eed") {
            word.truncate(rest.len());
            undouble(&mut word);
            break;
        }
    }
    if word.len() >= 3 && word.ends_with('e') && has_vowel(&word[..word.len() - 1]) {
        word.pop();
    }
    word
}

fn without_plural(word: &mut String) {
    let n = word.len();
    let sibilant = ["sses", "xes", "zes", "ches", "shes"].iter().any(|ending| word.ends_with(ending));
    if n > 4 && word.ends_with("ies") {
        word.truncate(n - 3);
        word.push('y');
    } else if n > 4 && sibilant {
        word.truncate(n - 2);
    } else if n > 3 && word.ends_with('s') && !["ss", "us", "is"].iter().any(|ending| word.ends_with(ending)) {
        word.pop();
    }
}

/// Removes one of two equal consonants at the end: `runn` becomes `run`.
fn undouble(word: &mut String) {
    let mut last = word.bytes().rev();
    let (last, before) = (last.next(), last.next());
    let is_double = last == before && last.is_some_and(|b| !b"aeioulsz".contains(&b));
    if is_double && word.len() > 3 {
        word.pop();
    }
}

fn has_vowel(text: &str) -> bool {
    text.contains(['a', 'e', 'i', 'o', 'u', 'y'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_word_have_the_same_stem() {
        for forms in [
            &["file", "files", "filed", "filing"][..],
            &["search", "searches", "searching", "searched"],
            &["create", "creates", "creating", "created", "creation"],
            &["query", "queries"],
            &["run", "runs", "running"],
            &["use", "uses", "used", "using"],
            &["box", "boxes"],
            &["message", "messages", "messaging"],
            &["class", "classes"],
        ] {
            let found: Vec<Vec<String>> = forms.iter().map(|form| stems(form)).collect();
            assert!(found.iter().all(|stems| *stems == found[0]), "{forms:?}: {found:?}");
        }
        for (one, other) in [("string", "str"), ("need", "ne"), ("status", "statu"), ("thing", "th"), ("bus", "bu")] {
            assert_ne!(stems(one), stems(other));
        }
    }

    #[test]
    fn names_are_split_at_separators_and_changes_of_case() {
        assert_eq!(stems("get_user-info.v2"), ["get", "user", "info", "v2"]);
        assert_eq!(stems("GitHub"), ["git", "hub", "github"]);
        assert_eq!(stems("parseHTMLPage"), ["pars", "html", "pag", "parsehtmlpag"]);
        assert_eq!(stems("  --- "), [""; 0]);
    }

    #[test]
    fn every_script_has_words() {
        assert_eq!(stems("Погода сегодня"), ["погода", "сегодня"]);
        assert_eq!(stems("天気予報"), ["天", "気", "予", "報", "天気", "気予", "予報"]);
        assert_eq!(stems("API天気x"), ["api", "天", "気", "天気", "x"]);
        assert_eq!(stems("날씨"), ["날", "씨", "날씨"]);
    }

    #[test]
    fn words_that_say_nothing_count_only_alone() {
        assert_eq!(query_stems("search for the files and the files", 9), ["search", "fil"]);
        assert_eq!(query_stems("what is it", 9), ["what", "is", "it"]);
        assert_eq!(query_stems("one two three", 2), ["on", "two"]);
    }
}
