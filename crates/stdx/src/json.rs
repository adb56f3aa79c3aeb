//! JSON as JavaScript reads and writes it.
//!
//! pinch shares files and protocols with JavaScript programs. [`mod@write`] writes like `JSON.stringify`, [`lossy`] parses JavaScript
//! output that serde_json rejects, [`repair`] repairs mistakes of models, [`partial`] parses text that is still arriving, and [`walk`]
//! finds parts without parsing the rest.

pub mod number;

pub mod write;

pub mod lossy;

pub mod partial;

pub mod repair;

pub mod jsonc;

pub mod walk;

pub use lossy::{from_slice, from_str};
pub use write::{to_pretty, to_string, to_vec, write_pretty};
