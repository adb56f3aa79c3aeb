//! An answer of the model: its text and its thinking.

use std::ops::Range;

use pinch_llm::event::BlockKind;
use pinch_llm::message::{AssistantMessage, Block};
use ratatui_core::style::Modifier;
use ratatui_core::text::Span;

use super::ViewCx;
use super::frame::paragraphs;
use crate::Row;
use crate::markdown::{Markdown, MarkdownOptions};
use crate::sgr;
use crate::theme::ColorRole;

/// One block of the answer.
struct Part {
    index: usize,
    is_thinking: bool,
    text: Markdown,
    /// Number of bytes received.
    n_pushed: usize,
    /// Its start in the text of the answer, if known.
    text_at: usize,
    /// When it began and ended, in Unix milliseconds.
    begun_ms: Option<i64>,
    ended_ms: Option<i64>,
    /// Whether it is complete.
    ended: bool,
    /// Whether rows of it were taken…
    is_begun: bool,
    /// … and whether that was the line which replaces it.
    is_replaced: bool,
}

impl Part {
    fn new(index: usize, is_thinking: bool, begun_ms: Option<i64>) -> Self {
        let options = match is_thinking {
            true => MarkdownOptions::colored(ColorRole::ThinkingText).italic(),
            false => MarkdownOptions::default(),
        };
        Self {
            index,
            is_thinking,
            text: Markdown::new(options),
            n_pushed: 0,
            text_at: 0,
            begun_ms,
            ended_ms: None,
            ended: false,
            is_begun: false,
            is_replaced: false,
        }
    }

    fn push(&mut self, text: &str) {
        self.text.push(text);
        self.n_pushed += text.len();
    }

    fn finish(&mut self) {
        self.ended = true;
        self.text.finish();
    }

    /// Truncates the text to the first `n` bytes.
    fn truncate(&mut self, n: usize) {
        self.text.truncate(n);
        self.n_pushed = self.text.text().len();
    }

    /// Returns whether one line replaces it.
    fn is_hidden(&self, cx: ViewCx<'_>) -> bool {
        self.is_thinking && (cx.options.hide_thinking || (cx.options.hide_open_thinking && !self.ended))
    }

    /// Returns the row that replaces hidden thinking.
    fn hidden_row(&self, cx: ViewCx<'_>) -> Row {
        let style = cx.theme.fg(ColorRole::ThinkingText).add_modifier(Modifier::ITALIC);
        if let Some(label) = &cx.options.thinking_label {
            let row = std::iter::once(Span::styled(" ", style)).chain(sgr::spans_on(style, label, cx.theme));
            return crate::text::truncate(&row.collect(), cx.columns, "…");
        }
        let text = match (self.begun_ms, self.ended_ms) {
            (Some(begun), None) if !self.ended => format!("Thinking… {}s", (cx.now_ms - begun).max(0) / 1000),
            (Some(begun), Some(ended)) if ended - begun >= 1000 => format!("Thought for {}s", (ended - begun) / 1000),
            _ => "Thinking...".to_owned(),
        };
        crate::text::truncate(&Row::styled(format!(" {text}"), style), cx.columns, "…")
    }

    /// Returns a range of the rows.
    fn rows_in(&mut self, range: Range<usize>, cx: ViewCx<'_>) -> Vec<Row> {
        self.take_options(cx);
        if self.is_hidden(cx) {
            return std::iter::once(self.hidden_row(cx)).take(range.end).skip(range.start).collect();
        }
        indented(self.text.rows_in(range, inner(cx), cx.theme), cx)
    }

    /// Takes the rows that never change, except for those that were taken before.
    fn take_rows(&mut self, cx: ViewCx<'_>) -> Vec<Row> {
        self.take_options(cx);
        let is_hidden = self.is_hidden(cx);
        let rows = match (is_hidden, self.is_begun) {
            // Thinking that is in the scrollback is not shown in another form.
            _ if self.is_replaced => Vec::new(),
            (true, false) if self.ended => vec![self.hidden_row(cx)],
            (true, _) => Vec::new(),
            (false, _) => indented(self.text.take_rows(inner(cx), cx.theme), cx),
        };
        self.is_begun |= !rows.is_empty();
        self.is_replaced |= is_hidden && !rows.is_empty();
        rows
    }

    /// Returns the rows that were not taken.
    fn remaining_rows(&mut self, cx: ViewCx<'_>) -> Vec<Row> {
        self.take_options(cx);
        match (self.is_hidden(cx), self.is_begun) {
            _ if self.is_replaced => Vec::new(),
            (true, false) => vec![self.hidden_row(cx)],
            (true, true) => Vec::new(),
            (false, _) => indented(self.text.remaining_rows(inner(cx), cx.theme), cx),
        }
    }

