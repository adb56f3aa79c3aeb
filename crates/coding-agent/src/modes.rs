//! Running a session for a program or a person that reads its output.

pub mod print;
pub mod json;
pub mod rpc;
