//! From blocks to rows.

use ratatui_core::style::Style;
use ratatui_core::text::Span;

use super::blocks::{Definitions, ListItem, MarkdownBlock, PlacedBlock, ReadContext, label_key, read};
use super::inline::{StyledLines, wrapped};
use super::options::MarkdownOptions;
use super::split::{MarkdownPiece, PieceKind};
use super::table;
use crate::Row;
use crate::highlight::{CodeLanguage, Highlighter};
use crate::text::{TextWrapper, chop, row_width};
use crate::theme::{ColorRole, Palette};

/// The columns of a rule at most.
const MAX_RULE: usize = 80;

/// What was laid out for a width and a theme.
#[derive(Clone, Debug)]
pub(super) struct MarkdownLayout {
    columns: usize,
    theme: Palette,
    options: MarkdownOptions,
    rows: Vec<Row>,
    n_pieces: usize,
    state: LayoutState,
}

/// What the next piece is laid out with.
#[derive(Clone, Debug, Default)]
struct LayoutState {
    definitions: Definitions,
    /// The paragraph that goes on.
    paragraph: Option<TextWrapper>,
    /// The code block that goes on.
    code: Option<Highlighter>,
    /// The number that the next item of the list has.
    next_number: Option<u64>,
    /// The last block was a list.
    in_list: bool,
    has_rows: bool,
}

impl MarkdownLayout {
    pub(super) fn new(columns: usize, theme: Palette, options: MarkdownOptions) -> Self {
        Self { columns, theme, options, rows: Vec::new(), n_pieces: 0, state: LayoutState::default() }
    }

    pub(super) fn is_for(&self, columns: usize, theme: &Palette, options: &MarkdownOptions) -> bool {
        self.columns == columns.max(1) && self.theme == *theme && self.options == *options
    }

    /// The rows that never change.
    pub(super) fn stable(&self) -> &[Row] {
        &self.rows
    }

    /// Lays out the pieces that are new.
    pub(super) fn advance(&mut self, pieces: &[MarkdownPiece], text: &str) {
        for piece in &pieces[self.n_pieces.min(pieces.len())..] {
            let mut state = std::mem::take(&mut self.state);
            let rows = self.piece(*piece, text, &mut state, true);
            self.rows.extend(rows);
            self.state = state;
        }
        self.n_pieces = pieces.len();
    }

    /// The rows of what is not finished.
    pub(super) fn open_rows(&self, rest: Option<MarkdownPiece>, text: &str) -> Vec<Row> {
        let mut state = self.state.clone();
        let mut rows = match rest {
            Some(piece) if !text[piece.start..piece.end].trim().is_empty() => {
                self.piece(piece, text, &mut state, false)
            }
            _ => Vec::new(),
        };
        // The paragraph under way ends here for now.
        rows.extend(state.paragraph.take().map(TextWrapper::finish).unwrap_or_default());
        rows
    }

    fn piece(&self, piece: MarkdownPiece, text: &str, state: &mut LayoutState, is_finished: bool) -> Vec<Row> {
        let source = &text[piece.start..piece.end];
        let mut rows = Vec::new();
        match piece.kind {
            PieceKind::FenceStart => {
                self.end_paragraph(state, &mut rows);
                self.gap(state, &mut rows);
                let info = source.trim().trim_start_matches(['`', '~']).trim();
                state.code = is_finished.then(|| Highlighter::new(CodeLanguage::named(info)));
                let info: String = info.chars().filter(|c| !c.is_control()).collect();
                rows.extend(chop(&[Span::styled(format!("```{info}"), self.border())], self.columns));
                state.in_list = false;
            }
            PieceKind::FenceLine => {
                let line = source.strip_suffix('\n').unwrap_or(source);
                let spans = match &mut state.code {
                    Some(highlighter) if is_finished => highlighter.line(line, &self.theme),
                    _ => vec![Span::styled(line.to_owned(), self.theme.fg(ColorRole::MdCodeBlock))],
                };
                rows.extend(self.code_rows(spans, self.columns));
            }
            PieceKind::FenceEnd => {
                state.code = None;
                rows.push(self.fence_end());
            }
            PieceKind::Middle | PieceKind::Blocks | PieceKind::Item => {
                self.blocks(piece, source, state, &mut rows);
            }
        }
        state.has_rows |= !rows.is_empty();
        rows
    }

