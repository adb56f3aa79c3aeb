//! Behaviour of the session layer as a whole.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod compaction;
mod credentials;
mod guard;
mod help;
mod properties;
mod refresh;
mod search;
mod session;
mod session_tree;
mod stores;
mod summaries;
mod writers;
