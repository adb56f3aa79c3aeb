//! Classifies failures by status, code and text. The only place where this is decided.

use http::StatusCode;

use super::LlmErrorKind;
use super::patterns::{NOT_RETRYABLE, STREAM_CUT, TOKEN_RATE, beginning};
use super::signal::{Signal, kind_of_signal};
use super::text::is_auth_permanent;

/// Returns the kind of failure of a response, or of an error event in a stream. The first that is conclusive decides: a specific code, the
/// status together with the text, a vague code. If none is, the kind is [`LlmErrorKind::Protocol`]. Only the first 8 KiB of the text are
/// examined; pass the provider's own message without anything that may echo the request.
pub fn classify(status: Option<StatusCode>, code: Option<&str>, text: &str) -> LlmErrorKind {
    let lower_code = code.unwrap_or("").to_lowercase();
    let status = status.map(|status| status.as_u16());
    if let Some(kind) = by_exact_code(&lower_code, status, text) {
        return kind;
    }
    let kind = kind_of_signal(Signal { status, code, message: Some(text) })
        .or_else(|| by_status(status?))
        .or_else(|| by_vague_code(&lower_code));
    let lower = beginning(text);
    match kind {
        // Another attempt soon would fail as well.
        Some(LlmErrorKind::RateLimit) if NOT_RETRYABLE.finds_any(&lower) => LlmErrorKind::Quota,
        Some(kind) => kind,
        None if NOT_RETRYABLE.finds_any(&lower) => LlmErrorKind::Billing,
        None if STREAM_CUT.finds_any(&lower) => LlmErrorKind::StreamCut,
        None => LlmErrorKind::Protocol,
    }
}

/// Classifies by codes with one meaning, whatever the status; but the meaning of a 402, and whether a limit is one of tokens per time,
/// depend on the text.
fn by_exact_code(code: &str, status: Option<u16>, text: &str) -> Option<LlmErrorKind> {
    let has = |words: &[&str]| words.iter().any(|word| code.contains(word));
    Some(if code.is_empty() {
        return None;
    } else if status != Some(402) && has(&["insufficient_quota", "billing", "payment_required", "insufficient_credits"])
    {
        if status == Some(429) { LlmErrorKind::Quota } else { LlmErrorKind::Billing }
    } else if status != Some(402) && has(&["usage_limit"]) {
        LlmErrorKind::Quota
    } else if has(&["context_length_exceeded", "context_window_exceeded", "request_too_large"])
        && !TOKEN_RATE.finds_any(&beginning(text))
    {
        LlmErrorKind::ContextOverflow
    } else if has(&["overloaded", "server_busy", "unavailable", "over_capacity"]) {
        LlmErrorKind::Overloaded
    } else if has(&["rate_limit", "ratelimit", "throttl", "too_many_requests", "toomanyrequests", "resource_exhausted"])
    {
        LlmErrorKind::RateLimit
    } else if has(&["model_not_found", "modelnotfound", "model_not_supported", "deploymentnotfound"]) {
        LlmErrorKind::ModelNotFound
    } else if has(&[
        "invalid_api_key",
        "authentication",
        "permission",
        "unauthorized",
        "unauthenticated",
        "accessdenied",
    ]) {
        let is_final = is_auth_permanent(text) || is_auth_permanent(code);
        if is_final { LlmErrorKind::AuthPermanent } else { LlmErrorKind::Auth }
    } else if has(&["content_filter", "content_policy", "responsibleai", "moderation", "safety"]) {
        LlmErrorKind::ContentFiltered
    } else if has(&["timeout", "deadline_exceeded"]) {
        LlmErrorKind::Timeout
    } else {
        return None;
    })
}

/// Classifies by statuses that need no text.
fn by_status(status: u16) -> Option<LlmErrorKind> {
    Some(match status {
        409 => LlmErrorKind::Server,
        413 => LlmErrorKind::ContextOverflow,
        400..500 => LlmErrorKind::InvalidRequest,
        500..600 => LlmErrorKind::Server,
        _ => return None,
    })
}