    /// Lays out a piece that has blocks.
    fn blocks(&self, piece: MarkdownPiece, source: &str, state: &mut LayoutState, rows: &mut Vec<Row>) {
        let is_middle = piece.kind == PieceKind::Middle;
        let context = ReadContext { theme: &self.theme, options: &self.options, definitions: &state.definitions };
        let blocks = read(source, is_middle, &context);
        let last = blocks.len().saturating_sub(1);
        for (at, placed) in blocks.into_iter().enumerate() {
            let is_first = at == 0;
            let is_open = piece.is_open && at == last;
            match placed.block {
                MarkdownBlock::Paragraph(lines) if (is_middle && is_first) || is_open => {
                    if state.paragraph.is_none() {
                        self.gap(state, rows);
                    }
                    let mut wrapper = state.paragraph.take().unwrap_or_else(|| TextWrapper::new(self.columns));
                    for (nth, line) in lines.iter().enumerate() {
                        if nth > 0 {
                            wrapper.break_line();
                        }
                        line.iter().for_each(|span| wrapper.push(span));
                    }
                    rows.extend(wrapper.take_rows());
                    if is_open {
                        state.paragraph = Some(wrapper);
                    } else {
                        rows.extend(wrapper.finish());
                    }
                    state.in_list = false;
                    state.has_rows = true;
                }
                MarkdownBlock::Definition { label, url } => {
                    state.definitions.insert(label_key(&label), url);
                }
                MarkdownBlock::List { first, items } => {
                    self.end_paragraph(state, rows);
                    let continues = piece.kind == PieceKind::Item && is_first && state.in_list;
                    let after_blank = if is_first { piece.after_blank } else { placed.after_blank };
                    if after_blank || (!continues && !rows.is_empty()) || (!continues && state.in_list) {
                        self.gap(state, rows);
                    }
                    let number = if continues { state.next_number.or(first) } else { first };
                    let n_items = items.len() as u64;
                    rows.extend(self.list(number, items, self.columns));
                    state.next_number = number.map(|number| number.saturating_add(n_items));
                    state.in_list = true;
                    state.has_rows = true;
                }
                block => {
                    self.end_paragraph(state, rows);
                    self.gap(state, rows);
                    rows.extend(self.block(block, self.columns));
                    state.in_list = false;
                    state.has_rows = true;
                }
            }
        }
    }

    fn end_paragraph(&self, state: &mut LayoutState, rows: &mut Vec<Row>) {
        rows.extend(state.paragraph.take().map(TextWrapper::finish).unwrap_or_default());
    }

    /// A blank row, unless nothing is above.
    fn gap(&self, state: &LayoutState, rows: &mut Vec<Row>) {
        if state.has_rows || !rows.is_empty() {
            rows.push(Row::default());
        }
    }

    fn border(&self) -> Style {
        self.theme.fg(ColorRole::MdCodeBlockBorder)
    }

    fn fence_end(&self) -> Row {
        Row::styled(if self.columns >= 3 { "```" } else { "" }, self.border())
    }

    fn code_rows(&self, spans: Vec<Span<'static>>, columns: usize) -> Vec<Row> {
        let indent = &self.options.code_indent;
        let indent_columns = crate::text::width(indent);
        // Where there is no room for the indentation there is none.
        if indent_columns + 4 > columns {
            return chop(&spans, columns);
        }
        prefixed(chop(&spans, columns - indent_columns), &Span::raw(indent.clone()), None)
    }

