//! Markdown as it arrives: text goes in piece by piece, rows come out.
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
//! // The heading, and the rows of the paragraph that are full, can go where they cannot be changed any more.
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

/// A Markdown text that grows. Each part is parsed and laid out once for a width and a theme. The part that is still arriving is laid out on every
/// call, as if the text ended there, and is limited to 8 KiB: the cost of a frame does not depend on the length of the text.
///
/// # Long blocks
///
/// Parts end at block boundaries at any depth of lists and quotes, after each line of code, and inside blocks of more than 8 KiB:
///
/// * A paragraph is divided between words. The division is invisible, except that markup which spans it is shown as written.
/// * A table keeps the column widths that fit its first 8 KiB; longer cells of later rows wrap. A row of more than 8 KiB becomes several rows.
/// * A heading continues as a paragraph.
/// * A line of code is divided invisibly. It has one colour, like all lines of more than [`MAX_LINE_CHARS`] characters.
///
/// Lists and quotes nested more than 24 levels deep are shown as text.
///
/// # Reference links
///
/// Link reference definitions are not shown, whether they are used or not, as in CommonMark. A definition applies to the references in later parts and
/// the first one of a label wins. A reference that precedes its definition is shown as written, because its rows may be on the screen for good.
///
/// # Code
///
/// An unfinished code block has no closing line yet. Its last line is highlighted while it arrives, from the state at the start of the line.
///
/// [`MAX_LINE_CHARS`]: crate::highlight::MAX_LINE_CHARS
#[derive(Debug)]
pub struct Markdown {
    options: MarkdownOptions,
    intake: TextIntake,
    text: String,
    splitter: Splitter,
    finished: bool,
    layout: Option<MarkdownLayout>,
}

impl Markdown {
    /// An empty text.
    pub fn new(options: MarkdownOptions) -> Self {
        Self {
            options,
            intake: TextIntake::default(),
            text: String::new(),
            splitter: Splitter::new(),
            finished: false,
            layout: None,
        }
    }

    /// A whole text.
    pub fn of(text: &str, options: MarkdownOptions) -> Self {
        let mut markdown = Self::new(options);
        markdown.push(text);
        markdown.finish();
        markdown
    }

    /// More of the text. Control sequences in it are taken out.
    pub fn push(&mut self, text: &str) {
        self.intake.push(text, &mut self.text);
        self.splitter.advance(&self.text);
    }

    /// The text is whole.
    pub fn finish(&mut self) {
        if !std::mem::replace(&mut self.finished, true) {
            self.intake.finish(&mut self.text);
            self.splitter.finish(&self.text);
        }
    }

    /// Whether there is nothing to see.
    pub fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// The text so far, without control sequences.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Rows that never change at this width and in this theme, whatever follows: the first ones of [`Markdown::rows`].
    pub fn n_stable_rows(&mut self, columns: usize, theme: &Palette) -> usize {
        self.laid_out(columns, theme).stable().len()
    }

    /// All rows.
    pub fn rows(&mut self, columns: usize, theme: &Palette) -> Vec<Row> {
        self.rows_from(0, columns, theme)
    }

    /// The rows from one on: what is before it costs nothing.
    pub fn rows_from(&mut self, first: usize, columns: usize, theme: &Palette) -> Vec<Row> {
        self.rows_in(first..usize::MAX, columns, theme)
    }

    /// Some of the rows: finished ones outside of the range cost nothing.
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

    /// Forgets the rows, which are made again when they are wanted.
    pub fn release(&mut self) {
        self.layout = None;
    }

    /// Lays out what has been finished since the last time.
    fn laid_out(&mut self, columns: usize, theme: &Palette) -> &MarkdownLayout {
        let is_current = |layout: &MarkdownLayout| layout.is_for(columns, theme, &self.options);
        let layout = match self.layout.take().filter(is_current) {
            Some(layout) => layout,
            None => MarkdownLayout::new(columns.max(1), theme.clone(), self.options.clone()),
        };
        let layout = self.layout.insert(layout);
        layout.advance(self.splitter.pieces());
        layout
    }

    /// How the text is shown; what is changed here holds from the next rows on.
    pub fn options_mut(&mut self) -> &mut MarkdownOptions {
        &mut self.options
    }
}
