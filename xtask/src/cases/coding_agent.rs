//! Cases of the suite `coding-agent`.

mod args;
mod digest;
mod files;
mod packages;
mod program;
mod pure;
mod resources;
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
        _ => {
            let of_resources = || resources::run(case).or_else(|| packages::run(case));
            pure::run(case).or_else(of_resources).unwrap_or(Outcome::NotImplemented)
        }
    }
}
