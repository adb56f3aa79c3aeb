//! JSON the way JavaScript reads and writes it.
//!
//! Files and wires of pinch are shared with programs written in JavaScript. What [`mod@write`] prints is what `JSON.stringify` prints, [`lossy`]
//! reads what JavaScript can write and serde_json refuses, [`repair`] repairs the mistakes of models, [`partial`] reads text that is still
//! arriving, [`walk`] finds parts without reading the rest.

pub mod number;

pub mod write;

pub mod lossy;

pub mod partial;

pub mod repair;

pub mod jsonc;

pub mod walk;

pub use lossy::{from_slice, from_str};
pub use write::{to_pretty, to_string, to_vec, write_pretty};
