//! The tool loop: it calls the model, runs the tools that the model asks for, and calls it again until it is done.
//!
//! This crate has no files, no sessions and no retries. An [`Agent`] owns a conversation; [`Agent::run`] returns a [`Run`], a stream of
//! [`AgentEvent`]s that its owner pulls. The loop advances only when the next event is polled: a consumer (such as a session that writes a
//! log) has always finished with one event before the next step starts. Dropping the stream stops everything, including running tools.

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

/// Compiles the README's examples as tests.
#[cfg(all(doctest, feature = "schemars"))]
#[doc = include_str!("../README.md")]
struct Readme;
