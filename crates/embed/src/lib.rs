#![doc = include_str!("../README.md")]

pub mod key;

pub mod lanes;

pub mod ports;

pub mod reason;

pub mod config;

pub mod profiles;

pub mod models;

pub mod compaction;

pub mod workspace;

pub mod skills;

pub(crate) mod system_events;

pub mod prompt;

pub mod history;

pub(crate) mod guarding;

pub mod plugin;

pub mod delivery;

pub mod inbox;

pub mod run;

pub mod runtime;

pub(crate) mod sessions;

pub mod subagents;

pub(crate) mod parts;

pub mod runner;

pub mod engine;

#[cfg(feature = "test-util")]
pub mod runtime_suite;

pub use config::Config;
pub use delivery::{Delivered, OutgoingBlock, Receipt, ReplySink, SendFailure, SinkLimits};
pub use engine::{Engine, EngineBuilder, EngineRun, QueueError, RunTarget, Turn, run_embedded_agent};
pub use inbox::InboundMessage;
pub use pinch_coding_agent as coding_agent;
pub use pinch_coding_agent::{agent_core, llm};
pub use pinch_llm::stdx;
pub use pinch_replies as replies;
pub use pinch_replies::texts;
pub use pinch_tools as tools;
pub use ports::{Caller, Sender};
pub use run::request::BlockReplies;
pub use run::{RunError, RunRequest, RunResult};
