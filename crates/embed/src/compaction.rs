//! Summarises conversations that grow too long: which model writes the summary, and how a long history is split for it.
//!
//! `pinch-coding-agent` decides when to compact near the window, and [`decide`](crate::run::decide::decide) after an overflow; the hook in
//! `summaries` only makes the summary. [`pruning`] shortens old tool results before a compaction becomes necessary.

pub mod model;
pub mod chunks;
pub mod sections;
pub mod memory;
pub(crate) mod audit;
pub(crate) mod safeguard;
pub(crate) mod summaries;
pub mod pruning;

pub use summaries::SummaryPlan;
