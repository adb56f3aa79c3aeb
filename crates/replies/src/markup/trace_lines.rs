//! Lines that report tool calls to programs, and that a model repeats as part of its answer.

use std::borrow::Cow;

use super::{Leak, code_at, may_begin};
use crate::tool_display::shown::{is_shown_call, may_become_shown_call};

const LABELS: [&str; 5] = ["tool_call", "tool_calls", "tool_result", "function_call", "function_response"];
const CHANNELS: [&str; 3] = ["commentary", "analysis", "assistant"];

/// Removes lines such as `🛠️ Exec: …`, `tool_call: …` and `commentary to=functions.x …`, outside code.
pub fn strip_trace_lines(text: &str) -> Cow<'_, str> {
    if !text.split('\n').any(is_trace) {
        return text.into();
    }
    let is_code = code_at(text);
    let (mut kept, mut at, mut after_trace) = (String::with_capacity(text.len()), 0, false);
    for line in text.split_inclusive('\n') {
        let start = at + (line.len() - line.trim_start().len());
        at += line.len();
        if is_trace(line) && !is_code(start) {
            after_trace = true;
            continue;
        }
        // Keep one of the surrounding blank lines.
        let is_spare = after_trace && line.trim().is_empty() && (kept.is_empty() || kept.ends_with("\n\n"));
        if !is_spare {
            after_trace = false;
            kept.push_str(line);
        }
    }
    kept.into()
}

/// Decides about the line at the start of a text.
pub(super) fn trace_line_at(text: &str) -> Leak {
    // The beginning is compared first, so that not every text costs a search for the end of its line.
    if !may_become_trace(text) {
        return Leak::None;
    }
    match text.find('\n') {
        Some(end) if is_trace(&text[..end]) => Leak::Whole(end + 1),
        Some(_) => Leak::None,
        None => Leak::Undecided,
    }
}

fn may_become_trace(text: &str) -> bool {
    let is_labelled = || {
        LABELS.iter().any(|label| {
            may_begin(text, label)
                && !text.get(label.len()..).is_some_and(|rest| !rest.is_empty() && !rest.starts_with(':'))
        })
    };
    let is_addressed = || {
        CHANNELS.iter().any(|channel| match text.strip_prefix(channel) {
            Some(rest) => {
                rest.is_empty() || (rest.starts_with(char::is_whitespace) && may_begin(rest.trim_start(), "to="))
            }
            None => channel.starts_with(text),
        })
    };
    may_become_shown_call(text) || is_labelled() || is_addressed()
}

fn is_trace(line: &str) -> bool {
    let line = line.trim();
    is_shown_call(line) || is_labelled(line) || is_addressed(line)
}

/// `tool_call: …`
fn is_labelled(line: &str) -> bool {
    let Some((label, _)) = line.split_once(':') else { return false };
    LABELS.iter().any(|name| label.eq_ignore_ascii_case(name))
}

/// `commentary to=functions.x …`
fn is_addressed(line: &str) -> bool {
    let Some((channel, rest)) = line.split_once(char::is_whitespace) else { return false };
    CHANNELS.contains(&channel) && rest.trim_start().starts_with("to=")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trace_lines_are_removed() {
        for (text, expect) in [
            ("Hi\n🛠️ Exec: ls -la\nDone", "Hi\nDone"),
            ("  tool_call: a\nDone", "Done"),
            ("Hi\n\n  🛠️ Exec: ls\n📖 Read: ~/ä.rs:1-20\n\nDone", "Hi\n\nDone"),
            ("🛠 Exec: ls", ""),
            ("tool_call: read {}\nÄpfel", "Äpfel"),
            ("a\r\nTool_Result: x\r\nb", "a\r\nb"),
            ("commentary to=functions.exec json {}\nb", "b"),
            ("commentary follows to=you", "commentary follows to=you"),
            ("My tool_call: it failed", "My tool_call: it failed"),
            ("📖 Read: the first chapter", "📖 Read: the first chapter"),
            ("✉️ Message: See you at five.", "✉️ Message: See you at five."),
            ("✉️ Message: send · to +49", ""),
            ("```\ntool_call: x\n```\n`🛠️ Exec: y`", "```\ntool_call: x\n```\n`🛠️ Exec: y`"),
            ("```\ntool_call: x\n```\ntool_call: y\nz", "```\ntool_call: x\n```\nz"),
        ] {
            assert_eq!(strip_trace_lines(text), expect, "{text}");
        }
    }

    #[test]
    fn only_what_may_become_a_trace_line_waits_for_its_end() {
        for (text, expect) in [
            ("tool", Leak::Undecided),
            ("TOOL_CALL", Leak::Undecided),
            ("tool_call: a", Leak::Undecided),
            ("tool_calls: a", Leak::Undecided),
            ("tool_call a", Leak::None),
            ("tool_callers", Leak::None),
            ("tool_call:\nb", Leak::Whole(11)),
            ("commen", Leak::Undecided),
            ("commentary", Leak::Undecided),
            ("commentary \tt", Leak::Undecided),
            ("commentary to=a\n", Leak::Whole(16)),
            ("commentary tool", Leak::None),
            ("commentaryto=", Leak::None),
            ("comment", Leak::Undecided),
            ("comments", Leak::None),
            ("📖 Re", Leak::Undecided),
            ("📖 Read", Leak::Undecided),
            ("📖 Read: a.txt\n", Leak::Whole("📖 Read: a.txt\n".len())),
            ("📖 Reading", Leak::None),
            ("📖 Read: the book\n", Leak::None),
            ("a", Leak::Undecided),
            ("x", Leak::None),
        ] {
            assert_eq!(trace_line_at(text), expect, "{text:?}");
        }
    }
}
