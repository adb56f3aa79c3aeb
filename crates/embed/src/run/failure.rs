//! The kind of failure that a run ended with, and its message for people.

use std::fmt;
use std::time::Duration;

use pinch_coding_agent::models::pattern::NotFound;
use pinch_stdx::cancel::CancelReason;

use super::error_text::{ErrorSubject, billing_text, known_text, sanitise_error, unexplained};
use super::meta::{RunErrorKind, RunMeta};
use super::result::{FailoverError, RunError, RunResult};
use crate::models::window::MIN_WINDOW;
use crate::reason::FailoverReason;
use crate::replies::api_error;
use crate::texts::{Phrase, TextTable};

/// The kind of failure that a run ended with, for programs and exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureKind {
    /// The run was stopped.
    Cancelled,
    /// The time limit of the run passed, or a request timed out.
    Timeout,
    /// The model ended without an answer.
    Empty,
    /// The conversation is too long for the model.
    Overflow,
    /// The conversation is too long, and compacting it failed.
    Compaction,
    /// The credentials were refused, or there are none.
    Auth,
    /// Credit or quota is used up.
    Billing,
    /// Too many requests.
    RateLimit,
    /// The provider has no capacity.
    Overloaded,
    /// The provider failed.
    Server,
    /// The provider rejected the request.
    Format,
    /// An image is too large.
    ImageSize,
    /// The model does not exist.
    ModelNotFound,
    /// Too many attempts.
    RetryLimit,
    /// A limit of the request was exceeded.
    Budget,
    /// A plugin of the host rejected the run.
    HookBlock,
    /// The request or the configuration names something that does not exist.
    Config,
    /// The session is in use elsewhere.
    Busy,
    /// The failure could not be classified.
    Unknown,
    /// An internal error, or one of the machine.
    Internal,
}

impl FailureKind {
    /// Returns the identifier used in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cancelled => "cancelled",
            Self::Timeout => "timeout",
            Self::Empty => "empty",
            Self::Overflow => "overflow",
            Self::Compaction => "compaction",
            Self::Auth => "auth",
            Self::Billing => "billing",
            Self::RateLimit => "rate_limit",
            Self::Overloaded => "overloaded",
            Self::Server => "server",
            Self::Format => "format",
            Self::ImageSize => "image_size",
            Self::ModelNotFound => "model_not_found",
            Self::RetryLimit => "retry_limit",
            Self::Budget => "budget",
            Self::HookBlock => "hook_block",
            Self::Config => "config",
            Self::Busy => "busy",
            Self::Unknown => "unknown",
            Self::Internal => "internal",
        }
    }

    /// Returns whether the same request may succeed later without any change.
    pub fn may_pass(self) -> bool {
        matches!(self, Self::Timeout | Self::RateLimit | Self::Overloaded | Self::Server | Self::Busy)
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<FailoverReason> for FailureKind {
    fn from(reason: FailoverReason) -> Self {
        match reason {
            FailoverReason::Billing => Self::Billing,
            FailoverReason::RateLimit => Self::RateLimit,
            FailoverReason::Overloaded => Self::Overloaded,
            FailoverReason::Auth | FailoverReason::AuthPermanent => Self::Auth,
            FailoverReason::Timeout => Self::Timeout,
            FailoverReason::Format | FailoverReason::SessionExpired => Self::Format,
            FailoverReason::ModelNotFound => Self::ModelNotFound,
            FailoverReason::ServerError => Self::Server,
            FailoverReason::EmptyResponse => Self::Empty,
            FailoverReason::NoErrorDetails | FailoverReason::Unknown => Self::Unknown,
        }
    }
}

/// The failure reported by a result.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunFailure {
    /// The kind of failure.
    pub kind: FailureKind,
    /// The message for people.
    pub message: String,
}

