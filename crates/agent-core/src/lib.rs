//! The tool loop: the model is called, the tools it asks for are run, and it is called again until it is done.
//!
//! This crate knows no files, no sessions and no retries. An [`Agent`] owns a conversation; [`Agent::run`] gives a [`Run`], a stream of
//! [`AgentEvent`]s that its owner pulls. The loop advances only when the next event is polled: a consumer (a session that writes a log,
//! say) has always finished with one event before the next step begins. Dropping the stream stops everything, running tools included.

pub mod tool;

pub mod hooks;

pub mod queue;

pub mod event;

pub mod declare;

pub mod agent;

pub mod run;

pub mod proxy;

pub use agent::{Agent, AgentBuilder, ContinueError};
pub use event::{AgentEvent, EndReason, RunEnd};
pub use hooks::Hooks;
pub use run::Run;
#[cfg(feature = "schemars")]
pub use tool::tool_fn;
pub use tool::{FnTool, Tool, ToolCx, ToolError, ToolOutput, ToolSet, ToolSpec};

pub use pinch_llm as llm;

/// The examples of the README are tests.
#[cfg(all(doctest, feature = "schemars"))]
#[doc = include_str!("../README.md")]
struct Readme;
