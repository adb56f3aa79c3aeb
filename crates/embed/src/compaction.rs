//! Summaries of conversations that become too long: which model writes them, and how a long history is cut for it.
//!
//! When a conversation is compacted is decided by `pinch-coding-agent` (near the window) and by [`decide`](crate::run::decide::decide) (after an
//! overflow). The hook of `summaries` steps in where the summary is made. [`pruning`] shortens old results before that is necessary.

pub mod model;
pub mod chunks;
pub mod sections;
pub mod memory;
pub(crate) mod audit;
pub(crate) mod safeguard;
pub(crate) mod summaries;
pub mod pruning;

pub use summaries::SummaryPlan;
