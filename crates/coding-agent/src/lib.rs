//! Sessions, credentials, models, tools and one session to talk to.
//!
//! * [`document`]: what users write, read leniently and reported precisely;
//! * [`machine`], [`tools`]: where and how the agent acts;
//! * [`entry`], [`store`], [`session_log`]: what is kept, and the context it gives a model;
//! * [`auth`], [`models`]: whom to ask, and who pays;
//! * [`packages`], [`resources`], [`prompt`]: what users add, and what the model is told first;
//! * [`export`]: a session as a page for other people;
//! * [`compaction`], [`recovery`]: what happens when a conversation gets too long or an answer fails;
//! * [`extension`]: code from outside that watches a session and steps in;
//! * [`runtime`]: the front door, [`runtime::create_agent_session`].

pub mod document;

pub mod images;

pub mod tools;

pub mod auth;

pub mod models;

pub mod packages;

pub mod resources;

pub mod prompt;

pub mod settings;

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
