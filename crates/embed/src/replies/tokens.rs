//! Tokens by which a model indicates that it has nothing to say.

/// An answer that consists of this token is not delivered.
pub const SILENT: &str = "NO_REPLY";

/// Answer to a heartbeat that found nothing to do.
pub const HEARTBEAT: &str = "HEARTBEAT_OK";

/// Returns whether the whole text is the silent token. Text that only begins or ends with it is an answer.
pub fn is_silent(text: &str) -> bool {
    text.trim() == SILENT
}

/// Removes the silent token at the very end of a text; an empty result means silence.
pub fn strip_silent(text: &str) -> String {
    let trimmed = text.trim_end();
    let Some(before) = trimmed.strip_suffix(SILENT) else { return text.trim().to_owned() };
    if before.is_empty() || before.ends_with(|c: char| c.is_whitespace() || c == '*') {
        before.trim_end_matches(|c: char| c.is_whitespace() || c == '*').trim_start().to_owned()
    } else {
        text.trim().to_owned()
    }
}

/// Returns whether the text so far may become a token, and should not be shown yet.
pub fn may_become(token: &str, text: &str) -> bool {
    let text = text.trim_start();
    text.len() >= 2 && token.starts_with(text)
}

/// The kind of message that heartbeat tokens are removed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeartbeatMode {
    /// Any message: text next to the token is kept.
    Message,
    /// The answer to a heartbeat: a short rest is part of the acknowledgement.
    Heartbeat {
        /// Maximum length of such a rest.
        max_ack_chars: usize,
    },
}

/// Default for the maximum length of an acknowledgement.
pub const MAX_ACK_CHARS: usize = 300;

/// A text without heartbeat tokens at its start and end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// Whether there is nothing worth delivering.
    pub skip: bool,
    /// The remaining text.
    pub text: String,
    /// Whether a token was removed.
    pub stripped: bool,
}

/// Removes heartbeat tokens from the start and end of a text.
pub fn strip_heartbeat(raw: &str, mode: HeartbeatMode) -> Heartbeat {
    let trimmed = raw.trim();
    if trimmed.is_empty() {
        return Heartbeat { skip: true, text: String::new(), stripped: false };
    }
    let plain = without_markup(trimmed);
    let unchanged = || Heartbeat { skip: false, text: trimmed.to_owned(), stripped: false };
    if !trimmed.contains(HEARTBEAT) && !plain.contains(HEARTBEAT) {
        return unchanged();
    }
    let (of_raw, of_plain) = (strip_edges(trimmed), strip_edges(&plain));
    let picked = if of_raw.1 && !of_raw.0.is_empty() { of_raw } else { of_plain };
    let (text, true) = picked else { return unchanged() };
    let skip = match mode {
        _ if text.is_empty() => true,
        HeartbeatMode::Message => false,
        HeartbeatMode::Heartbeat { max_ack_chars } => text.chars().count() <= max_ack_chars,
    };
    Heartbeat { skip, text: if skip { String::new() } else { text }, stripped: true }
}

/// Returns the text without tokens at its start and end, white space collapsed, and whether there was one.
fn strip_edges(text: &str) -> (String, bool) {
    let (mut text, mut stripped) = (text.trim(), false);
    while let Some(rest) = text.strip_prefix(HEARTBEAT).or_else(|| text.strip_suffix(HEARTBEAT)) {
        (text, stripped) = (rest.trim(), true);
    }
    (if stripped { text.split_whitespace().collect::<Vec<_>>().join(" ") } else { text.to_owned() }, stripped)
}

/// Removes HTML tags, and emphasis around the text.
fn without_markup(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        plain.push_str(&rest[..start]);
        match rest[start..].find('>') {
            Some(n) => {
                plain.push(' ');
                rest = &rest[start + n + 1..];
            }
            None => {
                plain.push_str(&rest[start..]);
                rest = "";
            }
        }
    }
    plain.push_str(rest);
    let plain = plain.replace("&nbsp;", " ").replace("&NBSP;", " ");
    plain.trim_matches(|c: char| matches!(c, '*' | '`' | '~' | '_') || c.is_whitespace()).to_owned()
}
