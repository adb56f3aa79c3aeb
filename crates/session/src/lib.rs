//! Sessions: stored conversations and the contexts built from them.
//!
//! * [`entry`]: the lines of a session file;
//! * [`store`]: session stores, behind one trait;
//! * [`session_log`]: one session, append-only, with its branches and the context of the active one;
//! * [`totals`]: the cost of a session;
//! * [`recovery`]: decisions after a failed answer;
//! * [`compaction`]: summarizing conversations that get too long.
//!
//! The crate runs no tools and knows no settings or credentials; `pinch-coding-agent` builds its sessions on it and re-exports its modules.

pub mod entry;

pub mod store;

pub mod session_log;

pub mod totals;

pub mod recovery;

pub mod compaction;

pub use pinch_llm as llm;

/// Runs the README's examples as doc tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
