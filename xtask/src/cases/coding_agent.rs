//! Cases of the suite `coding-agent`.

mod args;
mod digest;
mod files;
mod program;
mod pure;
mod tool;

use super::{Case, Outcome};

/// Runs a case.
pub(super) fn execute(case: &Case<'_>) -> Outcome {
    match case.kind {
        "tool" => tool::run(case),
        "rpc" | "print" => program::run(case),
        "rpc_extension_ui" => {
            let with_probe = program::with_probe(case.case);
            program::run(&Case { case: &with_probe, ..*case })
        }
        _ => pure::run(case).unwrap_or(Outcome::NotImplemented),
    }
}
