//! Lays out pieces as rows.

use std::iter::repeat_n;

use ratatui_core::style::{Modifier, Style};
use ratatui_core::text::Span;

use super::blocks::{Definitions, MarkdownBlock, ReadContext, label_key, read};
use super::cut::count_work;
use super::frame::{LayoutFrame, put, resize};
use super::inline::{StyledLines, wrapped};
use super::leaf::{ItemHead, MarkdownPiece, PieceKind};
use super::options::MarkdownOptions;
use super::table::TableLayout;
use crate::Row;
use crate::highlight::{CodeLanguage, Highlighter};
use crate::text::{Chopper, TextWrapper, chop, width};
use crate::theme::{ColorRole, Palette};

/// Maximum width of a rule, in columns.
const MAX_RULE: usize = 80;
/// Minimum width for the text of a quote or an item, in columns; with less room, it has no prefix.
const MIN_TEXT: usize = 4;

/// The layout for a width and a theme.
#[derive(Clone, Debug)]
pub(super) struct MarkdownLayout {
    columns: usize,
    theme: Palette,
    options: MarkdownOptions,
    /// Rows that never change, except for those that were taken.
    rows: Vec<Row>,
    /// Number of pieces that are laid out.
    n_pieces: usize,
    definitions: Definitions,
    state: LayoutState,
}

/// State for laying out the next piece.
#[derive(Clone, Debug, Default)]
struct LayoutState {
    /// Open containers, outermost first.
    frames: Vec<LayoutFrame>,
    /// The current paragraph or line of HTML.
    paragraph: Option<TextWrapper>,
    /// The current code block.
    code: Option<Highlighter>,
    /// The current line of code.
    code_line: Option<Chopper>,
    /// The current table.
    table: Option<TableLayout>,
    /// Blank lines of HTML, which are shown when more of it follows.
    n_blank: usize,
}

impl LayoutState {
    /// Begins a block with a blank row above.
    fn begin_block(&mut self) {
        if let Some(frame) = self.frames.last_mut() {
            frame.gap();
            frame.ends_with_list = false;
        }
    }

    fn columns(&self) -> usize {
        self.frames.last().map_or(1, |frame| frame.columns)
    }

    fn style(&self) -> Style {
        self.frames.last().map(|frame| frame.style).unwrap_or_default()
    }

    fn put(&mut self, rows: Vec<Row>, out: &mut Vec<Row>) {
        put(&mut self.frames, rows, out);
    }

    /// Adds to the current paragraph, or begins one.
    fn add_lines(&mut self, lines: &StyledLines, is_open: bool, out: &mut Vec<Row>) {
        let mut wrapper = self.paragraph.take().unwrap_or_else(|| TextWrapper::new(self.columns()));
        for (nth, line) in lines.iter().enumerate() {
            if nth > 0 {
                wrapper.break_line();
            }
            line.iter().for_each(|span| wrapper.push(span));
        }
        self.put(wrapper.take_rows(), out);
        if is_open {
            self.paragraph = Some(wrapper);
        } else {
            self.put(wrapper.finish(), out);
        }
    }

    fn end_paragraph(&mut self, out: &mut Vec<Row>) {
        if let Some(paragraph) = self.paragraph.take() {
            self.put(paragraph.finish(), out);
        }
    }
}

impl MarkdownLayout {
    pub(super) fn new(columns: usize, theme: Palette, options: MarkdownOptions) -> Self {
        let style = theme.fg(options.text);
        let style = if options.italic { style.add_modifier(Modifier::ITALIC) } else { style };
        let state = LayoutState { frames: vec![LayoutFrame::new(columns, style)], ..LayoutState::default() };
        Self { columns, theme, options, rows: Vec::new(), n_pieces: 0, definitions: Definitions::new(), state }
    }

    pub(super) fn is_for(&self, columns: usize, theme: &Palette, options: &MarkdownOptions) -> bool {
        self.columns == columns.max(1) && self.theme == *theme && self.options == *options
    }

    /// Returns the rows that never change.
    pub(super) fn stable(&self) -> &[Row] {
        &self.rows
    }

    /// Takes the rows that never change.
    pub(super) fn take_stable(&mut self) -> Vec<Row> {
        std::mem::take(&mut self.rows)
    }

    /// Returns the number of pieces that are laid out.
    pub(super) fn n_pieces(&self) -> usize {
        self.n_pieces
    }

    /// Creates the layout of what follows the first `n` pieces.
    pub(super) fn after(self, n: usize) -> Self {
        Self { n_pieces: n, ..self }
    }

    /// Lays out what follows for another width, theme or options. An open paragraph, line or table continues in the new width.
    pub(super) fn resume(&mut self, columns: usize, theme: &Palette, options: &MarkdownOptions) {
        let new = Self::new(columns.max(1), theme.clone(), options.clone());
        (self.columns, self.theme, self.options) = (new.columns, new.theme, new.options);
        let style = new.state.style();
        let mut bullets = Vec::new();
        resize(&mut self.state.frames, columns.max(1), style, MIN_TEXT, &mut bullets);
        let width = self.state.columns();
        self.state.paragraph = self.state.paragraph.take().map(|paragraph| paragraph.resized(width));
        self.state.table = self.state.table.take().map(|table| table.resized(width));
        let width = self.code_columns(width).unwrap_or(width);
        self.state.code_line = self.state.code_line.take().map(|line| line.resized(width));
        self.rows.extend(bullets);
    }

