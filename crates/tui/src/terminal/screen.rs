//! The regular screen: finished rows go into the terminal's own scrollback, and only a live area at the end is redrawn.
//!
//! No absolute addressing is used, except to restore the cursor within one write. The live area is found by moving up from the cursor, and
//! rows are added by line feeds of the whole screen, so that every terminal keeps them in its scrollback; some terminals lose rows that
//! leave only a part of the screen.
//!
//! # Resizes
//!
//! A terminal resizes its screen first and reports it afterwards; tmux does so up to 250 ms and any number of resizes later. By then it has
//! done this to the rows:
//!
//! - A new width splits rows that are wider, including those of the live area, and joins them again (xterm cuts them instead).
//! - A lower height first deletes rows below the cursor, and then moves rows at the top into the scrollback; a larger one gets them back.
//! - Rows that have been split push other rows into the scrollback, even if there are blank rows below. Nothing can be erased there, and if
//!   the row of the cursor gets there, the cursor is somewhere else. Only this can leave rows of the live area behind: a large jump to a
//!   narrow window, with few rows above the live area.
//!
//! The cursor is the only mark that moves along with its row. Therefore:
//!
//! - While the conversation grows and nothing is being typed, the cursor is in the first column of the live area (the *anchor*): whatever
//!   happens, the live area begins at the cursor, and a lower height deletes rows of the live area instead of moving them into the
//!   scrollback. Otherwise the cursor is where text is inserted, because input methods open their window there, and the anchor is
//!   computed from the actual width, for which the terminal must be asked first.
//! - The first report of a resize erases the live area ([`InlineScreen::hide`]). It is drawn again when the size is stable. Meanwhile only
//!   finished rows are added. At a wrong width the terminal wraps these itself; they belong to the scrollback, and remain one line each.
//! - Rows of the live area are written without automatic wrapping, so that each of them is one row, whatever the actual width.
//! - A change within the live area restores the cursor instead of moving it back: a movement can be stopped by the edge of a screen that
//!   is smaller than expected.

use std::collections::VecDeque;

use unicode_segmentation::UnicodeSegmentation as _;

use super::Size;
use super::encode::{row, write_to};
use crate::Row;
use crate::hyperlink::Hyperlinks;
use crate::image::{DrawnImage, anchor};
use crate::text::{grapheme_width, row_width};

/// A cursor position in the live area. The default is a hidden cursor at its beginning.
///
/// What [`Editor::rows`](crate::editor::Editor::rows) returns converts into one: a visible cursor, or a hidden one if there is no position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// Row, starting at the top of the live area.
    pub row: usize,
    /// The column.
    pub column: usize,
    /// Whether the terminal shows its cursor there. It is placed there in any case, because input methods open their window at it.
    pub visible: bool,
}

impl From<(usize, usize)> for Cursor {
    /// Creates a visible cursor from a row and a column.
    fn from((row, column): (usize, usize)) -> Self {
        Self { row, column, visible: true }
    }
}

impl From<Option<(usize, usize)>> for Cursor {
    fn from(at: Option<(usize, usize)>) -> Self {
        at.map(Self::from).unwrap_or_default()
    }
}

/// State of the screen, and the bytes that change it.
///
/// A frame consists of the rows of the live area, at the bottom, which change, and of finished rows, which move into the scrollback:
///
/// ```
/// use pinch_tui::Row;
/// use pinch_tui::terminal::{Cursor, InlineScreen, Size};
///
/// let mut screen = InlineScreen::new(Size::new(40, 10), true);
/// let bytes = screen.draw(&[Row::from("an answer")], &[Row::from("> question")], Cursor::from((0, 2)));
/// // The caller writes the bytes to the terminal, with `TerminalDevice::write` or its own means.
/// let text = String::from_utf8_lossy(&bytes);
/// assert!(text.contains("an answer") && text.contains("> question"));
/// ```
#[derive(Debug)]
pub struct InlineScreen {
    size: Size,
    /// Whether the terminal supports synchronized output (DEC mode 2026).
    synchronized: bool,
    /// URLs of links in rows.
    links: Option<Hyperlinks>,
    /// Whether the terminal rewraps rows when its width changes.
    reflows: bool,
    /// Rows of the live area on the screen; empty before the first frame.
    drawn: Vec<Row>,
    /// Whether the live area must be drawn again, and everything below it be cleared.
    stale: bool,
    /// Position of the cursor.
    cursor: Cursor,
}

impl InlineScreen {
    /// Creates a screen whose first frame begins in the row of the cursor. `reflows`: whether the terminal rewraps its rows when its width
    /// changes, as nearly all do.
    pub fn new(size: Size, reflows: bool) -> Self {
        let cursor = Cursor::from((0, 0));
        Self { size, synchronized: false, links: None, reflows, drawn: Vec::new(), stale: false, cursor }
    }

