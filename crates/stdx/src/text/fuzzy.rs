//! Fuzzy matching of a query whose letters occur in order in a text: pi's scoring, so that lists rank as users expect.

/// Returns the rank of a text for a query whose words, separated by blanks or slashes, must all match. Lower is better; `None` if it
/// does not match.
pub fn rank(query: &str, text: &str) -> Option<f64> {
    let text = text.to_lowercase();
    let mut words = query.split(|c: char| c.is_whitespace() || c == '/').filter(|word| !word.is_empty());
    words.try_fold(0.0, |sum, word| Some(sum + rank_word(word, &text)?))
}

/// Returns the matching items, best first; items that match equally well stay in order.
pub fn filter<T>(items: impl IntoIterator<Item = T>, query: &str, text: impl Fn(&T) -> String) -> Vec<T> {
    let ranked = items.into_iter().filter_map(|item| Some((rank(query, &text(&item))?, item)));
    let mut ranked: Vec<(f64, T)> = ranked.collect();
    ranked.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    ranked.into_iter().map(|(_, item)| item).collect()
}

/// Returns the rank of a word for a text in lower case. A word of letters and digits is also tried with the two swapped.
///
/// Each letter costs a tenth of its position and twice the gap before it; runs and word starts are rewarded.
pub fn rank_word(word: &str, lower_text: &str) -> Option<f64> {
    let word = word.to_lowercase();
    in_order(&word, lower_text).or_else(|| Some(in_order(&swapped(&word)?, lower_text)? + 5.0))
}

fn in_order(word: &str, text: &str) -> Option<f64> {
    let mut wanted = word.encode_utf16().peekable();
    let mut rank = if word == text { -100.0 } else { 0.0 };
    let mut run = 0.0;
    let mut last: Option<usize> = None;
    let mut before: Option<u16> = None;
    for (at, unit) in text.encode_utf16().enumerate() {
        if wanted.peek().is_none() {
            break;
        }
        if wanted.next_if_eq(&unit).is_some() {
            // The first letter of the text counts as the continuation of a run.
            if last.map_or(at == 0, |last| last + 1 == at) {
                run += 1.0;
                rank -= 5.0 * run;
            } else {
                run = 0.0;
                rank += last.map_or(0.0, |last| 2.0 * (at - last - 1) as f64);
            }
            if before.is_none_or(is_boundary) {
                rank -= 10.0;
            }
            rank += 0.1 * at as f64;
            last = Some(at);
        }
        before = Some(unit);
    }
    wanted.peek().is_none().then_some(rank)
}

fn is_boundary(unit: u16) -> bool {
    char::from_u32(unit.into()).is_some_and(|c| c.is_whitespace() || matches!(c, '-' | '_' | '.' | '/' | ':'))
}

/// Swaps `gpt5` to `5gpt` and back; returns `None` unless the word is letters followed by digits or the reverse.
fn swapped(word: &str) -> Option<String> {
    let first = word.chars().next()?;
    let is_first_kind = |c: char| c.is_ascii_digit() == first.is_ascii_digit();
    let (head, tail) = word.split_at(word.find(|c| !is_first_kind(c))?);
    let is_one_kind = |part: &str, digits: bool| {
        part.chars().all(|c| if digits { c.is_ascii_digit() } else { c.is_ascii_lowercase() })
    };
    let digits_first = first.is_ascii_digit();
    (is_one_kind(head, digits_first) && is_one_kind(tail, !digits_first)).then(|| format!("{tail}{head}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(query: &str, text: &str, expected: Option<f64>) {
        let actual = rank(query, text);
        let is_equal = match (actual, expected) {
            (Some(actual), Some(expected)) => (actual - expected).abs() < 1e-9,
            (actual, expected) => actual == expected,
        };
        assert!(is_equal, "{query:?} in {text:?}: {actual:?}, expected {expected:?}");
    }

    #[test]
    fn runs_gaps_positions_and_word_starts_affect_the_rank() {
        // At the start: a run of one, a word start.
        check("a", "ab", Some(-5.0 - 10.0));
        // A run of two: 5, then 10; the second letter is at index 1.
        check("ab", "ABc", Some(-5.0 - 10.0 - 10.0 + 0.1));
        // A gap of one, and `c` starts a word.
        check("ac", "a-c", Some(-5.0 - 10.0 + 2.0 - 10.0 + 0.2));
        // Nothing before: no gap, no run, no word start.
        check("b", "ab", Some(0.1));
        check("ab", "ab", Some(-100.0 - 5.0 - 10.0 - 10.0 + 0.1));
    }

    #[test]
    fn letters_that_are_missing_or_out_of_order_do_not_match() {
        check("ba", "ab", None);
        check("abc", "ab", None);
        check("a x", "ab", None);
        check("", "ab", Some(0.0));
    }

    #[test]
    fn words_are_separated_by_blanks_or_slashes() {
        let alone = rank("oc", "oc o1").unwrap() + rank("o1", "oc o1").unwrap();
        check("oc/o1", "oc o1", Some(alone));
        check("oc o1", "oc o1", Some(alone));
        check("oc/o1", "an a1", None);
    }

    #[test]
    fn letters_and_digits_may_be_swapped() {
        let swapped = rank("5gpt", "5gpt-x").unwrap() + 5.0;
        check("gpt5", "5gpt-x", Some(swapped));
        check("g5t", "5gt", None);
    }

    #[test]
    fn the_scores_of_words_add_up() {
        check("a c", "ab c", Some(-15.0 - 10.0 + 0.3));
    }

    #[test]
    fn non_matching_items_are_dropped_and_the_best_comes_first() {
        let names = ["openai gpt-4o", "anthropic claude-opus", "openai gpt-4o-mini", "groq opt"];
        let found = |query: &str| filter(names, query, |name| (*name).to_owned());
        assert_eq!(found("gpt mini"), ["openai gpt-4o-mini"]);
        assert_eq!(found("opus")[0], "anthropic claude-opus");
        assert_eq!(found("").len(), 4);
    }
}
