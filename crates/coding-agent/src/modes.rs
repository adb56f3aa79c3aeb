//! Running a session for a program or a person that reads its output.

pub mod json;
pub mod print;
