//! Sub-agents: sessions that an agent starts for a task, which work in the background and report to the session that started them.
//!
//! This module decides about a start ([`spawn`]) and keeps the records of those that were started. The engine runs them.

pub mod spawn;
pub(crate) mod limits;
pub(crate) mod record;
pub(crate) mod wording;
pub(crate) mod registry;
