//! `apply_patch`: several files changed by one patch, all of them or none.
//!
//! A patch is parsed ([`FilePatch::parse`]), planned in memory against the files as they are, written into a journal, and then applied. A failure undoes
//! what was applied; after a crash, [`finish_interrupted`] completes what the journal says. So a patch has happened as a whole or not at all.

mod parse;

mod lines;

mod plan;

mod journal;

mod tool;

pub use journal::finish_interrupted;
pub use parse::{FilePatch, PatchSyntaxError};
pub use tool::{ApplyPatchTool, PatchPlace};
