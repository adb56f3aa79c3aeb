//! JSON the way JavaScript reads and writes it.

pub mod partial;
