#![doc = include_str!("../README.md")]
//!
//! ## Modules
//!
//! * [`policy`] decides which tools a run is offered, and explains why.
//! * [`arguments`] accepts the parameter names of other agents' file tools.
//! * [`loops`] detects an agent that repeats itself, warns it, and stops it.
//! * [`paths`] restricts paths to a root.
//! * [`patch`] implements `apply_patch`.
//! * [`exec`] decides which commands run, and with which environment.
//! * [`ask_user`] asks a person to make a decision.
//! * [`tool_search`] finds and calls tools that are not declared to the model.
//! * [`web`] blocks internal addresses and marks external content.
//! * `cron` (feature `cron`) handles scheduled jobs.
//! * [`process`] provides the tools `exec` and `process`.
//! * [`waiting`] limits how long a call may wait.
//! * [`results`] limits how much of a model's context a result takes.
//! * [`pipeline`] merges the tools of all sources into one list and applies the policy to it.

pub mod policy;

pub mod arguments;

pub mod workspace_paths;

pub mod pipeline;

pub mod results;

pub mod loops;

pub mod paths;

pub mod patch;

pub mod exec;

pub mod waiting;

pub mod process;

pub mod ask_user;

pub mod tool_search;

pub mod web;

#[cfg(feature = "cron")]
pub mod cron;
