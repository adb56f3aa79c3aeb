//! Messages for people about failed runs.

use pinch_llm::error::overflow::{is_likely_overflow_text, is_overflow_text, is_reasoning_required};
use pinch_llm::error::payment::is_billing;
use pinch_llm::error::rate::is_rate_limit_text;
use pinch_llm::error::rejection::is_role_ordering;
use pinch_llm::error::text::{is_format, is_overloaded_text, is_timeout_text};
use pinch_llm::message::{AssistantMessage, StopReason};

use crate::reason::FailoverReason;
use crate::replies::api_error::{self, leading_status, without_error_prefix};
use crate::replies::user_text::{tidy, without_scaffolding};
use crate::texts::{Phrase, TextTable};

/// Text that a model writes when it repeats an error in place of an answer.
pub(super) const RETURNED_ERROR: &str = "The AI service returned an error. Please try again.";

/// The provider and model that an error is about.
#[derive(Clone, Copy, Debug, Default)]
pub struct ErrorSubject<'a> {
    /// Display name of the provider.
    pub provider: Option<&'a str>,
    /// The model.
    pub model: Option<&'a str>,
}

/// Returns the message for a failed answer; `None` if it did not fail.
pub fn assistant_error_text(message: &AssistantMessage, texts: &TextTable) -> Option<String> {
    if message.stop_reason != StopReason::Error {
        return None;
    }
    let of = |id: &str| Some(id.to_owned()).filter(|id| !id.is_empty());
    let (provider, model) = (of(message.provider.as_str()), of(message.model.as_str()));
    let subject = ErrorSubject { provider: provider.as_deref(), model: model.as_deref() };
    Some(error_text(message.error_message.as_deref().unwrap_or(""), subject, texts))
}

/// Returns the message for an error: our own for known errors, otherwise the provider's.
pub fn error_text(raw: &str, subject: ErrorSubject<'_>, texts: &TextTable) -> String {
    known_text(raw, subject, texts).unwrap_or_else(|| api_error::shown(raw, texts))
}

/// Returns our own message for an error, from the first matching rule, or `None`.
pub(super) fn known_text(raw: &str, subject: ErrorSubject<'_>, texts: &TextTable) -> Option<String> {
    let raw = raw.trim();
    if let Some(phrase) = early_phrase(raw) {
        return Some(texts.get(phrase).to_owned());
    }
    if let Some(message) = rejected(raw) {
        return Some(texts.fill(Phrase::Rejected, [("message", &message)]));
    }
    if is_rate_limit_text(raw) {
        return Some(rate_limit_text(raw, texts));
    }
    let lower = raw.to_lowercase();
    let phrase = if lower.contains("at capacity") && lower.contains("model") {
        Phrase::AtCapacity
    } else if is_overloaded_text(raw) {
        Phrase::Overloaded
    } else if let Some(phrase) = transport_phrase(&lower) {
        phrase
    } else if is_timeout_text(raw) {
        Phrase::Timeout
    } else if is_billing(raw) {
        return Some(billing_text(subject, texts));
    } else if is_format(raw) {
        Phrase::Schema
    } else if lower.contains("replay") && lower.contains("invalid") {
        Phrase::Replay
    } else {
        return None;
    };
    Some(texts.get(phrase).to_owned())
}

/// Classifies an error by an unambiguous message.
fn early_phrase(raw: &str) -> Option<Phrase> {
    let lower = raw.to_lowercase();
    Some(if raw.is_empty() {
        Phrase::UnknownError
    } else if let Some(phrase) = local_phrase(&lower) {
        phrase
    } else if is_overflow_text(raw) {
        Phrase::ContextOverflow
    } else if is_reasoning_required(raw) {
        Phrase::ReasoningRequired
    } else if has(&lower, &["unexpected event order", "message_start", "message_stop"]) {
        Phrase::InvalidStream
    } else if is_role_ordering(raw)
        || (lower.contains("400") && lower.split("400").skip(1).any(|rest| rest.contains("role")))
    {
        Phrase::RoleOrdering
    } else if is_missing_tool_input(&lower) {
        Phrase::MissingToolInput
    } else {
        return None;
    })
}

