//! Event-stream messages of AWS.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pinch_fuzz::aws_events::check(data));
