//! Formats reasoning, and finds it in messages that contain it as tagged text.

use std::sync::Arc;

use pinch_llm::message::{AssistantMessage, Block, Message, Thinking};

use super::piece::{Edit, Piece, ReasoningGrowth};
use super::scan::{FinalTag, Scan};
use super::tags::{self, Tag, TagKind};

/// Formats reasoning for people: a heading, and each line in italics. Empty if there is none.
pub fn format_reasoning(text: &str, heading: &str) -> String {
    let text = text.trim();
    if text.is_empty() {
        return String::new();
    }
    let mut shown = String::with_capacity(text.len() + 16);
    shown.push_str(heading);
    format_lines(text, &mut shown);
    shown
}

fn format_lines(text: &str, shown: &mut String) {
    for line in text.split('\n') {
        shown.push('\n');
        if !line.trim().is_empty() {
            shown.push('_');
            shown.push_str(line.trim_end_matches('\r'));
            shown.push('_');
        }
    }
}

/// Returns the reasoning of a message: its thinking blocks, else the content of thinking tags in its text.
pub fn reasoning_of(content: &[Arc<Block>]) -> String {
    let native: Vec<&str> = content
        .iter()
        .filter_map(|block| match &**block {
            Block::Thinking(thinking) if !thinking.thinking.trim().is_empty() => Some(thinking.thinking.trim()),
            _ => None,
        })
        .collect();
    if !native.is_empty() {
        return native.join("\n");
    }
    let texts: Vec<&str> = content.iter().filter_map(|block| block.as_text()).collect();
    super::scan::thinking(&texts.join("\n"))
}

/// Returns an answer as it is stored: tagged reasoning as thinking blocks, so that it is not replayed as text. `None` if nothing changes.
pub fn promoted(message: &Message) -> Option<Arc<Message>> {
    let answer = message.as_assistant()?;
    let mut stored = AssistantMessage::clone(answer);
    stored.content = promote(&answer.content)?;
    Some(Arc::new(Message::Assistant(Arc::new(stored))))
}

/// Turns thinking tags in text blocks that begin with a tag into thinking blocks; `None` if nothing changes.
pub(super) fn promote(content: &[Arc<Block>]) -> Option<Vec<Arc<Block>>> {
    if content.iter().any(|block| matches!(&**block, Block::Thinking(_))) {
        return None;
    }
    let mut changed = false;
    let mut promoted = Vec::with_capacity(content.len());
    for block in content {
        match block.as_text().and_then(split_tagged) {
            Some(parts) => {
                changed = true;
                promoted.extend(parts);
            }
            None => promoted.push(Arc::clone(block)),
        }
    }
    changed.then_some(promoted)
}

/// Stands for the first character of final tags while a text is split.
const MASK: char = '\u{e000}';

/// Splits a text that begins with a tag and ends outside reasoning. Final tags stay, because only they tell which text is for people. A
/// text with reasoning between final tags is not split, as its parts would not contain both tags.
fn split_tagged(text: &str) -> Option<Vec<Arc<Block>>> {
    if !text.trim_start().starts_with('<') || text.contains(MASK) {
        return None;
    }
    let (mut scan, mut out) = (Scan::new(FinalTag::Optional), Vec::new());
    scan.text(&without_final_tags(text), &mut out);
    scan.settle(&mut out);
    if scan.is_thinking() || !out.iter().any(|piece| matches!(piece, Piece::ThoughtEnd)) {
        return None;
    }
    let (mut blocks, mut visible, mut thought) = (Vec::new(), String::new(), String::new());
    let mut is_final = false;
    for piece in out {
        match piece {
            Piece::Visible(part) => visible.push_str(&part),
            Piece::Thought(part) => thought.push_str(&part),
            Piece::ThoughtEnd => {
                let shown = std::mem::take(&mut visible).replace(MASK, "<");
                is_final = ends_in_final(&shown, is_final);
                if is_final {
                    return None;
                }
                blocks.extend(text_block(&shown));
                blocks.extend(thinking_block(&std::mem::take(&mut thought).replace(MASK, "<")));
            }
            _ => {}
        }
    }
    blocks.extend(text_block(&visible.replace(MASK, "<")));
    Some(blocks)
}

