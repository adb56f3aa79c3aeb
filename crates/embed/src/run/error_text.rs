//! Messages for people when a run fails.

use pinch_llm::error::overflow::{is_likely_overflow_text, is_overflow_text, is_reasoning_required};
use pinch_llm::error::payment::is_billing;
use pinch_llm::error::rate::is_rate_limit_text;
use pinch_llm::error::rejection::is_role_ordering;
use pinch_llm::error::text::{is_format, is_overloaded_text, is_timeout_text};
use pinch_llm::message::{AssistantMessage, StopReason};

use crate::replies::api_error::{self, UNKNOWN, leading_status, without_error_prefix};
use crate::replies::user_text::{tidy, without_scaffolding};

/// The conversation is too long and could not be shortened.
pub const CONTEXT_OVERFLOW: &str = "Context overflow: prompt too large for the model. Try /reset (or /new) to start a fresh session, \
     or use a larger-context model.";
/// Roles do not alternate as the provider requires.
pub const ROLE_ORDERING: &str =
    "Message ordering conflict - please try again. If this persists, use /new to start a fresh session.";
/// The provider has no capacity.
pub const OVERLOADED: &str = "The AI service is temporarily overloaded. Please try again in a moment.";
/// Too many requests.
pub const RATE_LIMIT: &str = "⚠️ API rate limit reached. Please try again later.";
/// The request timed out.
pub const TIMEOUT: &str = "LLM request timed out.";
/// Shown in place of an answer in which the model repeats an error.
pub const RETURNED_ERROR: &str = "The AI service returned an error. Please try again.";

const REASONING_REQUIRED: &str =
    "Reasoning is required for this model endpoint. Use /think minimal (or any non-off level) and try again.";
const INVALID_STREAM: &str = "LLM request failed: provider returned an invalid streaming response. Please try again.";
const MISSING_TOOL_INPUT: &str = "Session history looks corrupted (tool call input missing). Use /new to start a fresh session. \
     If this keeps happening, reset the session or delete the corrupted session transcript.";
const AT_CAPACITY: &str = "⚠️ Selected model is at capacity. Try a different model, or wait and retry.";
const DISK_FULL: &str = "The disk is full: session data could not be written. Free some space and try again.";
const OAUTH_FAILED: &str = "The login has expired and could not be renewed. Log in again, then retry.";
const OAUTH_BUSY: &str = "The login is being renewed elsewhere. Please try again in a moment.";
const OAUTH_SLOW: &str = "Renewing the login timed out. Please try again.";
const HTML_AUTH: &str = "The provider refused the login with a web page. Log in again, then retry.";
const HTML_PAGE: &str = "The provider returned an HTML error page instead of an API response. Please try again, or check the provider's status.";
const PROXY: &str = "A proxy or tunnel blocked the request to the provider. Check the proxy settings.";
const SCHEMA: &str = "LLM request failed: the provider rejected the request schema or tool payload.";
const REPLAY: &str = "Session history or replay state is invalid. Use /new to start a fresh session.";

/// The provider and model that an error is about.
#[derive(Clone, Copy, Debug, Default)]
pub struct ErrorSubject<'a> {
    /// The provider's name for people.
    pub provider: Option<&'a str>,
    /// The model.
    pub model: Option<&'a str>,
}

/// The message for a failed answer; `None` if it did not fail.
pub fn assistant_error_text(message: &AssistantMessage) -> Option<String> {
    if message.stop_reason != StopReason::Error {
        return None;
    }
    let of = |id: &str| Some(id.to_owned()).filter(|id| !id.is_empty());
    let (provider, model) = (of(message.provider.as_str()), of(message.model.as_str()));
    let subject = ErrorSubject { provider: provider.as_deref(), model: model.as_deref() };
    Some(error_text(message.error_message.as_deref().unwrap_or(""), subject))
}

/// The message for an error: our own for known errors, otherwise the provider's.
pub fn error_text(raw: &str, subject: ErrorSubject<'_>) -> String {
    known_text(raw, subject).unwrap_or_else(|| api_error::shown(raw))
}

