//! Streaming Markdown: text goes in piece by piece, rows come out.
//!
//! ```
//! use pinch_tui::markdown::{Markdown, MarkdownOptions};
//! use pinch_tui::theme::{ColorDepth, Palette};
//!
//! let theme = Palette::builtin("dark", ColorDepth::None);
//! let mut markdown = Markdown::new(MarkdownOptions::default());
//! markdown.push("# Title\n\nSome *text* that is sti");
//! let rows = markdown.rows(12, &theme);
//! let shown: Vec<String> = rows.iter().map(ToString::to_string).collect();
//! assert_eq!(shown, ["Title", "", "Some text", "that is sti"]);
//! // The heading and the full rows of the paragraph can move to where they cannot be changed any more.
//! assert_eq!(markdown.n_stable_rows(12, &theme), 1);
//! markdown.push("ll arriving.\n");
//! markdown.finish();
//! assert_eq!(markdown.n_stable_rows(12, &theme), markdown.rows(12, &theme).len());
//! ```

mod options;

mod intake;

mod cursor;

mod line;

mod cut;

mod leaf;

mod split;

mod inline;

mod blocks;

mod table;

mod frame;

mod layout;

#[cfg(test)]
mod reference;

#[cfg(test)]
mod tests;

#[cfg(test)]
mod links_tests;

use std::ops::Range;

pub use options::MarkdownOptions;

use intake::TextIntake;
use layout::MarkdownLayout;
use split::Splitter;

use crate::Row;
use crate::theme::Palette;

/// A growing Markdown text. Each part is parsed and laid out once per width and theme. The part that is still arriving is laid out on every
/// call, as if the text ended there, and is limited to 8 KiB, so that the cost of a frame does not depend on the length of the text.
///
/// # Long blocks
///
/// Parts end at block boundaries at any depth of lists and quotes, after each line of code, and inside blocks of more than 8 KiB:
///
/// * A paragraph is split between words. The split is invisible, except that markup which spans it is shown verbatim.
/// * A table keeps the column widths that fit its first 8 KiB; longer cells of later rows wrap. A row of more than 8 KiB becomes several
///   rows.
/// * A heading continues as a paragraph.
/// * A line of code is split invisibly. It has a single colour, like all lines of more than [`MAX_LINE_CHARS`] characters.
///
/// Lists and quotes nested more than 24 levels deep are shown as text.
///
/// # Reference links
///
/// Link reference definitions are not shown, whether they are used or not, as in CommonMark. A definition applies to the references in
/// later parts, and the first one for a label wins. A reference that precedes its definition is shown verbatim, because its rows may
/// already be in the scrollback.
///
/// # Code
///
/// An unfinished code block has no closing line yet. Its last line is highlighted while it arrives, from the state at the start of the
/// line.
///
/// [`MAX_LINE_CHARS`]: crate::highlight::MAX_LINE_CHARS
#[derive(Debug)]
pub struct Markdown {
    options: MarkdownOptions,
    intake: TextIntake,
    text: String,
    splitter: Splitter,
    finished: bool,
    /// The layout of the whole text.
    layout: Option<MarkdownLayout>,
    /// The layout of what follows the rows that were taken.
    rest: Option<MarkdownLayout>,
    /// Number of pieces whose rows were taken.
    n_taken: usize,
}

impl Markdown {
    /// Creates an empty text.
    pub fn new(options: MarkdownOptions) -> Self {
        Self {
            options,
            intake: TextIntake::default(),
            text: String::new(),
            splitter: Splitter::new(),
            finished: false,
            layout: None,
            rest: None,
            n_taken: 0,
        }
    }

    /// Creates a complete text.
    pub fn of(text: &str, options: MarkdownOptions) -> Self {
        let mut markdown = Self::new(options);
        markdown.push(text);
        markdown.finish();
        markdown
    }

    /// Appends text. Control sequences are removed.
    pub fn push(&mut self, text: &str) {
        self.intake.push(text, &mut self.text);
        self.splitter.advance(&self.text);
    }

    /// Marks the text as complete.
    pub fn finish(&mut self) {
        if !std::mem::replace(&mut self.finished, true) {
            self.intake.finish(&mut self.text);
            self.splitter.finish(&self.text);
        }
    }

    /// Returns whether there is nothing to see.
    pub fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// Returns the text so far, without control sequences.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns how many of the first rows never change at this width and in this theme, whatever text follows.
    pub fn n_stable_rows(&mut self, columns: usize, theme: &Palette) -> usize {
        self.laid_out(columns, theme).stable().len()
    }