    /// The rows of a block, without a blank row above.
    fn block(&self, block: MarkdownBlock, columns: usize) -> Vec<Row> {
        match block {
            MarkdownBlock::Paragraph(lines) => wrapped(&lines, columns),
            MarkdownBlock::Heading { level, text } => {
                let mut text = text;
                if level >= 3
                    && let Some(line) = text.first_mut()
                {
                    line.insert(
                        0,
                        Span::styled(format!("{} ", "#".repeat(level)), self.theme.bold(ColorRole::MdHeading)),
                    );
                }
                wrapped(&text, columns)
            }
            MarkdownBlock::Code { info, text } => {
                let mut highlighter = Highlighter::new(CodeLanguage::named(&info));
                let mut rows = chop(&[Span::styled(format!("```{info}"), self.border())], columns);
                for line in text.strip_suffix('\n').unwrap_or(&text).split('\n') {
                    rows.extend(self.code_rows(highlighter.line(line, &self.theme), columns));
                }
                rows.extend(chop(&[Span::styled("```", self.border())], columns));
                rows
            }
            MarkdownBlock::List { first, items } => self.list(first, items, columns),
            MarkdownBlock::Quote(blocks) => {
                let bar = Span::styled("│ ", self.theme.fg(ColorRole::MdQuoteBorder));
                let inner = columns.saturating_sub(2);
                if inner < 4 {
                    return self.placed(blocks, columns);
                }
                prefixed(self.placed(blocks, inner), &bar, None)
            }
            MarkdownBlock::Table(table) => table::rows(&table, columns, &self.theme),
            MarkdownBlock::Rule => vec![Row::styled("─".repeat(columns.min(MAX_RULE)), self.theme.fg(ColorRole::MdHr))],
            MarkdownBlock::Html(html) => {
                let style = self.theme.fg(self.options.text);
                let lines = html.trim_end().lines().map(|line| vec![Span::styled(line.to_owned(), style)]);
                wrapped(&lines.collect::<StyledLines>(), columns)
            }
            MarkdownBlock::Definition { .. } => Vec::new(),
        }
    }

    /// Blocks inside of another one. A blank row is between them where there is one in the text, and around everything that is not a list.
    fn placed(&self, blocks: Vec<PlacedBlock>, columns: usize) -> Vec<Row> {
        let mut rows = Vec::new();
        for placed in blocks {
            let is_list = matches!(placed.block, MarkdownBlock::List { .. });
            if !rows.is_empty() && (placed.after_blank || !is_list) {
                rows.push(Row::default());
            }
            rows.extend(self.block(placed.block, columns));
        }
        rows
    }

    fn list(&self, first: Option<u64>, items: Vec<ListItem>, columns: usize) -> Vec<Row> {
        let mut rows = Vec::new();
        let style = self.theme.fg(ColorRole::MdListBullet);
        for (number, item) in (first.unwrap_or(0)..).zip(items) {
            if item.after_blank && !rows.is_empty() {
                rows.push(Row::default());
            }
            let bullet = if first.is_some() { format!("{number}. ") } else { "- ".to_owned() };
            let task = match item.task {
                None => "",
                Some(true) => "[x] ",
                Some(false) => "[ ] ",
            };
            let indent = bullet.len();
            let bullet = Span::styled(format!("{bullet}{task}"), style);
            let inner = columns.saturating_sub(indent + task.len());
            if inner < 4 {
                // Too narrow for an indentation.
                let mut lines = chop(&[bullet], columns);
                lines.extend(self.placed(item.blocks, columns));
                rows.extend(lines);
                continue;
            }
            let hanging = Span::raw(" ".repeat(indent + task.len()));
            let content = self.placed(item.blocks, inner);
            let content = if content.is_empty() { vec![Row::default()] } else { content };
            rows.extend(prefixed(content, &hanging, Some(&bullet)));
        }
        rows
    }
}

/// Puts something before every row, and something else before the first one. Blank rows stay blank.
fn prefixed(rows: Vec<Row>, prefix: &Span<'static>, first: Option<&Span<'static>>) -> Vec<Row> {
    let mut rows = rows;
    for (at, row) in rows.iter_mut().enumerate() {
        let prefix = first.filter(|_| at == 0).unwrap_or(prefix);
        let is_blank = row_width(row) == 0 && prefix.content.trim().is_empty();
        if !is_blank {
            row.spans.insert(0, prefix.clone());
        }
    }
    rows
}
