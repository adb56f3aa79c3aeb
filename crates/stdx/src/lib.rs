#![doc = include_str!("../README.md")]
//!
//! ## Modules
//!
//! * [`host`]: the clock, ids, environment and home directory, as a value that tests can fake;
//! * [`cancel`]: a cancellation token with a typed reason and a deadline;
//! * [`queue`]: a bounded queue that merges items, so that writers never wait and nothing is lost;
//! * [`pull`]: streams made from functions that wait for their reader;
//! * [`string_id!`]: declares types for ids;
//! * [`secret`]: text that never appears in `Debug` output;
//! * [`text`]: measuring, truncating and cleaning text;
//! * [`json`]: JSON as JavaScript reads and writes it;
//! * [`address`]: which addresses belong to this machine and its networks;
//! * [`fs`]: whole-file replacement and locks;
//! * [`process`]: child processes whose whole tree can be stopped.

#[doc(hidden)]
pub use serde;

mod ids;

pub mod host;

pub mod cancel;

pub mod queue;

pub mod pull;

pub mod secret;

pub mod copy_on_write;

pub mod text;

pub mod json;

pub mod address;

pub mod fs;

pub mod process;
