//! Cases of the suite `coding-agent`.

mod digest;
mod files;
mod pure;
mod settings;
mod tool;

use super::{Case, Outcome};

/// Runs a case.
pub(super) fn execute(case: &Case<'_>) -> Outcome {
    match case.kind {
        "tool" => tool::run(case),
        "settings" => settings::run(case),
        _ => pure::run(case).unwrap_or(Outcome::NotImplemented),
    }
}
