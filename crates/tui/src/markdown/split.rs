//! Cutting a text into pieces that are laid out once.
//!
//! StyledLines are taken one by one. A piece ends where nothing that follows can change its meaning: at the end of a paragraph, before the next item of
//! a list, after each line of a code block. Where a piece ends depends on the text only and not on how it arrived. The parser has the last
//! word on what a piece is; what is missed here costs time or a blank row, and never text.

use pulldown_cmark::{Event, Parser, Tag};

use super::cut::{LONG, MIDDLE, cut_point};
use super::line::{HEAD, HtmlEnd, LineHead, LineStart};
use super::options::EXTENSIONS;

/// A part of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MarkdownPiece {
    pub(super) kind: PieceKind,
    pub(super) start: usize,
    pub(super) end: usize,
    /// There is a blank line before it.
    pub(super) after_blank: bool,
    /// The paragraph at its end continues in the next piece.
    pub(super) is_open: bool,
}

/// What a piece is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PieceKind {
    /// Blocks, as a rule one.
    Blocks,
    /// The next item of the list before.
    Item,
    /// More of a paragraph.
    Middle,
    /// The first line of a code block.
    FenceStart,
    /// A line of code.
    FenceLine,
    /// The last line of a code block; empty when it is missing.
    FenceEnd,
}

/// The block that lines belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SplitState {
    /// None: the next line begins one.
    Outside,
    /// A block that ends with its line.
    Line,
    Paragraph,
    Table,
    Quote,
    List {
        mark: u8,
        after_blank: bool,
    },
    /// An indented code block.
    Indented,
    Html(HtmlEnd),
    Fence {
        mark: u8,
        len: usize,
    },
    /// The last line of a fence.
    FenceEnd,
}

/// Finds the pieces of a text that grows.
#[derive(Clone, Debug)]
pub(super) struct Splitter {
    pieces: Vec<MarkdownPiece>,
    state: SplitState,
    /// Where the piece under way begins, and what it is.
    start: usize,
    kind: PieceKind,
    /// There is a blank line before it.
    after_blank: bool,
    /// Where the first line begins that is not over.
    line: usize,
    /// Its beginning was looked at.
    is_begun: bool,
    /// Up to where its end was looked for.
    searched: usize,
    /// The line before it is blank.
    is_after_blank: bool,
}

impl Splitter {
    pub(super) fn new() -> Self {
        Self {
            pieces: Vec::new(),
            state: SplitState::Outside,
            start: 0,
            kind: PieceKind::Blocks,
            after_blank: false,
            line: 0,
            is_begun: false,
            searched: 0,
            is_after_blank: false,
        }
    }

    /// The pieces that are finished.
    pub(super) fn pieces(&self) -> &[MarkdownPiece] {
        &self.pieces
    }

    /// What follows the finished pieces of a text of `len` bytes.
    pub(super) fn rest(&self, len: usize) -> Option<MarkdownPiece> {
        let (kind, start) = match self.state {
            SplitState::Fence { .. } if self.is_at_fence_start() => (PieceKind::FenceStart, self.line),
            SplitState::Fence { .. } => (PieceKind::FenceLine, self.line),
            _ if self.start == len => return None,
            _ => (self.kind, self.start),
        };
        Some(MarkdownPiece { kind, start, end: len, after_blank: self.after_blank, is_open: false })
    }

    /// Looks at what is new in the text.
    pub(super) fn advance(&mut self, text: &str) {
        while self.line < text.len() {
            let end = text[self.searched..].find('\n').map(|at| self.searched + at);
            let line = &text[self.line..end.unwrap_or(text.len())];
            self.searched = self.line + line.len();
            if !self.is_begun {
                if end.is_none() && line.len() <= HEAD {
                    return;
                }
                self.begin_line(text, &LineHead::of(line));
                self.is_begun = true;
            }
            let next = end.map_or(text.len(), |end| end + 1);
            self.cut_paragraph(text, next);
            if end.is_none() {
                return;
            }
            self.end_line(line, next);
        }
    }

    /// The text is over.
    pub(super) fn finish(&mut self, text: &str) {
        if self.line < text.len() {
            let line = &text[self.line..];
            if !self.is_begun {
                self.begin_line(text, &LineHead::of(line));
            }
            self.cut_paragraph(text, text.len());
            self.end_line(line, text.len());
        }
        match self.state {
            SplitState::Fence { .. } => self.push(PieceKind::FenceEnd, text.len(), text.len()),
            _ => self.cut(text.len()),
        }
        self.state = SplitState::Outside;
    }

    /// Ends the piece under way.
    fn cut(&mut self, at: usize) {
        if self.start < at && self.state != SplitState::Outside {
            self.push(self.kind, self.start, at);
        }
        self.start = at;
        self.kind = PieceKind::Blocks;
        self.after_blank = self.is_after_blank;
        self.state = SplitState::Outside;
    }

    fn push(&mut self, kind: PieceKind, start: usize, end: usize) {
        self.pieces.push(MarkdownPiece { kind, start, end, after_blank: self.after_blank, is_open: false });
        self.start = end;
    }

