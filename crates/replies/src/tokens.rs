//! Tokens by which a model indicates that it has nothing to say.

/// An answer that consists of this token is not delivered.
pub const SILENT: &str = "NO_REPLY";

/// Answer to a heartbeat that found nothing to do.
pub const HEARTBEAT: &str = "HEARTBEAT_OK";

/// The silent token as an action, without white space.
const SILENT_ACTION: &str = r#"{"action":"NO_REPLY"}"#;

/// Returns whether the whole text is the silent token: in any case, repeated, in punctuation or emphasis, as JSON text, or as an action in
/// JSON. Text that only begins or ends with it is an answer.
pub fn is_silent(text: &str) -> bool {
    let trimmed = text.trim();
    if trimmed.starts_with('{') {
        return without_spaces(trimmed).eq_ignore_ascii_case(SILENT_ACTION);
    }
    let mut words = words_of(trimmed).peekable();
    words.peek().is_some() && words.all(|word| word.eq_ignore_ascii_case(SILENT))
}

/// Returns whether a text may become silent when it grows. It should not be shown until that is ruled out.
pub fn may_become_silent(text: &str) -> bool {
    let trimmed = text.trim_start();
    if trimmed.starts_with('{') {
        let compact = without_spaces(trimmed);
        return SILENT_ACTION.get(..compact.len()).is_some_and(|head| head.eq_ignore_ascii_case(&compact));
    }
    let mut words = words_of(trimmed).peekable();
    let is_open = text.ends_with(|c: char| c.is_alphanumeric() || c == '_');
    while let Some(word) = words.next() {
        let may_grow = is_open && words.peek().is_none();
        let is_start = SILENT.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word));
        if !(word.eq_ignore_ascii_case(SILENT) || may_grow && is_start) {
            return false;
        }
    }
    true
}

/// Returns the words of a text, of which underscores are a part, but not around them.
fn words_of(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| c != '_' && (c.is_whitespace() || c.is_ascii_punctuation()));
    words.map(|word| word.trim_matches('_')).filter(|word| !word.is_empty())
}

fn without_spaces(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).take(SILENT_ACTION.len() + 1).collect()
}

