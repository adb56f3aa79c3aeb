//! What embedded runs share: how their end becomes words and an exit code.

use std::path::PathBuf;

use pinch_embed::replies::api_error;
use pinch_embed::run::result::FailoverError;
use pinch_embed::run::{FailoverReason, RunError, RunErrorKind, RunResult};

use crate::exit::{Failure, Kind};
use crate::find_model;

/// What a failure is explained with.
pub(crate) struct Surroundings {
    /// The folder of models.json.
    pub(crate) documents: PathBuf,
    /// The command line names the model; else it is the configuration's.
    pub(crate) names_model: bool,
}

/// A run without a result in words for a person.
pub(crate) fn failure(error: &RunError, around: &Surroundings) -> Failure {
    match error {
        RunError::Cancelled(_) => Failure::user(error.to_string()),
        RunError::Config(_) => Failure::configuration(error.to_string()),
        RunError::NoModel => find_model::no_model(&around.documents),
        RunError::UnknownModel(error) => {
            let failure = find_model::not_found(error);
            let kind = if around.names_model { failure.kind } else { Kind::Configuration };
            Failure { kind, ..failure }
        }
        RunError::Failover(error) => failed_model(error),
        RunError::Busy(_) | RunError::Internal(_) => Failure::internal(error.to_string()),
    }
}

/// A model that could not do it. Where nobody was asked for want of a key, it is not the provider's fault.
fn failed_model(error: &FailoverError) -> Failure {
    if error.source.is_none() && error.reason == Some(FailoverReason::Auth) {
        return Failure::configuration(error.message.clone());
    }
    let info = api_error::info(&error.message).unwrap_or_default();
    let text = match (info.message, error.status) {
        (Some(message), Some(status)) => format!("{}/{}: {message} (HTTP {status})", error.provider, error.model),
        (Some(message), None) => format!("{}/{}: {message}", error.provider, error.model),
        (None, _) => error.message.clone(),
    };
    Failure::new(Kind::Provider, text)
}

/// What is said of an answer that did not come to its end; `None` for others.
pub(crate) fn incomplete(result: &RunResult) -> Option<Failure> {
    result.meta.partial?;
    let errors: Vec<&str> = (result.payloads.iter().filter(|payload| payload.is_error))
        .map(|payload| payload.reply.text.as_str())
        .collect();
    let text = match &errors[..] {
        [] => "The answer was cut off: the time limit of the run was reached".to_owned(),
        errors => errors.join("\n"),
    };
    Some(Failure::new(Kind::Provider, text))
}

/// Whose failure a result tells of; `None` when it is an answer.
pub(crate) fn failed(result: &RunResult) -> Option<Kind> {
    if let Some(error) = &result.meta.error {
        return Some(match error.kind {
            RunErrorKind::ImageSize | RunErrorKind::Budget => Kind::User,
            RunErrorKind::ContextOverflow
            | RunErrorKind::CompactionFailure
            | RunErrorKind::RoleOrdering
            | RunErrorKind::IncompleteTurn
            | RunErrorKind::RetryLimit => Kind::Provider,
        });
    }
    // Who presses Ctrl+C ends the program with the signal's code: what is left is an answer that took too long.
    let only_errors = !result.payloads.is_empty() && result.payloads.iter().all(|payload| payload.is_error);
    let is_partial = result.meta.partial.is_some();
    (result.meta.aborted || is_partial || only_errors).then_some(Kind::Provider)
}
