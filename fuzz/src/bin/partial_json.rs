//! JSON that is still arriving.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pinch_fuzz::partial_json::check(data));
