//! The only place that knows the JSON of events, commands and answers.

pub mod results;

pub mod event;
pub mod command;
pub mod response;

pub use event::{EventNames, EventWriter};
