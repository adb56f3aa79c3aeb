//! Runs an agent inside your program: one prompt in; model calls, tool calls, retries, failover and compaction inside; replies out.

pub mod key;

pub mod lanes;

pub mod replies;

pub mod reason;

pub mod config;

pub mod profiles;

pub mod models;

pub mod workspace;

pub mod delivery;

pub mod run;

pub mod runtime;

pub(crate) mod parts;

pub mod runner;

pub mod engine;

pub use engine::{Engine, run_embedded_agent};
pub use pinch_coding_agent as coding_agent;
pub use pinch_coding_agent::{agent_core, llm};
pub use pinch_llm::stdx;
pub use pinch_ports as ports;
