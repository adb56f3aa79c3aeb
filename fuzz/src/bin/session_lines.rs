//! Session files.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pinch_fuzz::session_lines::check(data));
