//! Text as a terminal shows it: width in columns, wrapping and truncation, and foreign text made harmless.

mod sanitize;
mod width;
mod wrap;

pub use sanitize::{Strictness, sanitize};
pub use width::{grapheme_width, width};
pub use wrap::{pad, row_width, truncate, wrap};
