//! Keeps what an agent runs apart from the rest of the machine.
//!
//! * [`scope`] says which sessions are sandboxed, and which of them share a sandbox.
//! * [`config`] reads the `sandbox` sections of a configuration.
//! * [`container`] has the arguments that a container is created with, and refuses those that would open it.
//! * [`facts`] is what a model is told about the sandbox that it works in.
//! * [`confinement`] is what is asked of a sandbox, and [`contract`] what every backend does.
//! * `landlock`, `bubblewrap` and `containers` (Linux) are backends; [`choose`] tries them.

pub mod scope;

pub mod config;

pub mod container;

pub mod facts;

pub mod confinement;

pub mod contract;

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod confined;

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
pub mod landlock;

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
pub mod bubblewrap;

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
pub mod containers;

pub mod choose;

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