impl RunError {
    /// Returns the kind of failure.
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::Cancelled(CancelReason::Deadline) => FailureKind::Timeout,
            Self::Cancelled(_) => FailureKind::Cancelled,
            Self::Busy(_) | Self::Draining => FailureKind::Busy,
            Self::Config(_) | Self::NoModel => FailureKind::Config,
            Self::UnknownModel { .. } => FailureKind::ModelNotFound,
            Self::Failover(error) if error.is_overflow => FailureKind::Overflow,
            Self::Failover(error) => error.reason.map_or(FailureKind::Unknown, FailureKind::from),
            Self::Internal(_) => FailureKind::Internal,
        }
    }

    /// Returns the message for people: what went wrong and, if known, when to retry.
    pub fn text_for_user(&self, texts: &TextTable) -> String {
        match self {
            Self::Cancelled(CancelReason::Deadline) => texts.get(Phrase::NotStarted).to_owned(),
            Self::Cancelled(_) => texts.get(Phrase::Cancelled).to_owned(),
            Self::Failover(error) => failover_text(error, texts),
            Self::Busy(why) => texts.fill(Phrase::Busy, [("why", why)]),
            Self::Draining => texts.get(Phrase::Draining).to_owned(),
            Self::Config(why) => texts.fill(Phrase::Config, [("why", why)]),
            Self::NoModel => texts.get(Phrase::NoModel).to_owned(),
            Self::UnknownModel { why: why @ NotFound::Ambiguous { .. }, .. } => {
                texts.fill(Phrase::AmbiguousModel, [("why", &why.to_string())])
            }
            Self::UnknownModel { name, .. } => texts.fill(Phrase::UnknownModel, [("name", name)]),
            Self::Internal(why) => texts.fill(Phrase::Internal, [("why", why)]),
        }
    }

    /// Returns the metadata of the run, among them what its attempts used; `None` if no model was tried.
    pub fn meta(&self) -> Option<&RunMeta> {
        match self {
            Self::Failover(error) => error.meta.as_deref(),
            _ => None,
        }
    }

    /// Returns how long to wait before a retry may succeed, if known.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Failover(error) => error.retry_after,
            _ => None,
        }
    }
}

fn failover_text(error: &FailoverError, texts: &TextTable) -> String {
    let text = match error.resting_profiles {
        Some(n) => {
            let why = error.reason.map_or_else(String::new, |reason| format!(" ({reason})"));
            let provider = &error.provider;
            texts.fill(Phrase::Cooldown, [("n", &n.to_string()), ("provider", provider), ("why", &why)])
        }
        None => model_error_text(error, texts),
    };
    let may_pass = error.reason.is_some_and(|reason| FailureKind::from(reason).may_pass());
    match error.retry_after.filter(|_| may_pass || error.resting_profiles.is_some()) {
        Some(delay) => {
            let end = if text.ends_with(['.', '!', '?']) { "" } else { "." };
            format!("{text}{end} {}", texts.fill(Phrase::NextTry, [("time", &in_words(delay, texts))]))
        }
        None => text,
    }
}

fn model_error_text(error: &FailoverError, texts: &TextTable) -> String {
    let of = |text: &'_ str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let (provider, model) = (of(&error.provider), of(&error.model));
    let subject = ErrorSubject { provider: provider.as_deref(), model: model.as_deref() };
    if error.reason == Some(FailoverReason::Billing) && error.source.is_some() {
        return billing_text(subject, texts);
    }
    if let Some(tokens) = error.window_tokens {
        let values = [("tokens", &*tokens.to_string()), ("min", &*MIN_WINDOW.to_string())];
        return texts.fill(Phrase::WindowTooSmall, values);
    }
    if error.reason == Some(FailoverReason::EmptyResponse) && error.source.is_none() {
        return texts.get(Phrase::NoAnswer).to_owned();
    }
    let is_unexplained = match &error.source {
        Some(source) => source.text.trim().is_empty() && error.reason != Some(FailoverReason::RateLimit),
        None => error.reason == Some(FailoverReason::Timeout),
    };
    if is_unexplained {
        return texts.get(unexplained(error.reason)).to_owned();
    }
    if let Some(text) = error.source.as_ref().and_then(|_| known_text(&error.message, subject, texts)) {
        return text;
    }
    let info = api_error::info(&error.message).unwrap_or_default();
    match (info.message, error.status) {
        (Some(message), Some(status)) => format!("{}/{}: {message} (HTTP {status})", error.provider, error.model),
        (Some(message), None) => format!("{}/{}: {message}", error.provider, error.model),
        (None, _) if error.source.is_some() => sanitise_error(&error.message, texts),
        (None, _) if error.reason == Some(FailoverReason::Auth) => {
            texts.fill(Phrase::NoCredential, [("why", &error.message)])
        }
        (None, _) => error.message.clone(),
    }
}

