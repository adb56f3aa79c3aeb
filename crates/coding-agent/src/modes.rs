//! Run modes: print, JSON and RPC, for programs and people that read a session's output.

pub mod print;
pub mod json;
pub mod rpc;
