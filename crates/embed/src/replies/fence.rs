//! Where a text may be broken: fences, inline code, directives and tables, marked once as text arrives.

use std::collections::VecDeque;

use super::code::CodeState;

/// A fence, from the start of its opening line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Where the opening line begins.
    pub start: usize,
    /// Where the closing line ends, its newline not counted; `None` while open.
    pub end: Option<usize>,
    /// Where the closing line begins.
    pub close: Option<usize>,
    /// The opening line.
    pub open_line: String,
    /// What closes it: indentation and marker.
    pub closing: String,
}

/// Marks of a text that is cut off at its front and grows at its end. Positions count bytes since the beginning of the answer.
#[derive(Clone, Debug, Default)]
pub struct Marks {
    state: CodeState,
    at: usize,
    line_start: usize,
    line: String,
    /// The first character of the line that is not white space.
    first: Option<char>,
    spans: VecDeque<Span>,
    /// Stretches that are better not broken; the last may be open.
    kept: VecDeque<(usize, Option<usize>)>,
    /// Tables, from before the end of their first row to the end of their last.
    tables: VecDeque<(usize, usize)>,
    table_line: bool,
    inline: bool,
    bracket: Option<usize>,
    last: Option<char>,
}

impl Marks {
    /// Takes more text in.
    pub fn push(&mut self, text: &str) {
        for c in text.chars() {
            self.push_char(c);
        }
    }

    fn push_char(&mut self, c: char) {
        let was_in_fence = self.state.fence().is_some();
        let closes = self.state.line_closes();
        self.state.push(c);
        if c == '\n' {
            if closes {
                if let Some(span) = self.spans.back_mut() {
                    (span.end, span.close) = (Some(self.at), Some(self.line_start));
                }
            } else if let Some(span) = self.spans.back_mut().filter(|span| span.start == self.line_start) {
                span.open_line.clone_from(&self.line);
            }
            self.end_table_line();
            self.line.clear();
            self.first = None;
            self.line_start = self.at + 1;
            self.bracket = None;
        } else {
            self.line.push(c);
            self.first = self.first.or((!c.is_whitespace()).then_some(c));
        }
        if !was_in_fence && self.state.in_fence() {
            self.open_span();
        }
        self.follow_inline();
        if !self.state.in_fence() {
            self.follow_directive(c);
        }
        self.last = Some(c);
        self.at += c.len_utf8();
    }

    fn open_span(&mut self) {
        let Some(fence) = self.state.fence() else { return };
        let closing = format!("{}{}", " ".repeat(fence.indent), fence.marker.to_string().repeat(fence.len));
        self.spans.push_back(Span {
            start: self.line_start,
            end: None,
            close: None,
            open_line: String::new(),
            closing,
        });
    }

    /// Rows of a table stay together.
    fn end_table_line(&mut self) {
        let is_row = !self.state.in_fence() && self.first == Some('|');
        if is_row && self.table_line {
            match self.tables.back_mut() {
                Some((_, end)) if *end + 1 == self.line_start => *end = self.at,
                _ => self.tables.push_back((self.line_start.saturating_sub(2), self.at)),
            }
        }
        self.table_line = is_row;
    }

    fn follow_inline(&mut self) {
        let inline = !self.state.in_fence() && self.state.in_inline();
        if inline && !self.inline {
            self.kept.push_back((self.at, None));
        } else if !inline
            && self.inline
            && let Some(open) = self.kept.iter_mut().rev().find(|(_, end)| end.is_none())
        {
            open.1 = Some(self.at);
        }
        self.inline = inline;
    }

    fn follow_directive(&mut self, c: char) {
        if self.inline {
            self.bracket = None;
        } else if c == '[' && self.last == Some('[') && self.bracket.is_none() {
            self.bracket = Some(self.at - 1);
        } else if c == ']'
            && self.last == Some(']')
            && let Some(start) = self.bracket.take()
        {
            self.kept.push_back((start, Some(self.at + 1)));
        }
    }

    /// The fence around a position: strictly inside, or at the end of one that is still open.
    pub fn fence_at(&self, at: usize) -> Option<&Span> {
        self.spans.iter().take_while(|span| span.start < at).find(|span| {
            let end = span.end.or_else(|| (self.state.line_closes()).then_some(self.at));
            end.is_none_or(|end| at < end)
        })
    }

    /// Whether a fence is closed by its last line, or by the line that is still growing.
    pub fn closes_at(&self, span: &Span) -> Option<(usize, usize)> {
        span.close.zip(span.end).or_else(|| self.state.line_closes().then_some((self.line_start, self.at)))
    }

    /// Whether a break here hurts nothing.
    pub fn is_good(&self, at: usize) -> bool {
        // What was given out is forgotten, so only marks of the block that is being cut are looked at.
        let in_kept =
            self.kept.iter().take_while(|(start, _)| *start < at).any(|(_, end)| end.is_none_or(|end| at < end));
        let in_table = self.tables.iter().take_while(|(start, _)| *start < at).any(|(_, end)| at < *end);
        let may_go_on = self.line.is_empty() || self.first == Some('|');
        let in_open_table = self.table_line && may_go_on && at + 1 >= self.line_start;
        let in_directive = self.bracket.is_some_and(|start| start < at);
        !in_kept && !in_table && !in_open_table && !in_directive && self.fence_at(at).is_none()
    }

    /// Whether no break behind `at` can be good before more text comes: a fence or a code span that is open began before it.
    pub fn is_blocked_from(&self, at: usize) -> bool {
        let in_fence = self.is_in_fence_from(at);
        in_fence || self.kept.back().is_some_and(|(start, end)| *start < at && end.is_none())
    }

    /// Whether everything behind `at` stands in one fence that is open.
    pub fn is_in_fence_from(&self, at: usize) -> bool {
        self.spans.back().is_some_and(|span| span.start < at && span.end.is_none()) && !self.state.line_closes()
    }

    /// Forgets what lies before a position.
    pub fn discard_before(&mut self, at: usize) {
        while self.spans.front().is_some_and(|span| span.end.is_some_and(|end| end <= at)) {
            self.spans.pop_front();
        }
        while self.kept.front().is_some_and(|(_, end)| end.is_some_and(|end| end <= at)) {
            self.kept.pop_front();
        }
        while self.tables.front().is_some_and(|(_, end)| *end <= at) {
            self.tables.pop_front();
        }
    }
}
