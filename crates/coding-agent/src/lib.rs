#![doc = include_str!("../README.md")]
//!
//! ## Modules
//!
//! [`create_agent_session`] is the entry point. The parts are also usable on their own:
//!
//! * [`runtime`], [`session`], [`event`]: the session, its inputs and its events;
//! * [`services`], [`settings`], [`auth`], [`models`]: what the sessions of a directory share;
//! * [`login`]: logging in to providers and out again;
//! * [`entry`], [`store`], [`session_log`]: session files and the contexts built from them;
//! * [`machine`], [`tools`]: where and how the agent acts;
//! * [`packages`], [`resources`], [`prompt`]: resources added by users, and the system prompt;
//! * [`extension`]: code that observes and modifies a session;
//! * [`compaction`], [`recovery`]: handling long conversations and failed answers;
//! * [`modes`], [`protocol`]: print, JSON and RPC mode;
//! * [`export`]: a session as an HTML page;
//! * [`releases`]: release notes and update checks;
//! * [`document`]: lenient parsing of user files, with precise problem reports.

pub mod document;

mod web;

pub mod images;

pub mod tools;

pub mod auth;

pub mod models;

pub mod login;

pub mod packages;

pub mod resources;

pub mod prompt;

pub mod settings;

pub mod releases;

pub mod startup_moves;

pub mod event;

pub mod protocol;

pub mod extension;

pub mod services;

pub mod session;

pub mod export;

pub mod runtime;

pub mod modes;

pub use pinch_agent_core as agent_core;
pub use pinch_agent_core::llm;
pub use pinch_machine as machine;
pub use pinch_session::{compaction, entry, recovery, session_log, store};
pub use pinch_stdx as stdx;
pub use pinch_stdx::host::Host;
pub use runtime::{AgentSessionOptions, SessionRuntime, create_agent_session};
