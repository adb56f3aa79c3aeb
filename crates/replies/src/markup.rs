//! Removes tool markup and other scaffolding that leaks into a model's text.

use std::borrow::Cow;

use super::code::CodeState;
use super::piece::Piece;
use super::scan::{FinalTag, Scan};

pub mod bracket_blocks;
pub mod channels;
pub mod downgraded;
mod internal;
pub mod tool_xml;
pub mod trace_lines;

mod guard;

pub use bracket_blocks::strip_bracket_blocks;
pub use channels::strip_channels;
pub use downgraded::strip_downgraded;
pub use guard::MarkupGuard;
pub use internal::strip_internal_blocks;
pub use tool_xml::strip_tool_xml;
pub use trace_lines::strip_trace_lines;

/// Returns the visible text of one text block.
pub fn visible_of_block(text: &str, final_tag: FinalTag) -> Cow<'_, str> {
    let text = strip_minimax(text);
    let text = and_then(text, strip_channels);
    let text = and_then(text, strip_memories);
    let text = and_then(text, strip_tool_xml);
    let text = and_then(text, strip_tool_text);
    let text = and_then(text, |text| super::scan::visible(text, final_tag));
    match text {
        Cow::Borrowed(text) => text.trim().into(),
        Cow::Owned(text) => trimmed(text).into(),
    }
}

/// A decision about the start of a text that grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leak {
    /// It is for people.
    None,
    /// More text is needed.
    Undecided,
    /// So many bytes are markup.
    Whole(usize),
}

/// Returns whether a text begins with a word, ignoring case. `lower` must be in lower case.
fn begins_with(text: &str, lower: &str) -> bool {
    text.len() >= lower.len() && may_begin(text, lower)
}

/// Returns whether a text begins with a word, or may do so when it has grown, ignoring case. `lower` must be in lower case.
fn may_begin(text: &str, lower: &str) -> bool {
    let n = text.len().min(lower.len());
    text.as_bytes()[..n].eq_ignore_ascii_case(&lower.as_bytes()[..n])
}

/// Applies another step to a text; only a step that changes the text copies it.
pub(super) fn and_then<'t>(text: Cow<'t, str>, step: impl FnOnce(&str) -> Cow<'_, str>) -> Cow<'t, str> {
    let changed = match step(&text) {
        Cow::Borrowed(same) if same.len() == text.len() => None,
        part => Some(part.into_owned()),
    };
    changed.map_or(text, Cow::Owned)
}

/// Trims a text, in place if it has no leading white space.
pub fn trimmed(mut text: String) -> String {
    text.truncate(text.trim_end().len());
    let n_blank = text.len() - text.trim_start().len();
    if n_blank > 0 {
        text.drain(..n_blank);
    }
    text
}

/// Returns whether a text may contain a marker: a bracket, `<` or `[`, followed by a word of these, ignoring case; white space and a slash
/// between them are ignored. The words must be in lower case. Only what follows a bracket is compared, so that prose costs one search.
pub(super) fn has_marker(text: &str, bracket: u8, words: &[&str]) -> bool {
    memchr::memchr_iter(bracket, text.as_bytes()).any(|at| {
        let inner = text[at + 1..].trim_start();
        let inner = inner.strip_prefix('/').map_or(inner, str::trim_start);
        words.iter().any(|word| inner.len() >= word.len() && may_begin(inner, word))
    })
}

/// Removes tool calls and results written as plain text.
pub fn strip_tool_text(text: &str) -> Cow<'_, str> {
    and_then(and_then(strip_trace_lines(text), strip_bracket_blocks), strip_downgraded)
}

/// What happens to reasoning that is never closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unclosed {
    /// It is dropped.
    Strict,
    /// It is kept.
    Preserve,
}

/// Removes reasoning and final tags.
pub fn strip_reasoning(text: &str, unclosed: Unclosed) -> String {
    let (mut scan, mut out) = (Scan::new(FinalTag::Optional), Vec::new());
    scan.text(text, &mut out);
    scan.settle(&mut out);
    let last_end = out.iter().rposition(|piece| matches!(piece, Piece::ThoughtEnd)).unwrap_or(0);
    let mut shown = String::new();
    for (at, piece) in out.iter().enumerate() {
        match piece {
            Piece::Visible(text) => shown.push_str(text),
            Piece::Thought(text) if unclosed == Unclosed::Preserve && at >= last_end => shown.push_str(text),
            _ => {}
        }
    }
    shown
}

