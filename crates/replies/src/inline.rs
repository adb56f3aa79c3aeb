//! Inline markup, in a single pass as a text arrives: code spans, emphasis (`*`, `**`, `_`, `__`, `~~`) and links.
//!
//! The rules are those of CommonMark as far as they need no second look at a text. A marker opens markup if a word follows it, and closes it
//! if a word precedes it; markup ends with its paragraph.

use std::collections::VecDeque;

/// The most emphasis that is open at the same time. The outermost beyond that is plain text.
const MAX_DEPTH: usize = 8;

/// The longest open emphasis or link that is kept together, in bytes.
const MAX_OPEN: usize = 400;

/// Inline markup. Positions are byte offsets from the beginning of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InlineSpan {
    /// Where its opening marker begins.
    pub(super) start: usize,
    /// Where its content begins.
    pub(super) content: usize,
    /// Where its closing marker begins and ends; `None` while open.
    pub(super) close: Option<(usize, usize)>,
    /// The opening marker.
    pub(super) opening: String,
    /// The closing marker; `None` for a link, whose address is in the text.
    pub(super) closing: Option<String>,
}

/// A run of equal marker characters.
#[derive(Clone, Copy, Debug)]
struct MarkerRun {
    marker: char,
    start: usize,
    len: usize,
    /// The character before it.
    before: Option<char>,
}

/// Emphasis or a code span that is open.
#[derive(Clone, Copy, Debug)]
struct OpenMarker {
    marker: char,
    start: usize,
    len: usize,
}

/// State of an incomplete link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinkMark {
    /// `[` and its text.
    Text,
    /// `[…]`, whose bracket is here: an address may follow.
    Closed(usize),
    /// `[…](` and its address.
    Address(usize),
}

/// Inline markup of a text that is removed at its front and grows at its end.
#[derive(Clone, Debug, Default)]
pub(super) struct InlineMarks {
    /// Markup in the order of its start. What turned out to be text is empty.
    spans: VecDeque<InlineSpan>,
    /// Stretches of closed markup: disjoint and in order.
    closed: VecDeque<(usize, usize)>,
    emphasis: VecDeque<OpenMarker>,
    code: Option<OpenMarker>,
    /// Start and state of a link, and whether it is an image.
    link: Option<(usize, LinkMark, bool)>,
    /// Markers at the end of the text.
    run: Option<MarkerRun>,
    last: Option<char>,
    /// Whether the next character has no meaning because of a backslash.
    is_escaped: bool,
    /// Whether the line has characters other than white space.
    has_words: bool,
}

impl InlineMarks {
    /// Appends a character at a position.
    pub(super) fn push(&mut self, c: char, at: usize) {
        let is_escaped = self.is_escaped;
        self.is_escaped = c == '\\' && !is_escaped && self.code.is_none();
        match &mut self.run {
            Some(run) if run.marker == c && !is_escaped => run.len += 1,
            _ => {
                self.end_run(Some(c));
                let is_text =
                    is_escaped || self.code.is_some() || matches!(self.link, Some((_, LinkMark::Address(_), _)));
                if c == '`' || (matches!(c, '*' | '_' | '~') && !is_text) {
                    self.run = Some(MarkerRun { marker: c, start: at, len: 1, before: self.last });
                } else if self.code.is_none() && !is_escaped {
                    self.follow_link(c, at);
                }
            }
        }
        if c == '\n' && !std::mem::take(&mut self.has_words) {
            self.end_block();
        }
        self.has_words |= !c.is_whitespace();
        self.last = Some(c);
    }

    /// Ends a paragraph at a fence, whose marker is no inline markup.
    pub(super) fn begin_fence(&mut self) {
        self.run = None;
        self.end_block();
    }

    /// Ends a paragraph or the whole text: what is open is text.
    pub(super) fn end_block(&mut self) {
        self.end_run(None);
        for open in self.emphasis.drain(..).chain(self.code.take()) {
            dismiss(&mut self.spans, open.start);
        }
        self.dismiss_link();
        self.last = None;
    }