/// Hides final tags from the scan.
fn without_final_tags(text: &str) -> String {
    let mut masked = text.to_owned();
    for (at, _) in text.match_indices('<') {
        if tag_at(text, at).is_some_and(|tag| tag.kind == TagKind::Final) {
            let shift = masked.len() - text.len();
            masked.replace_range(at + shift..=at + shift, MASK.encode_utf8(&mut [0; 4]));
        }
    }
    masked
}

fn tag_at(text: &str, at: usize) -> Option<Tag> {
    let end = text[at..].find('>')? + at;
    tags::parse(&text[at..=end])
}

/// Returns whether a text ends between final tags.
fn ends_in_final(text: &str, before: bool) -> bool {
    let tags = text.match_indices('<').filter_map(|(at, _)| tag_at(text, at));
    let mut of_final = tags.filter(|tag| tag.kind == TagKind::Final && !tag.empty);
    of_final.next_back().map_or(before, |tag| !tag.closes)
}

fn text_block(text: &str) -> Option<Arc<Block>> {
    (!text.trim().is_empty()).then(|| Arc::new(Block::text(text.trim_start())))
}

fn thinking_block(text: &str) -> Option<Arc<Block>> {
    let thinking = Thinking { thinking: text.trim().to_owned(), ..Thinking::default() };
    (!thinking.thinking.is_empty()).then(|| Arc::new(Block::Thinking(thinking)))
}

/// Tracks the reasoning of one answer and reports its growth. Thinking blocks are joined by a line break, as in the finished message. Each
/// character is processed once.
#[derive(Clone, Debug, Default)]
pub struct ReasoningTracker {
    /// Heading above the reasoning.
    heading: String,
    /// The reasoning so far, trimmed.
    raw: String,
    /// Trailing white space.
    space: String,
    /// Length of the formatted text reported so far.
    n_formatted: usize,
    /// Length of the reasoning before the current thinking block.
    block_at: usize,
    /// Index of the current thinking block in the answer.
    block: Option<usize>,
    open: bool,
}

impl ReasoningTracker {
    /// Creates an empty state.
    pub fn new(heading: &str) -> Self {
        Self { heading: heading.to_owned(), ..Self::default() }
    }

    /// Begins the thinking block with this index in the answer.
    pub fn begin_block(&mut self, index: usize) {
        (self.block, self.block_at) = (Some(index), self.raw.len());
        self.space.clear();
    }

    /// Appends reasoning.
    pub fn add(&mut self, text: &str) -> Option<ReasoningGrowth> {
        self.open = true;
        let solid = text.trim_end();
        if solid.is_empty() {
            self.space.push_str(text);
            return None;
        }
        let at = self.raw.len();
        let mut grown = std::mem::take(&mut self.space) + solid;
        self.space.push_str(&text[solid.len()..]);
        if at == self.block_at {
            grown = format!("{}{}", if at == 0 { "" } else { "\n" }, grown.trim_start());
        }
        Some(self.grow(grown))
    }

    fn grow(&mut self, grown: String) -> ReasoningGrowth {
        let at = self.raw.len();
        let mut formatted = Edit { at: self.n_formatted, text: String::with_capacity(grown.len() + 16) };
        if at == 0 {
            formatted = Edit { at: 0, text: format_reasoning(&grown, &self.heading) };
        } else {
            // The last line continues, so the mark after it is removed.
            formatted.at -= 1;
            let (rest, lines) =
                grown.split_once('\n').map_or((grown.as_str(), None), |(rest, lines)| (rest, Some(lines)));
            formatted.text.push_str(if lines.is_some() { rest.trim_end_matches('\r') } else { rest });
            formatted.text.push('_');
            if let Some(lines) = lines {
                format_lines(lines, &mut formatted.text);
            }
        }
        self.n_formatted = formatted.at + formatted.text.len();
        self.raw.push_str(&grown);
        ReasoningGrowth { formatted, raw: Edit { at, text: grown } }
    }

