//! Commands: what they start, whether they may run, and with which environment.
//!
//! [`analysis`] and the parser of scripts find the programs that a command starts. [`allowlist`], [`safe_bins`] and [`skill_programs`]
//! decide which of them are known; [`approvals`] stores earlier approvals and decides when to ask; [`contents`] hashes the files that they cover.
//! [`identity`] detects programs that change afterwards. [`environment`] builds the environment of a child process, which starts empty.

pub mod modes;

pub mod environment;

mod programs;

mod script;

pub mod analysis;

pub mod allowlist;

pub mod safe_bins;

mod interpreters;

pub mod skill_programs;

pub mod contents;

pub mod approvals;

pub mod judge;

pub mod identity;
