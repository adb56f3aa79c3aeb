//! Blocks of a long reply.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pinch_fuzz::chunker::check(data));