/// Removes silent tokens at the very end of a text; an empty result means silence.
pub fn strip_silent(text: &str) -> String {
    let is_mark = |c: char| c == '*' || c == '_';
    let mut kept = text.trim();
    while let Some(before) = kept.trim_end_matches(is_mark).strip_suffix(SILENT) {
        if !before.is_empty() && !before.ends_with(|c: char| c.is_whitespace() || is_mark(c)) {
            break;
        }
        kept = before.trim_end_matches(is_mark).trim_end();
    }
    kept.to_owned()
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

/// Returns the text without tokens at its start and end, and whether there was one. White space inside of a line is collapsed.
fn strip_edges(text: &str) -> (String, bool) {
    let is_mark = |c: char| matches!(c, '*' | '`' | '~' | '_');
    let (mut text, mut stripped) = (text.trim(), false);
    loop {
        // Emphasis of the token goes with it.
        let rest = if let Some(rest) = text.trim_start_matches(is_mark).strip_prefix(HEARTBEAT) {
            rest.trim_start_matches(is_mark)
        } else if let Some(rest) = text.trim_end_matches(is_mark).strip_suffix(HEARTBEAT) {
            rest.trim_end_matches(is_mark)
        } else {
            break;
        };
        (text, stripped) = (rest.trim(), true);
    }
    let is_short = stripped && !text.contains('\n');
    (if is_short { text.split_whitespace().collect::<Vec<_>>().join(" ") } else { text.to_owned() }, stripped)
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_spelling_of_the_silent_token_is_silent() {
        for text in [
            "NO_REPLY",
            " no_reply\n",
            "NO_REPLY.",
            "**NO_REPLY**",
            "_NO_REPLY_",
            "`NO_REPLY`",
            "\"NO_REPLY\"",
            "NO_REPLY NO_REPLY",
            "{\"action\": \"NO_REPLY\"}",
            "{ \"action\":\n\"no_reply\" }",
        ] {
            assert!(is_silent(text), "{text}");
        }
        for text in
            ["", "...", "No reply", "NO_REPLY to this", "Send NO_REPLY", "NO_REPLYING", "{\"action\": \"NO\"}", "{}"]
        {
            assert!(!is_silent(text), "{text}");
        }
    }

    #[test]
    fn silent_tokens_at_the_end_are_removed() {
        for (text, expect) in [
            ("Done.\n\n**NO_REPLY**", "Done."),
            ("Done NO_REPLY NO_REPLY", "Done"),
            ("Done. _NO_REPLY_", "Done."),
            ("a NO_REPLY b", "a NO_REPLY b"),
            ("a/NO_REPLY", "a/NO_REPLY"),
            ("Send `NO_REPLY`", "Send `NO_REPLY`"),
        ] {
            assert_eq!(strip_silent(text), expect, "{text}");
        }
    }

    #[test]
    fn a_heartbeat_token_is_removed_with_its_emphasis_only() {
        let strip = |text: &str| strip_heartbeat(text, HeartbeatMode::Message).text;
        assert_eq!(strip("**HEARTBEAT_OK** All fine."), "All fine.");
        assert_eq!(strip("All fine.\n\n`HEARTBEAT_OK`"), "All fine.");
        assert_eq!(strip("HEARTBEAT_OK **All** fine."), "**All** fine.");
        assert_eq!(strip("<b>HEARTBEAT_OK</b>&nbsp;"), "");
        assert_eq!(strip("a < b, says HEARTBEAT_OK"), "a < b, says");
        let acknowledged = |text: &str| strip_heartbeat(text, HeartbeatMode::Heartbeat { max_ack_chars: 5 }).skip;
        assert_eq!(["HEARTBEAT_OK 12345", "HEARTBEAT_OK 123456", "12345"].map(acknowledged), [true, false, false]);
        let answer = "# Title\n\n- a\n- b\n\n```\n  code  x\n```";
        assert_eq!(strip(&format!("HEARTBEAT_OK\n{answer}")), answer);
    }

    proptest! {
        #[test]
        fn what_becomes_silent_is_held_back(
            words in prop::collection::vec(prop::sample::select(vec![
                "NO_REPLY", "no", "_Reply", " ", "*", "_", ".", "\"", "{\"action\":", "}", "x",
            ]), 1..6),
        ) {
            let text = words.concat();
            if is_silent(&text) {
                for (at, _) in text.char_indices() {
                    prop_assert!(may_become_silent(&text[..at]), "{:?} of {:?}", &text[..at], text);
                }
            }
        }
    }

    #[test]
    fn only_the_start_of_a_silent_answer_may_become_silent() {
        for (text, expect) in [
            ("NO_", true),
            ("NO_REPLY NO", true),
            ("NO NO_REPLY", false),
            ("NO ", false),
            ("NO.", false),
            ("NO_REPLY x", false),
            ("{\"action\": \"NO", true),
            ("{\"action\": \"NO_REPLY\"} ", true),
            ("{\"action\": \"NO_REPLY\"}}", false),
            ("{\"actor", false),
            ("", true),
        ] {
            assert_eq!(may_become_silent(text), expect, "{text:?}");
        }
        assert!(!is_silent("{\"action\":\"NO_REPLY\"}x") && !is_silent(""));
    }

    #[test]
    fn an_empty_message_is_skipped_and_markup_alone_is_not() {
        let of = |text: &str| strip_heartbeat(text, HeartbeatMode::Message);
        assert_eq!(of(" "), Heartbeat { skip: true, text: String::new(), stripped: false });
        assert_eq!(of("**a**"), Heartbeat { skip: false, text: "**a**".into(), stripped: false });
        assert_eq!(of("a HEARTBEAT_OK b"), Heartbeat { skip: false, text: "a HEARTBEAT_OK b".into(), stripped: false });
        assert_eq!(of("*HEARTBEAT_OK*"), Heartbeat { skip: true, text: String::new(), stripped: true });
        assert_eq!(of("<p>* HEARTBEAT_OK *</p>"), Heartbeat { skip: true, text: String::new(), stripped: true });
    }
}
