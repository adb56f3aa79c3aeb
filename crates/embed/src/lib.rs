//! Runs an agent inside your program: one prompt in; model calls, tool calls, retries, failover and compaction inside; replies out.

pub use pinch_coding_agent as coding_agent;
pub use pinch_coding_agent::{agent_core, llm};
pub use pinch_llm::stdx;

pub mod replies;

pub mod key;

pub mod config;

pub mod lanes;

pub mod profiles;

pub mod models;

pub mod run;
