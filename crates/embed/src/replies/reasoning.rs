//! Formats reasoning, and finds it in messages that contain it as tagged text.

use std::sync::Arc;

use pinch_llm::message::{Block, Text, Thinking};

use super::piece::{Edit, Piece, ReasoningGrowth};
use super::scan::FinalTag;
use super::scan::Scan;

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

/// Turns thinking tags at the start of text blocks into thinking blocks, so that a stored message is clean; `None` if nothing changes.
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

/// Splits a text that begins with a tag and ends outside reasoning.
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

/// Tracks the reasoning of one answer and reports its growth. Each character is processed once.
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
    open: bool,
}

impl ReasoningTracker {
    /// Creates an empty state.
    pub fn new(heading: &str) -> Self {
        Self { heading: heading.to_owned(), ..Self::default() }
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
        if at == 0 {
            grown = grown.trim_start().to_owned();
        }
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
        Some(ReasoningGrowth { formatted, raw: Edit { at, text: grown } })
    }

    /// Sets the whole reasoning, which may be longer than the appended text.
    pub fn set(&mut self, text: &str) -> Option<ReasoningGrowth> {
        let text = text.trim();
        if text.is_empty() || self.raw == text {
            return None;
        }
        (self.raw, self.open) = (text.to_owned(), true);
        self.space.clear();
        let formatted = Edit { at: 0, text: format_reasoning(text, &self.heading) };
        self.n_formatted = formatted.text.len();
        Some(ReasoningGrowth { formatted, raw: Edit { at: 0, text: text.to_owned() } })
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
}