    /// Applies the settings for code.
    fn take_options(&mut self, cx: ViewCx<'_>) {
        let options = self.text.options_mut();
        if options.code_indent != cx.options.code_indent {
            options.code_indent.clone_from(&cx.options.code_indent);
        }
    }

    fn n_stable(&mut self, cx: ViewCx<'_>) -> usize {
        self.take_options(cx);
        match self.is_hidden(cx) {
            true => usize::from(self.ended),
            false => self.text.n_stable_rows(inner(cx), cx.theme),
        }
    }
}

/// Puts the blank column on the left of rows.
fn indented(mut rows: Vec<Row>, cx: ViewCx<'_>) -> Vec<Row> {
    for row in rows.iter_mut().filter(|row| !row.spans.is_empty() && cx.columns > 1) {
        row.spans.insert(0, Span::raw(" "));
    }
    rows
}

/// Returns the number of columns besides the blank one on the left.
fn inner(cx: ViewCx<'_>) -> usize {
    cx.columns.saturating_sub(1).max(1)
}

/// View of an answer.
pub(crate) struct AnswerView {
    parts: Vec<Part>,
    failure: Option<String>,
    cut_off: bool,
    finished: bool,
    /// Whether rows of it were taken.
    is_begun: bool,
}

impl AnswerView {
    pub(super) fn begun() -> Self {
        Self { parts: Vec::new(), failure: None, cut_off: false, finished: false, is_begun: false }
    }

    /// Creates a view of a complete text in the style of an answer.
    pub(super) fn text(text: &str) -> Self {
        let mut part = Part::new(0, false, None);
        part.push(text);
        part.finish();
        Self { parts: vec![part], finished: true, ..Self::begun() }
    }

    /// Creates a view of a complete message.
    pub(super) fn of(message: &AssistantMessage) -> Self {
        let mut answer = Self::begun();
        for (index, block) in message.content.iter().enumerate() {
            answer.end_block(index, block, None);
        }
        answer
    }

    pub(super) fn is_finished(&self) -> bool {
        self.finished
    }

    pub(super) fn begin_block(&mut self, index: usize, kind: &BlockKind, now_ms: i64) {
        let is_thinking = matches!(kind, BlockKind::Thinking { .. });
        self.parts.push(Part::new(index, is_thinking, Some(now_ms)));
    }

    pub(super) fn push(&mut self, index: usize, text: &str) {
        if let Some(part) = self.parts.iter_mut().rev().find(|part| part.index == index) {
            part.push(text);
        }
    }

    pub(super) fn end_block(&mut self, index: usize, block: &Block, now_ms: Option<i64>) {
        let (text, is_thinking) = match block {
            Block::Text(text) => (text.text.as_str(), false),
            Block::Thinking(thinking) => (thinking.thinking.as_str(), true),
            _ => return,
        };
        if !self.parts.iter().any(|part| part.index == index) {
            self.parts.push(Part::new(index, is_thinking, now_ms));
        }
        if let Some(part) = self.parts.iter_mut().rev().find(|part| part.index == index) {
            // Some providers send the end of a block only with the block.
            if let Some(rest) = text.get(part.n_pushed..) {
                part.push(rest);
            }
            part.ended_ms = now_ms;
            part.finish();
        }
    }

    /// Truncates the text of the whole answer at a byte, and appends another text.
    pub(in crate::transcript) fn put_text(&mut self, at: usize, text: &str) {
        // Parts that were truncated entirely.
        self.parts.retain(|part| part.is_thinking || part.text_at <= at);
        let continues = self.parts.last().is_some_and(|part| !part.is_thinking);
        let end = self.parts.iter().rev().find(|part| !part.is_thinking).map(|part| part.text_at + part.n_pushed);
        if end.is_none_or(|end| !continues && at >= end) {
            self.end_thinking(None);
            let mut part = Part::new(self.parts.len(), false, None);
            part.text_at = at;
            self.parts.push(part);
        }
        if let Some(part) = self.parts.iter_mut().rev().find(|part| !part.is_thinking) {
            let kept = at.saturating_sub(part.text_at);
            if kept < part.n_pushed {
                part.truncate(kept);
            }
            part.push(text);
        }
    }

    /// Appends thinking.
    pub(in crate::transcript) fn put_thinking(&mut self, text: &str, now_ms: i64) {
        if !self.parts.last().is_some_and(|part| part.is_thinking && !part.ended) {
            self.parts.iter_mut().for_each(Part::finish);
            self.parts.push(Part::new(self.parts.len(), true, Some(now_ms)));
        }
        if let Some(part) = self.parts.last_mut() {
            part.push(text);
        }
    }

    /// Ends thinking.
    pub(in crate::transcript) fn end_thinking(&mut self, now_ms: Option<i64>) {
        for part in self.parts.iter_mut().filter(|part| part.is_thinking && !part.ended) {
            part.ended_ms = now_ms;
            part.finish();
        }
    }

