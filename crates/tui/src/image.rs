//! Images in a terminal: sizes, and the control sequences that show them.
//!
//! Two protocols are supported. With kitty's, an image is sent once and then shown wherever its placeholders are ([`kitty_placeholders`]):
//! rows of
//! ordinary text that scroll, can be compared, and are redrawn like any other. For terminals without placeholders, [`kitty_image`] and
//! [`iterm2_image`] draw an image at the cursor instead. Nothing is decoded here: terminals do that.
//!
//! ```
//! use pinch_tui::image::{CellSize, ImageCells, PixelSize, cells_for, kitty_placeholders};
//!
//! let image = PixelSize { width: 640, height: 480 };
//! let cells = cells_for(image, CellSize::default(), ImageCells { columns: 60, rows: 20 });
//! assert_eq!(cells, ImageCells { columns: 54, rows: 20 });
//! assert_eq!(kitty_placeholders(7, 1, cells).len(), 20);
//! ```

mod header;

mod protocol;

mod kitty;

mod iterm2;

mod source;

mod board;

pub use header::dimensions;
pub use iterm2::iterm2_image;
pub use kitty::{kitty_image, kitty_placeholders, kitty_placement, kitty_transmission};
pub use protocol::ImageProtocol;

pub(crate) use board::{DrawnImage, FrameImages, ImageBoard, ImageLook, SharedImages, anchor};
pub(crate) use kitty::is_placeholder;
pub(crate) use source::ImageSource;

/// Maximum side length of an image that is shown, in pixels.
pub const MAX_SIDE: u32 = 16_384;

/// Maximum file size of an image that is shown or attached, in bytes.
pub const MAX_BYTES: u64 = 50 * 1024 * 1024;

/// Maximum number of columns and rows of an image: as many as placeholders can count.
pub const MAX_CELLS: u16 = 120;

/// The size of an image in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PixelSize {
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
}

/// The size of a terminal cell in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellSize {
    /// Width in pixels.
    pub width: u16,
    /// Height in pixels.
    pub height: u16,
}

impl Default for CellSize {
    fn default() -> Self {
        Self { width: 9, height: 18 }
    }
}

/// The size of an image in cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageCells {
    /// Width in columns.
    pub columns: u16,
    /// Height in rows.
    pub rows: u16,
}

/// Returns the cells that an image takes: its own size if there is room for it, else the largest size that fits and keeps its proportions.
/// It is never enlarged.
pub fn cells_for(image: PixelSize, cell: CellSize, max: ImageCells) -> ImageCells {
    let (width, height) = (u64::from(image.width.max(1)), u64::from(image.height.max(1)));
    let (cell_width, cell_height) = (u64::from(cell.width.max(1)), u64::from(cell.height.max(1)));
    let max_columns = u64::from(max.columns.clamp(1, MAX_CELLS));
    let max_rows = u64::from(max.rows.clamp(1, MAX_CELLS));
    let mut columns = width.div_ceil(cell_width).min(max_columns);
    let shown = width.min(columns * cell_width);
    let mut rows = (height * shown).div_ceil(width * cell_height);
    if rows > max_rows {
        rows = max_rows;
        columns = (rows * cell_height * width).div_ceil(height * cell_width).min(columns);
    }
    // Both are at most 120.
    let cells = |n: u64| u16::try_from(n.max(1)).unwrap_or(MAX_CELLS);
    ImageCells { columns: cells(columns), rows: cells(rows) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn images_keep_their_proportions_and_are_never_enlarged() {
        for (width, height, columns, rows) in [
            (9, 18, 1, 1),
            (10, 19, 2, 2),
            (1, 1, 1, 1),
            (540, 180, 60, 10),
            (1080, 360, 60, 10),
            (640, 480, 54, 20),
            (100, 16_384, 1, 20),
            (16_384, 1, 60, 1),
        ] {
            let cells =
                cells_for(PixelSize { width, height }, CellSize::default(), ImageCells { columns: 60, rows: 20 });
            assert_eq!(cells, ImageCells { columns, rows }, "{width}x{height}");
        }
    }

    proptest! {
        #[test]
        fn an_image_never_exceeds_the_available_cells(
            (width, height) in (0..=u32::MAX, 0..=u32::MAX),
            (cell_width, cell_height) in (0..100u16, 0..100u16),
            (columns, rows) in (0..500u16, 0..500u16),
        ) {
            let cell = CellSize { width: cell_width, height: cell_height };
            // Headers report at most this size.
            let image = PixelSize { width: width % (MAX_SIDE + 1), height: height % (MAX_SIDE + 1) };
            let cells = cells_for(image, cell, ImageCells { columns, rows });
            prop_assert!(cells.columns >= 1 && cells.columns <= columns.clamp(1, MAX_CELLS));
            prop_assert!(cells.rows >= 1 && cells.rows <= rows.clamp(1, MAX_CELLS));
        }
    }
}
