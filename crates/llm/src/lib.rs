//! One conversation in, one stream of events out, for every provider wire format.
//!
//! This crate knows no tool loop, no files and no retries. It never sleeps and never repeats a request: what goes wrong arrives as a typed
//! [`error::LlmError`] in the last event, with everything a caller needs to decide.

pub mod ids;

pub mod thinking;

pub mod message;

pub mod model;

pub mod schema;

pub mod catalog;

pub mod keys;

pub mod error;

pub mod request;

pub mod event;

pub mod normalise;

pub mod frame;

pub mod wire;

pub mod http;

pub mod provider;

pub use pinch_stdx as stdx;
