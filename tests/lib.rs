//! Cross-layer suites live in it/. The examples of the README are compiled here, as tests of documentation.

#![cfg_attr(doctest, doc = include_str!("../README.md"))]
