//! Where an overlay of an extension is drawn, with the options of pi's overlays.

use serde::Deserialize;

/// A length on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverlaySize {
    /// Columns or rows.
    Cells(usize),
    /// Percent of the screen.
    Percent(usize),
}

impl OverlaySize {
    /// Returns the number of cells, out of `total`.
    pub fn cells(self, total: usize) -> usize {
        match self {
            Self::Cells(cells) => cells,
            Self::Percent(percent) => total.saturating_mul(percent) / 100,
        }
    }
}

impl<'de> Deserialize<'de> for OverlaySize {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum WrittenSize {
            Cells(f64),
            Percent(String),
        }
        match WrittenSize::deserialize(deserializer)? {
            WrittenSize::Cells(cells) => Ok(Self::Cells(cells.max(0.0) as usize)),
            WrittenSize::Percent(text) => {
                let percent = text.strip_suffix('%').and_then(|percent| percent.trim().parse::<f64>().ok());
                let percent = percent.ok_or_else(|| {
                    serde::de::Error::custom(format!("expected a number or a percentage such as \"50%\", not {text:?}"))
                })?;
                Ok(Self::Percent(percent.max(0.0) as usize))
            }
        }
    }
}

/// The part of the screen that an overlay is aligned with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OverlayAnchor {
    /// In the middle.
    #[default]
    Center,
    /// Top left corner.
    TopLeft,
    /// Top right corner.
    TopRight,
    /// Bottom left corner.
    BottomLeft,
    /// Bottom right corner.
    BottomRight,
    /// Middle of the top.
    TopCenter,
    /// Middle of the bottom.
    BottomCenter,
    /// Middle of the left side.
    LeftCenter,
    /// Middle of the right side.
    RightCenter,
}

/// Cells between an overlay and the edges of the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OverlayMargin {
    /// Rows above it.
    pub top: usize,
    /// Columns to the right of it.
    pub right: usize,
    /// Rows below it.
    pub bottom: usize,
    /// Columns to the left of it.
    pub left: usize,
}

impl<'de> Deserialize<'de> for OverlayMargin {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum WrittenMargin {
            All(usize),
            Sides {
                #[serde(default)]
                top: usize,
                #[serde(default)]
                right: usize,
                #[serde(default)]
                bottom: usize,
                #[serde(default)]
                left: usize,
            },
        }
        Ok(match WrittenMargin::deserialize(deserializer)? {
            WrittenMargin::All(all) => Self { top: all, right: all, bottom: all, left: all },
            WrittenMargin::Sides { top, right, bottom, left } => Self { top, right, bottom, left },
        })
    }
}

/// Size and position of an overlay.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct OverlayOptions {
    /// Width; by default 80 columns, or what the screen has.
    pub width: Option<OverlaySize>,
    /// Minimum width in columns.
    pub min_width: Option<usize>,
    /// Maximum height; by default that of the screen.
    pub max_height: Option<OverlaySize>,
    /// Alignment.
    pub anchor: OverlayAnchor,
    /// Columns to move it to the right.
    pub offset_x: i32,
    /// Rows to move it down.
    pub offset_y: i32,
    /// Row of its top, instead of the anchor's; a percentage is of the room that is left.
    pub row: Option<OverlaySize>,
    /// Column of its left edge, instead of the anchor's; a percentage is of the room that is left.
    pub col: Option<OverlaySize>,
    /// Distance from the edges of the screen.
    pub margin: OverlayMargin,
    /// Whether the keys go on to what is below it.
    pub non_capturing: bool,
}

/// The rectangle of an overlay on the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OverlayBounds {
    /// Column of its left edge.
    pub column: usize,
    /// Row of its top.
    pub row: usize,
    /// Width in columns.
    pub columns: usize,
    /// Maximum number of rows.
    pub rows: usize,
}

