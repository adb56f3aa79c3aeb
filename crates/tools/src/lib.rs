//! Tools of an embedded agent, and the rules for them: which ones a caller is offered, and what stands between a call and its effect.
//!
//! * [`policy`] decides which tools a run is offered, and explains why.
//! * [`arguments`] accepts the parameter names of other agents' file tools.
//! * [`loops`] finds an agent that goes round in circles, warns it, and stops it.
//! * [`paths`] keeps paths below a root.
//! * [`patch`] is `apply_patch`.
//! * [`exec`] decides which commands run, and with which environment.
//! * [`ask_user`] asks a person what an agent cannot decide.
//! * [`web`] keeps a model away from internal addresses, and marks what comes from outside.
//! * `cron` (feature `cron`) is about jobs that run at times.
//! * [`process`] has the tools `exec` and `process`.
//! * [`results`] limits what a result takes of a model's context.
//! * [`pipeline`] puts the tools of all sources into one list and applies the policy to it.

pub mod policy;

pub mod arguments;

pub mod pipeline;

pub mod results;

pub mod loops;

pub mod paths;

pub mod patch;

pub mod exec;

pub mod process;

pub mod ask_user;

pub mod web;

#[cfg(feature = "cron")]
pub mod cron;

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
