//! Suites across the layers of pinch: the executors of the case files with the harness that turns them into one test, and in `it/` tests of
//! behaviour that only the combination can show.
//!
//! The examples of the README and of the extension docs are compiled here as documentation tests.

#![cfg_attr(doctest, doc = include_str!("../../README.md"))]
#![cfg_attr(doctest, doc = include_str!("../../docs/extensions.md"))]
#![cfg_attr(doctest, doc = include_str!("../../docs/skills.md"))]

pub mod cases;

pub mod harness;
