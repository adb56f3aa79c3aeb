//! Maximum age of search results.

use jiff::civil::Date;

/// Normalizes a period to the form that search services accept: `pd`, `pw`, `pm`, `py`, or two dates separated by `to`. Returns `None` if
/// it is neither, or if the dates are invalid or in the wrong order.
pub fn normalized(freshness: &str) -> Option<String> {
    let word = freshness.trim().to_lowercase();
    if matches!(word.as_str(), "pd" | "pw" | "pm" | "py") {
        return Some(word);
    }
    let (from, to) = word.split_once("to")?;
    let is_ordered = date(from)? <= date(to)?;
    is_ordered.then_some(word)
}

fn date(text: &str) -> Option<Date> {
    let is_plain = text.len() == 10 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    text.parse().ok().filter(|_| is_plain)
}