    /// Returns all rows.
    pub fn rows(&mut self, columns: usize, theme: &Palette) -> Vec<Row> {
        self.rows_from(0, columns, theme)
    }

    /// Returns the rows from `first` on; the cost does not depend on the rows before it.
    pub fn rows_from(&mut self, first: usize, columns: usize, theme: &Palette) -> Vec<Row> {
        self.rows_in(first..usize::MAX, columns, theme)
    }

    /// Returns a range of the rows; the cost does not depend on finished rows outside the range.
    pub fn rows_in(&mut self, range: Range<usize>, columns: usize, theme: &Palette) -> Vec<Row> {
        let rest = if self.finished { Vec::new() } else { self.splitter.rest(&self.text) };
        let stable = self.laid_out(columns, theme).stable();
        let n_stable = stable.len();
        let (first, end) = (range.start.min(range.end), range.end);
        let mut rows = stable[first.min(n_stable)..end.min(n_stable)].to_vec();
        if end > n_stable
            && let Some(layout) = &self.layout
        {
            let open = layout.open_rows(&rest).into_iter().take(end - n_stable);
            rows.extend(open.skip(first.saturating_sub(n_stable)));
        }
        rows
    }

    /// Takes the rows that never change, except for those that were taken before. They are not kept. At another width or in another theme
    /// than before, the text continues where it was: no word is repeated or left out.
    pub(crate) fn take_rows(&mut self, columns: usize, theme: &Palette) -> Vec<Row> {
        let mut rest = self.advanced_rest(columns, theme);
        let rows = rest.take_stable();
        if !self.finished {
            self.rest = Some(rest);
        }
        rows
    }

    /// Returns the rows that were not taken.
    pub(crate) fn remaining_rows(&mut self, columns: usize, theme: &Palette) -> Vec<Row> {
        let open = if self.finished { Vec::new() } else { self.splitter.rest(&self.text) };
        let rest = self.advanced_rest(columns, theme);
        let mut rows = rest.stable().to_vec();
        rows.extend(rest.open_rows(&open));
        if !self.finished || !rest.stable().is_empty() {
            self.rest = Some(rest);
        }
        rows
    }

    /// Truncates the text to the first `n` bytes. Rows that were taken stay taken.
    pub(crate) fn truncate(&mut self, n: usize) {
        let kept = self.text[..self.text.floor_char_boundary(n)].to_owned();
        let (rest, n_taken) = (self.rest.take(), self.n_taken);
        *self = Self::new(self.options.clone());
        self.push(&kept);
        self.n_taken = n_taken.min(self.splitter.n_pieces());
        // Pieces do not depend on the text behind them.
        self.rest = rest.filter(|_| n_taken == self.n_taken);
    }

    /// Drops the cached rows, which are rebuilt on demand.
    pub fn release(&mut self) {
        self.layout = None;
    }

    /// Lays out what has been finished since the last call.
    fn laid_out(&mut self, columns: usize, theme: &Palette) -> &MarkdownLayout {
        let is_current = |layout: &MarkdownLayout| layout.is_for(columns, theme, &self.options);
        let mut layout = match self.layout.take().filter(is_current) {
            Some(layout) => layout,
            None => MarkdownLayout::new(columns.max(1), theme.clone(), self.options.clone()),
        };
        self.advance(&mut layout);
        self.layout.insert(layout)
    }

    /// Returns the layout of what follows the rows that were taken.
    fn advanced_rest(&mut self, columns: usize, theme: &Palette) -> MarkdownLayout {
        let mut rest = self.rest.take().unwrap_or_else(|| {
            MarkdownLayout::new(columns.max(1), theme.clone(), self.options.clone()).after(self.n_taken)
        });
        if !rest.is_for(columns, theme, &self.options) {
            rest.resume(columns, theme, &self.options);
        }
        self.advance(&mut rest);
        self.n_taken = rest.n_pieces();
        rest
    }

    /// Lays out new pieces, and drops them.
    fn advance(&mut self, layout: &mut MarkdownLayout) {
        if self.splitter.pieces_from(layout.n_pieces()).is_none() {
            self.splitter = Splitter::new();
            self.splitter.advance(&self.text);
            if self.finished {
                self.splitter.finish(&self.text);
            }
        }
        layout.advance(self.splitter.pieces_from(layout.n_pieces()).unwrap_or_default());
        self.splitter.drop_pieces();
    }

    /// Returns the display options; changes apply to rows from now on.
    pub fn options_mut(&mut self) -> &mut MarkdownOptions {
        &mut self.options
    }
}