    fn end_run(&mut self, after: Option<char>) {
        let Some(run) = self.run.take() else { return };
        if run.marker != '`' {
            return self.end_emphasis_run(run, after);
        }
        match self.code {
            Some(open) if open.len == run.len => {
                self.code = None;
                self.close(open.start, run.start, run.start + run.len);
            }
            Some(_) => {}
            None => {
                self.dismiss_link();
                self.code = Some(self.open(run.marker, run.start, run.len));
            }
        }
    }

    fn end_emphasis_run(&mut self, run: MarkerRun, after: Option<char>) {
        if run.len > 3 || (run.marker == '~' && run.len != 2) {
            return;
        }
        let is_space = |c: Option<char>| c.is_none_or(char::is_whitespace);
        let is_mark = |c: Option<char>| c.is_some_and(|c| !c.is_alphanumeric() && !c.is_whitespace());
        let begins = !is_space(after) && (!is_mark(after) || is_space(run.before) || is_mark(run.before));
        let ends = !is_space(run.before) && (!is_mark(run.before) || is_space(after) || is_mark(after));
        let in_words = run.marker != '_';
        let (mut at, mut left) = (run.start, run.len);
        while left > 0 && ends && (in_words || !begins || is_mark(after)) {
            let matches = |open: &OpenMarker, len: usize| open.marker == run.marker && open.len == len;
            let exact = self.emphasis.iter().rposition(|open| matches(open, left));
            let found = exact.or_else(|| self.emphasis.iter().rposition(|open| (1..left).any(|n| matches(open, n))));
            let Some(found) = found else { break };
            // What was opened inside of it is text.
            while self.emphasis.len() > found + 1 {
                self.emphasis.pop_back().into_iter().for_each(|open| dismiss(&mut self.spans, open.start));
            }
            let Some(open) = self.emphasis.pop_back() else { break };
            self.close(open.start, at, at + open.len);
            (at, left) = (at + open.len, left - open.len);
        }
        if begins && (in_words || !ends || is_mark(run.before)) {
            for len in [left / 2 * 2, left % 2].into_iter().filter(|len| *len > 0) {
                let open = self.open(run.marker, at, len);
                self.emphasis.push_back(open);
                at += len;
            }
            while self.emphasis.len() > MAX_DEPTH {
                self.emphasis.pop_front().into_iter().for_each(|open| dismiss(&mut self.spans, open.start));
            }
        }
    }

    fn open(&mut self, marker: char, start: usize, len: usize) -> OpenMarker {
        let text = marker.to_string().repeat(len);
        self.spans.push_back(InlineSpan {
            start,
            content: start + len,
            close: None,
            opening: text.clone(),
            closing: Some(text),
        });
        OpenMarker { marker, start, len }
    }

    fn close(&mut self, start: usize, closing: usize, end: usize) {
        if let Some(span) = span_at(&mut self.spans, start) {
            span.close = Some((closing, end));
        }
        self.keep_together(start, end);
    }

    /// Merges a stretch of closed markup with those that it contains.
    fn keep_together(&mut self, mut start: usize, mut end: usize) {
        while let Some((from, to)) = self.closed.pop_back_if(|(_, to)| *to > start) {
            (start, end) = (start.min(from), end.max(to));
        }
        self.closed.push_back((start, end));
    }

    fn follow_link(&mut self, c: char, at: usize) {
        self.link = match (self.link, c) {
            (link, '[') if !matches!(link, Some((_, LinkMark::Address(_), _))) => {
                self.dismiss_link();
                self.spans.push_back(InlineSpan {
                    start: at,
                    content: at + 1,
                    close: None,
                    opening: c.to_string(),
                    closing: None,
                });
                Some((at, LinkMark::Text, self.last == Some('!')))
            }
            (Some((start, LinkMark::Text, is_image)), ']') => Some((start, LinkMark::Closed(at), is_image)),
            (Some((start, LinkMark::Closed(bracket), is_image)), '(') => {
                Some((start, LinkMark::Address(bracket), is_image))
            }
            (Some((start, LinkMark::Address(_), true)), ')') => {
                // Half an image is none.
                dismiss(&mut self.spans, start);
                self.keep_together(start - 1, at + 1);
                None
            }
            (Some((start, LinkMark::Address(bracket), false)), ')') => {
                self.close(start, bracket, at + 1);
                None
            }
            (Some((_, LinkMark::Closed(_), _)), _) | (Some(_), '\n') => {
                self.dismiss_link();
                None
            }
            (link, _) => link,
        };
    }

