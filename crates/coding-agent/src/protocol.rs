//! The only place that knows the JSON of events.

pub mod event;

pub use event::{EventNames, EventWriter};