impl OverlayOptions {
    /// Returns the rectangle of an overlay that has this many lines, on a screen of this size. It never leaves the screen.
    pub fn bounds(&self, (columns, rows): (usize, usize), n_lines: usize) -> OverlayBounds {
        let margin = self.margin;
        let free_columns = columns.saturating_sub(margin.left + margin.right).max(1);
        let free_rows = rows.saturating_sub(margin.top + margin.bottom).max(1);
        let width = self.width.map_or(80.min(free_columns), |width| width.cells(columns));
        let width = width.max(self.min_width.unwrap_or(1)).clamp(1, free_columns);
        let max_height = self.max_height.map_or(free_rows, |height| height.cells(rows)).clamp(1, free_rows);
        let height = n_lines.min(max_height);
        let (spare_columns, spare_rows) = (free_columns - width, free_rows - height.min(free_rows));
        let (horizontal, vertical) = self.anchor.alignment();
        let place = |chosen: Option<OverlaySize>, alignment: usize, spare: usize, before: usize, offset: i32| {
            let at = match chosen {
                Some(OverlaySize::Cells(cells)) => cells,
                Some(percent @ OverlaySize::Percent(_)) => before + percent.cells(spare),
                None => before + spare * alignment / 2,
            };
            let offset = isize::try_from(offset).unwrap_or(0);
            at.saturating_add_signed(offset).clamp(before, before + spare)
        };
        OverlayBounds {
            column: place(
                self.col,
                horizontal,
                spare_columns,
                margin.left.min(columns.saturating_sub(1)),
                self.offset_x,
            ),
            row: place(self.row, vertical, spare_rows, margin.top.min(rows.saturating_sub(1)), self.offset_y),
            columns: width,
            rows: max_height,
        }
    }
}

impl OverlayAnchor {
    /// Returns the horizontal and the vertical alignment: 0 at the left or top, 1 in the middle, 2 at the right or bottom.
    fn alignment(self) -> (usize, usize) {
        match self {
            Self::Center => (1, 1),
            Self::TopLeft => (0, 0),
            Self::TopRight => (2, 0),
            Self::BottomLeft => (0, 2),
            Self::BottomRight => (2, 2),
            Self::TopCenter => (1, 0),
            Self::BottomCenter => (1, 2),
            Self::LeftCenter => (0, 1),
            Self::RightCenter => (2, 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    fn bounds(options: serde_json::Value, n_lines: usize) -> [usize; 4] {
        let options: OverlayOptions = from_value(options).unwrap();
        let OverlayBounds { column, row, columns, rows } = options.bounds((100, 40), n_lines);
        [column, row, columns, rows]
    }

    #[test]
    fn an_overlay_is_aligned_with_its_anchor_within_its_margins() {
        assert_eq!(bounds(json!({}), 10), [10, 15, 80, 40]);
        assert_eq!(bounds(json!({"anchor": "top-right", "width": "50%", "margin": 2}), 10), [48, 2, 50, 36]);
        assert_eq!(bounds(json!({"anchor": "bottom-left", "width": 30, "maxHeight": "25%"}), 20), [0, 30, 30, 10]);
        assert_eq!(bounds(json!({"anchor": "right-center", "width": 30, "margin": {"right": 5}}), 4), [65, 18, 30, 40]);
        assert_eq!(bounds(json!({"anchor": "top-left", "width": 20, "offsetX": 3, "offsetY": 4}), 4), [3, 4, 20, 40]);
        assert_eq!(bounds(json!({"row": "100%", "col": 7, "width": 20}), 4), [7, 36, 20, 40]);
        assert_eq!(bounds(json!({"width": "10%", "minWidth": 25, "anchor": "top-left"}), 4), [0, 0, 25, 40]);
    }

    #[test]
    fn an_overlay_never_leaves_the_screen() {
        assert_eq!(bounds(json!({"width": 500, "offsetX": -900, "offsetY": 900}), 100), [0, 0, 100, 40]);
        assert_eq!(bounds(json!({"width": 10, "col": 900, "row": 900}), 5), [90, 35, 10, 40]);
        assert_eq!(bounds(json!({"margin": 900}), 5), [99, 39, 1, 1]);
    }

    #[test]
    fn a_size_that_is_neither_a_number_nor_a_percentage_is_refused() {
        let error = from_value::<OverlayOptions>(json!({"width": "wide"})).unwrap_err();
        assert_eq!(error.to_string(), "expected a number or a percentage such as \"50%\", not \"wide\"");
    }
}
