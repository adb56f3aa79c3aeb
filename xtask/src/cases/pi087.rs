//! Cases of the suite `pi087`: the program, run as its users run it.

mod program;
mod request;
mod server;
mod tool;

use super::{Case, Outcome};

/// Runs a case.
pub(super) fn execute(case: &Case<'_>) -> Outcome {
    match case.kind {
        "request" => request::run(case),
        "tool" => tool::run(case),
        _ => Outcome::NotImplemented,
    }
}