    /// Returns the size of frames.
    pub fn size(&self) -> Size {
        self.size
    }

    /// Sets whether the terminal supports synchronized output.
    pub fn set_synchronized(&mut self, synchronized: bool) {
        self.synchronized = synchronized;
    }

    /// Sets the table of links in rows.
    pub fn set_links(&mut self, links: Hyperlinks) {
        self.links = Some(links);
    }

    /// Sets the size after the terminal has redrawn its rows. The next frame redraws the live area; rows above it are left alone.
    pub fn resize(&mut self, size: Size) {
        if size.columns != self.size.columns && self.reflows {
            let above: usize = self.drawn.iter().take(self.cursor.row).map(|row| height_at(row, size.width())).sum();
            // Behind the end of a row that fills the width exactly, terminals differ. Rows that remain are better than rows that are lost.
            let end = self.drawn.get(self.cursor.row).map_or(0, |row| row_width(row).saturating_sub(1));
            self.cursor.row = above + self.cursor.column.min(end) / size.width();
        }
        self.cursor.column = self.cursor.column.min(size.width() - 1);
        self.size = size;
        self.invalidate();
    }

    /// Returns whether the live area can be found without knowing the actual width of the terminal.
    pub fn is_anchored(&self) -> bool {
        !self.reflows || (self.cursor.row, self.cursor.column) == (0, 0)
    }

    /// Returns the bytes that erase the live area and leave the cursor at its beginning, until the next frame.
    pub fn hide(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        move_to(&mut out, &mut self.cursor, 0, 0);
        // The column may be wrong after a resize.
        out.push(b'\r');
        erase_below(&mut out);
        self.frame(&mut out, false);
        self.drawn.clear();
        self.stale = false;
        out
    }

    /// Makes the next frame draw the whole live area.
    pub fn invalidate(&mut self) {
        self.stale = true;
    }

    /// Makes the next frame begin at the cursor, after another program has written to the terminal.
    pub fn restart(&mut self) {
        self.drawn.clear();
        self.stale = true;
        self.cursor = Cursor::from((0, 0));
    }

    /// Returns the bytes that add `finished` rows above the live area and make the live area show `live`.
    ///
    /// `finished` are new rows only: those of earlier frames are in the scrollback. `live` are all rows of the live area, and `cursor` is a
    /// position in them. The rows must not be wider than the screen; if `live` is higher than the screen, its upper rows are omitted.
    pub fn draw(&mut self, finished: &[Row], live: &[Row], cursor: Cursor) -> Vec<u8> {
        self.draw_with_images(finished, live, &[], cursor)
    }

    /// Like [`Self::draw`], with images drawn over blank rows of the finished ones.
    pub(crate) fn draw_with_images(
        &mut self,
        finished: &[Row],
        live: &[Row],
        images: &[DrawnImage],
        cursor: Cursor,
    ) -> Vec<u8> {
        // Finished rows end with a line feed.
        let blank = [Row::default()];
        let live = if live.is_empty() { &blank } else { &live[live.len().saturating_sub(self.size.height())..] };
        let mut out = Vec::new();
        if !self.stale && finished.is_empty() && live.len() == self.drawn.len() {
            self.update(&mut out, live);
        } else {
            self.redraw(&mut out, finished, live, images);
        }
        if live != &*self.drawn {
            self.drawn = live.to_vec();
        }
        let at = cursor.row.min(live.len() - 1);
        move_to(&mut out, &mut self.cursor, at, cursor.column.min(self.size.width() - 1));
        if !out.is_empty() || cursor.visible != self.cursor.visible {
            self.frame(&mut out, cursor.visible);
        }
        out
    }

    /// Writes the rows of a live area of the same height that have changed.
    fn update(&self, out: &mut Vec<u8>, live: &[Row]) {
        let mut position = self.cursor;
        for (at, (new, old)) in live.iter().zip(&self.drawn).enumerate() {
            if new != old {
                if out.is_empty() {
                    out.extend(SAVE_CURSOR);
                    out.extend(NO_WRAP);
                }
                move_to(out, &mut position, at, 0);
                row(out, new, self.size.width(), self.links.as_ref());
                // After a full row, the column depends on the terminal.
                position.column = usize::MAX;
            }
        }
        if !out.is_empty() {
            out.extend(WRAP);
            out.extend(RESTORE_CURSOR);
        }
    }

