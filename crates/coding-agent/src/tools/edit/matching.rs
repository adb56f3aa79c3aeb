//! Finding the text to replace, exactly or approximately, and replacing it without touching anything else.

use std::ops::Range;

use pinch_stdx::text::to_line_feeds;

use super::mapped::{Mapped, Occurrences};

/// A replacement requested by a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextReplacement {
    /// The text to find.
    pub old: String,
    /// The replacement.
    pub new: String,
}

/// Applies all edits to `original` and returns the new text.
///
/// Line breaks are ignored when comparing; untouched lines keep theirs, and new text gets those of the file.
///
/// # Errors
/// A message for the model: which edit was not found, is ambiguous, overlaps another one, or changes nothing.
pub fn apply(original: &str, edits: &[TextReplacement], path: &str) -> Result<String, String> {
    let (bom, body) = match original.strip_prefix('\u{feff}') {
        Some(body) => ("\u{feff}", body),
        None => ("", original),
    };
    let plain = Mapped::line_feeds(body);
    let mut nearly = None;
    let mut found: Vec<(Range<usize>, usize)> = Vec::with_capacity(edits.len());
    for (at, edit) in edits.iter().enumerate() {
        let words = Words { path, at, alone: edits.len() == 1 };
        if edit.old.is_empty() {
            return Err(words.empty());
        }
        let range = find(&plain, &mut nearly, body, &edit.old, &words)?;
        found.push((range, at));
    }
    found.sort_by_key(|(range, _)| (range.start, range.end));
    for pair in found.windows(2) {
        if pair[1].0.start < pair[0].0.end {
            return Err(format!(
                "edits[{}] and edits[{}] overlap in {path}. Merge them into one edit or target disjoint regions.",
                pair[0].1, pair[1].1
            ));
        }
    }
    let crlf = body.find('\n').is_some_and(|at| body[..at].ends_with('\r'));
    let mut result = String::with_capacity(original.len());
    result.push_str(bom);
    let mut done = 0;
    for (range, at) in found {
        result.push_str(&body[done..range.start]);
        let new = to_line_feeds(&edits[at].new);
        if crlf {
            result.push_str(&new.replace('\n', "\r\n"));
        } else {
            result.push_str(&new);
        }
        done = range.end;
    }
    result.push_str(&body[done..]);
    if result == original {
        return Err(unchanged(path, edits.len()));
    }
    Ok(result)
}

fn find(
    plain: &Mapped,
    nearly: &mut Option<Mapped>,
    body: &str,
    old: &str,
    words: &Words<'_>,
) -> Result<Range<usize>, String> {
    let needle = to_line_feeds(old);
    let exact = plain.occurrences(&needle);
    if let Occurrences::Once(at) = exact {
        return Ok(plain.original(at..at + needle.len()));
    }
    let nearly = nearly.get_or_insert_with(|| Mapped::nearly(body));
    let needle = Mapped::nearly(&needle).text;
    if needle.trim().is_empty() {
        return Err(match exact.count() {
            0 => words.not_found(),
            n => words.duplicate(n),
        });
    }
    let near = nearly.occurrences(&needle);
    match near {
        Occurrences::Never if exact.count() == 0 => Err(words.not_found()),
        Occurrences::Once(at) if exact.count() == 0 => Ok(nearly.original(at..at + needle.len())),
        _ => Err(words.duplicate(near.count().max(exact.count()))),
    }
}

/// Formats error messages, which name the edit only if there are several.
struct Words<'a> {
    path: &'a str,
    at: usize,
    alone: bool,
}

impl Words<'_> {
    fn empty(&self) -> String {
        if self.alone {
            format!("oldText must not be empty in {}.", self.path)
        } else {
            format!("edits[{}].oldText must not be empty in {}.", self.at, self.path)
        }
    }

    fn not_found(&self) -> String {
        if self.alone {
            format!(
                "Could not find the exact text in {}. The old text must match exactly including all whitespace and newlines.",
                self.path
            )
        } else {
            format!(
                "Could not find edits[{}] in {}. The oldText must match exactly including all whitespace and newlines.",
                self.at, self.path
            )
        }
    }

    fn duplicate(&self, n: usize) -> String {
        if self.alone {
            format!(
                "Found {n} occurrences of the text in {}. The text must be unique. Please provide more context to make it unique.",
                self.path
            )
        } else {
            format!(
                "Found {n} occurrences of edits[{}] in {}. Each oldText must be unique. Please provide more context to make it unique.",
                self.at, self.path
            )
        }
    }
}

fn unchanged(path: &str, n: usize) -> String {
    if n == 1 {
        format!(
            "No changes made to {path}. The replacement produced identical content. This might indicate an issue with special characters or the text not existing as expected."
        )
    } else {
        format!("No changes made to {path}. The replacements produced identical content.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(original: &str, edits: &[(&str, &str)], expected: Result<&str, &str>) {
        let edits: Vec<TextReplacement> =
            edits.iter().map(|(old, new)| TextReplacement { old: (*old).into(), new: (*new).into() }).collect();
        match (apply(original, &edits, "f"), expected) {
            (Ok(got), Ok(wanted)) => assert_eq!(got, wanted),
            (Err(got), Err(wanted)) => assert!(got.starts_with(wanted), "{got}"),
            (got, wanted) => panic!("got {got:?}, wanted {wanted:?}"),
        }
    }

    #[test]
    fn exact_matches_preserve_everything_else() {
        check("\u{feff}one\r\ntwo\nthree\r\n", &[("one\ntwo", "1\n2")], Ok("\u{feff}1\r\n2\nthree\r\n"));
        check("a b c", &[("c", "C"), ("a", "A")], Ok("A b C"));
        check("ab", &[("a", "1"), ("b", "2")], Ok("12"));
    }

    #[test]
    fn approximate_matches_change_only_their_own_lines() {
        check("x  \none   \ntwo\t\nthree   \n", &[("one\ntwo", "1\n2")], Ok("x  \n1\n2\nthree   \n"));
        check("say \u{201c}hi\u{201d} \u{2014} now  \nz \n", &[("say \"hi\" - now", "ok")], Ok("ok\nz \n"));
        check("\u{fb01}le\u{a0}1", &[("file 1", "f")], Ok("f"));
    }

    #[test]
    fn an_exact_match_beats_approximate_ones() {
        check("it's\nit\u{2019}s\n", &[("it's", "X")], Ok("X\nit\u{2019}s\n"));
    }

    #[test]
    fn invalid_edits_are_rejected() {
        check("foo foo", &[("foo", "x")], Err("Found 2 occurrences of the text in f."));
        check("foo", &[("bar", "x")], Err("Could not find the exact text in f."));
        check("foo", &[("foo", "foo")], Err("No changes made to f. The replacement"));
        check("abcdef", &[("abcd", "1"), ("cdef", "2")], Err("edits[0] and edits[1] overlap in f."));
        check("abc", &[("   ", "x")], Err("Could not find the exact text"));
    }
}