    fn begin_line(&mut self, text: &str, head: &LineHead<'_>) {
        let is_blank = head.start == LineStart::Blank;
        match self.state {
            SplitState::Fence { mark, len } => {
                if head.closes_fence(mark, len) {
                    self.state = SplitState::FenceEnd;
                }
                return;
            }
            SplitState::Html(end) if end != HtmlEnd::Blank => return,
            SplitState::Outside if is_blank => {}
            SplitState::Indented if is_blank => {}
            SplitState::List { mark, .. } if is_blank => self.state = SplitState::List { mark, after_blank: true },
            _ if is_blank => self.state = SplitState::Line,
            SplitState::Outside => self.begin_block(head),
            _ => self.continue_block(text, head),
        }
        self.is_after_blank = is_blank;
    }

    /// Decides whether a line that is not blank belongs to the block before it.
    fn continue_block(&mut self, text: &str, head: &LineHead<'_>) {
        let is_indented = head.indent >= 4;
        let begins_another = match (self.state, head.start) {
            (SplitState::Paragraph, _) if head.is_underline() => {
                self.state = SplitState::Line;
                return;
            }
            (SplitState::Paragraph, _) if head.may_be_delimiter_row() && self.is_table(text) => {
                self.state = SplitState::Table;
                return;
            }
            (SplitState::Indented, _) => !is_indented,
            (SplitState::List { mark, .. }, LineStart::Item { mark: other, is_empty: false, .. })
                if mark == other && head.indent < 2 =>
            {
                self.cut(self.line);
                self.kind = PieceKind::Item;
                self.state = SplitState::List { mark, after_blank: false };
                return;
            }
            // What belongs to an item is indented as far as its text.
            (SplitState::List { after_blank, .. }, start) => {
                head.indent < 2 && (after_blank || begins_a_block(start) || head.html(true).is_some())
            }
            (SplitState::Quote, LineStart::Quote) => false,
            (SplitState::Paragraph | SplitState::Table | SplitState::Quote, start) => {
                !is_indented && (begins_a_block(start) || head.html(true).is_some())
            }
            _ => false,
        };
        if begins_another {
            self.cut(self.line);
            self.begin_block(head);
        } else if let SplitState::List { mark, .. } = self.state {
            self.state = SplitState::List { mark, after_blank: false };
        }
    }

    fn begin_block(&mut self, head: &LineHead<'_>) {
        self.start = self.line;
        self.after_blank = self.is_after_blank;
        self.state = match head.start {
            _ if head.indent >= 4 => SplitState::Indented,
            LineStart::Fence { mark, len } => SplitState::Fence { mark, len },
            LineStart::Heading | LineStart::Rule => SplitState::Line,
            LineStart::Quote => SplitState::Quote,
            LineStart::Item { mark, .. } => SplitState::List { mark, after_blank: false },
            LineStart::Tag => head.html(false).map_or(SplitState::Paragraph, SplitState::Html),
            LineStart::Blank | LineStart::Text => SplitState::Paragraph,
        };
    }

    /// Whether the lines of the paragraph, the current one included, end with a table.
    fn is_table(&self, text: &str) -> bool {
        let prefix = if self.kind == PieceKind::Middle { MIDDLE } else { "" };
        let lines = format!("{prefix}{}", &text[self.start..self.searched]);
        Parser::new_ext(&lines, EXTENSIONS).any(|event| matches!(event, Event::Start(Tag::Table(_))))
    }

    /// Cuts a paragraph that has become long. `end` is the end of what is known of its last line.
    fn cut_paragraph(&mut self, text: &str, end: usize) {
        while self.state == SplitState::Paragraph && end - self.start >= LONG {
            let window = &text[self.start..text.floor_char_boundary(self.start + LONG)];
            let at = self.start + cut_point(window, self.kind == PieceKind::Middle);
            let (start, kind) = (self.start, self.kind);
            self.pieces.push(MarkdownPiece { kind, start, end: at, after_blank: self.after_blank, is_open: true });
            self.start = at;
            self.kind = PieceKind::Middle;
        }
    }

    /// Whether the line is the first one of a code block.
    fn is_at_fence_start(&self) -> bool {
        let is_inside = |last: &MarkdownPiece| matches!(last.kind, PieceKind::FenceStart | PieceKind::FenceLine);
        !self.pieces.last().is_some_and(is_inside)
    }

    fn end_line(&mut self, line: &str, next: usize) {
        match self.state {
            SplitState::Fence { .. } => {
                let is_first = self.is_at_fence_start();
                self.push(if is_first { PieceKind::FenceStart } else { PieceKind::FenceLine }, self.line, next);
            }
            SplitState::FenceEnd => {
                self.push(PieceKind::FenceEnd, self.line, next);
                self.state = SplitState::Outside;
                self.is_after_blank = false;
            }
            SplitState::Line => self.cut(next),
            SplitState::Html(end) if end.is_in(line) => self.cut(next),
            SplitState::Outside => self.start = next,
            _ => {}
        }
        self.line = next;
        self.searched = next;
        self.is_begun = false;
    }
}

/// Whether a block begins that can begin right below a paragraph.
fn begins_a_block(start: LineStart) -> bool {
    matches!(
        start,
        LineStart::Fence { .. }
            | LineStart::Heading
            | LineStart::Rule
            | LineStart::Quote
            | LineStart::Item { interrupts: true, .. }
    )
}
