//! Sessions for other people's eyes: [`html`] writes a page, in the [look] of a theme. A session as one JSONL file is
//! [`SessionLog::export_to`](crate::session_log::SessionLog::export_to).

mod theme;

pub use pinch_export as html;
pub use theme::{fixed_look, look};
