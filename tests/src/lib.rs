//! Suites across the layers of pinch: the executors of the recorded cases with the harness that makes them one test, and in `it/` what only the parts together can show.
//!
//! The examples of the README and of the page on extensions are compiled here, as tests of documentation.

#![cfg_attr(doctest, doc = include_str!("../../README.md"))]
#![cfg_attr(doctest, doc = include_str!("../../docs/extensions.md"))]
#![cfg_attr(doctest, doc = include_str!("../../docs/skills.md"))]

pub mod cases;

pub mod harness;
