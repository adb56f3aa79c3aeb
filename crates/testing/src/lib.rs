#![doc = include_str!("../README.md")]
//!
//! ## Modules
//!
//! * `server` (feature `server`): a real HTTP server on the loopback interface whose responses the test releases chunk by chunk;
//! * [`wires`]: responses in the formats of providers;
//! * [`rules`]: strict models of server requirements;
//! * [`child`]: child processes, for tests of crashes and of several writers;
//! * `logs` (feature `session`): entries and session logs;
//! * `suites` (features named after the layers): conformance suites for the traits, one macro each;
//! * `cases` (feature `cases`): support for recorded case files and comparisons with other programs.
//!
//! Without the layers' features this crate is independent of pinch itself, so that every layer can use it.

#[cfg(feature = "server")]
pub mod server;

#[cfg(feature = "server")]
pub mod chats;

pub mod wires;

pub mod rules;

pub mod child;

#[cfg(feature = "session")]
pub mod logs;

pub mod suites;

#[cfg(feature = "cases")]
pub mod cases;
