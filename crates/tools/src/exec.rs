//! Commands: what they are made of, whether they may run, and with which environment.
//!
//! [`analysis`] splits a command line into the programs that it starts. [`allowlist`] and [`safe_bins`] say which of those are known;
//! [`approvals`] holds what was allowed before and which question has to be asked. [`identity`] notices programs that change after that.
//! [`environment`] makes the environment of a child, which begins empty.

pub mod modes;

pub mod environment;

pub mod analysis;

pub mod allowlist;

pub mod safe_bins;

pub mod approvals;

pub mod judge;

pub mod identity;