    /// Sets the whole text of the thinking block with this index, which may be longer than what was appended. Only the current block can
    /// still change.
    pub fn end_block(&mut self, index: usize, text: &str) -> Option<ReasoningGrowth> {
        let text = text.trim();
        if self.block != Some(index) || text.is_empty() {
            return None;
        }
        self.block = None;
        let separator = if self.block_at == 0 { "" } else { "\n" };
        let whole = format!("{}{separator}{text}", &self.raw[..self.block_at]);
        // A block that arrives all at once begins and ends here.
        self.open |= self.raw.len() == self.block_at;
        match whole.strip_prefix(self.raw.as_str()) {
            Some("") => None,
            Some(missing) => {
                self.space.clear();
                Some(self.grow(missing.to_owned()))
            }
            None => self.replace(whole),
        }
    }

    /// Sets the whole reasoning of the answer. If it was reported before, its end was as well.
    pub fn set(&mut self, text: &str) -> Option<ReasoningGrowth> {
        let text = text.trim();
        if text.is_empty() || self.raw == text {
            return None;
        }
        self.open |= self.raw.is_empty();
        // What ends later is part of it.
        self.block = None;
        self.replace(text.to_owned())
    }

    fn replace(&mut self, text: String) -> Option<ReasoningGrowth> {
        self.raw.clone_from(&text);
        self.space.clear();
        let formatted = Edit { at: 0, text: format_reasoning(&text, &self.heading) };
        self.n_formatted = formatted.text.len();
        Some(ReasoningGrowth { formatted, raw: Edit { at: 0, text } })
    }

    /// Ends the reasoning; true if it had started and its end was not reported yet.
    pub fn end(&mut self) -> bool {
        std::mem::take(&mut self.open)
    }