fn has(text: &str, words: &[&str]) -> bool {
    words.iter().all(|word| text.contains(word))
}

fn has_any(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| text.contains(word))
}

/// Classifies failures of the disk, the login or a proxy.
fn local_phrase(lower: &str) -> Option<Phrase> {
    let is_html = lower.contains("<!doctype html") || lower.contains("<html");
    Some(if has_any(lower, &["enospc", "no space left on device", "disk full"]) {
        Phrase::DiskFull
    } else if has(lower, &["oauth", "refresh"]) && has_any(lower, &["contention", "in progress", "locked"]) {
        Phrase::LoginBusy
    } else if has(lower, &["oauth", "refresh"]) && has_any(lower, &["timed out", "timeout"]) {
        Phrase::LoginSlow
    } else if has(lower, &["oauth", "refresh", "failed"]) {
        Phrase::LoginExpired
    } else if is_html && leading_status(lower).is_some_and(|(status, _)| matches!(status, 401 | 403)) {
        Phrase::LoginPage
    } else if is_html && (lower.starts_with('<') || leading_status(lower).is_some()) {
        Phrase::HtmlPage
    } else if has_any(
        lower,
        &["proxy authentication required", "tunneling socket", "tunnel connection failed", "proxyerror"],
    ) {
        Phrase::Proxy
    } else {
        return None;
    })
}

fn is_missing_tool_input(lower: &str) -> bool {
    let fields = ["tool_use.input", "tool_use.arguments", "tool_call.input", "tool_call.arguments"];
    let has_path = lower.contains("messages.") && lower.contains(".content.");
    fields.iter().any(|field| lower.find(field).is_some_and(|at| has_path || lower[at..].contains("required")))
}

/// Returns what the provider rejected, if the text names it.
fn rejected(raw: &str) -> Option<String> {
    let info = api_error::info(raw)?;
    info.message.filter(|_| info.kind.as_deref() == Some("invalid_request_error"))
}

const MAX_OWN_WORDS: usize = 300;

/// Returns the provider's message if it says when to retry, otherwise our own.
fn rate_limit_text(raw: &str, texts: &TextTable) -> String {
    let words = leading_status(raw).map_or(raw, |(_, rest)| rest).trim();
    let message = api_error::info(raw).and_then(|info| info.message);
    let words = message.as_deref().unwrap_or(words);
    let lower = words.to_lowercase();
    let says_when = ["min", "minute", "minutes", "hour", "hours", "second", "seconds", "reset", "plan", "quota"]
        .iter()
        .any(|word| lower.split(|c: char| !c.is_alphanumeric()).any(|found| found == *word))
        || lower.contains("try again in");
    let is_plain = !words.contains(['{', '<']) && words.chars().count() <= MAX_OWN_WORDS;
    if says_when && is_plain { format!("⚠️ {words}") } else { texts.get(Phrase::RateLimit).to_owned() }
}

/// Classifies failed connections to the provider.
fn transport_phrase(lower: &str) -> Option<Phrase> {
    Some(if has_any(lower, &["econnrefused", "connection refused"]) {
        Phrase::ConnectionRefused
    } else if has_any(
        lower,
        &["socket hang up", "econnreset", "connection reset", "econnaborted", "epipe", "enetreset"],
    ) {
        Phrase::ConnectionLost
    } else if has_any(lower, &["enotfound", "eai_again", "getaddrinfo", "no such host"]) {
        Phrase::DnsFailed
    } else if has_any(lower, &["enetunreach", "ehostunreach", "ehostdown", "network is unreachable"]) {
        Phrase::Unreachable
    } else if has_any(lower, &["fetch failed", "connection error", "network request failed", "network error"]) {
        Phrase::NetworkError
    } else {
        return None;
    })
}

