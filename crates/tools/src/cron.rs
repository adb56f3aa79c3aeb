//! Jobs that run at times: what a model writes, when a job is due, and where its answer goes.

pub mod schedule;

pub mod target;

pub mod normalize;
