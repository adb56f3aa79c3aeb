//! The current text block, and the pieces it is split into.

use pulldown_cmark::{Event, Parser, Tag};

use super::cut::{LONG, count_work, cut_point, last_grapheme};
use super::line::{HtmlEnd, LineHead};
use super::options::EXTENSIONS;

/// Number of bytes of definitions searched for the text below them.
const MAX_DEFINITIONS: usize = 1024;

/// A part of the text that is laid out once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MarkdownPiece {
    pub(super) kind: PieceKind,
    /// Its text without the markers of the quotes and lists around it.
    pub(super) source: String,
    /// Whether there is a blank line before it.
    pub(super) after_blank: bool,
    /// Whether its end continues in the next piece: a paragraph, a table, or a line.
    pub(super) is_open: bool,
}

/// Kind of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PieceKind {
    /// The start of a quote.
    QuoteStart,
    /// The start of a list item.
    ItemStart(ItemHead),
    /// The end of the innermost quote or item.
    ContainerEnd,
    /// A paragraph, a heading, a table, or a rule.
    Blocks,
    /// The continuation of a paragraph.
    Middle,
    /// More rows of a table.
    TableRows,
    /// The start of a code block, with its language.
    CodeStart,
    CodeLine,
    CodeEnd,
    /// The first line of HTML.
    HtmlStart,
    HtmlLine,
}

/// The start of a list item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ItemHead {
    /// Its number in an ordered list.
    pub(super) number: Option<u64>,
    /// Whether the preceding item is of the same list.
    pub(super) continues: bool,
    /// Whether its checkbox is checked, if it has one.
    pub(super) task: Option<bool>,
}

/// Kind of a text block.
#[derive(Clone, Debug)]
pub(super) enum LeafKind {
    /// A heading or a rule, which ends with its line.
    Line,
    Paragraph,
    Table,
    /// An indented code block, with the number of blank lines at its end.
    Indented {
        n_blank: usize,
    },
    Fence {
        mark: u8,
        len: usize,
        indent: usize,
    },
    Html {
        end: HtmlEnd,
        is_ended: bool,
        /// The last bytes of the line that are already in a piece.
        tail: String,
    },
}

/// An unfinished text block.
#[derive(Clone, Debug)]
pub(super) struct OpenLeaf {
    pub(super) kind: LeafKind,
    /// Text that is not in a piece yet.
    source: String,
    after_blank: bool,
    /// Whether its beginning is already in a piece.
    is_begun: bool,
    /// Start of the last line.
    line: usize,
}

impl OpenLeaf {
    pub(super) fn new(kind: LeafKind, after_blank: bool) -> Self {
        Self { kind, source: String::new(), after_blank, is_begun: false, line: 0 }
    }

    /// Creates a paragraph whose text may look like another block.
    pub(super) fn plain_paragraph(after_blank: bool) -> Self {
        Self { is_begun: true, ..Self::new(LeafKind::Paragraph, after_blank) }
    }

    pub(super) fn is_paragraph(&self) -> bool {
        matches!(self.kind, LeafKind::Paragraph)
    }

    /// Returns whether the beginning of the last line is gone, so that it cannot be a table header.
    pub(super) fn is_rest(&self) -> bool {
        self.is_begun && self.line == 0
    }

    pub(super) fn is_code(&self) -> bool {
        matches!(self.kind, LeafKind::Fence { .. } | LeafKind::Indented { .. })
    }

    /// Begins another line of a paragraph or table.
    pub(super) fn next_line(&mut self) {
        self.source.push('\n');
        self.line = self.source.len();
    }

    /// Appends text of the current line.
    pub(super) fn append(&mut self, mut text: &str, out: &mut Vec<MarkdownPiece>) {
        // In parts, because what follows a piece is copied.
        while !text.is_empty() {
            let (part, rest) = text.split_at(text.floor_char_boundary(LONG));
            self.source.push_str(part);
            text = rest;
            while self.source.len() >= LONG {
                self.cut(out);
            }
        }
    }

    fn push(&mut self, kind: PieceKind, at: usize, is_open: bool, out: &mut Vec<MarkdownPiece>) {
        let rest = self.source.split_off(at);
        let mut source = std::mem::replace(&mut self.source, rest);
        source.shrink_to_fit();
        out.push(MarkdownPiece { kind, source, after_blank: self.after_blank, is_open });
        self.is_begun = true;
        self.line = self.line.saturating_sub(at);
    }

