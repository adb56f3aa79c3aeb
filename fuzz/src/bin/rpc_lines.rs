//! Commands of RPC clients.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pinch_fuzz::rpc_lines::check(data));