    fn dismiss_link(&mut self) {
        if let Some((start, ..)) = self.link.take() {
            dismiss(&mut self.spans, start);
        }
    }

    /// Returns whether a position is inside markup, as far as is known: what has been open for long may be text.
    pub(super) fn is_inside(&self, at: usize) -> bool {
        let before = self.closed.partition_point(|(start, _)| *start < at);
        let is_recent = |start: usize| start < at && at - start < MAX_OPEN;
        before.checked_sub(1).is_some_and(|n| at < self.closed[n].1)
            || self.is_in_code_from(at)
            || self.run.is_some_and(|run| run.start < at)
            || self.emphasis.iter().any(|open| is_recent(open.start))
            || self.link.is_some_and(|(start, ..)| is_recent(start))
    }

    /// Returns whether everything after a position is inside one open code span.
    pub(super) fn is_in_code_from(&self, at: usize) -> bool {
        self.code.is_some_and(|open| open.start < at)
    }

    /// Returns the markup around a position, from the outside to the inside. Links are known when they are complete.
    pub(super) fn around(&self, at: usize) -> Vec<&InlineSpan> {
        let spans = self.spans.iter().take_while(|span| span.start < at);
        let is_around = |span: &&InlineSpan| match span.close {
            Some((_, end)) => at < end,
            None => span.closing.is_some(),
        };
        spans.filter(is_around).collect()
    }

    /// Forgets everything before a position.
    pub(super) fn discard_before(&mut self, at: usize) {
        let n_begun = self.spans.partition_point(|span| span.start < at);
        let begun: Vec<InlineSpan> = self.spans.drain(..n_begun).collect();
        let alive = begun.into_iter().rev().filter(|span| span.close.is_none_or(|(_, end)| at < end));
        alive.for_each(|span| self.spans.push_front(span));
        while self.closed.pop_front_if(|(_, end)| *end <= at).is_some() {}
    }
}

fn span_at(spans: &mut VecDeque<InlineSpan>, start: usize) -> Option<&mut InlineSpan> {
    let at = spans.partition_point(|span| span.start < start);
    spans.get_mut(at).filter(|span| span.start == start)
}

