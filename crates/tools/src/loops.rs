//! Detecting an agent that goes round in circles.
//!
//! A [`CallHistory`] holds the latest calls of a session with hashes of their arguments and results. Before a call, [`CallHistory::detect`] looks for
//! repetition without progress: the same call again and again, polling a process that does not move, two calls in turns, a tool that does not
//! exist. A warning is appended to the result of the call, so that the model reads it; a critical finding prevents the call. [`LoopGuard`] does both
//! as hooks of the tool loop.

mod config;

mod fingerprint;

mod detect;

mod guard;

pub use config::{LoopConfig, OnRepeat};
pub use detect::{CallHistory, Detector, LoopFinding, LoopLevel};
pub use fingerprint::{CallEnd, call_hash};
pub use guard::LoopGuard;