/// Returns the text for a failure that the provider did not explain.
pub(super) fn unexplained(reason: Option<FailoverReason>) -> Phrase {
    match reason {
        Some(FailoverReason::RateLimit) => Phrase::RequestRateLimited,
        Some(FailoverReason::Billing) => Phrase::RequestBilling,
        Some(FailoverReason::Auth | FailoverReason::AuthPermanent) => Phrase::RequestUnauthorized,
        Some(FailoverReason::Timeout) => Phrase::Timeout,
        _ => Phrase::RequestFailed,
    }
}

/// Returns the message for a billing failure.
pub fn billing_text(subject: ErrorSubject<'_>, texts: &TextTable) -> String {
    let who = match (subject.provider, subject.model) {
        (Some(provider), Some(model)) => format!("{provider} ({model})"),
        (Some(provider), None) => provider.to_owned(),
        (None, _) => texts.get(Phrase::BillingWho).to_owned(),
    };
    let whose = subject.provider.unwrap_or(texts.get(Phrase::BillingWhose));
    texts.fill(Phrase::Billing, [("who", &who), ("whose", whose)])
}

/// Returns the message for an image that is too large.
pub fn image_size_text(max_mb: Option<f64>, texts: &TextTable) -> String {
    match max_mb {
        Some(mb) => texts.fill(Phrase::ImageSizeMax, [("mb", &mb.to_string())]),
        None => texts.get(Phrase::ImageSize).to_owned(),
    }
}

/// Replaces known errors with our own message and keeps other text.
pub fn sanitise_error(text: &str, texts: &TextTable) -> String {
    let say = |phrase| texts.get(phrase).to_owned();
    let text = without_scaffolding(text);
    let raw = text.trim();
    if raw.is_empty() {
        return String::new();
    }
    let lower = raw.to_lowercase();
    let is_payload = api_error::raw_payload(raw).is_some();
    let is_http =
        leading_status(raw).is_some_and(|(status, rest)| status >= 400 && has_any(&rest.to_lowercase(), HTTP_HINTS));
    let prefix = without_error_prefix(raw).is_some()
        || ["request failed", "failed", "exception"].iter().any(|head| starts_with_word(&lower, head));
    if has_any(&lower, &["enospc", "no space left on device", "disk full"]) {
        return say(Phrase::DiskFull);
    }
    if is_role_ordering(raw) {
        return say(Phrase::RoleOrdering);
    }
    let is_marked = is_payload
        || is_http
        || prefix
        || lower.starts_with("context overflow:")
        || lower.starts_with("prompt is too long");
    if is_marked && (is_overflow_text(raw) || is_likely_overflow_text(raw)) {
        return say(Phrase::ContextOverflow);
    }
    if is_billing(raw) {
        return billing_text(ErrorSubject::default(), texts);
    }
    if has(&lower, &["unexpected event order", "message_start", "message_stop"]) {
        return say(Phrase::InvalidStream);
    }
    if is_payload || is_http {
        return api_error::shown(raw, texts);
    }
    if prefix {
        if is_rate_limit_text(raw) {
            return rate_limit_text(raw, texts);
        }
        if is_overloaded_text(raw) {
            return say(Phrase::Overloaded);
        }
        let known = transport_phrase(&lower).or_else(|| is_timeout_text(raw).then_some(Phrase::Timeout));
        return known.map_or_else(|| api_error::shown(raw, texts), say);
    }
    tidy(&text).into_owned()
}

const HTTP_HINTS: &[&str] = &[
    "error",
    "bad request",
    "not found",
    "unauthorized",
    "forbidden",
    "internal server",
    "service unavailable",
    "gateway",
    "rate limit",
    "overloaded",
    "timeout",
    "timed out",
    "invalid",
    "too many requests",
    "permission",
];

fn starts_with_word(text: &str, word: &str) -> bool {
    text.strip_prefix(word)
        .is_some_and(|rest| rest.starts_with([':', ' ']) && rest.trim_start_matches(' ').starts_with([':', '-']))
}
