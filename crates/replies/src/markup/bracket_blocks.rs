//! Tool calls and results written between `[TOOL_CALL]` and `[/TOOL_CALL]`.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{CaptureMatches, Regex};

use super::{Leak, has_marker, may_begin};
use crate::code::CodeState;

#[expect(clippy::unwrap_used, reason = "the patterns are constant")]
fn pattern(text: &str) -> Regex {
    Regex::new(text).unwrap()
}

static MARKER: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)\[\s*(/?)\s*TOOL_(CALL|RESULT)\s*\]"));
static TOOL: LazyLock<Regex> = LazyLock::new(|| pattern(r#"(?i)\btool\s*=>\s*["'][a-z_][a-z0-9_.:-]{0,119}["']"#));
static ARGS: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)\bargs\s*=>"));
static RESULT: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?im)\A\s*[\[{]|^\s*(?:tool|result|output|content)\s*(?:=>|:)"));

struct Marker {
    start: usize,
    end: usize,
    is_result: bool,
    closes: bool,
}

/// Removes blocks with a call or a result; an unclosed block extends to the end of the text. A marker in prose or in code is kept.
pub fn strip_bracket_blocks(text: &str) -> Cow<'_, str> {
    let markers = markers(text);
    if markers.is_empty() {
        return text.into();
    }
    let (mut kept, mut at) = (String::with_capacity(text.len()), 0);
    // Where the next block of each kind ends; looked up once per block, since both only move forward.
    let mut closing = [0; 2];
    for (n, marker) in markers.iter().enumerate() {
        if marker.closes || marker.start < at {
            continue;
        }
        // Only text before the next marker decides about this one, so that a marker in prose removes no block.
        let payload = &text[marker.end..markers.get(n + 1).map_or(text.len(), |next| next.start)];
        if !holds_payload(payload, marker.is_result) {
            continue;
        }
        let close = &mut closing[usize::from(marker.is_result)];
        *close = (*close).max(n);
        while markers.get(*close).is_some_and(|m| !m.closes || m.is_result != marker.is_result) {
            *close += 1;
        }
        kept.push_str(&text[at..marker.start]);
        at = markers.get(*close).map_or(text.len(), |close| close.end);
    }
    kept.push_str(&text[at..]);
    kept.into()
}

/// How much of a text may be its first marker, in bytes.
const MAX_MARKER: usize = 64;
/// How much of a text after a marker decides whether it is a block.
const MAX_UNDECIDED: usize = 4_096;

/// Decides about the block at the start of a text.
pub(super) fn bracket_block_at(text: &str) -> Leak {
    let inner = text[1..].trim_start();
    let inner = inner.strip_prefix('/').map_or(inner, str::trim_start);
    if !["tool_call", "tool_result"].iter().any(|name| may_begin(inner, name)) {
        return Leak::None;
    }
    // Only the beginning decides, so that many markers in a long text do not each cost a search of all of it.
    let near = &text[..text.floor_char_boundary(MAX_MARKER + MAX_UNDECIDED)];
    if !near.contains(']') {
        return if inner.len() <= "tool_result".len() + 1 { Leak::Undecided } else { Leak::None };
    }
    let mut in_near = BlockMarkers::new(near);
    let Some(marker) = in_near.next().filter(|marker| marker.start == 0 && !marker.closes) else {
        return Leak::None;
    };
    let next = in_near.next();
    let payload = &near[marker.end..next.as_ref().map_or(near.len(), |next| next.start)];
    if !holds_payload(payload, marker.is_result) {
        let is_decided = next.is_some() || near.len() < text.len();
        return if is_decided { Leak::None } else { Leak::Undecided };
    }
    let closing = BlockMarkers::new(text).find(|other| other.closes && other.is_result == marker.is_result);
    closing.map_or(Leak::Undecided, |closing| Leak::Whole(closing.end))
}

/// Returns the markers outside code.
fn markers(text: &str) -> Vec<Marker> {
    // Compiling the pattern takes longer than a whole run, so it is only compiled if needed.
    if has_marker(text, b'[', &["tool_"]) { BlockMarkers::new(text).collect() } else { Vec::new() }
}

/// The markers outside code, found one after the other.
struct BlockMarkers<'t> {
    found: CaptureMatches<'static, 't>,
    text: &'t str,
    code: CodeState,
    /// The text before this position has been passed to `code`.
    at: usize,
}

