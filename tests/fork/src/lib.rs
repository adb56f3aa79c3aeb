//! What a fork can add to pinch without changing it: every extension point of the library layers, implemented with public API only.
//!
//! This crate is deliberately outside the workspace. If it stops compiling, a published interface has changed.

pub mod extension;
pub mod format;
pub mod machine;
pub mod ports;
pub mod replies;
pub mod runtime;
pub mod store;
pub mod tools;
