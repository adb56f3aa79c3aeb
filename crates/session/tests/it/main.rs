//! Behaviour of session files, stores and compaction.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod child;
mod compaction;
mod contention;
mod crash;
mod disk_work;
mod faults;
mod full_disk;
mod guard;
mod long;
mod properties;
mod recent;
mod replay;
mod stores;
mod summaries;
mod tree;
mod writers;
