//! Test support for pinch and for its forks.
//!
//! * `server` (feature `server`): a real HTTP server on the loopback whose responses are released piece by piece by the test;
//! * [`wires`]: the text of responses in the formats of providers;
//! * [`rules`]: strict models of what servers accept;
//! * [`child`]: other processes, for tests of crashes and of several writers;
//! * `logs` (feature `session`): entries and session logs;
//! * `suites` (features named after the layers): what every implementation of a trait must do, one macro each;
//! * `cases` (feature `cases`): what recorded case files and comparisons with other programs are run with.
//!
//! Without the layers' features this crate knows nothing of pinch itself, so that every layer can use it.

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