/// The tag that MiniMax models put around calls.
const MINIMAX: &str = "minimax:tool_call";
/// The tags around memories.
const MEMORIES: [&str; 2] = ["relevant-memories", "relevant_memories"];

/// Removes `<invoke>` calls and the tags around them, as written by MiniMax models.
fn strip_minimax(text: &str) -> Cow<'_, str> {
    if !has_marker(text, b'<', &[MINIMAX]) {
        return text.into();
    }
    let lower = text.to_ascii_lowercase();
    let (mut kept, mut at) = (String::with_capacity(text.len()), 0);
    let is_code = code_at(text);
    // Nothing needs to be searched after its last occurrence.
    let last_end = lower.rfind("</invoke>").unwrap_or(0);
    let last_close = lower.rfind('>').unwrap_or(0);
    while let Some(start) = lower[at..].find('<').map(|n| at + n) {
        kept.push_str(&text[at..start]);
        let rest = &lower[start..];
        let name = rest.strip_prefix("</").or_else(|| rest.strip_prefix('<'));
        let is_tag = name.is_some_and(|name| name.starts_with(MINIMAX));
        let is_invoke =
            rest.strip_prefix("<invoke").is_some_and(|r| r.starts_with(|c: char| c == '>' || c.is_whitespace()));
        let end = match (is_code(start), is_invoke, is_tag) {
            (false, true, _) if start < last_end => rest.find("</invoke>").map(|n| n + "</invoke>".len()),
            (false, _, true) if start < last_close => rest.find('>').map(|n| n + 1),
            _ => None,
        };
        at = start + end.unwrap_or(1);
        if end.is_none() {
            kept.push('<');
        }
    }
    kept.push_str(&text[at..]);
    kept.into()
}

/// Decides about the tag at the start of a text, and the call in it. `has_minimax`: whether a tag came before.
fn minimax_at(text: &str, has_minimax: &mut bool) -> Leak {
    let inner = text[1..].strip_prefix('/').unwrap_or(&text[1..]);
    if may_begin(inner, MINIMAX) {
        let Some(at) = text.find('>') else { return Leak::Undecided };
        *has_minimax = true;
        return Leak::Whole(at + 1);
    }
    if !*has_minimax || !may_begin(&text[1..], "invoke") {
        return Leak::None;
    }
    match text["<invoke".len().min(text.len())..].chars().next() {
        Some(c) if c != '>' && !c.is_whitespace() => Leak::None,
        _ => {
            let end = text.match_indices("</").find(|(at, close)| {
                text.get(at + close.len()..).is_some_and(|rest| rest.len() >= 7 && may_begin(rest, "invoke>"))
            });
            end.map_or(Leak::Undecided, |(at, _)| Leak::Whole(at + "</invoke>".len()))
        }
    }
}

/// Decides about the block of memories, or its closing tag, at the start of a text.
fn memories_at(text: &str) -> Leak {
    let is_memories = |name: &str| MEMORIES.iter().any(|memories| may_begin(name, memories));
    let is_whole = |name: &str| name.len() >= MEMORIES[0].len();
    let (closes, name) = text[1..].strip_prefix('/').map_or((false, &text[1..]), |name| (true, name));
    if !is_memories(name) {
        return Leak::None;
    }
    if !is_whole(name) {
        return Leak::Undecided;
    }
    let start = if closes {
        Some(0)
    } else {
        let mut tags = text.match_indices("</").map(|(at, _)| at);
        tags.find(|at| text.get(at + 2..).is_some_and(|name| is_whole(name) && is_memories(name)))
    };
    let end = start.and_then(|start| Some(start + text[start..].find('>')? + 1));
    end.map_or(Leak::Undecided, Leak::Whole)
}