/// Message for an answer that the time limit interrupted.
const CUT_OFF: &str = "The answer was cut off: the time limit of the run was reached";

/// Formats a duration in words, rounded up.
pub(crate) fn in_words(time: Duration, texts: &TextTable) -> String {
    let seconds = time.as_millis().div_ceil(1000).max(1);
    let (n, one, many) = match seconds {
        0..=90 => (seconds, Phrase::Second, Phrase::Seconds),
        91..=5_400 => (seconds.div_ceil(60), Phrase::Minute, Phrase::Minutes),
        _ => (seconds.div_ceil(3_600), Phrase::Hour, Phrase::Hours),
    };
    if n == 1 { texts.get(one).to_owned() } else { texts.fill(many, [("n", &n.to_string())]) }
}

impl RunResult {
    /// Returns the failure reported by the result; `None` for a complete answer.
    pub fn failure(&self) -> Option<RunFailure> {
        let meta = &self.meta;
        let errors: Vec<&str> = (self.payloads.iter())
            .filter(|payload| payload.is_error)
            .map(|payload| payload.reply.text.as_str())
            .collect();
        let has_answer = self.payloads.iter().any(|payload| !payload.is_error);
        let kind = match &meta.error {
            Some(error) => match error.kind {
                RunErrorKind::ContextOverflow => FailureKind::Overflow,
                RunErrorKind::CompactionFailure => FailureKind::Compaction,
                RunErrorKind::RoleOrdering => FailureKind::Format,
                RunErrorKind::ImageSize => FailureKind::ImageSize,
                RunErrorKind::RetryLimit => FailureKind::RetryLimit,
                RunErrorKind::Budget => FailureKind::Budget,
                RunErrorKind::IncompleteTurn if meta.timed_out => FailureKind::Timeout,
                RunErrorKind::IncompleteTurn => FailureKind::Empty,
                RunErrorKind::HookBlock => FailureKind::HookBlock,
            },
            None if meta.timed_out => FailureKind::Timeout,
            None if meta.aborted => FailureKind::Cancelled,
            // The answer itself failed, or all payloads are failures.
            None if meta.partial.is_some() || (!errors.is_empty() && !has_answer) => {
                let reason = meta.attempts.last().and_then(|attempt| FailoverReason::parse(&attempt.outcome));
                reason.map_or(FailureKind::Unknown, FailureKind::from)
            }
            None => return None,
        };
        let message = match (&errors[..], kind) {
            ([], FailureKind::Timeout) => CUT_OFF.to_owned(),
            // Failures of tools do not explain why the answer ends.
            (errors, FailureKind::Timeout) if meta.error.is_none() && meta.timed_out => {
                [&[CUT_OFF], errors].concat().join("\n")
            }
            ([], FailureKind::Cancelled) => "The run was cancelled.".to_owned(),
            ([], _) => {
                meta.error.as_ref().map_or_else(|| "The answer failed".to_owned(), |error| error.message.clone())
            }
            (errors, _) => errors.join("\n"),
        };
        Some(RunFailure { kind, message })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::window::{Window, WindowSource};

    #[test]
    fn durations_are_rounded_up_and_put_into_words() {
        for (secs, words) in
            [(0, "1 second"), (59, "59 seconds"), (95, "2 minutes"), (600, "10 minutes"), (5_401, "2 hours")]
        {
            assert_eq!(in_words(Duration::from_secs(secs), &TextTable::default()), words);
        }
    }

    #[test]
    fn a_host_replaces_the_texts_of_errors_before_a_request() {
        let german = [
            ("error.busy", "Besetzt: {why}"),
            ("error.draining", "Der Dienst endet."),
            ("error.config", "Einstellung: {why}"),
            ("error.no_model", "Kein Modell."),
            ("error.unknown_model", "{name} gibt es nicht."),
            ("error.ambiguous_model", "Mehrdeutig: {why}"),
            ("error.internal", "Fehler: {why}"),
            ("error.no_credential", "Kein Zugang: {why}"),
            ("error.window_too_small", "{tokens} sind weniger als {min}."),
            ("error.no_answer", "Keine Antwort."),
        ];
        let texts = TextTable::default().replace_all(german).unwrap();
        let failed = |reason| FailoverError { message: "x".into(), reason: Some(reason), ..FailoverError::default() };
        let small = Window { tokens: 9, source: WindowSource::Model };
        let unknown = |why| RunError::UnknownModel { name: "m".into(), why };
        let both = NotFound::Ambiguous { pattern: "m".into(), candidates: vec!["a/m".into(), "b/m".into()] };
        let is_ambiguous = format!("Mehrdeutig: {both}");
        for (error, text) in [
            (RunError::Busy("x".into()), "Besetzt: x"),
            (RunError::Draining, "Der Dienst endet."),
            (RunError::Config("x".into()), "Einstellung: x"),
            (RunError::NoModel, "Kein Modell."),
            (unknown(NotFound::Model { pattern: "m".into() }), "m gibt es nicht."),
            (unknown(both), &is_ambiguous),
            (RunError::Internal("x".into()), "Fehler: x"),
            (failed(FailoverReason::Auth).into(), "Kein Zugang: x"),
            (failed(FailoverReason::EmptyResponse).into(), "Keine Antwort."),
            (FailoverError::window_too_small(small, "p", "m").into(), "9 sind weniger als 16000."),
        ] {
            assert_eq!(error.text_for_user(&texts), text);
        }
        for error in [RunError::Draining, RunError::NoModel, RunError::Config("x".into())] {
            assert_eq!(error.text_for_user(&TextTable::default()), error.to_string(), "the English texts are one");
        }
    }

    #[test]
    fn profiles_in_cooldown_are_reported_with_the_soonest_retry_time() {
        let error = RunError::from(FailoverError {
            message: "No available auth profile".into(),
            reason: Some(FailoverReason::RateLimit),
            provider: "anthropic".into(),
            resting_profiles: Some(2),
            retry_after: Some(Duration::from_secs(240)),
            ..FailoverError::default()
        });
        assert_eq!(
            error.text_for_user(&TextTable::default()),
            "API temporarily unavailable: all 2 anthropic profiles are cooling down (rate_limit). Next try possible in 4 minutes."
        );
        assert_eq!((error.kind(), error.retry_after()), (FailureKind::RateLimit, Some(Duration::from_secs(240))));
    }

    #[test]
    fn a_refusal_names_the_model_and_quotes_the_provider() {
        let error = RunError::from(FailoverError {
            message: r#"401 {"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#
                .into(),
            reason: Some(FailoverReason::Auth),
            provider: "p".into(),
            model: "m".into(),
            status: Some(401),
            ..FailoverError::default()
        });
        assert_eq!(
            (error.text_for_user(&TextTable::default()).as_str(), error.kind().as_str()),
            ("p/m: invalid x-api-key (HTTP 401)", "auth")
        );
    }
}
