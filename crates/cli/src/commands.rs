//! The commands, one file each.

pub(crate) mod agent;
pub(crate) mod auth;
pub(crate) mod interactive;
pub(crate) mod list_models;
pub(crate) mod rpc;
pub(crate) mod demo;
pub(crate) mod export;
pub(crate) mod sessions;
pub(crate) mod conversation;
pub(crate) mod chat;
pub(crate) mod packages;
pub(crate) mod policy;
pub(crate) mod skills;
pub(crate) mod doctor;
pub(crate) mod completions;
