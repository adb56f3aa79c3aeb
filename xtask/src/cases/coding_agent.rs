//! Cases of the suite `coding-agent`.

mod auth;
mod digest;
mod files;
mod models;
mod pure;
mod settings;
mod tool;

use super::{Case, Outcome};

/// Runs a case.
pub(super) fn execute(case: &Case<'_>) -> Outcome {
    match case.kind {
        "tool" => tool::run(case),
        "settings" => settings::run(case),
        _ => {
            let done = pure::run(case).or_else(|| models::run(case)).or_else(|| auth::run(case));
            done.unwrap_or(Outcome::NotImplemented)
        }
    }
}
