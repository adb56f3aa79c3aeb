//! Cases of the suite `pi087`: the program, run the way users run it.

mod output;
mod request;
mod session_file;
mod tool;
mod value;

use super::{Case, CaseOutcome};

/// Runs a case.
pub(super) fn execute(case: &Case<'_>) -> CaseOutcome {
    match case.kind {
        "request" => request::run(case),
        "session_file" => session_file::run(case),
        "tool" => tool::run(case),
        "json" | "print" | "rpc" | "cli" => output::run(case),
        _ => CaseOutcome::NotImplemented,
    }
}