/// Our own message for an error: that of the first rule that matches, or `None`.
pub(super) fn known_text(raw: &str, subject: ErrorSubject<'_>) -> Option<String> {
    let raw = raw.trim();
    let lower = raw.to_lowercase();
    if raw.is_empty() {
        return Some(UNKNOWN.to_owned());
    }
    if let Some(fixed) = local_text(&lower) {
        return Some(fixed.to_owned());
    }
    if is_overflow_text(raw) {
        return Some(CONTEXT_OVERFLOW.to_owned());
    }
    if is_reasoning_required(raw) {
        return Some(REASONING_REQUIRED.to_owned());
    }
    if has(&lower, &["unexpected event order", "message_start", "message_stop"]) {
        return Some(INVALID_STREAM.to_owned());
    }
    if is_role_ordering(raw) || (lower.contains("400") && lower.split("400").skip(1).any(|rest| rest.contains("role")))
    {
        return Some(ROLE_ORDERING.to_owned());
    }
    if is_missing_tool_input(&lower) {
        return Some(MISSING_TOOL_INPUT.to_owned());
    }
    if let Some(message) = rejected(raw) {
        return Some(format!("LLM request rejected: {message}"));
    }
    if is_rate_limit_text(raw) {
        return Some(rate_limit_text(raw));
    }
    if lower.contains("at capacity") && lower.contains("model") {
        return Some(AT_CAPACITY.to_owned());
    }
    if is_overloaded_text(raw) {
        return Some(OVERLOADED.to_owned());
    }
    if let Some(text) = transport_text(&lower) {
        return Some(text.to_owned());
    }
    if is_timeout_text(raw) {
        return Some(TIMEOUT.to_owned());
    }
    if is_billing(raw) {
        return Some(billing_text(subject));
    }
    if is_format(raw) {
        return Some(SCHEMA.to_owned());
    }
    if lower.contains("replay") && lower.contains("invalid") {
        return Some(REPLAY.to_owned());
    }
    None
}

fn has(text: &str, words: &[&str]) -> bool {
    words.iter().all(|word| text.contains(word))
}

fn has_any(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| text.contains(word))
}

/// Messages for failures of the disk, the login or a proxy.
fn local_text(lower: &str) -> Option<&'static str> {
    let is_html = lower.contains("<!doctype html") || lower.contains("<html");
    Some(if has_any(lower, &["enospc", "no space left on device", "disk full"]) {
        DISK_FULL
    } else if has(lower, &["oauth", "refresh"]) && has_any(lower, &["contention", "in progress", "locked"]) {
        OAUTH_BUSY
    } else if has(lower, &["oauth", "refresh"]) && has_any(lower, &["timed out", "timeout"]) {
        OAUTH_SLOW
    } else if has(lower, &["oauth", "refresh", "failed"]) {
        OAUTH_FAILED
    } else if is_html && leading_status(lower).is_some_and(|(status, _)| matches!(status, 401 | 403)) {
        HTML_AUTH
    } else if is_html && (lower.starts_with('<') || leading_status(lower).is_some()) {
        HTML_PAGE
    } else if has_any(
        lower,
        &["proxy authentication required", "tunneling socket", "tunnel connection failed", "proxyerror"],
    ) {
        PROXY
    } else {
        return None;
    })
}

fn is_missing_tool_input(lower: &str) -> bool {
    let fields = ["tool_use.input", "tool_use.arguments", "tool_call.input", "tool_call.arguments"];
    let has_path = lower.contains("messages.") && lower.contains(".content.");
    fields.iter().any(|field| lower.find(field).is_some_and(|at| has_path || lower[at..].contains("required")))
}

/// What the provider rejected, if the text names it.
fn rejected(raw: &str) -> Option<String> {
    let info = api_error::info(raw)?;
    info.message.filter(|_| info.kind.as_deref() == Some("invalid_request_error"))
}

