//! One run: from a request to its result.

pub mod reason;

pub mod error_text;

pub mod payloads;
