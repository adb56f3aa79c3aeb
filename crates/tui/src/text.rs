//! Text in a terminal: width in columns, wrapping and truncation, and sanitising of untrusted text.

mod sanitize;
mod width;
mod row_break;
mod wrap;
mod chop;

pub use chop::{Chopper, chop};
pub(crate) use row_break::{RowBreak, row_break};
pub use sanitize::{SanitizeMode, sanitize};
pub(crate) use sanitize::{is_obeyed, one_line};
pub use width::{grapheme_width, width};
pub(crate) use wrap::skip_columns;
pub use wrap::{TextWrapper, pad, row_width, truncate, wrap};
