//! Words by which a model says that there is nothing to say.

/// The whole answer is this: nothing is delivered.
pub const SILENT: &str = "NO_REPLY";

/// The answer to a heartbeat that found nothing to do.
pub const HEARTBEAT: &str = "HEARTBEAT_OK";

/// Whether the whole text is the silent token. Text that only begins or ends with it is an answer.
pub fn is_silent(text: &str) -> bool {
    text.trim() == SILENT
}

/// Removes the silent token at the very end of a text; nothing left means silence.
pub fn strip_silent(text: &str) -> String {
    let trimmed = text.trim_end();
    let Some(before) = trimmed.strip_suffix(SILENT) else { return text.trim().to_owned() };
    if before.is_empty() || before.ends_with(|c: char| c.is_whitespace() || c == '*') {
        before.trim_end_matches(|c: char| c.is_whitespace() || c == '*').trim_start().to_owned()
    } else {
        text.trim().to_owned()
    }
}

/// Whether a text so far may become a token: it is better not shown yet.
pub fn may_become(token: &str, text: &str) -> bool {
    let text = text.trim_start();
    text.len() >= 2 && token.starts_with(text)
}

/// What a heartbeat's answer is stripped for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeartbeatMode {
    /// Any message: what stands beside the token stays.
    Message,
    /// The answer to a heartbeat: a short rest is part of the acknowledgement.
    Heartbeat {
        /// How long a rest may be.
        max_ack_chars: usize,
    },
}

/// The length of a rest that still counts as an acknowledgement.
pub const MAX_ACK_CHARS: usize = 300;

/// A text without heartbeat tokens at its edges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// Nothing is worth delivering.
    pub skip: bool,
    /// What is left.
    pub text: String,
    /// A token was taken away.
    pub stripped: bool,
}

/// Takes heartbeat tokens from the edges of a text.
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

/// The text without tokens at its edges, white space collapsed; whether one was there.
fn strip_edges(text: &str) -> (String, bool) {
    let (mut text, mut stripped) = (text.trim(), false);
    while let Some(rest) = text.strip_prefix(HEARTBEAT).or_else(|| text.strip_suffix(HEARTBEAT)) {
        (text, stripped) = (rest.trim(), true);
    }
    (if stripped { text.split_whitespace().collect::<Vec<_>>().join(" ") } else { text.to_owned() }, stripped)
}

/// The text without HTML tags and without emphasis around it.
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
