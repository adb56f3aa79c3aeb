//! The suite `llm`: requests and streams of wire formats.

mod request;
pub(super) mod setup;
pub(super) mod stream;

use super::{Case, CaseOutcome};

/// Runs one case.
pub(super) fn execute(case: &Case<'_>) -> CaseOutcome {
    match case.kind {
        "request" => request::run(case),
        "stream" => stream::run(case),
        _ => CaseOutcome::NotImplemented,
    }
}
