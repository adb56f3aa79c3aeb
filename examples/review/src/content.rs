//! Files as something to show.

use std::path::Path;
use std::{fs, io};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pinch_tui::Row;
use pinch_tui::diff::{self, DiffOptions};
use pinch_tui::image::{
    CellSize, ImageCells, PixelSize, cells_for, dimensions, kitty_placeholders, kitty_transmission,
};
use pinch_tui::terminal::Size;
use pinch_tui::theme::Palette;

/// Number of lines of a diff that are shown.
const MAX_DIFF_LINES: usize = 200;

/// The content of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileContent {
    /// Markdown, or code in a fence.
    Markdown(String),
    /// A diff whose lines are a sign, a number, a space and a text.
    Diff(String),
    /// A PNG image.
    Image {
        /// The file.
        bytes: Vec<u8>,
        /// Its size in pixels.
        size: PixelSize,
    },
    /// The file cannot be shown, for this reason.
    Problem(String),
}

/// Reads a file. Its name decides how it is shown.
pub fn read(path: &Path) -> FileContent {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) => return problem(&error),
    };
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    if extension == "png" {
        return match dimensions(&bytes) {
            Some(size) => FileContent::Image { bytes, size },
            None => FileContent::Problem("This is not an image".to_owned()),
        };
    }
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => return problem(&io::Error::new(io::ErrorKind::InvalidData, error)),
    };
    match extension {
        "md" => FileContent::Markdown(text),
        "diff" => FileContent::Diff(text),
        language => FileContent::Markdown(format!("````{language}\n{text}\n````")),
    }
}

fn problem(error: &io::Error) -> FileContent {
    FileContent::Problem(format!("This file cannot be read: {error}"))
}

/// Returns the rows of a diff.
pub(crate) fn diff_rows(text: &str, columns: usize, theme: &Palette) -> Vec<Row> {
    diff::rows(text, &DiffOptions { columns, max_lines: Some(MAX_DIFF_LINES) }, theme)
}

/// Returns what the terminal needs to know about a PNG image, and the rows that show it.
pub(crate) fn image_rows(id: u32, png: &[u8], size: PixelSize, cell: CellSize, screen: Size) -> (Vec<u8>, Vec<Row>) {
    let room = ImageCells { columns: screen.columns, rows: screen.rows / 2 };
    let cells = cells_for(size, cell, room);
    (kitty_transmission(id, 1, cells, &STANDARD.encode(png)), kitty_placeholders(id, 1, cells))
}
