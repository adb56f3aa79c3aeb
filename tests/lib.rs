//! Cross-layer suites live in it/. The examples of the README and of the page on extensions are compiled here, as tests of documentation.

#![cfg_attr(doctest, doc = include_str!("../README.md"))]
#![cfg_attr(doctest, doc = include_str!("../docs/extensions.md"))]
