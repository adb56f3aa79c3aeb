//! An answer of the model: its text and its thinking.

use pinch_llm::event::BlockKind;
use pinch_llm::message::{AssistantMessage, Block};

use super::ViewCx;
use super::frame::paragraphs;
use crate::Row;
use crate::theme::Token;

struct Part {
    index: usize,
    is_thinking: bool,
    text: String,
}

/// The view.
pub(in crate::app) struct Answer {
    parts: Vec<Part>,
    failure: Option<String>,
    cut_off: bool,
    finished: bool,
}

impl Answer {
    pub(super) fn begun(_now_ms: i64) -> Self {
        Self { parts: Vec::new(), failure: None, cut_off: false, finished: false }
    }

    pub(super) fn text(text: &str) -> Self {
        let mut answer = Self::begun(0);
        answer.parts.push(Part { index: 0, is_thinking: false, text: text.to_owned() });
        answer.finished = true;
        answer
    }

    pub(super) fn of(message: &AssistantMessage) -> Self {
        let mut answer = Self::begun(0);
        for (index, block) in message.content.iter().enumerate() {
            answer.end_block(index, block, 0);
        }
        answer
    }

    pub(super) fn is_finished(&self) -> bool {
        self.finished
    }

    pub(super) fn begin_block(&mut self, index: usize, kind: &BlockKind, _now_ms: i64) {
        let is_thinking = matches!(kind, BlockKind::Thinking { .. });
        self.parts.push(Part { index, is_thinking, text: String::new() });
    }

    pub(super) fn push(&mut self, index: usize, text: &str, _now_ms: i64) {
        if let Some(part) = self.parts.iter_mut().rev().find(|part| part.index == index) {
            part.text.push_str(text);
        }
    }

    pub(super) fn end_block(&mut self, index: usize, block: &Block, _now_ms: i64) {
        let (text, is_thinking) = match block {
            Block::Text(text) => (text.text.as_str(), false),
            Block::Thinking(thinking) => (thinking.thinking.as_str(), true),
            _ => return,
        };
        match self.parts.iter_mut().rev().find(|part| part.index == index) {
            Some(part) => part.text = text.to_owned(),
            None => self.parts.push(Part { index, is_thinking, text: text.to_owned() }),
        }
    }

    pub(super) fn finish(&mut self, failure: Option<&str>, cut_off: bool) {
        self.failure = failure.map(str::to_owned);
        self.cut_off = cut_off;
        self.finished = true;
    }

    pub(super) fn invalidate(&mut self) {}

    pub(super) fn plain_text(&self) -> Option<String> {
        let texts: Vec<&str> =
            self.parts.iter().filter(|part| !part.is_thinking).map(|part| part.text.trim()).collect();
        Some(texts.join("\n")).filter(|text| !text.trim().is_empty())
    }

    pub(super) fn n_final(&mut self, _cx: ViewCx<'_>) -> usize {
        0
    }

    pub(super) fn rows(&mut self, cx: ViewCx<'_>) -> Vec<Row> {
        let theme = cx.theme;
        let mut rows = Vec::new();
        for part in self.parts.iter().filter(|part| !part.text.trim().is_empty()) {
            if !rows.is_empty() {
                rows.push(Row::default());
            }
            let token = if part.is_thinking { Token::ThinkingText } else { Token::Text };
            let text = if part.is_thinking && cx.options.hide_thinking { "Thinking..." } else { part.text.trim() };
            rows.extend(paragraphs(text, theme.fg(token), cx.columns, 1));
        }
        if let Some(failure) = &self.failure {
            rows.extend(paragraphs(failure, theme.fg(Token::Error), cx.columns, 1));
        }
        if self.cut_off {
            rows.extend(paragraphs("The model reached its output limit", theme.fg(Token::Dim), cx.columns, 1));
        }
        rows
    }
}
