//! One file a command.

pub(crate) mod agent;
pub(crate) mod auth;
pub(crate) mod chat;
pub(crate) mod demo;
