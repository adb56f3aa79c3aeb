//! Cases of the suite `coding-agent`.

mod args;
mod auth;
mod digest;
mod files;
mod models;
mod packages;
mod program;
mod pure;
mod resources;
mod settings;
mod tool;

use super::{Case, CaseOutcome};

/// Runs a case.
pub(super) fn execute(case: &Case<'_>) -> CaseOutcome {
    match case.kind {
        "tool" => tool::run(case),
        "settings" => settings::run(case),
        "rpc" | "print" | "json" => program::run(case),
        "rpc_extension_ui" => {
            let with_probe = program::with_probe(case.case);
            program::run(&Case { case: &with_probe, ..*case })
        }
        _ => pure::run(case)
            .or_else(|| resources::run(case))
            .or_else(|| packages::run(case))
            .or_else(|| models::run(case))
            .or_else(|| auth::run(case))
            .unwrap_or(CaseOutcome::NotImplemented),
    }
}