/// Removes blocks of injected memories, outside code.
pub fn strip_memories(text: &str) -> Cow<'_, str> {
    if !has_marker(text, b'<', &MEMORIES) {
        return text.into();
    }
    let lower = text.to_ascii_lowercase();
    let is_code = code_at(text);
    let is_memories = |name: &str| MEMORIES.iter().any(|memories| name.starts_with(memories));
    let last_close = lower.rfind('>').unwrap_or(0);
    let (mut kept, mut at) = (String::with_capacity(text.len()), 0);
    while let Some(start) = lower[at..].find('<').map(|n| at + n) {
        kept.push_str(&text[at..start]);
        let rest = &lower[start..];
        let end = if is_code(start) {
            None
        } else if rest.strip_prefix("</").is_some_and(is_memories) {
            (start < last_close).then(|| rest.find('>').map(|n| n + 1)).flatten()
        } else if is_memories(&rest[1..]) {
            let close = rest.match_indices("</").find(|(at, _)| is_memories(&rest[at + 2..]));
            Some(close.and_then(|(n, _)| rest[n..].find('>').map(|m| n + m + 1)).unwrap_or(rest.len()))
        } else {
            None
        };
        at = start + end.unwrap_or(1);
        if end.is_none() {
            kept.push('<');
        }
    }
    kept.push_str(&text[at..]);
    kept.into()
}

/// Returns a predicate for positions of a text that are inside code.
pub(super) fn code_at(text: &str) -> impl Fn(usize) -> bool {
    let mut state = CodeState::default();
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for (at, c) in text.char_indices() {
        if state.push(c) {
            match ranges.last_mut() {
                Some((_, end)) if *end == at => *end += c.len_utf8(),
                _ => ranges.push((at, at + c.len_utf8())),
            }
        }
    }
    move |at| {
        let next = ranges.partition_point(|(_, end)| *end <= at);
        ranges.get(next).is_some_and(|(start, _)| *start <= at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_memories_of_a_text_block_are_not_visible() {
        for (text, expect) in [
            ("a<minimax:tool_call><invoke name=\"x\"><p>1</p></invoke></minimax:tool_call>b", "ab"),
            ("a<minimax:tool_call><invoke>1</invoke>b<invoke\n>2</invoke>c", "abc"),
            ("a<MiniMax:Tool_Call>b < c, <b>d</b>", "ab < c, <b>d</b>"),
            ("a<minimax:tool_call>b<invoked>c</invoke>", "ab<invoked>c</invoke>"),
            ("a</minimax:tool_call>b<invoke c", "ab<invoke c"),
            ("<b>a</b> <minimax:tool_call b", "<b>a</b> <minimax:tool_call b"),
            ("`<minimax:tool_call>` and <invoke>a</invoke>", "`<minimax:tool_call>` and"),
            ("`<minimax:tool_call><invoke>a</invoke>`", "`<minimax:tool_call><invoke>a</invoke>`"),
            ("<invoke>a</invoke>", "<invoke>a</invoke>"),
            ("a<relevant-memories>b</relevant-memories>c < d", "ac < d"),
            ("a<Relevant_Memories x>b</b></RELEVANT-memories>c", "ac"),
            ("a</relevant-memories>b</b>c", "ab</b>c"),
            ("<b>a</b></relevant-memories", "<b>a</b></relevant-memories"),
            ("a <relevant-memories>b</relevant-memories", "a"),
            ("a <relevant-memories>b", "a"),
            ("`<relevant-memories>` a", "`<relevant-memories>` a"),
            ("relevant-memories > a", "relevant-memories > a"),
            ("  a b\n ", "a b"),
            ("\n <final>a</final> \n", "a"),
        ] {
            assert_eq!(visible_of_block(text, FinalTag::Optional), expect, "{text}");
        }
    }

    #[test]
    fn reasoning_is_removed_and_what_is_never_closed_only_if_strict() {
        for (text, strict, preserved) in [
            ("a<think>b</think>c", "ac", "ac"),
            ("a<think>b", "a", "ab"),
            ("a<think>b</think>c<think>d", "ac", "acd"),
            ("<think>a</think><final>b</final>", "b", "b"),
        ] {
            assert_eq!(strip_reasoning(text, Unclosed::Strict), strict, "{text}");
            assert_eq!(strip_reasoning(text, Unclosed::Preserve), preserved, "{text}");
        }
    }

    #[test]
    fn a_marker_is_a_bracket_before_a_word() {
        for (text, expect) in [
            ("a <tool> b", true),
            ("< / TOOL", true),
            ("a < b, </ tool", true),
            ("tool < a", false),
            ("<too", false),
            ("<//tool", false),
            ("[tool", false),
        ] {
            assert_eq!(has_marker(text, b'<', &["tool"]), expect, "{text}");
        }
    }
}
