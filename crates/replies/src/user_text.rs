//! Final cleanup of text for people: removes scaffolding and leaves everything else unchanged.

use std::borrow::Cow;
use std::sync::Arc;

use pinch_llm::message::Block;

use crate::texts::TextTable;

use super::api_error;
use super::code::CodeState;
use super::markup::{
    and_then, has_marker, strip_internal_blocks, strip_memories, strip_tool_xml, trimmed, visible_of_block,
};
use super::scan::FinalTag;
use super::tags;

/// The longest text searched for an error payload.
const MAX_PAYLOAD: usize = 16_384;

/// Returns the visible text of a message: its text blocks without markup and reasoning, joined by line breaks.
pub fn visible_text<'a>(content: &'a [Arc<Block>], final_tag: FinalTag, phrases: &TextTable) -> Cow<'a, str> {
    let answer = content.iter().filter(|block| !is_commentary(block));
    let texts = answer.filter_map(|block| block.as_text()).map(|text| visible_of_block(text, final_tag));
    let mut texts: Vec<Cow<'_, str>> = texts.filter(|text| !text.is_empty()).collect();
    let text = if texts.len() == 1 { texts.swap_remove(0) } else { trimmed(texts.join("\n")).into() };
    and_then(text, |text| sanitise(text, phrases))
}

fn is_commentary(block: &Block) -> bool {
    matches!(block, Block::Text(text) if text.is_commentary())
}

/// Number of passes over an answer that stays as long as it is, since a removal may reveal further scaffolding. The limit is on the bytes that
/// are read.
const MAX_PASSES: usize = 8;

/// Answers shorter than this, in bytes, have the limit of one of this length.
const MIN_PASSED: usize = 1 << 16;

/// Cleans an answer. Text about errors is left alone; only a provider's error payload that is marked as such is replaced with a message. The
/// result is borrowed only if it is the whole text.
pub fn sanitise<'a>(text: &'a str, phrases: &TextTable) -> Cow<'a, str> {
    let mut left = text.len().max(MIN_PASSED) * MAX_PASSES;
    let mut n_bytes = text.len();
    let mut clean = pass(text, phrases);
    // Removing a block may change what is code, so repeat until nothing changes.
    while clean.len() != std::mem::replace(&mut n_bytes, clean.len()) && left > 0 {
        left = left.saturating_sub(n_bytes);
        clean = and_then(clean, |text| pass(text, phrases));
    }
    clean
}

fn pass<'a>(text: &'a str, phrases: &TextTable) -> Cow<'a, str> {
    let text = without_scaffolding(text);
    if text.trim().is_empty() {
        return Cow::default();
    }
    match marked_payload(&text, phrases) {
        Some(shown) => shown.into(),
        None => and_then(text, tidy),
    }
}

/// Removes final tags, tool markup and blocks meant only for programs.
pub fn without_scaffolding(text: &str) -> Cow<'_, str> {
    let text = and_then(without_final_tags(text), strip_tool_xml);
    and_then(and_then(text, strip_memories), strip_internal_blocks)
}

fn without_final_tags(text: &str) -> Cow<'_, str> {
    if !has_marker(text, b'<', &["final"]) {
        return text.into();
    }
    let mut code = CodeState::default();
    let mut kept = String::with_capacity(text.len());
    // Where the brackets are that may begin a tag. Removing a tag may complete the one around it.
    let mut open = Vec::new();
    for c in text.chars() {
        let in_code = code.push(c);
        kept.push(c);
        match c {
            '<' if !in_code => open.push(kept.len() - 1),
            '>' => match open.pop() {
                Some(at) if is_final_tag(&kept[at..]) => kept.truncate(at),
                // A tag contains no other bracket.
                _ => open.clear(),
            },
            _ => {}
        }
    }
    kept.into()
}

fn is_final_tag(text: &str) -> bool {
    tags::parse(text).is_some_and(|tag| tag.kind == tags::TagKind::Final)
}

