//! The JSON formats of events, commands and answers, which are defined nowhere else.

pub mod results;

pub mod event;
pub mod command;
pub mod response;

pub use event::{EventNames, EventWriter};
