//! Server-sent events and lines of JSON.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pinch_fuzz::sse::check(data));
