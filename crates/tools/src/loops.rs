//! Detection of agents that repeat themselves.
//!
//! A [`CallHistory`] keeps a session's latest calls with hashes of their arguments and results. Before a call, [`CallHistory::detect`]
//! looks for repetition without progress: identical calls, polling a process that does not change, two alternating calls, a tool that does
//! not exist. A warning is appended to the call's result for the model to read; a critical finding blocks the call. [`LoopGuard`] does both
//! as hooks of the tool loop.

mod config;

mod fingerprint;

mod detect;

mod guard;

pub use config::{LoopConfig, OnRepeat};
pub use detect::{CallHistory, Detector, LoopFinding, LoopLevel};
pub use fingerprint::{CallEnd, call_hash};
pub use guard::LoopGuard;
