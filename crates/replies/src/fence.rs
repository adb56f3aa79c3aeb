//! Marks where a text may be split, in a single pass as it arrives: fences, inline code, directives and tables.

use std::collections::VecDeque;

use super::code::CodeState;
use super::directives::MEDIA_KEYWORD;
use super::inline::{InlineMarks, InlineSpan};

/// A fence, starting at its opening line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Where the opening line begins.
    pub start: usize,
    /// Where the closing line ends, without its newline; `None` while open.
    pub end: Option<usize>,
    /// The opening line.
    pub open_line: String,
    /// Text that closes it: indentation and marker.
    pub closing: String,
}

/// Marks of a text that is removed at its front and grows at its end. Positions are byte offsets from the beginning of the answer.
#[derive(Clone, Debug, Default)]
pub struct Marks {
    state: CodeState,
    at: usize,
    line_start: usize,
    line: String,
    /// First non-white-space character of the line.
    first: Option<char>,
    spans: VecDeque<Span>,
    inline: InlineMarks,
    /// Directives.
    directives: VecDeque<(usize, usize)>,
    /// Tables, from just before the end of their first row to the end of their last.
    tables: VecDeque<(usize, usize)>,
    table_line: bool,
    bracket: Option<usize>,
    /// Start of the list item that the line belongs to.
    item: Option<usize>,
    /// Completed list items.
    items: VecDeque<(usize, usize)>,
    /// `MEDIA:` lines, from the keyword to their newline.
    media: VecDeque<(usize, usize)>,
    /// Where the keyword of the line begins, if it is one of them.
    media_line: Option<usize>,
    last: Option<char>,
}