    /// Returns the columns for code besides its indentation; `None` if there is no room for it.
    fn code_columns(&self, columns: usize) -> Option<usize> {
        Some(columns.saturating_sub(width(&self.options.code_indent))).filter(|inner| *inner >= MIN_TEXT)
    }

    /// Lays out new pieces.
    pub(super) fn advance(&mut self, pieces: &[MarkdownPiece]) {
        let mut state = std::mem::take(&mut self.state);
        let mut rows = std::mem::take(&mut self.rows);
        for piece in pieces {
            for (label, url) in self.piece(piece, &mut state, &mut rows) {
                // The first definition wins.
                self.definitions.entry(label).or_insert(url);
            }
        }
        self.rows = rows;
        self.state = state;
        self.n_pieces += pieces.len();
    }

    /// Returns the rows of unfinished text.
    pub(super) fn open_rows(&self, rest: &[MarkdownPiece]) -> Vec<Row> {
        let mut state = self.state.clone();
        let mut rows = Vec::new();
        for piece in rest {
            self.piece(piece, &mut state, &mut rows);
        }
        state.end_paragraph(&mut rows);
        rows
    }

    /// Lays out a piece, and returns its definitions.
    fn piece(&self, piece: &MarkdownPiece, state: &mut LayoutState, out: &mut Vec<Row>) -> Vec<(String, String)> {
        match piece.kind {
            PieceKind::QuoteStart => self.start_quote(state),
            PieceKind::ItemStart(head) => self.start_item(head, piece.after_blank, state, out),
            PieceKind::ContainerEnd => {
                if state.frames.last().is_some_and(LayoutFrame::is_bare) {
                    state.put(vec![Row::default()], out);
                }
                state.frames.pop();
            }
            PieceKind::Blocks | PieceKind::Middle => return self.blocks(piece, state, out),
            PieceKind::TableRows => self.table_rows(piece, state, out),
            PieceKind::CodeStart => {
                state.begin_block();
                let info = piece.source.trim();
                state.code = Some(Highlighter::new(CodeLanguage::named(info)));
                let info: String = info.chars().filter(|c| !c.is_control()).collect();
                self.fence(&info, state, out);
            }
            PieceKind::CodeLine => self.code_line(piece, state, out),
            PieceKind::CodeEnd => {
                state.code = None;
                self.fence("", state, out);
            }
            PieceKind::HtmlStart | PieceKind::HtmlLine => self.html_line(piece, state, out),
        }
        Vec::new()
    }

    fn start_quote(&self, state: &mut LayoutState) {
        state.begin_block();
        let columns = state.columns();
        let style = state.style().patch(self.theme.fg(ColorRole::MdQuote)).add_modifier(Modifier::ITALIC);
        state.frames.push(match columns.saturating_sub(2) {
            inner if inner < MIN_TEXT => LayoutFrame::new(columns, style),
            inner => {
                let bar = Span::styled("│ ", self.theme.fg(ColorRole::MdQuoteBorder));
                LayoutFrame::new(inner, style).prefixed(bar, None)
            }
        });
    }

    fn start_item(&self, head: ItemHead, after_blank: bool, state: &mut LayoutState, out: &mut Vec<Row>) {
        if let Some(frame) = state.frames.last_mut() {
            // A list is placed right below its introduction.
            if after_blank || (frame.ends_with_list && !head.continues) {
                frame.gap();
            }
            frame.ends_with_list = true;
        }
        let marker = head.number.map_or_else(|| "- ".to_owned(), |number| format!("{number}. "));
        let task = match head.task {
            None => "",
            Some(true) => "[x] ",
            Some(false) => "[ ] ",
        };
        let (columns, style, indent) = (state.columns(), state.style(), marker.len() + task.len());
        let bullet = Span::styled(format!("{marker}{task}"), self.theme.fg(ColorRole::MdListBullet));
        let inner = columns.saturating_sub(indent);
        if inner < MIN_TEXT {
            state.put(chop(&[bullet], columns), out);
            state.frames.push(LayoutFrame::new(columns, style));
            return;
        }
        let hanging = Span::raw(" ".repeat(indent));
        state.frames.push(LayoutFrame::new(inner, style).prefixed(hanging, Some(bullet)));
    }

