//! Coding agent sessions: a conversation with a model that can read, edit and run things in a directory.
//!
//! Start with [`create_agent_session`]: it puts credentials, models, settings, tools, resources and a session log together, from the user's files or
//! from values of the caller. Everything else is a part of it that can be used by itself:
//!
//! * [`runtime`], [`session`], [`event`]: the session, what it is created from, and what it emits;
//! * [`services`], [`settings`], [`auth`], [`models`]: what sessions of one directory share;
//! * [`login`]: logging in to providers and out again;
//! * [`entry`], [`store`], [`session_log`]: session files and the context they give a model;
//! * [`machine`], [`tools`]: where and how the agent acts;
//! * [`packages`], [`resources`], [`prompt`]: what users add, and the system prompt;
//! * [`extension`]: code that observes a session and changes what it does;
//! * [`compaction`], [`recovery`]: what happens when a conversation gets too long or an answer fails;
//! * [`modes`], [`protocol`]: print, JSON and RPC mode;
//! * [`export`]: a session as an HTML page;
//! * [`releases`]: what is new in which version;
//! * [`document`]: files that users write, read leniently and reported precisely.

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

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
