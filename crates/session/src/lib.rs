//! Sessions: what is kept of a conversation, and the context that it gives a model.
//!
//! * [`entry`]: the lines of a session file;
//! * [`store`]: where sessions are kept, behind one trait;
//! * [`session_log`]: one session, append-only, with its branches and the context of the active one;
//! * [`totals`]: what a session has cost;
//! * [`recovery`]: what to do when an answer fails;
//! * [`compaction`]: summarizing a conversation that gets too long.
//!
//! The crate runs no tools and knows no settings or credentials; `pinch-coding-agent` builds its sessions from it and re-exports its modules.

pub mod entry;

pub mod store;

pub mod session_log;

pub mod totals;

pub mod recovery;

pub mod compaction;

pub use pinch_llm as llm;

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