impl Marks {
    /// Appends text.
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
                    span.end = Some(self.at);
                }
            } else if let Some(span) = self.spans.back_mut().filter(|span| span.start == self.line_start) {
                span.open_line.clone_from(&self.line);
                // The marker may be longer than the three characters that begin a fence.
                if let Some(fence) = self.state.fence() {
                    span.closing = fence.closing();
                }
            }
            self.end_table_line();
            if matches!(self.first, Some('#' | '|')) {
                self.inline.end_block();
            }
            self.media.extend(self.media_line.take().map(|start| (start, self.at)));
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
            self.inline.begin_fence();
        }
        if !self.state.in_fence() {
            self.inline.push(c, self.at);
            self.follow_directive(c);
            self.follow_item(c);
            if c == ':'
                && self.first == Some('M')
                && self.line.len() <= MAX_MARKER_LINE
                && self.line.trim_start() == MEDIA_KEYWORD
            {
                self.media_line = Some(self.at + 1 - MEDIA_KEYWORD.len());
            }
        } else if let Some(start) = self.item.take() {
            self.items.push_back((start, self.line_start.saturating_sub(1)));
        }
        self.last = Some(c);
        self.at += c.len_utf8();
    }

    fn open_span(&mut self) {
        let Some(fence) = self.state.fence() else { return };
        self.spans.push_back(Span {
            start: self.line_start,
            end: None,
            open_line: String::new(),
            closing: fence.closing(),
        });
    }

    /// Keeps rows of a table together.
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

    fn follow_directive(&mut self, c: char) {
        if self.state.in_inline() {
            self.bracket = None;
        } else if c == '[' && self.last == Some('[') && self.bracket.is_none() {
            self.bracket = Some(self.at - 1);
        } else if c == ']'
            && self.last == Some(']')
            && let Some(start) = self.bracket.take()
        {
            self.directives.push_back((start, self.at + 1));
        }
    }

    /// Keeps the lines of a list item together.
    fn follow_item(&mut self, c: char) {
        // The space after an item's marker makes it one.
        let is_marker = c == ' ' && self.line.len() <= MAX_MARKER_LINE && is_list_marker(self.line.trim());
        if is_marker {
            self.inline.end_block();
            if let Some(start) = self.item.replace(self.line_start) {
                self.items.push_back((start, self.line_start.saturating_sub(1)));
            }
        } else if c == '\n'
            && self.last == Some('\n')
            && let Some(start) = self.item.take()
        {
            self.items.push_back((start, self.at - 1));
        }
    }

    /// Returns whether a position is inside a list item.
    fn in_item(&self, at: usize) -> bool {
        self.items.iter().take_while(|(start, _)| *start < at).any(|(_, end)| at < *end)
            || self.item.is_some_and(|start| start < at)
    }

    /// Returns the fence around a position: strictly inside, or at the end of one that is still open.
    pub fn fence_at(&self, at: usize) -> Option<&Span> {
        self.spans.iter().take_while(|span| span.start < at).find(|span| {
            let end = span.end.or_else(|| (self.state.line_closes()).then_some(self.at));
            end.is_none_or(|end| at < end)
        })
    }

    /// Returns whether the text ends with a line that closes a fence.
    pub(super) fn ends_with_fence(&self) -> bool {
        self.state.line_closes()
    }

    /// Returns whether a break here does no harm.
    pub fn is_good(&self, at: usize) -> bool {
        // Emitted text is forgotten, so only marks of the current block are examined.
        let in_closed = self.directives.iter().take_while(|(start, _)| *start < at).any(|(_, end)| at < *end);
        let in_table = self.tables.iter().take_while(|(start, _)| *start < at).any(|(_, end)| at < *end);
        let may_go_on = self.line.is_empty() || self.first == Some('|');
        let in_open_table = self.table_line && may_go_on && at + 1 >= self.line_start;
        let in_directive = in_closed || self.bracket.is_some_and(|start| start < at);
        let in_directive = in_directive || self.media_at(at).is_some();
        let in_markup = in_directive || self.inline.is_inside(at) || self.in_item(at);
        !in_markup && !in_table && !in_open_table && self.fence_at(at).is_none()
    }

    /// Returns where the keyword of the `MEDIA:` line begins around a position, and its end unless it may still grow.
    pub(super) fn media_at(&self, at: usize) -> Option<(usize, Option<usize>)> {
        let ended = self.media.iter().take_while(|(start, _)| *start < at).find(|(_, end)| at < *end);
        let open = || self.media_line.filter(|start| *start < at).map(|start| (start, None));
        ended.map(|(start, end)| (*start, Some(*end))).or_else(open)
    }

    /// Returns the inline markup around a position, from the outside to the inside.
    pub(super) fn markup_around(&self, at: usize) -> Vec<&InlineSpan> {
        self.inline.around(at)
    }

    /// Declares the text complete: markup that is open is text.
    pub(super) fn finish(&mut self) {
        self.inline.end_block();
    }

    /// Returns whether no break after `at` can be good before more text arrives, because an open fence or code span began before it.
    pub fn is_blocked_from(&self, at: usize) -> bool {
        let in_fence = self.is_in_fence_from(at);
        in_fence || self.inline.is_in_code_from(at)
    }

    /// Returns whether everything after `at` is inside one open fence.
    pub fn is_in_fence_from(&self, at: usize) -> bool {
        self.spans.back().is_some_and(|span| span.start < at && span.end.is_none()) && !self.state.line_closes()
    }

    /// Forgets everything before a position.
    pub fn discard_before(&mut self, at: usize) {
        while self.spans.front().is_some_and(|span| span.end.is_some_and(|end| end <= at)) {
            self.spans.pop_front();
        }
        self.inline.discard_before(at);
        while self.directives.front().is_some_and(|(_, end)| *end <= at) {
            self.directives.pop_front();
        }
        while self.tables.front().is_some_and(|(_, end)| *end <= at) {
            self.tables.pop_front();
        }
        while self.items.front().is_some_and(|(_, end)| *end <= at) {
            self.items.pop_front();
        }
        while self.media.front().is_some_and(|(_, end)| *end <= at) {
            self.media.pop_front();
        }
    }
}

/// The longest start of a line that is examined for a list marker or a keyword, in bytes.
const MAX_MARKER_LINE: usize = 32;

