//! `apply_patch`: changes several files with one patch, all of them or none.
//!
//! A patch is parsed ([`FilePatch::parse`]), planned in memory against the current files, written to a journal, and then applied. A failure
//! rolls it back; after a crash, [`finish_interrupted`] completes the journal. A patch is therefore applied completely or not at all.

mod parse;

mod search;

mod lines;

mod plan;

mod journal;

mod tool;

pub use journal::{JournalPlace, finish_interrupted};
pub use parse::{FilePatch, PatchSyntaxError};
pub use tool::{ApplyPatchTool, PatchTarget};
