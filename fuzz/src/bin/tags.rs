//! Reasoning and final tags.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pinch_fuzz::tags::check(data));
