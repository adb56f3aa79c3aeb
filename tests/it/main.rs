//! Suites across layers, for behaviour that only the combination can show.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod edges;

mod first_programs;

mod fuzz_corpus;

mod prefix;

mod tool_schemas;