    /// Writes everything from the top of the live area on.
    fn redraw(&mut self, out: &mut Vec<u8>, finished: &[Row], live: &[Row], images: &[DrawnImage]) {
        // The row below each image that is not drawn yet, its column, and the image.
        let mut due: VecDeque<(usize, usize, &DrawnImage)> = VecDeque::new();
        move_to(out, &mut self.cursor, 0, 0);
        let is_shorter = self.stale || finished.len() + live.len() < self.drawn.len();
        let n_rows = finished.len() + live.len();
        for (at, line) in finished.iter().chain(live).enumerate() {
            if at > 0 {
                out.extend(b"\r\n");
            }
            if at == finished.len() {
                out.extend(NO_WRAP);
            }
            if at + 1 == n_rows && is_shorter {
                erase_below(out);
            }
            row(out, line, self.size.width(), self.links.as_ref());
            // When an image is drawn, all its rows are on the screen, and it cannot scroll.
            if let Some((_, column, image)) = due.pop_front_if(|(below, ..)| *below == at) {
                draw_image(out, column, image);
            }
            if at < finished.len()
                && !images.is_empty()
                && let Some((column, number)) = anchor(line)
                && let Some(image) = images.get(number)
            {
                due.push_back((at + image.rows, column, image));
            }
        }
        if n_rows == 0 && is_shorter {
            erase_below(out);
        }
        out.extend(if live.is_empty() { &b""[..] } else { WRAP });
        self.stale = false;
        self.cursor.row = live.len().saturating_sub(1);
        self.cursor.column = usize::MAX;
    }

    /// Wraps a change so that the cursor does not wander across the screen, and terminals that support it show the change at once.
    fn frame(&mut self, out: &mut Vec<u8>, visible: bool) {
        let body = std::mem::take(out);
        if self.synchronized {
            out.extend(b"\x1b[?2026h");
        }
        if self.cursor.visible {
            out.extend(b"\x1b[?25l");
        }
        out.extend(body);
        if visible {
            out.extend(b"\x1b[?25h");
        }
        self.cursor.visible = visible;
        if self.synchronized {
            out.extend(b"\x1b[?2026l");
        }
    }

    /// Returns the bytes that replace the live area with `last` and leave the cursor below it.
    pub fn leave(&mut self, last: &[Row]) -> Vec<u8> {
        let mut out = Vec::new();
        self.stale = true;
        self.redraw(&mut out, &[], last, &[]);
        out.extend(if last.is_empty() { &b"\r"[..] } else { b"\r\n" });
        out.extend(b"\x1b[?25h");
        self.restart();
        out
    }
}

const SAVE_CURSOR: &[u8] = b"\x1b7";
const RESTORE_CURSOR: &[u8] = b"\x1b8";
/// Automatic wrapping (DECAWM).
const NO_WRAP: &[u8] = b"\x1b[?7l";
const WRAP: &[u8] = b"\x1b[?7h";

/// Erases the row of the cursor, which is in its first column, and everything below. tmux moves the whole screen into the scrollback if it
/// is erased from its first cell on, so the first row is erased separately.
fn erase_below(out: &mut Vec<u8>) {
    out.extend(b"\x1b[2K\x1b[C\x1b[J\r");
}

/// Draws an image that ends above the row of the cursor, and restores the cursor.
fn draw_image(out: &mut Vec<u8>, column: usize, image: &DrawnImage) {
    write_to(out, format_args!("\x1b7\x1b[{}A\r", image.rows));
    if column > 0 {
        write_to(out, format_args!("\x1b[{column}C"));
    }
    out.extend(&image.bytes);
    out.extend(b"\x1b8");
}

/// Returns the number of rows that a terminal of this width splits a row into.
fn height_at(row: &Row, width: usize) -> usize {
    let (mut height, mut column) = (1, 0);
    for grapheme in row.spans.iter().flat_map(|span| span.content.graphemes(true)) {
        let wide = grapheme_width(grapheme);
        if column + wide > width && column > 0 {
            height += 1;
            column = 0;
        }
        column += wide;
    }
    height
}

/// Moves the cursor within the live area.
fn move_to(out: &mut Vec<u8>, cursor: &mut Cursor, row: usize, column: usize) {
    match row.cmp(&cursor.row) {
        std::cmp::Ordering::Less => write_to(out, format_args!("\x1b[{}A", cursor.row - row)),
        std::cmp::Ordering::Greater => write_to(out, format_args!("\x1b[{}B", row - cursor.row)),
        std::cmp::Ordering::Equal => {}
    }
    if column != cursor.column {
        out.push(b'\r');
        if column > 0 {
            write_to(out, format_args!("\x1b[{column}C"));
        }
    }
    (cursor.row, cursor.column) = (row, column);
}

#[cfg(test)]
mod tests;