    /// Resets the state for a new answer.
    pub fn reset(&mut self) {
        *self = Self { heading: std::mem::take(&mut self.heading), ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(text: &str) -> Vec<String> {
        let shown = |block: &Arc<Block>| match &**block {
            Block::Thinking(thinking) => format!("({})", thinking.thinking),
            block => block.as_text().unwrap_or("?").to_owned(),
        };
        promote(&[Arc::new(Block::text(text))]).map(|blocks| blocks.iter().map(shown).collect()).unwrap_or_default()
    }

    #[test]
    fn tagged_reasoning_becomes_thinking_blocks() {
        assert_eq!(split("<think> plan </think>\nHi <b>there</b>"), ["(plan)", "Hi <b>there</b>"]);
        assert_eq!(split(" <THINK a='1'>a</think>b<thought>c</thought>"), ["(a)", "b", "(c)"]);
        assert_eq!(split("<think></think>Hi"), ["Hi"]);
        assert_eq!(split("<final/>Hi<think>a</think>b"), ["<final/>Hi", "(a)", "b"]);
        assert_eq!(split("<b>`<think>`</b><think>a</think>b"), ["<b>`<think>`</b>", "(a)", "b"]);
        // Final tags stay: with them enforced, text without them is not shown.
        assert_eq!(split("<think>a<final></think><final>Hi</final>"), ["(a<final>)", "<final>Hi</final>"]);
        assert_eq!(split("<final>Hi</final><think>a</think>"), ["<final>Hi</final>", "(a)"]);
        assert_eq!(split("<think>a ` b</think>\n`<final>`"), ["(a ` b)", "`<final>`"]);
        assert_eq!(split("<think>a `</think> b\n c"), ["(a `)", "b\n c"]);
        for kept in [
            "Hi <think>a</think>",
            "<b>Hi</b>",
            "</think>Hi",
            "<think>open",
            "<think>a</think>b<think>open",
            "<b>`<think>a</think>`</b>",
            "<final>Hi <think>a</think> there</final>",
        ] {
            assert_eq!(split(kept), [""; 0], "{kept}");
        }
    }

    #[test]
    fn thinking_blocks_are_joined_by_lines_and_each_ends_once() {
        let (mut follow, mut formatted, mut raw) = (ReasoningTracker::new("R:"), String::new(), String::new());
        let mut apply = |grown: Option<ReasoningGrowth>| {
            let Some(grown) = grown else { return false };
            grown.formatted.apply(&mut formatted);
            grown.raw.apply(&mut raw);
            true
        };
        follow.begin_block(0);
        assert!(apply(follow.add(" One\n")));
        assert!(!apply(follow.end_block(0, " One\n")) && follow.end() && !follow.end());
        // A block without deltas, then one whose deltas lack its end.
        follow.begin_block(2);
        assert!(apply(follow.end_block(2, "Two")) && follow.end());
        assert!(!apply(follow.end_block(2, "Two")) && !follow.end(), "a repeated end");
        follow.begin_block(3);
        assert!(apply(follow.add("\nThr")) && apply(follow.end_block(3, "Three")) && follow.end());
        assert!(!apply(follow.set("One\nTwo\nThree")) && !follow.end());
        assert!(apply(follow.set("Other")) && !follow.end());
        assert_eq!((formatted.as_str(), raw.as_str()), ("R:\n_Other_", "Other"));
    }

    #[test]
    fn the_end_of_another_block_and_an_end_without_text_change_nothing() {
        let mut tracker = ReasoningTracker::new("R:");
        tracker.begin_block(1);
        assert!(tracker.add("One").is_some());
        assert_eq!((tracker.end_block(0, "Zero"), tracker.end_block(1, " \n")), (None, None));
        assert_eq!(tracker.end_block(1, "One more").map(|grown| grown.raw.text), Some(" more".to_owned()));
    }

    #[test]
    fn a_block_that_ends_after_the_whole_reasoning_is_known_changes_nothing() {
        let mut tracker = ReasoningTracker::new("R:");
        tracker.add("One");
        tracker.begin_block(1);
        assert!(tracker.set("é").is_some());
        assert_eq!(tracker.end_block(1, "Two"), None);
    }

    proptest! {
        #[test]
        fn the_reader_has_the_formatted_reasoning(
            parts in prop::collection::vec(prop::sample::select(vec!["a", " ", "\n", "\r\n", "\n\n", "b c", "é", "\u{a0}", "_"]), 0..24),
        ) {
            let (mut follow, mut formatted, mut raw) = (ReasoningTracker::new("Reasoning:"), String::new(), String::new());
            for part in &parts {
                if let Some(grown) = follow.add(part) {
                    grown.formatted.apply(&mut formatted);
                    grown.raw.apply(&mut raw);
                }
            }
            let text = parts.concat();
            prop_assert_eq!(formatted, format_reasoning(&text, "Reasoning:"));
            prop_assert_eq!(raw, text.trim());
        }
    }

    #[test]
    fn thinking_blocks_are_the_reasoning_and_else_tags() {
        let thinking = |text: &str| Block::Thinking(Thinking { thinking: text.into(), ..Thinking::default() });
        for (blocks, expect) in [
            (vec![thinking(" a\n"), Block::text("<think>b</think>"), thinking("c")], "a\nc"),
            (vec![thinking(" "), Block::text("<think>b</think>c"), Block::text("<think>d</think>")], "bd"),
            (vec![Block::text("a")], ""),
        ] {
            let blocks: Vec<Arc<Block>> = blocks.into_iter().map(Arc::new).collect();
            assert_eq!(reasoning_of(&blocks), expect, "{blocks:?}");
        }
    }

    #[test]
    fn a_new_answer_has_only_the_heading_of_the_last() {
        let mut tracker = ReasoningTracker::new("R:");
        tracker.add("one");
        tracker.reset();
        assert!(!tracker.end());
        let grown = tracker.set("two").unwrap();
        assert_eq!((grown.formatted.text.as_str(), grown.raw.text.as_str()), ("R:\n_two_", "two"));
        assert!(tracker.end());
    }
}
