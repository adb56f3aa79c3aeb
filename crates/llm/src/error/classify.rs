//! From status, code and text to the kind of a failure. The one place where this is decided.

use http::StatusCode;

use super::LlmErrorKind;
use super::overflow::text_is_overflow;
use super::patterns::{
    AUTH, BILLING, CONNECT, MODEL_NOT_FOUND, NOT_RETRYABLE, OVERLOADED, PASSING_LIMIT, PatternTable, RATE_LIMIT,
    SERVER, STREAM_CUT, TIMEOUT, TOKEN_RATE, beginning,
};

/// What kind of failure a response or an error event of a stream is. The first that says something wins: a code that names one thing, words
/// about money or length, the status, a vague code, other words. Nothing of it: [`LlmErrorKind::Protocol`]. Only the first 8 KiB of the text
/// are looked at; give the provider's own words and nothing it may repeat of the request.
pub fn classify(status: Option<StatusCode>, code: Option<&str>, text: &str) -> LlmErrorKind {
    let code = code.unwrap_or("").to_lowercase();
    let lower = beginning(text);
    let status = status.map(|status| status.as_u16());
    by_exact_code(&code)
        .or_else(|| NOT_RETRYABLE.finds_any(&lower).then_some(LlmErrorKind::Billing))
        .or_else(|| BILLING.finds_any(&lower).then_some(LlmErrorKind::Billing))
        .or_else(|| {
            let may_be_length = status != Some(429) && !TOKEN_RATE.finds_any(&lower);
            (may_be_length && text_is_overflow("", text)).then_some(LlmErrorKind::ContextOverflow)
        })
        .or_else(|| by_status(status.or_else(|| leading_status(text)), &lower))
        .or_else(|| by_vague_code(&code))
        .or_else(|| by_text(&lower))
        .unwrap_or(LlmErrorKind::Protocol)
}

/// Codes that mean one thing, whatever the status.
fn by_exact_code(code: &str) -> Option<LlmErrorKind> {
    let has = |words: &[&str]| words.iter().any(|word| code.contains(word));
    Some(if code.is_empty() {
        return None;
    } else if has(&["insufficient_quota", "billing", "payment_required", "insufficient_credits", "usage_limit"]) {
        LlmErrorKind::Billing
    } else if has(&["context_length_exceeded", "context_window_exceeded", "request_too_large"]) {
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
        LlmErrorKind::Auth
    } else if has(&["content_filter", "content_policy", "responsibleai", "moderation", "safety"]) {
        LlmErrorKind::ContentFiltered
    } else if has(&["timeout", "deadline_exceeded"]) {
        LlmErrorKind::Timeout
    } else {
        return None;
    })
}

/// Codes that many things come with.
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

fn by_status(status: Option<u16>, lower: &str) -> Option<LlmErrorKind> {
    Some(match status? {
        401 => LlmErrorKind::Auth,
        // Some gateways refuse content and count requests with 403.
        403 if RATE_LIMIT.finds_any(lower) => LlmErrorKind::RateLimit,
        403 => LlmErrorKind::Auth,
        // Some providers send 402 and 413 for limits that pass.
        402 if RATE_LIMIT.finds_any(lower) || PASSING_LIMIT.finds_any(lower) => LlmErrorKind::RateLimit,
        402 => LlmErrorKind::Billing,
        404 => LlmErrorKind::ModelNotFound,
        408 => LlmErrorKind::Timeout,
        409 => LlmErrorKind::Server,
        413 if TOKEN_RATE.finds_any(lower) => LlmErrorKind::RateLimit,
        413 => LlmErrorKind::ContextOverflow,
        429 => LlmErrorKind::RateLimit,
        503 | 529 => LlmErrorKind::Overloaded,
        400 if MODEL_NOT_FOUND.finds_any(lower) => LlmErrorKind::ModelNotFound,
        400..500 => LlmErrorKind::InvalidRequest,
        500..600 => LlmErrorKind::Server,
        _ => return None,
    })
}

fn by_text(lower: &str) -> Option<LlmErrorKind> {
    // Specific words before vague ones: a busy server may say that a connection timed out, too.
    let table: [(&PatternTable, LlmErrorKind); 8] = [
        (&OVERLOADED, LlmErrorKind::Overloaded),
        (&RATE_LIMIT, LlmErrorKind::RateLimit),
        (&TIMEOUT, LlmErrorKind::Timeout),
        (&CONNECT, LlmErrorKind::Connect),
        (&STREAM_CUT, LlmErrorKind::StreamCut),
        (&SERVER, LlmErrorKind::Server),
        (&MODEL_NOT_FOUND, LlmErrorKind::ModelNotFound),
        (&AUTH, LlmErrorKind::Auth),
    ];
    table.into_iter().find(|(words, _)| words.finds_any(lower)).map(|(_, kind)| kind)
}

/// The status at the start of an error text such as `529 {"type":"error"}` or `500: …`.
fn leading_status(text: &str) -> Option<u16> {
    let digits = text.get(..3).filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()))?;
    let is_alone = !text[3..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.');
    digits.parse().ok().filter(|_| is_alone)
}

#[cfg(test)]
mod tests {
    use super::*;
    use LlmErrorKind::{
        Auth, Billing, Connect, ContentFiltered, ContextOverflow, InvalidRequest, ModelNotFound, Overloaded, Protocol,
        RateLimit, Server, StreamCut, Timeout,
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
            (403, "permission_error", "no", Auth),
            (402, "", "Payment Required", Billing),
            (402, "", "402 Your daily usage limit is reached, try again later", RateLimit),
            (413, "", "413 Request too large for the limit of tokens per minute (TPM): 30000", RateLimit),
            (429, "insufficient_quota", "You exceeded your current quota", Billing),
            (429, "", "429 please check your plan and billing details", Billing),
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
            (503, "", "no", Overloaded),
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