    pub(in crate::transcript) fn finish(&mut self, failure: Option<&str>, cut_off: bool) {
        self.failure = failure.map(str::to_owned);
        self.cut_off = cut_off;
        self.finished = true;
        self.parts.iter_mut().for_each(Part::finish);
    }

    /// Drops the cached rows.
    pub(super) fn release(&mut self) {
        self.parts.iter_mut().for_each(|part| part.text.release());
    }

    pub(super) fn plain_text(&self) -> Option<String> {
        let texts = self.parts.iter().filter(|part| !part.is_thinking).map(|part| part.text.text().trim());
        let texts: Vec<&str> = texts.collect();
        Some(texts.join("\n")).filter(|text| !text.trim().is_empty())
    }

    pub(super) fn texts(&self, each: &mut dyn FnMut(&str)) {
        self.parts.iter().for_each(|part| each(part.text.text()));
        self.failure.iter().for_each(|failure| each(failure));
    }

    /// Returns how many of the first rows never change: all those before the part that is still arriving.
    pub(super) fn n_final(&mut self, cx: ViewCx<'_>) -> usize {
        let mut n = 0;
        for part in self.parts.iter_mut().filter(|part| !part.text.is_blank()) {
            let n_part = part.n_stable(cx);
            if n_part > 0 && n > 0 {
                n += 1;
            }
            n += n_part;
            if !part.ended {
                break;
            }
        }
        n
    }

    /// Returns whether rows of it were taken.
    pub(super) fn is_begun(&self) -> bool {
        self.is_begun
    }

    /// Takes the rows that never change, except for those that were taken before. They go into the scrollback, and whatever changes later
    /// does not change them: the width, the theme, or whether thinking is shown.
    pub(super) fn take_rows(&mut self, cx: ViewCx<'_>) -> Vec<Row> {
        let mut rows = Vec::new();
        for part in self.parts.iter_mut().filter(|part| !part.text.is_blank()) {
            let is_new = !part.is_begun;
            append(&mut rows, part.take_rows(cx), is_new && self.is_begun, is_new);
            if !part.ended {
                break;
            }
        }
        if self.finished {
            append(&mut rows, self.notes(cx), self.is_begun, true);
        }
        self.is_begun |= !rows.is_empty();
        rows
    }

    /// Returns the rows that were not taken.
    pub(super) fn remaining_rows(&mut self, cx: ViewCx<'_>) -> Vec<Row> {
        let mut rows = Vec::new();
        for part in self.parts.iter_mut().filter(|part| !part.text.is_blank()) {
            let is_new = !part.is_begun;
            append(&mut rows, part.remaining_rows(cx), is_new && self.is_begun, is_new);
        }
        append(&mut rows, self.notes(cx), self.is_begun, true);
        rows
    }

    /// Returns the rows about how the answer ended.
    fn notes(&self, cx: ViewCx<'_>) -> Vec<Row> {
        let mut notes = Vec::new();
        if let Some(failure) = &self.failure {
            notes.extend(paragraphs(failure, cx.theme.fg(ColorRole::Error), cx.columns, 1));
        }
        if self.cut_off {
            notes.extend(paragraphs("The model reached its output limit", cx.theme.fg(ColorRole::Dim), cx.columns, 1));
        }
        notes
    }

    /// Returns a range of the rows.
    pub(super) fn rows_in(&mut self, range: Range<usize>, cx: ViewCx<'_>) -> Vec<Row> {
        let mut rows = Vec::new();
        let Range { start: mut first, mut end } = range;
        let mut is_first = true;
        let mut add = |part_rows: &mut dyn FnMut(Range<usize>) -> (Vec<Row>, usize)| {
            if end == 0 {
                return;
            }
            if !is_first {
                match first {
                    0 => rows.push(Row::default()),
                    _ => first -= 1,
                }
                end -= 1;
            }
            is_first = false;
            let (part, n_left_out) = part_rows(first..end);
            first -= n_left_out;
            end -= part.len() + n_left_out;
            rows.extend(part);
        };
        for part in self.parts.iter_mut().filter(|part| !part.text.is_blank()) {
            add(&mut |range| {
                let n_stable = part.n_stable(cx);
                let first = range.start;
                let rows = part.rows_in(range, cx);
                // No more is skipped of an open part than what is stable in it.
                (rows, first.min(n_stable))
            });
        }
        let notes = self.notes(cx);
        if !notes.is_empty() {
            add(&mut |range| {
                let n_left_out = range.start.min(notes.len());
                (notes.iter().take(range.end).skip(range.start).cloned().collect(), n_left_out)
            });
        }
        rows
    }
}

/// Appends rows of a part, below a blank row if it is `new` and anything is above it.
fn append(rows: &mut Vec<Row>, more: Vec<Row>, is_below: bool, is_new: bool) {
    if !more.is_empty() && (is_below || is_new && !rows.is_empty()) {
        rows.push(Row::default());
    }
    rows.extend(more);
}