/// Makes a span empty: its marker turned out to be text.
fn dismiss(spans: &mut VecDeque<InlineSpan>, start: usize) {
    if let Some(span) = span_at(spans, start) {
        span.close = Some((start, start));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the markup of a text, in the order of its start.
    fn shown(text: &str) -> Vec<&str> {
        let mut marks = InlineMarks::default();
        text.char_indices().for_each(|(at, c)| marks.push(c, at));
        marks.end_block();
        let found = marks.spans.iter().filter_map(|span| span.close.map(|(_, end)| &text[span.start..end]));
        found.filter(|span| !span.is_empty()).collect()
    }

    #[test]
    fn markup_follows_commonmark() {
        for (text, expected) in [
            ("a **b c** d *e* _f_ __g__ ~~h~~ `i`", &["**b c**", "*e*", "_f_", "__g__", "~~h~~", "`i`"][..]),
            ("***a b*** **c *d*** *e **f***", &["***a b***", "*a b*", "**c *d***", "*d*", "*e **f***", "**f**"]),
            ("2 * 3 ** 4, snake_case_name, ~5, **** and * x*", &[]),
            ("stray *a\n\nb* and `c\n \nd`", &[]),
            ("\\*a* *b\\* c* \\[d](e)", &["*b\\* c*"]),
            ("`a *b` c* ``d ` e``", &["`a *b`", "``d ` e``"]),
            ("[a *b*](http://x/_y_) [c] (d) [[e]] ![f](g)", &["[a *b*](http://x/_y_)", "*b*"]),
            ("**a\nb** *c `d` e*", &["**a\nb**", "*c `d` e*", "`d`"]),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn positions_inside_markup_are_known() {
        let text = "a **b `c d` e** f *g";
        let mut marks = InlineMarks::default();
        text.char_indices().for_each(|(at, c)| marks.push(c, at));
        let inside: String = (0..=text.len()).map(|at| if marks.is_inside(at) { 'x' } else { '.' }).collect();
        assert_eq!(inside, "...xxxxxxxxxxxx....xx");
        marks.end_block();
        assert!(!marks.is_inside(text.len()));
        assert_eq!(marks.around(9).iter().map(|span| span.start).collect::<Vec<_>>(), [2, 6]);
        marks.discard_before(9);
        assert_eq!(marks.spans.len(), 3);
        marks.discard_before(20);
        assert_eq!((marks.spans.len(), marks.closed.len()), (0, 0));
    }

    /// Returns for each position of a text whether it is inside of markup.
    fn inside(text: &str) -> String {
        let mut marks = InlineMarks::default();
        text.char_indices().for_each(|(at, c)| marks.push(c, at));
        (0..=text.len()).map(|at| if marks.is_inside(at) { 'x' } else { '.' }).collect()
    }

    #[test]
    fn a_place_between_two_links_is_outside_of_both() {
        assert_eq!(inside("[a](b)[c](d) "), ".xxxxx.xxxxx..");
        assert_eq!(inside("[*a* b](c) "), ".xxxxxxxxx..");
    }

    #[test]
    fn a_bracket_before_code_begins_no_link() {
        assert_eq!(inside("[ `b` c"), "...xx...");
    }

    #[test]
    fn the_text_of_a_link_begins_after_its_bracket() {
        let mut marks = InlineMarks::default();
        "a [b](c)".char_indices().for_each(|(at, c)| marks.push(c, at));
        let parts: Vec<_> = marks.around(4).iter().map(|span| (span.start, span.content, span.close)).collect();
        assert_eq!(parts, [(2, 3, Some((4, 8)))]);
    }

    /// Markers with every kind of character at both sides.
    #[test]
    fn a_marker_opens_before_a_word_and_closes_after_one() {
        let mut all = String::new();
        for marker in ["*", "_", "**", "***", "~~", "~"] {
            for (before, after) in [("", ""), ("a", ""), ("", "a"), (".", "a"), ("a", "."), (" ", ".")] {
                for (left, right) in [("", ""), (".", ""), ("", "."), (".", "."), (" ", ""), ("", " ")] {
                    let text = format!("{before}{marker}{left}x{right}{marker}{after}");
                    let found = shown(&text);
                    all +=
                        &if found.is_empty() { String::new() } else { format!("{text} has {}\n", found.join(" and ")) };
                }
            }
        }
        insta::assert_snapshot!(all);
    }

    #[test]
    fn markup_that_is_open_for_long_or_too_deep_is_text() {
        for (before, marker) in [("", "*"), ("", "["), ("some words ", "*"), ("some words ", "[")] {
            let text = format!("{before}{marker}{}", "a".repeat(MAX_OPEN + 8));
            let mut marks = InlineMarks::default();
            text.char_indices().for_each(|(at, c)| marks.push(c, at));
            let inside: Vec<usize> = (0..=text.len()).filter(|at| marks.is_inside(*at)).collect();
            let start = before.len();
            assert_eq!(inside, (start + 1..start + MAX_OPEN).collect::<Vec<_>>(), "{before}{marker}");
        }
        let deep = |n: usize| format!("{}x{}", "*a **b ".repeat(n), " c** d*".repeat(n));
        assert_eq!(shown(&deep(MAX_DEPTH / 2)).len(), MAX_DEPTH);
        assert_eq!(shown(&deep(MAX_DEPTH / 2 + 1)).len(), MAX_DEPTH);
    }

    #[test]
    fn markup_is_known_while_it_grows() {
        let mut all = String::new();
        for text in
            ["a *b* c", "a ![b](c) d", "[a](b *c* [d) e]", "**a *b** c*", "`a ``b` c", "[a] [b\n](c)", "*a `b* c`"]
        {
            let mut marks = InlineMarks::default();
            all += &format!("{text:?}\n");
            for (at, c) in text.char_indices() {
                marks.push(c, at);
                let row = (0..=at + 1).map(|at| match marks.around(at).len() {
                    _ if !marks.is_inside(at) => '.',
                    n => char::from_digit(u32::try_from(n).unwrap(), 10).unwrap(),
                });
                all += &format!("{}\n", row.collect::<String>());
            }
        }
        insta::assert_snapshot!(all);
    }
}