/// Returns a message for a provider's error payload that is marked as such.
fn marked_payload(text: &str, phrases: &TextTable) -> Option<String> {
    let trimmed = text.trim();
    if trimmed.len() > MAX_PAYLOAD || trimmed.starts_with('{') || api_error::leading_status(trimmed).is_some() {
        return None;
    }
    let rest = api_error::without_error_prefix(trimmed)?;
    let is_codex = trimmed.get(..5).is_some_and(|head| head.eq_ignore_ascii_case("codex"));
    let payload = api_error::raw_payload(rest).filter(|_| is_codex)?;
    let kind = payload["error"]["type"].as_str().or_else(|| payload["error"]["code"].as_str()).unwrap_or("");
    let status =
        ["status", "code"].iter().find_map(|name| payload["error"][*name].as_u64().or(payload[*name].as_u64()));
    (kind.ends_with("_error") || status.is_some_and(|status| status >= 400)).then(|| api_error::shown(rest, phrases))
}

/// Drops leading blank lines, and paragraphs that repeat the preceding one. Code is left alone.
pub fn tidy(text: &str) -> Cow<'_, str> {
    let n_blank = text.len() - text.trim_start().len();
    let text = text[..n_blank].rfind('\n').map_or(text, |at| &text[at + 1..]);
    if !text.contains("\n\n") {
        return text.into();
    }
    let mut kept = String::with_capacity(text.len());
    let mut last: Option<String> = None;
    for (paragraph, gap) in paragraphs(text) {
        let folded = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
        let is_code = paragraph.contains("```") || paragraph.contains("~~~");
        let repeats = !is_code && !folded.is_empty() && last.as_ref() == Some(&folded);
        if repeats {
            // Remove the gap before it; the gap after it stays.
            kept.truncate(kept.trim_end_matches('\n').len());
        } else {
            kept.push_str(paragraph);
        }
        kept.push_str(gap);
        last = Some(folded);
    }
    if kept == text { text.into() } else { kept.into() }
}

