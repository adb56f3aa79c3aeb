//! Text for people.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pinch_fuzz::sanitiser::check(data));