    /// Lays out a piece with text blocks.
    fn blocks(&self, piece: &MarkdownPiece, state: &mut LayoutState, out: &mut Vec<Row>) -> Vec<(String, String)> {
        let is_middle = piece.kind == PieceKind::Middle;
        let context = ReadContext { theme: &self.theme, style: state.style(), definitions: &self.definitions };
        let mut definitions = Vec::new();
        let blocks = read(&piece.source, is_middle, &context);
        let is_definition = |block: &MarkdownBlock| matches!(block, MarkdownBlock::Definition { .. });
        let last = blocks.iter().rposition(|block| !is_definition(block)).unwrap_or(0);
        for (at, block) in blocks.into_iter().enumerate() {
            let is_open = piece.is_open && at == last;
            let continues = is_middle && at == 0;
            if let MarkdownBlock::Definition { label, url } = block {
                definitions.push((label_key(&label), url));
                continue;
            }
            if !continues {
                state.end_paragraph(out);
                state.begin_block();
            }
            match block {
                MarkdownBlock::Paragraph(lines) => state.add_lines(&lines, is_open, out),
                MarkdownBlock::Table(table) => {
                    let mut layout = TableLayout::new(&table, state.columns());
                    state.put(layout.first_rows(&table, &self.theme), out);
                    if is_open {
                        state.table = Some(layout);
                    } else {
                        state.put(layout.last_rows(&self.theme), out);
                    }
                }
                block => {
                    state.end_paragraph(out);
                    let rows = self.block(block, state.columns());
                    state.put(rows, out);
                }
            }
        }
        if !piece.is_open {
            state.end_paragraph(out);
        }
        definitions
    }

    /// Returns the rows of a single-line block.
    fn block(&self, block: MarkdownBlock, columns: usize) -> Vec<Row> {
        match block {
            MarkdownBlock::Heading { level, mut text } => {
                if level >= 3
                    && let Some(line) = text.first_mut()
                {
                    let marks = format!("{} ", "#".repeat(level));
                    line.insert(0, Span::styled(marks, self.theme.bold(ColorRole::MdHeading)));
                }
                wrapped(&text, columns)
            }
            MarkdownBlock::Rule => vec![Row::styled("─".repeat(columns.min(MAX_RULE)), self.theme.fg(ColorRole::MdHr))],
            _ => Vec::new(),
        }
    }

    fn table_rows(&self, piece: &MarkdownPiece, state: &mut LayoutState, out: &mut Vec<Row>) {
        let Some(mut layout) = state.table.take() else { return };
        // The parser requires a header.
        let n = layout.n_cells();
        let head: String = repeat_n("|x", n).chain(["|\n"]).chain(repeat_n("|-", n)).chain(["|\n"]).collect();
        let source = format!("{head}{}", piece.source.trim_start_matches('\n'));
        let context = ReadContext { theme: &self.theme, style: state.style(), definitions: &self.definitions };
        for block in read(&source, false, &context) {
            if let MarkdownBlock::Table(table) = block {
                state.put(layout.rows(&table.rows, &self.theme), out);
            }
        }
        if piece.is_open {
            state.table = Some(layout);
        } else {
            state.put(layout.last_rows(&self.theme), out);
        }
    }

    /// Lays out the first or last line of a code block.
    fn fence(&self, info: &str, state: &mut LayoutState, out: &mut Vec<Row>) {
        let border = self.theme.fg(ColorRole::MdCodeBlockBorder);
        let rows = chop(&[Span::styled(format!("```{info}"), border)], state.columns());
        state.put(rows, out);
    }

    fn code_line(&self, piece: &MarkdownPiece, state: &mut LayoutState, out: &mut Vec<Row>) {
        count_work(piece.source.len());
        let indent = Span::raw(self.options.code_indent.clone());
        let columns = state.columns();
        let inner = self.code_columns(columns);
        let begun = state.code_line.take();
        // A line that does not fit into a piece is too long to be highlighted.
        let is_whole = begun.is_none() && !piece.is_open;
        let mut chopper = begun.unwrap_or_else(|| Chopper::new(inner.unwrap_or(columns)));
        match &mut state.code {
            Some(highlighter) if is_whole => {
                let spans = highlighter.line(&piece.source, &self.theme);
                spans.iter().for_each(|span| chopper.push(&span.content, span.style));
            }
            _ => chopper.push(&piece.source, self.theme.fg(ColorRole::MdCodeBlock)),
        }
        let mut rows = chopper.take_rows();
        if piece.is_open {
            state.code_line = Some(chopper);
        } else {
            rows.extend(chopper.finish());
        }
        if let Some(inner) = inner {
            let mut frame = [LayoutFrame::new(inner, Style::new()).prefixed(indent, None)];
            let unindented = std::mem::take(&mut rows);
            put(&mut frame, unindented, &mut rows);
        }
        state.put(rows, out);
    }

    fn html_line(&self, piece: &MarkdownPiece, state: &mut LayoutState, out: &mut Vec<Row>) {
        count_work(piece.source.len());
        if piece.kind == PieceKind::HtmlStart {
            state.begin_block();
            state.n_blank = 0;
        }
        if state.paragraph.is_none() && piece.source.trim().is_empty() && !piece.is_open {
            state.n_blank += 1;
            return;
        }
        let n_blank = std::mem::take(&mut state.n_blank);
        state.put(vec![Row::default(); n_blank], out);
        let line = vec![Span::styled(piece.source.clone(), self.theme.fg(self.options.text))];
        state.add_lines(&vec![line], piece.is_open, out);
    }
}
