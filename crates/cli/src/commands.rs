//! One file a command.

pub(crate) mod agent;
pub(crate) mod chat;
pub(crate) mod demo;
pub(crate) mod packages;
