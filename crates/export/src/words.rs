//! Formatting of numbers, times and excerpts.

use pinch_stdx::host::{iso_from_ms, ms_from_iso};
use pinch_stdx::text::utf16_prefix;

/// Maximum length of a one-line excerpt in UTF-16 units.
pub(super) const MAX_LINE: usize = 100;

/// Returns the start of a text as one line.
pub(super) fn one_line(text: &str) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if line.len() > 4 * MAX_LINE {
            break;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(utf16_prefix(word, MAX_LINE + 1));
    }
    let cut = utf16_prefix(&line, MAX_LINE);
    if cut.len() < line.len() { format!("{cut}…") } else { line }
}

/// Formats a number with thousands separators.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// Formats a cost in dollars, with enough digits for small amounts.
pub(super) fn dollars(cost: f64) -> String {
    if cost < 0.1 { format!("${cost:.4}") } else { format!("${cost:.2}") }
}

/// Formats an ISO time in UTC; other text is returned unchanged.
pub(super) fn moment(iso: &str) -> String {
    match ms_from_iso(iso) {
        Some(ms) => iso_from_ms(ms).replace('T', " ").chars().take(19).chain(" UTC".chars()).collect(),
        None => iso.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpts_are_short_and_single_line() {
        assert_eq!(one_line("  a\n\tb  c\r\n"), "a b c");
        assert_eq!(one_line(&"é".repeat(101)), format!("{}…", "é".repeat(100)));
        assert_eq!(one_line(&"x ".repeat(1_000_000)).chars().count(), 101);
    }

    #[test]
    fn numbers_and_times_are_formatted() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1\u{202f}000", "1\u{202f}234\u{202f}567"]);
        assert_eq!([0.00012, 1.0].map(dollars), ["$0.0001", "$1.00"]);
        assert_eq!(moment("2025-06-01T10:00:01.234Z"), "2025-06-01 10:00:01 UTC");
        assert_eq!(moment("soon"), "soon");
    }
}
