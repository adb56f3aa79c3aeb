//! Fuzzy search: all characters of what is typed, in their order, with the best places first.
//!
//! The scores are pi's, so that lists come out in the same order: a run of n characters gives 5n, a gap of n costs 2n, the beginning of a word
//! gives 10, and a late place costs a tenth a character.

/// Given for a text that is what was typed.
const EQUAL: f64 = -100.0;
/// Costs of letters and digits that were swapped.
const SWAPPED: f64 = 5.0;

/// How well a text fits what was typed, blanks apart; lower is better. `None` when it does not fit.
pub fn score(typed: &str, text: &str) -> Option<f64> {
    typed.split_whitespace().map(|part| score_part(part, text)).sum()
}

/// Those items that fit, best first; items that fit equally well stay in their order.
pub fn filter<T>(items: impl IntoIterator<Item = T>, typed: &str, text: impl Fn(&T) -> String) -> Vec<T> {
    let scored = items.into_iter().filter_map(|item| Some((score(typed, &text(&item))?, item)));
    let mut scored: Vec<(f64, T)> = scored.collect();
    scored.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    scored.into_iter().map(|(_, item)| item).collect()
}

fn score_part(part: &str, text: &str) -> Option<f64> {
    let (part, text) = (part.to_lowercase(), text.to_lowercase());
    in_order(&part, &text).or_else(|| Some(in_order(&swapped(&part)?, &text)? + SWAPPED))
}

fn in_order(part: &str, text: &str) -> Option<f64> {
    let mut wanted = part.chars().peekable();
    let (mut score, mut run, mut last) = (0.0, 0.0, None);
    let mut before = None;
    for (at, c) in text.chars().enumerate() {
        if wanted.next_if_eq(&c).is_some() {
            let starts_word =
                before.is_none_or(|c: char| c.is_whitespace() || matches!(c, '-' | '_' | '.' | '/' | ':'));
            match last {
                Some(last) if last + 1 == at => run += 1.0,
                Some(last) => {
                    run = 1.0;
                    score += 2.0 * (at - last - 1) as f64;
                }
                None => run = 1.0,
            }
            // A run counts from its second character on.
            if run > 1.0 {
                score -= 5.0 * run;
            }
            if starts_word {
                score -= 10.0;
            }
            score += 0.1 * at as f64;
            last = Some(at);
        }
        before = Some(c);
    }
    let found = wanted.peek().is_none();
    found.then(|| if part == text { score + EQUAL } else { score })
}

/// `abc12` as `12abc`, and the other way round; `None` for anything else.
fn swapped(part: &str) -> Option<String> {
    let is_digit = |c: char| c.is_ascii_digit();
    let is_letter = |c: char| c.is_ascii_alphabetic();
    let first = part.chars().next()?;
    let kind = |c: char| if is_digit(first) { is_digit(c) } else { is_letter(c) };
    let at = part.find(|c| !kind(c))?;
    let (head, tail) = part.split_at(at);
    let fits = head.chars().all(kind) && tail.chars().all(|c| if is_digit(first) { is_letter(c) } else { is_digit(c) });
    fits.then(|| format!("{tail}{head}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_left_out_and_the_best_comes_first() {
        let names = ["openai gpt-4o", "anthropic claude-opus", "openai gpt-4o-mini", "groq opt"];
        let found = filter(names, "gpt mini", |name| (*name).to_owned());
        assert_eq!(found, ["openai gpt-4o-mini"]);
        assert_eq!(filter(names, "opus", |name| (*name).to_owned())[0], "anthropic claude-opus");
        assert_eq!(filter(names, "", |name| (*name).to_owned()).len(), 4);
        assert_eq!(score("xyz", "abc"), None);
    }

    #[test]
    fn runs_beginnings_and_early_places_count() {
        assert!(score("abc", "abc") < score("abc", "abcd"));
        assert!(score("ab", "x ab") < score("ab", "xab"));
        assert!(score("ab", "ab x") < score("ab", "a b x"));
        assert!(score("gpt5", "5gpt").is_some() && score("5gpt", "gpt5").is_some());
    }
}
