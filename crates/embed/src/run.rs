//! One run: from a request to its result.

pub mod payloads;
