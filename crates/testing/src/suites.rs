//! Suites that every implementation of a trait must pass; forks run them on their own.

#[cfg(feature = "llm")]
pub mod wire;

#[cfg(feature = "session")]
pub mod store;

#[cfg(feature = "ports")]
pub mod ports;
