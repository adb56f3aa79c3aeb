//! Outcomes of embedded runs as messages and exit codes.

use std::path::PathBuf;

use pinch_embed::coding_agent::models::pattern::NotFound;
use pinch_embed::run::result::FailoverError;
use pinch_embed::run::{FailoverReason, FailureKind, RunError, RunResult};
use pinch_embed::texts::TextTable;

use crate::exit::{Blame, CommandFailure};
use crate::find_model;

/// Context for the message of a failure.
pub(crate) struct FailureContext {
    /// The directory of models.json.
    pub(crate) documents: PathBuf,
    /// Whether the command line names the model, instead of the configuration.
    pub(crate) names_model: bool,
}

/// Describes a run without a result.
pub(crate) fn failure(error: &RunError, around: &FailureContext) -> CommandFailure {
    match error {
        RunError::Cancelled(_) => CommandFailure::user(error.text_for_user(&TextTable::default())),
        RunError::Config(_) => CommandFailure::configuration(error.to_string()),
        RunError::NoModel => find_model::no_model(&around.documents),
        RunError::UnknownModel { why, .. } => {
            let kind = if around.names_model { Blame::User } else { Blame::Configuration };
            let hint = match why {
                NotFound::Ambiguous { .. } => "",
                _ => {
                    "\nhint: `pinch --list-models` lists models; agents.defaults.model and models.providers in pinch.json configure others"
                }
            };
            CommandFailure::new(kind, format!("{error}{hint}"))
        }
        RunError::Failover(failure) => CommandFailure::new(blame(failure), error.text_for_user(&TextTable::default())),
        _ => CommandFailure::internal(error.to_string()),
    }
}

/// Returns whether the provider is to blame for a failure. Without a key no request was sent, so it is not.
fn blame(error: &FailoverError) -> Blame {
    let has_no_key = error.source.is_none() && error.resting_profiles.is_none();
    if has_no_key && error.reason == Some(FailoverReason::Auth) { Blame::Configuration } else { Blame::Provider }
}

/// Returns the failure of an answer that broke off, or `None` for others.
pub(crate) fn incomplete(result: &RunResult) -> Option<CommandFailure> {
    result.meta.partial?;
    result.failure().map(|failure| CommandFailure::new(Blame::Provider, failure.message))
}

/// Returns the blame for a failed result, or `None` for an answer. After Ctrl+C the program exits with the signal's code before this is
/// checked.
pub(crate) fn failed(result: &RunResult) -> Option<Blame> {
    result.failure().map(|failure| match failure.kind {
        FailureKind::ImageSize | FailureKind::Budget | FailureKind::HookBlock => Blame::User,
        _ => Blame::Provider,
    })
}