/// Classifies by codes with many meanings.
fn by_vague_code(code: &str) -> Option<LlmErrorKind> {
    match code {
        "" => None,
        "not_found_error" | "not_found" | "notfound" => Some(LlmErrorKind::ModelNotFound),
        _ if code.contains("invalid_request") || code.contains("invalid_argument") || code.contains("validation") => {
            Some(LlmErrorKind::InvalidRequest)
        }
        _ if code.contains("server_error") || code.contains("api_error") || code.contains("internal") => {
            Some(LlmErrorKind::Server)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use LlmErrorKind::{
        Auth, AuthPermanent, Billing, Connect, ContentFiltered, ContextOverflow, InvalidRequest, ModelNotFound,
        Overloaded, Protocol, Quota, RateLimit, Server, ServerFault, SessionExpired, StreamCut, Timeout,
    };

    #[test]
    fn long_texts_take_no_longer_than_their_beginning() {
        for words in ["request to ", "model ", "exceeds", "input token count", "prompt has 1"] {
            let long = words.repeat(1024 * 1024 / words.len());
            let began = std::time::Instant::now();
            assert_eq!(classify(None, None, &long), Protocol, "{words}");
            assert!(began.elapsed() < std::time::Duration::from_secs(2), "{words} took {:?}", began.elapsed());
        }
    }

    #[test]
    fn status_code_and_text_decide_the_kind() {
        let rows: &[(u16, &str, &str, LlmErrorKind)] = &[
            (401, "", "401 invalid x-api-key", Auth),
            (403, "permission_error", "no", AuthPermanent),
            (402, "", "Payment Required", Billing),
            (402, "", "402 Your daily usage limit is reached, try again later", RateLimit),
            (402, "payment_required", "Your usage limit is reached, try again at 10:00", RateLimit),
            (402, "insufficient_quota", "", Billing),
            (413, "request_too_large", "Request too large: tokens per minute (TPM) 30000", RateLimit),
            (400, "", "", Protocol),
            (413, "", "413 Request too large for the limit of tokens per minute (TPM): 30000", RateLimit),
            (429, "insufficient_quota", "You exceeded your current quota", Quota),
            (429, "", "429 you exceeded your quota: see plans & billing", Quota),
            (400, "invalid_request_error", "Your credit balance is too low to access the API", Billing),
            (404, "", "404 The model `x` does not exist", ModelNotFound),
            (400, "", "400 model x not found", ModelNotFound),
            (408, "", "", Timeout),
            (409, "", "conflict", Server),
            (413, "", "413 {}", ContextOverflow),
            (400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum", ContextOverflow),
            (400, "context_length_exceeded", "too long", ContextOverflow),
            (429, "", "429 too many tokens", RateLimit),
            (400, "", "400 bad", InvalidRequest),
            (422, "", "no", InvalidRequest),
            (500, "api_error", "no", Server),
            (503, "", "no", Server),
            (503, "", "overloaded", Overloaded),
            (500, "", r#"{"type":"server_error"}"#, ServerFault),
            (410, "", "session expired", SessionExpired),
            (401, "", "your api key has been revoked", AuthPermanent),
            (529, "overloaded_error", "Overloaded", Overloaded),
            (400, "content_filter", "filtered", ContentFiltered),
            (0, "overloaded_error", "", Overloaded),
            (0, "api_error", "Internal server error", Server),
            (0, "invalid_request_error", "no", InvalidRequest),
            (0, "", "529 {\"type\":\"error\"}", Overloaded),
            (0, "", "ThrottlingException: Too many tokens, please wait", RateLimit),
            (0, "", "fetch failed", Connect),
            (0, "", "Request timed out.", Timeout),
            (0, "", "terminated", StreamCut),
            (0, "", "gibberish", Protocol),
        ];
        for (status, code, text, kind) in rows {
            let code = Some(*code).filter(|code| !code.is_empty());
            assert_eq!(classify(StatusCode::from_u16(*status).ok(), code, text), *kind, "{status} {code:?} {text}");
        }
    }
}
