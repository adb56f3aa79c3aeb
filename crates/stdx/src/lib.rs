//! What the standard library lacks and every layer of pinch needs.
//!
//! This crate knows no pinch concept: no models, no messages, no sessions. It offers
//!
//! * [`host`]: the clock, ids, environment and home directory, as a value that tests can fake;
//! * [`cancel`]: one token for cancelling, with a typed reason and a deadline;
//! * [`queue`]: a bounded queue whose items merge, so that writers never wait and nothing is lost;
//! * [`pull`]: streams made by functions that wait for their reader;
//! * [`secret`]: text that never shows up in `Debug` output;
//! * [`text`]: lengths, cuts and cleaning of text;
//! * [`json`]: JSON the way JavaScript reads and writes it;
//! * [`fs`]: whole-file replacement and locks;
//! * [`process`]: child processes whose whole tree can be stopped.
//!
//! ```
//! use pinch_stdx::cancel::{Cancel, CancelReason};
//!
//! let cancel = Cancel::new();
//! let child = cancel.child();
//! cancel.cancel(CancelReason::User);
//! assert_eq!(child.reason(), Some(CancelReason::User));
//! ```

pub mod host;

pub mod cancel;

pub mod queue;

pub mod pull;

pub mod secret;

pub mod text;

pub mod json;

pub mod fs;

pub mod process;

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