/// Returns whether a word begins a list item.
fn is_list_marker(word: &str) -> bool {
    let n_digits = word.len() - word.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    matches!(word, "-" | "*" | "+") || ((1..=9).contains(&n_digits) && matches!(&word[n_digits..], "." | ")"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Renders for each length of a growing text where a break does no harm: `.` where it does.
    fn breaks(text: &str) -> String {
        let (mut marks, mut rows) = (Marks::default(), format!("{text:?}\n"));
        for (at, c) in text.char_indices() {
            marks.push(&text[at..at + c.len_utf8()]);
            let row = (0..=at + 1).map(|at| {
                match (marks.is_good(at), marks.is_blocked_from(at), marks.is_in_fence_from(at)) {
                    (true, ..) => '|',
                    (false, false, _) => '.',
                    (false, true, false) => 'b',
                    (false, true, true) => 'f',
                }
            });
            rows += &format!("{}\n", row.collect::<String>());
        }
        rows
    }

    const TEXTS: [&str; 9] = [
        "a [[b]] c",
        "a [[[b] ]] `[[` c]]",
        "x\nMEDIA:./a\nb",
        "- a\n- b\n\nc",
        "a\n1. b\n```\nc",
        "|a|\n|b|\n\n|c|\nd",
        "# *a\nb*",
        "a\n```\nb\n```\nc",
        "~~~\n```\n~~~~ \na `b",
    ];

    #[test]
    fn a_break_does_no_harm_outside_of_markup() {
        insta::assert_snapshot!(TEXTS.map(breaks).concat());
    }

    #[test]
    fn what_is_forgotten_does_not_change_later_breaks() {
        let text = TEXTS.join("\n\n");
        check_forgetting(&text);
        // What follows the fence that is never closed is code, so the other order has more markup.
        let mut texts = TEXTS;
        texts.reverse();
        check_forgetting(&texts.join("\n\n"));
    }

    fn check_forgetting(text: &str) {
        let mut marks = Marks::default();
        marks.push(text);
        let all: Vec<bool> = (0..=text.len()).map(|at| marks.is_good(at)).collect();
        let around = |marks: &Marks, at| {
            let spans: Vec<usize> = marks.markup_around(at).iter().map(|span| span.start).collect();
            (marks.fence_at(at).cloned(), marks.media_at(at), spans)
        };
        let parts: Vec<_> = (0..=text.len()).map(|at| around(&marks, at)).collect();
        for from in 0..=text.len() {
            marks.discard_before(from);
            for at in from..=text.len() {
                assert_eq!((marks.is_good(at), around(&marks, at)), (all[at], parts[at].clone()), "{from} {at}");
            }
        }
        let Marks { directives, tables, items, media, .. } = &marks;
        assert_eq!([directives.len(), tables.len(), items.len(), media.len()], [0; 4]);
        assert!(marks.spans.len() <= 1, "only the open fence is left");
    }

    #[test]
    fn text_between_two_tables_belongs_to_neither() {
        let mut marks = Marks::default();
        marks.push("|a|\n|b|\n\nc\n\n|d|\n|e|\n\nf");
        let good: String = (0..26).map(|at| if marks.is_good(at) { '|' } else { '.' }).collect();
        assert_eq!(good, "|||....||||||||....|||||||");
    }

    #[test]
    fn a_fence_has_its_lines_and_its_end() {
        let mut marks = Marks::default();
        marks.push("a\n  ````rs x\nb\n  ````");
        let open = marks.fence_at(5).unwrap().clone();
        let span = Span { start: 2, end: None, open_line: "  ````rs x".into(), closing: "  ````".into() };
        assert_eq!((&open, marks.ends_with_fence()), (&span, true));
        assert!(marks.fence_at(21).is_none() && marks.fence_at(20).is_some() && marks.fence_at(2).is_none());
        let mut open = Marks::default();
        open.push("a\n  ````rs x\nb");
        assert!(!open.is_in_fence_from(2) && open.is_in_fence_from(3));
        marks.push("\nc");
        let closed = Span { end: Some(21), ..span };
        assert_eq!((marks.fence_at(5), marks.ends_with_fence()), (Some(&closed), false));
    }
}
