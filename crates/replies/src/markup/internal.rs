//! Blocks that are meant only for programs, and that a model copied from its input.

use std::borrow::Cow;

use super::{Leak, code_at};

const BEGIN: &str = "<<<BEGIN";
const END: &str = "<<<END";
/// The end of the line before metadata that a channel prepended to a message.
const METADATA: &str = "(untrusted metadata):";

/// Removes `<<<BEGIN…>>>` to `<<<END…>>>` outside code, and metadata with the line before it. A block without an end is kept.
pub fn strip_internal_blocks(text: &str) -> Cow<'_, str> {
    if !text.contains(BEGIN) && !text.contains(METADATA) {
        return text.into();
    }
    let is_code = code_at(text);
    // Nothing needs to be searched after the last end.
    let last_end = text.rfind(END).unwrap_or(0);
    let (mut kept, mut at) = (String::with_capacity(text.len()), 0);
    while at < text.len() {
        let rest = &text[at..];
        let line = rest.split_inclusive('\n').next().unwrap_or(rest);
        let is_prose = !is_code(at + (line.len() - line.trim_start().len()));
        let removed = if is_prose && at < last_end && begins(line) {
            block_len(rest)
        } else if line.trim().ends_with(METADATA) {
            metadata_len(rest)
        } else {
            None
        };
        if removed.is_none() {
            kept.push_str(line);
        }
        at += removed.unwrap_or(line.len());
    }
    // The line break before a block at the end belongs to it.
    if !text.ends_with('\n') && kept.ends_with('\n') {
        kept.pop();
    }
    kept.into()
}

/// Decides about the block at the start of a text, which is the start of a line.
pub(super) fn internal_block_at(text: &str) -> Leak {
    let n = text.len().min(BEGIN.len());
    if text.as_bytes()[..n] != BEGIN.as_bytes()[..n] {
        return Leak::None;
    }
    match text.find('\n') {
        Some(end) if !begins(&text[..end]) => Leak::None,
        Some(_) => block_len(text).filter(|len| text[..*len].ends_with('\n')).map_or(Leak::Undecided, Leak::Whole),
        None => Leak::Undecided,
    }
}

fn begins(line: &str) -> bool {
    let line = line.trim();
    line.starts_with(BEGIN) && line.ends_with(">>>")
}

/// Returns the length of a block including its last line.
fn block_len(text: &str) -> Option<usize> {
    let mut len = 0;
    for (n, line) in text.split_inclusive('\n').enumerate() {
        len += line.len();
        if n > 0 && line.trim_start().starts_with(END) {
            return Some(len);
        }
    }
    None
}

/// Returns the length of metadata, which is a fence after the first line.
fn metadata_len(text: &str) -> Option<usize> {
    let mut lines = text.split_inclusive('\n');
    let mut len = lines.next()?.len();
    let fence = lines.next().filter(|line| line.trim().starts_with("```"))?;
    len += fence.len();
    for line in lines {
        len += line.len();
        if line.trim() == "```" {
            break;
        }
    }
    Some(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_complete_blocks_outside_code_are_removed() {
        for (text, expect) in [
            ("a\n<<<BEGIN X>>>\nsecret\n<<<END X>>>\nb", "a\nb"),
            ("a\n  <<<BEGIN>>>\nsecret\n<<<END>>>", "a"),
            ("Use:\n```\n<<<BEGIN X>>>\na\n<<<END X>>>\n```\nb", "Use:\n```\n<<<BEGIN X>>>\na\n<<<END X>>>\n```\nb"),
            ("a\n<<<BEGIN X>>>\n```\nsecret code\n```\n<<<END X>>>\nb", "a\nb"),
            ("a\n<<<BEGIN X>>>\nb", "a\n<<<BEGIN X>>>\nb"),
            ("a <<<BEGIN X>>>\nb\n<<<END X>>>", "a <<<BEGIN X>>>\nb\n<<<END X>>>"),
            ("Sender (untrusted metadata):\n```json\n{}\n```\nb", "b"),
        ] {
            assert_eq!(strip_internal_blocks(text), expect, "{text:?}");
        }
    }

    #[test]
    fn a_block_that_arrives_is_decided_by_its_first_and_last_line() {
        for (text, expect) in [
            ("<<", Leak::Undecided),
            ("<<<BEGIN", Leak::Undecided),
            ("<<<BEGIN X>>>", Leak::Undecided),
            ("<<<BEGIN X>>>\na\n", Leak::Undecided),
            ("<<<BEGIN X>>>\na\n<<<END X>>>", Leak::Undecided),
            ("<<<BEGIN X>>>\na\n <<<END X>>>\nb", Leak::Whole(29)),
            ("<<<BEGIN X\na", Leak::None),
            ("<<<END X>>>\n", Leak::None),
            ("<<a", Leak::None),
        ] {
            assert_eq!(internal_block_at(text), expect, "{text:?}");
        }
        let text = "<<<BEGIN X>>>\na\n<<<END X>>>\n  A (untrusted metadata): \n```\n{}\n```";
        assert_eq!(strip_internal_blocks(text), "");
        assert_eq!(strip_internal_blocks("A (untrusted metadata):\nb\n"), "A (untrusted metadata):\nb\n");
    }
}
