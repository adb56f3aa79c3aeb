//! Distinguishes a line that displays a tool call from one that somebody wrote.

use super::table::{Display, TABLE};

/// Variation selector that marks a character as emoji; models sometimes omit it.
const EMOJI_STYLE: char = '\u{fe0f}';

/// Returns whether a line displays a call: emoji, title, colon, and a description. If people also begin lines with the title (`📝 Edit: …`),
/// what follows must look like the arguments of that tool.
pub fn is_shown_call(line: &str) -> bool {
    // Other lines need no table lookup.
    !line.starts_with(|c: char| c.is_ascii()) && TABLE.iter().any(|display| is_call_of(display, line))
}

/// Returns whether a text without its end may become a line that displays a call.
pub fn may_become_shown_call(text: &str) -> bool {
    !text.starts_with(|c: char| c.is_ascii())
        && TABLE.iter().any(|display| {
            let emoji = display.emoji.trim_end_matches(EMOJI_STYLE);
            let Some(rest) = text.strip_prefix(emoji) else { return emoji.starts_with(text) };
            let rest = rest.trim_start_matches(EMOJI_STYLE);
            let Some(title) = rest.strip_prefix(' ') else { return rest.is_empty() };
            match title.strip_prefix(display.title) {
                Some(about) => about.is_empty() || about.starts_with(':'),
                None => display.title.starts_with(title),
            }
        })
}

fn is_call_of(display: &Display, line: &str) -> bool {
    let rest = line.strip_prefix(display.emoji.trim_end_matches(EMOJI_STYLE));
    let rest = rest.and_then(|rest| rest.trim_start_matches(EMOJI_STYLE).strip_prefix(' '));
    let Some(about) = rest.and_then(|rest| rest.strip_prefix(display.title)?.strip_prefix(':')) else { return false };
    let about = about.trim();
    if !display.actions.is_empty() {
        let verb = about.split(" · ").next().unwrap_or(about);
        return display.actions.iter().any(|(name, label, _)| verb == *label || verb == name.replace('_', " "));
    }
    display.keys.first() != Some(&"path") || looks_like_path(about)
}

fn looks_like_path(text: &str) -> bool {
    let mut parts = text.split('.').skip(1);
    text.contains(['/', '\\']) || parts.any(|part| part.starts_with(|c: char| c.is_alphanumeric()))
}
