//! Sessions, credentials, models, tools and one session to talk to.
//!
//! * [`entry`]: what the lines of a session file say;
//! * [`store`]: where sessions are kept;
//! * [`session_log`]: one session as a tree of entries, and the context it gives a model;
//! * [`compaction`]: summaries that stand for what no longer fits.

pub mod entry;

pub mod store;

pub mod session_log;

pub mod compaction;
