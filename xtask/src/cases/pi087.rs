//! Cases of the suite `pi087`: the program, run as its users run it.

mod program;
mod request;
mod server;
mod session_file;
mod shape;
mod tool;

use super::{Case, Outcome};
pub(super) use program::pinch;

/// Runs a case.
pub(super) fn execute(case: &Case<'_>) -> Outcome {
    match case.kind {
        "request" => request::run(case),
        "session_file" => session_file::run(case),
        "tool" => tool::run(case),
        _ => Outcome::NotImplemented,
    }
}