impl<'t> BlockMarkers<'t> {
    fn new(text: &'t str) -> Self {
        Self { found: MARKER.captures_iter(text), text, code: CodeState::default(), at: 0 }
    }

    /// Returns whether a position, which only moves forward, is in code.
    fn is_code(&mut self, position: usize) -> bool {
        for c in self.text[self.at..position].chars() {
            self.code.push(c);
        }
        self.at = position;
        self.code.clone().push('[')
    }
}

impl Iterator for BlockMarkers<'_> {
    type Item = Marker;

    fn next(&mut self) -> Option<Marker> {
        loop {
            let found = self.found.next()?;
            let whole = found.get(0)?.range();
            if !self.is_code(whole.start) {
                let is_result = found[2].eq_ignore_ascii_case("result");
                return Some(Marker { start: whole.start, end: whole.end, is_result, closes: !found[1].is_empty() });
            }
        }
    }
}

fn holds_payload(payload: &str, is_result: bool) -> bool {
    if is_result { RESULT.is_match(payload) } else { TOOL.is_match(payload) && ARGS.is_match(payload) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_with_calls_and_results_are_removed() {
        let call = r#"[TOOL_CALL]{tool => "web_search", args => {"query":"é"}}[/TOOL_CALL]"#;
        for (text, expect) in [
            (format!("Vor\n{call}\nnäch"), "Vor\n\nnäch"),
            (format!("{call}a{call}b"), "ab"),
            ("a[ tool_call ]{tool => 'x', args => {}}[ / Tool_Call ]b".to_owned(), "ab"),
            ("a [TOOL_CALL]{tool => 'x', args =>".to_owned(), "a "),
            ("a [TOOL_RESULT]{\"output\":1}[/TOOL_RESULT] b".to_owned(), "a  b"),
            ("a [TOOL_RESULT]\nresult: 🙂[/TOOL_CALL] [/TOOL_RESULT]b".to_owned(), "a b"),
            ("Write [TOOL_CALL] first, [/TOOL_CALL] last.".to_owned(), "Write [TOOL_CALL] first, [/TOOL_CALL] last."),
            (format!("Use [TOOL_CALL] so: {call}!"), "Use [TOOL_CALL] so: !"),
            ("[TOOL_RESULT] says what the result: was".to_owned(), "[TOOL_RESULT] says what the result: was"),
            ("a [/TOOL_RESULT]{}".to_owned(), "a [/TOOL_RESULT]{}"),
            ("[TOOL_CALL]{args => {}}[/TOOL_CALL]".to_owned(), "[TOOL_CALL]{args => {}}[/TOOL_CALL]"),
            ("[TOOL_CALL]{tool => 'x'}[/TOOL_CALL]".to_owned(), "[TOOL_CALL]{tool => 'x'}[/TOOL_CALL]"),
        ] {
            assert_eq!(strip_bracket_blocks(&text), expect, "{text}");
        }
    }

    #[test]
    fn a_marker_is_text_if_no_call_follows_soon() {
        let text = |n: usize| format!("[TOOL_CALL] {}", "a".repeat(n));
        assert_eq!(bracket_block_at(&text(1_000)), Leak::Undecided);
        assert_eq!(bracket_block_at(&text(MAX_MARKER + MAX_UNDECIDED)), Leak::None);
    }

    #[test]
    fn code_is_left_alone() {
        let call = "[TOOL_CALL]{tool => 'x', args => {}}[/TOOL_CALL]";
        for text in [format!("see `{call}`"), format!("```\n{call}\n```\n")] {
            assert_eq!(strip_bracket_blocks(&text), text);
        }
        let quoted = "a[TOOL_CALL]{tool => 'x', args => {}} `[/TOOL_CALL]` [/TOOL_CALL]b";
        assert_eq!(strip_bracket_blocks(quoted), "ab");
    }
}