    /// Turns the beginning of a long text into a piece.
    fn cut(&mut self, out: &mut Vec<MarkdownPiece>) {
        let window = &self.source[..self.source.floor_char_boundary(LONG)];
        let at = match self.kind {
            LeafKind::Paragraph | LeafKind::Line => cut_point(window, self.is_begun),
            LeafKind::Table => {
                let body = if self.is_begun { 0 } else { window.find('\n').map_or(0, |at| at + 1) };
                let row = window[body..].rfind('\n').filter(|at| *at > 0).map(|at| body + at);
                row.unwrap_or(window.len())
            }
            _ => last_grapheme(window),
        };
        if let LeafKind::Html { end, is_ended, tail } = &mut self.kind {
            let line = format!("{tail}{}", &self.source[..at]);
            *is_ended |= end.is_in(&line);
            *tail = line[line.ceil_char_boundary(line.len().saturating_sub(16))..].to_owned();
        }
        self.push(self.piece_kind(), at, true, out);
    }

    /// Returns the kind of the next piece.
    fn piece_kind(&self) -> PieceKind {
        match (&self.kind, self.is_begun) {
            (LeafKind::Fence { .. }, false) => PieceKind::CodeStart,
            (LeafKind::Fence { .. } | LeafKind::Indented { .. }, _) => PieceKind::CodeLine,
            (LeafKind::Html { .. }, false) => PieceKind::HtmlStart,
            (LeafKind::Html { .. }, true) => PieceKind::HtmlLine,
            (_, false) => PieceKind::Blocks,
            (LeafKind::Table, true) => PieceKind::TableRows,
            (_, true) => PieceKind::Middle,
        }
    }

    /// Ends the line. Returns whether the block continues.
    pub(super) fn end_line(&mut self, out: &mut Vec<MarkdownPiece>) -> bool {
        match &mut self.kind {
            LeafKind::Paragraph | LeafKind::Table => return true,
            LeafKind::Line => {}
            LeafKind::Html { end, is_ended, tail } => {
                *is_ended |= end.is_in(&(std::mem::take(tail) + &self.source));
            }
            LeafKind::Indented { .. } | LeafKind::Fence { .. } => {}
        }
        self.push(self.piece_kind(), self.source.len(), false, out);
        !matches!(self.kind, LeafKind::Line | LeafKind::Html { is_ended: true, .. })
    }

    /// Emits the blank lines at the end of an indented code block, since it continues.
    pub(super) fn show_blank_lines(&mut self, out: &mut Vec<MarkdownPiece>) {
        if let LeafKind::Indented { n_blank } = &mut self.kind {
            for _ in 0..std::mem::take(n_blank) {
                self.push(PieceKind::CodeLine, 0, false, out);
            }
        }
    }

    /// Begins an indented code block.
    pub(super) fn start_code(&mut self, out: &mut Vec<MarkdownPiece>) {
        self.push(PieceKind::CodeStart, 0, false, out);
    }

    /// Ends the block.
    pub(super) fn close(mut self, out: &mut Vec<MarkdownPiece>) {
        let kind = match self.kind {
            LeafKind::Fence { .. } | LeafKind::Indented { .. } => PieceKind::CodeEnd,
            LeafKind::Html { .. } => return,
            _ => self.piece_kind(),
        };
        self.push(kind, self.source.len(), false, out);
    }

    /// Returns whether an underline turns the paragraph into a heading.
    pub(super) fn is_heading_with(&self, underline: &LineHead<'_>) -> bool {
        // There must be something besides definitions.
        let text = format!("{}\n{}", self.source, underline.text);
        count_work(text.len());
        self.is_begun
            || !self.source.starts_with('[')
            || Parser::new_ext(&text, EXTENSIONS).any(|event| matches!(event, Event::Start(Tag::Heading { .. })))
    }

    /// Turns the last line of a paragraph into a table if it matches the delimiter row below.
    pub(super) fn begin_table(&mut self, delimiters: &LineHead<'_>, out: &mut Vec<MarkdownPiece>) -> bool {
        let header = &self.source[self.line..];
        let is_first = self.line == 0;
        let bar = header.trim_start_matches(' ');
        let may_interrupt = bar.starts_with('|') && header.len() - bar.len() < 4;
        if self.is_rest() || !header.contains('|') {
            return false;
        }
        let stands_alone = is_first || may_interrupt;
        let text = match stands_alone {
            true => format!("{bar}\n{}", delimiters.text),
            // The header may be the first line after a few definitions.
            false if self.source.starts_with('[') && !self.is_begun && self.line < MAX_DEFINITIONS => {
                format!("{}\n{}", self.source, delimiters.text)
            }
            false => return false,
        };
        count_work(text.len());
        if !Parser::new_ext(&text, EXTENSIONS).any(|event| matches!(event, Event::Start(Tag::Table(_)))) {
            return false;
        }
        if !is_first && stands_alone {
            self.push(self.piece_kind(), self.line, false, out);
            self.after_blank = false;
        }
        self.is_begun = false;
        self.kind = LeafKind::Table;
        true
    }
}
