//! Conformance suites for traits, which external implementations can run as well.

#[cfg(feature = "llm")]
pub mod wire;

#[cfg(feature = "session")]
pub mod store;

#[cfg(feature = "ports")]
pub mod ports;
