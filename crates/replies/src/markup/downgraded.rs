//! Tool calls that the history contains as text, and that a model repeats.

use std::borrow::Cow;

use super::{Leak, begins_with, has_marker, may_begin};

const CALL: &str = "[tool call:";
const RESULT: &str = "[tool result for id";
const CONTEXT: &str = "[historical context:";
const ARGUMENTS: &str = "arguments:";

/// Removes `[Tool Call: …]` with its arguments, `[Tool Result for ID …]` with what follows, and `[Historical context: …]`.
pub fn strip_downgraded(text: &str) -> Cow<'_, str> {
    if !has_marker(text, b'[', &[CALL, RESULT, CONTEXT].map(|mark| &mark[1..])) {
        return text.into();
    }
    let (mut kept, mut rest) = (String::with_capacity(text.len()), text);
    // No call ends after the last closing bracket.
    let n_open = text.len() - text.rfind(']').map_or(0, |at| at + 1);
    while let Some(start) = rest.find('[') {
        kept.push_str(&rest[..start]);
        let tail = &rest[start..];
        let n = if tail.len() <= n_open && !begins_with(tail, RESULT) {
            None
        } else if begins_with(tail, CALL) {
            call_len(tail)
        } else if begins_with(tail, RESULT) {
            Some(result_len(tail))
        } else if begins_with(tail, CONTEXT) {
            tail.find(']').map(|n| n + 1)
        } else {
            None
        };
        match n {
            Some(n) => {
                rest = &tail[n..];
                if kept.is_empty() || kept.ends_with('\n') {
                    rest = rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix('\n')).unwrap_or(rest);
                }
            }
            None => {
                kept.push('[');
                rest = &tail[1..];
            }
        }
    }
    kept.push_str(rest);
    kept.into()
}

/// Decides about the call, result or note at the start of a text.
pub(super) fn downgraded_at(text: &str) -> Leak {
    let len = if begins_with(text, CALL) {
        let Some(head) = text.find(']').map(|n| n + 1) else { return Leak::Undecided };
        let after = arguments_after(&text[head..]);
        if !begins_with(after, ARGUMENTS) {
            return if may_begin(after, ARGUMENTS) { Leak::Undecided } else { Leak::Whole(head) };
        }
        let value = after[ARGUMENTS.len()..].trim_start();
        json_end(value).map(|n| text.len() - value.len() + n)
    } else if begins_with(text, RESULT) {
        Some(result_len(text)).filter(|len| *len < text.len())
    } else if begins_with(text, CONTEXT) {
        text.find(']').map(|n| n + 1)
    } else if [CALL, RESULT, CONTEXT].iter().any(|mark| may_begin(text, mark)) {
        None
    } else {
        return Leak::None;
    };
    len.map_or(Leak::Undecided, Leak::Whole)
}

/// Returns the text after the head of a call, from where its arguments are expected.
fn arguments_after(text: &str) -> &str {
    let after = text.trim_start_matches([' ', '\t', '\r']);
    after.strip_prefix('\n').unwrap_or(after).trim_start_matches([' ', '\t'])
}

/// Returns the length of a call with its arguments.
fn call_len(text: &str) -> Option<usize> {
    let head = text.find(']')? + 1;
    let after = arguments_after(&text[head..]);
    if !begins_with(after, ARGUMENTS) {
        return Some(head);
    }
    let value = after[ARGUMENTS.len()..].trim_start();
    Some(text.len() - value.len() + json_len(value))
}

fn result_len(text: &str) -> usize {
    let Some(head) = text.find(']') else { return text.len() };
    let next = text[head..].match_indices('[').find(|(at, _)| begins_with(&text[head + at..], "[tool "));
    next.map_or(text.len(), |(at, _)| head + at)
}

/// Returns the length of the JSON value at the start of a text, or of its first line if there is none.
fn json_len(text: &str) -> usize {
    json_end(text).unwrap_or(text.len())
}

/// Like [`json_len`]; `None` if the value or the line does not end.
fn json_end(text: &str) -> Option<usize> {
    if !text.starts_with(['{', '[', '"']) {
        return text.find('\n');
    }
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if in_string => escaped = true,
            '"' => {
                in_string = !in_string;
                if !in_string && depth == 0 {
                    return Some(at + 1);
                }
            }
            _ if in_string => {}
            '{' | '[' => depth += 1,
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_results_and_notes_are_removed() {
        for (text, expect) in [
            ("[Tool Call: x (ID: 1)]\nArguments: {\"a\": \"]}\\\"\"}\nb", "b"),
            ("a\n[Tool Call: x]\r\nb", "a\nb"),
            ("a [Tool Call: x] b", "a  b"),
            ("a [TOOL CALL: x]\n\targuments:\nnone\nb", "a \nb"),
            ("a [Tool Call: x]\nArguments: none", "a "),
            ("[Tool Call: x] Arguments: [1, {\"a\": [2]}] b", " b"),
            ("[Tool Call: x] Arguments: \"a\\\"b\" c", " c"),
            ("[Tool Call: x] Arguments: [\"a\\\\\"] b", " b"),
            ("a [Tool Call: x] Arguments: {\"b\"", "a "),
            ("[Tool Call: x] Arguments: {b: \\} c", " c"),
            ("a [Tool Result for ID 1]\nb [1]\n[tool call: x] c", "a  c"),
            ("a [Tool Result for ID 1] b [Tools]", "a "),
            ("a [Tool Result for ID 1", "a "),
            ("a [Historical context: b] c", "a  c"),
            ("[a] [b] [Tool Call: x] c", "[a] [b]  c"),
            ("[Tool Call: x] a [Tool Call: b", " a [Tool Call: b"),
            ("[Tool Call: x] a [Historical context: b", " a [Historical context: b"),
            ("[Tool Call: x] a [Tool Result for ID 1", " a "),
            ("a [Tool Calls] b", "a [Tool Calls] b"),
            ("a [ Tool Call: x] b", "a [ Tool Call: x] b"),
        ] {
            assert_eq!(strip_downgraded(text), expect, "{text:?}");
        }
    }
}
