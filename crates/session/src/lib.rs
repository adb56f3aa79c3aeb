#![doc = include_str!("../README.md")]
//!
//! ## Modules
//!
//! * [`entry`]: the lines of a session file;
//! * [`store`]: session stores, behind one trait;
//! * [`session_log`]: one session, append-only, with its branches and the context of the active one;
//! * [`totals`]: the cost of a session;
//! * [`recovery`]: decisions after a failed answer;
//! * [`compaction`]: summarizing conversations that get too long.

pub mod entry;

pub mod store;

pub mod session_log;

pub mod totals;

pub mod recovery;

pub mod compaction;

pub use pinch_llm as llm;
