//! Scheduled jobs: normalizing a model's input, computing when a job is due, and where its answer is delivered.

pub mod schedule;

pub mod target;

pub mod normalize;
