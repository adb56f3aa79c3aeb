//! Cases of the suite `coding-agent`.

mod digest;
mod files;
mod packages;
mod pure;
mod resources;
mod tool;

use super::{Case, Outcome};

/// Runs a case.
pub(super) fn execute(case: &Case<'_>) -> Outcome {
    match case.kind {
        "tool" => tool::run(case),
        _ => {
            let of_resources = || resources::run(case).or_else(|| packages::run(case));
            pure::run(case).or_else(of_resources).unwrap_or(Outcome::NotImplemented)
        }
    }
}
