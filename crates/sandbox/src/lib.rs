//! Sandboxes: isolating an agent's tools and commands from the rest of the machine.
//!
//! * [`scope`] decides which sessions are sandboxed, and which of them share a sandbox.
//! * [`config`] reads the `sandbox` sections of a configuration.
//! * [`container`] builds the arguments for creating a container, and rejects unsafe ones.
//! * [`facts`] describes the sandbox to a model.
//! * [`domains`] lists the servers that a sandbox may reach.
//! * [`confinement`] describes the requirements on a sandbox, and [`contract`] the interface of backends.
//! * `landlock`, `bubblewrap` and `containers` (Linux) are backends; [`choose`] selects one.

pub mod scope;

pub mod config;

pub mod container;

pub mod facts;

pub mod domains;

pub mod confinement;

pub mod contract;

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod egress;

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod confined;

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
pub mod landlock;

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
pub mod bubblewrap;

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
pub mod containers;

pub mod choose;

/// Runs the README's examples as doc tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
