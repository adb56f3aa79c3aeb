//! Judges what the program wrote to a terminal: only the control sequences that pinch itself uses, and no text that changes others.

use super::texts::PAYLOAD;
use super::{COLUMNS, ROWS};

/// What the program may do besides drawing in regular mode.
#[derive(Clone, Copy, Default)]
pub(super) struct AllowedOutput {
    /// The alternate screen with absolute positions, and the mouse.
    pub(super) fullscreen: bool,
    /// Images in kitty's protocol.
    pub(super) images: bool,
}

/// Asserts that there is nothing in the output that the program should not write.
#[track_caller]
pub(super) fn check(bytes: &[u8], allowed: AllowedOutput) {
    let found = foreign(&String::from_utf8_lossy(bytes), allowed);
    assert!(found.is_empty(), "{} of them: {:#?}", found.len(), &found[..found.len().min(12)]);
}

/// Returns what does not belong to the program, with the text before it.
fn foreign(text: &str, allowed: AllowedOutput) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text;
    // What is shown, without line ends and margins.
    let mut shown = String::new();
    while !rest.is_empty() {
        let at = rest.find(|c: char| c.is_control() || is_reordering(c)).unwrap_or(rest.len());
        let (before, sequence) = rest.split_at(at);
        shown.push_str(before.trim_matches(' '));
        let length = sequence_length(sequence);
        let (sequence, after) = sequence.split_at(length);
        if !sequence.is_empty() && (!is_own(sequence, allowed) || sequence.contains(PAYLOAD)) {
            found.push(format!("{sequence:?} after {:?}", end_of(before, 30)));
        }
        rest = after;
    }
    for (at, _) in shown.match_indices(PAYLOAD) {
        let before = end_of(&shown[..at], 30);
        // JSON has escapes instead of control characters.
        if !before.contains("\\u00") {
            found.push(format!("the payload after {before:?}"));
        }
    }
    found
}

/// Returns the last characters of a text.
fn end_of(text: &str, n: usize) -> &str {
    &text[text.char_indices().rev().take(n).last().map_or(0, |(at, _)| at)..]
}

fn is_reordering(c: char) -> bool {
    matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns the length of the control sequence at the beginning of a text.
fn sequence_length(text: &str) -> usize {
    let mut chars = text.char_indices();
    let mut end = |is_last: &dyn Fn(char) -> bool| {
        chars.find(|(_, c)| is_last(*c)).map_or(text.len(), |(at, c)| at + c.len_utf8())
    };
    match text.as_bytes() {
        [0x1b, b'[', ..] => 2 + text[2..].find(|c: char| !(' '..='?').contains(&c)).map_or(text.len() - 2, |at| at + 1),
        [0x1b, b']' | b'P' | b'X' | b'^' | b'_' | b'k', ..] => {
            let bell = text.find('\u{7}').map_or(text.len(), |at| at + 1);
            let string = text[2..].find("\u{1b}\\").map_or(text.len(), |at| at + 4);
            bell.min(string)
        }
        [0x1b, ..] if text.len() > 1 => 1 + text[1..].chars().next().map_or(0, char::len_utf8),
        _ => end(&|_| true),
    }
}

/// Returns whether pinch itself writes this sequence.
fn is_own(sequence: &str, allowed: AllowedOutput) -> bool {
    let small = |number: &str, most: u32| number.parse::<u32>().is_ok_and(|number| number <= most);
    if let Some(body) = sequence.strip_prefix("\u{1b}[") {
        let (parameters, last) = body.split_at(body.len() - 1);
        return match (parameters, last) {
            ("22;0" | "23;0", "t") | ("6", "n") | ("", "c" | "J" | "C") | ("2", "K") => true,
            ("?" | ">7" | "<", "u") | ("?2026$", "p") | ("9999;9999", "H") => true,
            ("?25" | "?7" | "?2004" | "?1004" | "?2026", "h" | "l") => true,
            ("?1049" | "?1002" | "?1006", "h" | "l") | ("2", "J") => allowed.fullscreen,
            (place, "H") => {
                allowed.fullscreen
                    && place
                        .split_once(';')
                        .is_some_and(|(row, column)| small(row, ROWS.into()) && small(column, COLUMNS.into()))
            }
            (rows, "A" | "B") => small(rows, ROWS.into()),
            (columns, "C") => small(columns, COLUMNS.into()),
            // Each style begins with a reset.
            (style, "m") => {
                // Placeholders of images have an underline colour.
                let is_parameter = |c: char| c.is_ascii_digit() || c == ';' || c == ':' && allowed.images;
                style == "0" || style.starts_with("0;") && style.chars().all(is_parameter)
            }
            _ => false,
        };
    }
    if let Some(body) = sequence.strip_prefix("\u{1b}]") {
        let body = body.strip_suffix('\u{7}').or_else(|| body.strip_suffix("\u{1b}\\")).unwrap_or("\u{1b}");
        let is_clean = !body.contains(|c: char| c.is_control() || is_reordering(c));
        let is_known = body.starts_with("0;")
            || matches!(body, "9;4;0" | "9;4;3" | "11;?" | "8;;")
            || body.starts_with("7501;state=")
            || body.starts_with("8;id=")
                && body.split(';').nth(2).is_some_and(|url| url.starts_with("http") || url.starts_with("file:///"));
        return is_clean && is_known;
    }
    if let Some(body) = sequence.strip_prefix("\u{1b}_G").and_then(|body| body.strip_suffix("\u{1b}\\")) {
        return allowed.images && (is_image(body) || body.starts_with("a=p,") && is_image(&format!("{body};")));
    }
    matches!(sequence, "\r" | "\n" | "\u{1b}7" | "\u{1b}8")
}

/// Returns whether a command consists of keys with short values, and a file in base64.
fn is_image(body: &str) -> bool {
    let Some((keys, file)) = body.split_once(';') else { return false };
    let is_key = |key: &str| {
        key.split_once('=').is_some_and(|(name, value)| {
            name.chars().chain(value.chars()).all(|c| c.is_ascii_alphanumeric()) && value.len() <= 10
        })
    };
    keys.split(',').all(is_key) && file.chars().all(|c| c.is_ascii_alphanumeric() || "+/=".contains(c))
}

#[test]
fn foreign_sequences_are_found() {
    for own in [
        "a\r\n\u{1b}[0;1;38;5;7mb\u{1b}[0m\u{1b}[2K\u{1b}[3A\u{1b}7\u{1b}8",
        "\u{1b}]0;pinch - work\u{7}",
        "\u{1b}]8;id=1;https://a.b/\u{1b}\\x\u{1b}]8;;\u{1b}\\",
    ] {
        assert_eq!(foreign(own, AllowedOutput::default()), [""; 0], "{own:?}");
    }
    for text in super::texts::texts() {
        let is_harmless = foreign(&text, AllowedOutput::default()).is_empty();
        let has_control = text.chars().any(|c| (c.is_control() && c != '\r' && c != '\n') || is_reordering(c));
        // Saving and restoring the cursor are own sequences.
        assert!(!is_harmless || !has_control || text.contains("\u{1b}7") || text.contains("\u{1b}8"), "{text:?}");
    }
}
