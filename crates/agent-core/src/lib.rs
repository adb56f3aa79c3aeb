//! The tool loop: it calls the model, runs the tools that the model asks for, and calls it again until it is done.
//!
//! ```no_run
//! use pinch_agent_core::llm::{Client, stdx::host::Host};
//! use pinch_agent_core::{Agent, FnTool, ToolSpec};
//! use serde_json::{Value, json};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::from_env(&Host::system());
//! let spec = ToolSpec::new("time", "Tell the time", json!({"type": "object"}));
//! let time = FnTool::new(spec, |_args: Value, cx| async move { Ok(cx.host.now_iso()) });
//! let mut agent = Agent::builder(client.model("anthropic/claude-sonnet-4-5")?).client(&client)?.tool(time).build()?;
//! println!("{}", agent.prompt("What time is it?").await?.text());
//! # Ok(())
//! # }
//! ```
//!
//! This crate has no files, no sessions and no retries: those are in pinch-coding-agent.
//!
//! ## Where to start
//!
//! An [`Agent`] owns a conversation: [`Agent::prompt`] runs it to the next answer, and [`Agent::run`] returns a [`Run`], a stream of
//! [`AgentEvent`]s. The loop advances only when the next event is polled: a consumer (such as a session that writes a log) has always
//! finished with one event before the next step starts. [`Agent::queues`] adds messages during a run, and [`Hooks`] can change every step.
//! `examples/stored_conversation.rs` shows these, and a conversation that is stored and continued.
//!
//! ## Features
//!
//! * `schemars`: `tool_fn`, which derives the schema of a tool from the type of its arguments;
//! * `ring` (the only default), `aws-lc-rs`, `webpki-roots`: TLS; see pinch-http.

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
