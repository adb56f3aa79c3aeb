//! Tool calls written as XML in the text of an answer.

use std::borrow::Cow;

use super::{Leak, code_at, has_marker, may_begin};

const NAMES: [&str; 7] =
    ["tool_calls", "tool_call", "tool_result", "function_calls", "function_call", "function_response", "function"];

/// Removes tags of tool calls including the call. A tag around prose is an example and is kept.
pub fn strip_tool_xml(text: &str) -> Cow<'_, str> {
    if !has_marker(text, b'<', &NAMES) {
        return text.into();
    }
    let is_code = code_at(text);
    let (mut kept, mut at) = (String::with_capacity(text.len()), 0);
    // Number of unclosed tags kept, per name.
    let mut examples = [0_usize; NAMES.len()];
    while let Some(start) = text[at..].find('<').map(|n| at + n) {
        kept.push_str(&text[at..start]);
        let tag = if is_code(start) { None } else { read_tag(&text[start..]) };
        let removed = tag.and_then(|tag| match tag.kind {
            XmlTagKind::Empty => Some(tag.len),
            XmlTagKind::Close if examples[tag.name] > 0 => {
                examples[tag.name] -= 1;
                None
            }
            XmlTagKind::Close => Some(tag.len),
            XmlTagKind::Open if NAMES[tag.name] == "tool_result" || holds_call(&text[start + tag.len..]) => {
                Some(tag.len + content_len(&text[start + tag.len..], tag.name))
            }
            XmlTagKind::Open => {
                examples[tag.name] += 1;
                None
            }
        });
        match removed {
            Some(n) => {
                at = start + n;
                // Avoid two consecutive spaces.
                if kept.ends_with(' ') && text[at..].starts_with(' ') {
                    at += 1;
                }
            }
            None => {
                kept.push('<');
                at = start + 1;
            }
        }
    }
    kept.push_str(&text[at..]);
    kept.into()
}

#[derive(Clone, Copy)]
enum XmlTagKind {
    Open,
    Close,
    Empty,
}

#[derive(Clone, Copy)]
struct XmlTag {
    /// Index in [`NAMES`].
    name: usize,
    kind: XmlTagKind,
    len: usize,
}

fn read_tag(text: &str) -> Option<XmlTag> {
    // A tag contains no other bracket, so the search ends at the next one.
    let len = text[1..].find(['<', '>']).map(|n| n + 2).filter(|len| text[..*len].ends_with('>'))?;
    let inner = text[1..len - 1].trim();
    let (closes, inner) = inner.strip_prefix('/').map_or((false, inner), |rest| (true, rest.trim_start()));
    let name = NAMES.iter().position(|name| {
        let rest = inner.get(..name.len()).filter(|head| head.eq_ignore_ascii_case(name)).map(|_| &inner[name.len()..]);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(|c: char| c.is_whitespace() || c == '/'))
    })?;
    let kind = match (closes, inner.ends_with('/')) {
        (true, _) => XmlTagKind::Close,
        (false, true) => XmlTagKind::Empty,
        (false, false) => XmlTagKind::Open,
    };
    Some(XmlTag { name, kind, len })
}

/// How the content of a tag begins if it is a call and not JSON.
const CALLS: [&str; 7] = ["<invoke", "<parameter", "<function=", "<function ", "<tool_call", "<arg_key", "<tool_name"];

/// Returns whether the text after an opening tag is a call: JSON, or the markup of one.
fn holds_call(content: &str) -> bool {
    let content = content.trim_start();
    content.starts_with(['{', '[']) || CALLS.iter().any(|mark| content.starts_with(mark))
}

/// Names of tags that were opened around prose, which are not removed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct XmlExamples([usize; NAMES.len()]);

/// Decides about the tag, and the call in it, at the start of a text.
pub(super) fn tool_xml_at(text: &str, examples: &mut XmlExamples) -> Leak {
    let Some(tag) = read_tag(text) else {
        let inner = text[1..].trim_start();
        let inner = inner.strip_prefix('/').map_or(inner, str::trim_start);
        let is_open = !inner.contains(['<', '>']) && NAMES.iter().any(|name| may_begin(inner, name));
        return if is_open { Leak::Undecided } else { Leak::None };
    };
    let examples = &mut examples.0[tag.name];
    match tag.kind {
        XmlTagKind::Empty => Leak::Whole(tag.len),
        XmlTagKind::Close if *examples > 0 => {
            *examples -= 1;
            Leak::None
        }
        XmlTagKind::Close => Leak::Whole(tag.len),
        XmlTagKind::Open => {
            let content = &text[tag.len..];
            if NAMES[tag.name] != "tool_result" && !holds_call(content) {
                let start = content.trim_start();
                if CALLS.iter().any(|mark| mark.starts_with(start)) {
                    return Leak::Undecided;
                }
                *examples += 1;
                return Leak::None;
            }
            content_end(content, tag.name).map_or(Leak::Undecided, |len| Leak::Whole(tag.len + len))
        }
    }
}

/// Returns the length of the content including its closing tag, or of all of it if there is none.
fn content_len(content: &str, name: usize) -> usize {
    content_end(content, name).unwrap_or(content.len())
}

/// Returns where the closing tag of a content ends. A closing tag inside a JSON string is ignored.
fn content_end(content: &str, name: usize) -> Option<usize> {
    let is_json = content.trim_start().starts_with(['{', '[']);
    let (mut in_string, mut escaped) = (false, false);
    for (at, c) in content.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if in_string => escaped = true,
            '"' if is_json => in_string = !in_string,
            '<' if !in_string => {
                if let Some(tag) = read_tag(&content[at..])
                    && matches!(tag.kind, XmlTagKind::Close)
                    && tag.name == name
                {
                    return Some(at + tag.len);
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
    fn calls_are_removed_and_examples_are_kept() {
        for (text, expect) in [
            ("a <tool_call>{\"b\": \"</tool_call>\\\"</tool_call>\"}</tool_call> c", "a c"),
            ("a<tool_call>[1]</TOOL_CALL>b", "ab"),
            ("a<tool_call>{\\</tool_call>b", "ab"),
            ("a<tool_call> <invoke b></tool_call> c", "a c"),
            ("a<tool_call><invoke b=\"</tool_call>c", "ac"),
            ("a <tool_call>b</tool_call>c</tool_call>d", "a <tool_call>b</tool_call>cd"),
            ("<tool_call><tool_call a>b</tool_call></tool_call></tool_call>c", "c"),
            (
                "<function>a</function><function>b</function></function>c",
                "<function>a</function><function>b</function>c",
            ),
            ("<function>a</tool_call></function>b", "<function>a</function>b"),
            ("<tool_result>a</tool_result>b", "b"),
            ("<tool_result>a", ""),
            ("<tool_call/>a<tool_call /> b", "a b"),
            ("a <tool_call/> b<tool_call/> c", "a b c"),
            ("</function_calls>a< / function_call x>b", "ab"),
            ("<tool_call_x>a</tool_call_x>", "<tool_call_x>a</tool_call_x>"),
            ("`<tool_call>{}</tool_call>` <function_response>{}</function_response>", "`<tool_call>{}</tool_call>` "),
            ("a <tool_call b < c", "a <tool_call b < c"),
        ] {
            assert_eq!(strip_tool_xml(text).trim_end(), expect.trim_end(), "{text}");
        }
    }
}
