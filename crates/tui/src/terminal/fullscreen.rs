//! The alternate screen: all rows are managed here, and changed ones are drawn.

use super::encode::{row, write_to};
use super::{Cursor, Size};
use crate::Row;
use crate::hyperlink::Hyperlinks;

/// State of the alternate screen, and the bytes that change it.
#[derive(Debug)]
pub struct Fullscreen {
    size: Size,
    synchronized: bool,
    /// URLs of links in rows.
    links: Option<Hyperlinks>,
    /// Rows on the screen; `None`: unknown.
    drawn: Vec<Option<Row>>,
    cursor: Option<Cursor>,
}

impl Fullscreen {
    /// Creates a screen with unknown content.
    pub fn new(size: Size) -> Self {
        Self { size, synchronized: false, links: None, drawn: vec![None; size.height()], cursor: None }
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

    /// Sets the size; the next frame draws every row.
    pub fn resize(&mut self, size: Size) {
        self.size = size;
        self.invalidate();
    }

    /// Makes the next frame draw every row.
    pub fn invalidate(&mut self) {
        self.drawn = vec![None; self.size.height()];
        self.cursor = None;
    }

    /// Returns the bytes that make the screen show these rows. Missing rows are blank, and those that do not fit are omitted.
    pub fn draw(&mut self, rows: &[Row], cursor: Option<Cursor>) -> Vec<u8> {
        let mut body = Vec::new();
        let blank = Row::default();
        for (at, drawn) in self.drawn.iter_mut().enumerate() {
            let new = rows.get(at).unwrap_or(&blank);
            if drawn.as_ref() != Some(new) {
                write_to(&mut body, format_args!("\x1b[{};1H", at + 1));
                row(&mut body, new, self.size.width(), self.links.as_ref());
                *drawn = Some(new.clone());
            }
        }
        if body.is_empty() && cursor == self.cursor {
            return body;
        }
        let mut out = Vec::with_capacity(body.len() + 40);
        if self.synchronized {
            out.extend(b"\x1b[?2026h");
        }
        out.extend(b"\x1b[?25l");
        out.extend(body);
        if let Some(cursor) = cursor {
            let column = cursor.column.min(self.size.width() - 1);
            write_to(&mut out, format_args!("\x1b[{};{}H", cursor.row.min(self.size.height() - 1) + 1, column + 1));
            if cursor.visible {
                out.extend(b"\x1b[?25h");
            }
        }
        self.cursor = cursor;
        if self.synchronized {
            out.extend(b"\x1b[?2026l");
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changed_rows_are_drawn() {
        let mut screen = Fullscreen::new(Size::new(10, 3));
        let mut terminal = vt100::Parser::new(3.try_into().unwrap(), 10.try_into().unwrap(), 0);
        let cursor = Some(Cursor { row: 1, column: 2, visible: true });
        terminal.process(&screen.draw(&[Row::from("one"), Row::from("two")], cursor));
        assert_eq!(terminal.screen().contents(), "one\ntwo");
        assert_eq!(terminal.screen().cursor_position(), (1, 2));
        assert_eq!(screen.draw(&[Row::from("one"), Row::from("two")], cursor), b"");
        let bytes = screen.draw(&[Row::from("one"), Row::from("2")], cursor);
        assert_eq!(String::from_utf8(bytes).unwrap(), "\x1b[?25l\x1b[2;1H\x1b[2K2\x1b[2;3H\x1b[?25h");
    }
}
