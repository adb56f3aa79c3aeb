//! Reasoning: how it is shown, and how it is found in messages that carry it as tagged text.

use std::sync::Arc;

use pinch_llm::message::{Block, Text, Thinking};

use super::piece::Piece;
use super::scan::FinalTag;
use super::scan::Scan;

/// Formats reasoning for people: a heading, each line in italics. Empty for nothing.
pub fn format_reasoning(text: &str) -> String {
    let text = text.trim();
    if text.is_empty() {
        return String::new();
    }
    let mut shown = String::with_capacity(text.len() + 16);
    shown.push_str("Reasoning:");
    for line in text.split('\n') {
        shown.push('\n');
        if !line.trim().is_empty() {
            shown.push('_');
            shown.push_str(line.trim_end_matches('\r'));
            shown.push('_');
        }
    }
    shown
}

/// The reasoning of a message: its thinking blocks, else what stands in thinking tags of its text.
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

/// Turns thinking tags at the start of text blocks into thinking blocks, so that a stored message is clean; `None` when nothing changes.
pub fn promote(content: &[Arc<Block>]) -> Option<Vec<Arc<Block>>> {
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

/// The parts of a text that begins with a tag and ends outside reasoning.
fn split_tagged(text: &str) -> Option<Vec<Arc<Block>>> {
    if !text.trim_start().starts_with('<') {
        return None;
    }
    let (mut scan, mut out) = (Scan::new(FinalTag::Optional), Vec::new());
    scan.text(text, &mut out);
    scan.settle(&mut out);
    if scan.is_thinking() || !out.iter().any(|piece| matches!(piece, Piece::ThoughtEnd)) {
        return None;
    }
    let blocks = out.into_iter().filter_map(|piece| match piece {
        Piece::Thought(text) if !text.trim().is_empty() => {
            let thinking = Thinking { thinking: text.trim().to_owned(), ..Thinking::default() };
            Some(Arc::new(Block::Thinking(thinking)))
        }
        Piece::Visible(text) if !text.trim().is_empty() => {
            Some(Arc::new(Block::Text(Text { text: text.trim_start().to_owned(), signature: None })))
        }
        _ => None,
    });
    Some(blocks.collect())
}

/// Follows the reasoning of one answer and says what is new.
#[derive(Clone, Debug, Default)]
pub struct Follow {
    raw: String,
    told: String,
    open: bool,
}

impl Follow {
    /// More of it.
    pub fn add(&mut self, text: &str) -> Option<super::piece::ReasoningText> {
        self.raw.push_str(text);
        self.open = true;
        self.tell()
    }

    /// The whole of it, which may be more than what was added.
    pub fn set(&mut self, text: &str) -> Option<super::piece::ReasoningText> {
        if text.trim().is_empty() || self.raw.trim() == text.trim() {
            return None;
        }
        self.raw = text.to_owned();
        self.open = true;
        self.tell()
    }

    /// It is over; true when it had begun and nobody said so yet.
    pub fn end(&mut self) -> bool {
        std::mem::take(&mut self.open)
    }

    /// A new answer begins.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    fn tell(&mut self) -> Option<super::piece::ReasoningText> {
        let formatted = format_reasoning(&self.raw);
        if formatted.is_empty() || formatted == self.told {
            return None;
        }
        self.told.clone_from(&formatted);
        Some(super::piece::ReasoningText { formatted, raw: self.raw.trim().to_owned() })
    }
}