const MAX_OWN_WORDS: usize = 300;

/// The provider's message if it says when to retry, otherwise our own.
fn rate_limit_text(raw: &str) -> String {
    let words = leading_status(raw).map_or(raw, |(_, rest)| rest).trim();
    let message = api_error::info(raw).and_then(|info| info.message);
    let words = message.as_deref().unwrap_or(words);
    let lower = words.to_lowercase();
    let says_when = ["min", "minute", "minutes", "hour", "hours", "second", "seconds", "reset", "plan", "quota"]
        .iter()
        .any(|word| lower.split(|c: char| !c.is_alphanumeric()).any(|found| found == *word))
        || lower.contains("try again in");
    let is_plain = !words.contains(['{', '<']) && words.chars().count() <= MAX_OWN_WORDS;
    if says_when && is_plain { format!("⚠️ {words}") } else { RATE_LIMIT.to_owned() }
}

/// The message for a failed connection to the provider.
fn transport_text(lower: &str) -> Option<&'static str> {
    Some(if has_any(lower, &["econnrefused", "connection refused"]) {
        "LLM request failed: connection refused by the provider endpoint."
    } else if has_any(
        lower,
        &["socket hang up", "econnreset", "connection reset", "econnaborted", "epipe", "enetreset"],
    ) {
        "LLM request failed: network connection was interrupted."
    } else if has_any(lower, &["enotfound", "eai_again", "getaddrinfo", "no such host"]) {
        "LLM request failed: DNS lookup for the provider endpoint failed."
    } else if has_any(lower, &["enetunreach", "ehostunreach", "ehostdown", "network is unreachable"]) {
        "LLM request failed: the provider endpoint is unreachable from this host."
    } else if has_any(lower, &["fetch failed", "connection error", "network request failed", "network error"]) {
        "LLM request failed: network connection error."
    } else {
        return None;
    })
}

/// The message for a billing failure.
pub fn billing_text(subject: ErrorSubject<'_>) -> String {
    let who = match (subject.provider, subject.model) {
        (Some(provider), Some(model)) => format!("{provider} ({model})"),
        (Some(provider), None) => provider.to_owned(),
        (None, _) => "API provider".to_owned(),
    };
    let whose = subject.provider.unwrap_or("provider's");
    format!(
        "⚠️ {who} returned a billing error — your API key has run out of credits or has an insufficient balance. \
         Check your {whose} billing dashboard and top up or switch to a different API key."
    )
}

/// The message for an image that is too large.
pub fn image_size_text(max_mb: Option<f64>) -> String {
    let limit = max_mb.map_or_else(String::new, |mb| format!(" (max {mb}MB)"));
    format!("Image too large for the model{limit}. Please compress or resize the image and try again.")
}

/// Sanitizes the text of an error: known errors get our own message, other text is kept.
pub fn sanitise_error(text: &str) -> String {
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
        return DISK_FULL.to_owned();
    }
    if is_role_ordering(raw) {
        return ROLE_ORDERING.to_owned();
    }
    let is_marked = is_payload
        || is_http
        || prefix
        || lower.starts_with("context overflow:")
        || lower.starts_with("prompt is too long");
    if is_marked && (is_overflow_text(raw) || is_likely_overflow_text(raw)) {
        return CONTEXT_OVERFLOW.to_owned();
    }
    if is_billing(raw) {
        return billing_text(ErrorSubject::default());
    }
    if has(&lower, &["unexpected event order", "message_start", "message_stop"]) {
        return INVALID_STREAM.to_owned();
    }
    if is_payload || is_http {
        return api_error::shown(raw);
    }
    if prefix {
        if is_rate_limit_text(raw) {
            return rate_limit_text(raw);
        }
        if is_overloaded_text(raw) {
            return OVERLOADED.to_owned();
        }
        let known = transport_text(&lower).or_else(|| is_timeout_text(raw).then_some(TIMEOUT));
        return known.map_or_else(|| api_error::shown(raw), str::to_owned);
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
