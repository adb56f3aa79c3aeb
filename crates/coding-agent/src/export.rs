//! Sharing sessions: [`html`] writes a page, in the [colors of a theme](page_theme). [`SessionLog::export_to`](crate::session_log::SessionLog::export_to)
//! writes a session as a JSONL file.

mod theme;

pub use pinch_export as html;
pub use theme::{fixed_page_theme, page_theme};