/// Returns paragraphs with the blank lines after them; fences are not split.
fn paragraphs(text: &str) -> Vec<(&str, &str)> {
    let mut code = CodeState::default();
    let (mut parts, mut start, mut at) = (Vec::new(), 0, 0);
    while let Some(n) = text[at..].find('\n') {
        let line_end = at + n;
        text[at..=line_end].chars().for_each(|c| {
            code.push(c);
        });
        at = line_end + 1;
        let gap = text[at..].len() - text[at..].trim_start_matches('\n').len();
        if gap > 0 && !code.in_fence() {
            parts.push((&text[start..line_end], &text[line_end..at + gap]));
            at += gap;
            start = at;
        }
    }
    parts.push((&text[start..], ""));
    parts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn clean_text_is_unchanged(
            words in prop::collection::vec(prop::sample::select(vec![
                "a", " ", "\n", "\n\n", "same.\n\n", "<final>", "</final>", "<tool_call>", "</tool_call>", "{\"name\": \"x\"}", "`", "```\n",
                "<relevant-memories>", "</relevant-memories>", "<<<BEGIN X>>>\n", "<<<END X>>>\n", "<fin", "al>", "x (untrusted metadata):\n",
            ]), 0..16),
        ) {
            let text = words.concat();
            let english = TextTable::default();
            let once = sanitise(&text, &english).into_owned();
            prop_assert_eq!(&*sanitise(&once, &english), &*once, "{:?}", text);
        }
    }

    #[test]
    fn nested_scaffolding_is_removed_however_deep_it_is() {
        let english = TextTable::default();
        for text in [
            "<fin".repeat(40) + &"al>".repeat(40),
            "<final<final<fin<final<final<final>\n`><final<final<fin<final>al>>>>al>>>".to_owned(),
        ] {
            let clean = sanitise(&text, &english).into_owned();
            assert!(clean.len() < 30 && !clean.contains("<final>"), "{clean}");
            assert_eq!(sanitise(&clean, &english), clean);
        }
        // The time does not depend on how deep a long answer is nested.
        let deep = "<fin".repeat(50_000) + &"al>".repeat(50_000);
        assert_eq!(sanitise(&deep, &english), "");
    }

    #[test]
    fn scaffolding_and_repeated_paragraphs_are_removed() {
        let english = TextTable::default();
        for (text, expected) in [
            ("<final>a</final> b", "a b"),
            ("`<final>` a", "`<final>` a"),
            ("a <final b", "a <final b"),
            ("\n \n  a", "  a"),
            ("same.\n\nsame.\n\nother.", "same.\n\nother."),
            ("same.\n\n\nsame.", "same."),
            ("same.\n\nsame.\n", "same."),
            ("a  b\n\na b\n\nc", "a  b\n\nc"),
            ("```\nx\n\nx\n\nx\n```", "```\nx\n\nx\n\nx\n```"),
            ("```\nx\n```\n\n```\nx\n```", "```\nx\n```\n\n```\nx\n```"),
            ("~~~\nx\n~~~\n\n~~~\nx\n~~~", "~~~\nx\n~~~\n\n~~~\nx\n~~~"),
            ("a\n\n\n\nb", "a\n\n\n\nb"),
            ("é", "é"),
            ("a\n\nb\n\n", "a\n\nb\n\n"),
            (" \n ", ""),
        ] {
            assert_eq!(sanitise(text, &english), expected, "{text:?}");
        }
    }

    #[test]
    fn only_marked_payloads_of_errors_are_replaced() {
        let english = TextTable::default();
        let payload =
            |kind: &str, status: &str| format!(r#"{{"error": {{"message": "m", "type": "{kind}"{status}}}}}"#);
        for (text, is_replaced) in [
            (format!("Codex error: {}", payload("server_error", "")), true),
            (format!("codex error: {}", payload("odd", r#", "status": 400"#)), true),
            (format!("codex error: {}", payload("odd", r#", "status": 399"#)), false),
            (format!("codex error: {}", payload("odd", "")), false),
            (format!("Other error: {}", payload("server_error", "")), false),
            (format!("500 {}", payload("server_error", "")), false),
            (payload("server_error", ""), false),
            (format!("codex error: {}{}", payload("server_error", ""), " ".repeat(MAX_PAYLOAD)), true),
        ] {
            assert_eq!(sanitise(&text, &english) != text.trim_end(), is_replaced, "{text}");
        }
        let long =
            format!(r#"codex error: {{"error": {{"type": "a_error", "message": "{}"}}}}"#, "m".repeat(MAX_PAYLOAD));
        assert_eq!(sanitise(&long, &english), long);
    }

    #[test]
    fn the_text_of_a_message_is_that_of_its_answer_blocks() {
        let signature = Some(r#"{"phase": "commentary"}"#.to_owned());
        let commentary = Block::Text(pinch_llm::message::Text { text: "I look.".into(), signature });
        let blocks = [Block::text(" One. "), commentary, Block::text("<think>a</think>"), Block::text("Two.\n\nTwo.")];
        let blocks: Vec<Arc<Block>> = blocks.into_iter().map(Arc::new).collect();
        let english = TextTable::default();
        assert_eq!(visible_text(&blocks, FinalTag::Optional, &english), "One.\nTwo.\n\nTwo.");
        assert_eq!(visible_text(&blocks[..2], FinalTag::Optional, &english), "One.");
        assert_eq!(visible_text(&blocks[1..3], FinalTag::Optional, &english), "");
        assert_eq!(visible_text(&blocks, FinalTag::Enforced, &english), "");
    }

    #[test]
    fn only_final_tags_outside_code_are_removed() {
        for (text, expected) in [
            ("a > b <final>c", "a > b c"),
            ("<b>a</b> <final x>b</final>", "<b>a</b> b"),
            ("<fin<b>al> <final>a", "<fin<b>al> a"),
            ("<fin`<b>`al> <final>a", "<fin`<b>`al> a"),
            ("a<fi<final>nal>b", "ab"),
        ] {
            assert_eq!(without_final_tags(text), expected, "{text}");
        }
    }
}
