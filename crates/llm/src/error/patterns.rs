//! The table of texts by which failures are recognised.
//!
//! Providers name the same failure in many words, and old session files hold nothing but words. All of them are here, and nowhere else.
//!
//! A pattern is lower-case text to be found anywhere in the lower-cased message. `~` stands for at most one character, `#` for a number,
//! `*` for anything on the same line, a leading `^` for the start of the message.

/// Failures that no repetition mends: no money, no quota left for long. They win over [`RETRYABLE`].
pub(super) const NOT_RETRYABLE: &[&str] = &[
    "gousagelimiterror",
    "freeusagelimiterror",
    "monthly usage limit reached",
    "available balance",
    "insufficient_quota",
    "out of budget",
    "quota exceeded",
    "billing",
    "subscription_sharing_usage_limit_exceeded",
    "subscription_sharing_workplace_individual_usage_limit_exceeded",
    // The plan limit of z.ai.
    "\"code\":1308",
    "\"code\": 1308",
    "\"code\":\"1308\"",
    "\"code\": \"1308\"",
];

/// No money or no quota: [`NOT_RETRYABLE`] and words that come with a status of their own.
pub(super) const BILLING: &[&str] =
    &["credit balance", "insufficient balance", "insufficient credits", "payment required"];

/// The provider has no capacity.
pub(super) const OVERLOADED: &[&str] = &[
    "overloaded",
    "server_busy",
    "servers are currently busy",
    "currently experiencing high demand",
    "model is at capacity",
    "service~unavailable",
    "service is unavailable",
    "service temporarily unavailable",
    "service is temporarily unavailable",
    "subscription_sharing_usage_unavailable",
    "subscription_sharing_user_unavailable",
];

/// Too many requests.
pub(super) const RATE_LIMIT: &[&str] =
    &["rate~limit", "too many requests", "throttl", "resourceexhausted", "resource_exhausted", "tokens per minute"];

/// The connection failed before the answer began.
pub(super) const CONNECT: &[&str] = &[
    "connection~error",
    "connection~refused",
    "connection~lost",
    "network~error",
    "fetch failed",
    "getaddrinfo",
    "enotfound",
    "eai_again",
    "econnrefused",
    "econnreset",
    "upstream~connect",
    "reset before headers",
    "socket hang up",
    "socket connection was closed",
    "other side closed",
    "websocket~closed",
    "websocket~error",
    "unable to forward upstream",
    "request to * failed, reason:",
    "http2 request did not get a response",
];

/// The answer broke off.
pub(super) const STREAM_CUT: &[&str] = &[
    "terminated",
    "ended without",
    "stream was interrupted",
    "http2 stream failed",
    "upstream_stream_read_error",
    "stream ended before message_stop",
    "before a terminal response event",
    "stream disconnected before completion",
    "cut short after the reply had begun",
    "pending stream has been canceled",
];

/// A deadline passed.
pub(super) const TIMEOUT: &[&str] = &["timed out", "time out", "timeout"];

/// The provider failed.
pub(super) const SERVER: &[&str] = &[
    "server~error",
    "internal~error",
    "provider~returned~error",
    "provider returned an error",
    "upstream request failed",
];

/// Words that only say that another try may help.
pub(super) const TRY_AGAIN: &[&str] = &[
    "exceeded request buffer limit while retrying upstream",
    "you can retry",
    "try again",
    "please retry your request",
    "retry delay",
];

/// All texts after which another try may help.
pub(super) const RETRYABLE: &[&[&str]] = &[OVERLOADED, RATE_LIMIT, CONNECT, STREAM_CUT, TIMEOUT, SERVER, TRY_AGAIN];

/// Status codes after which another try may help, when they stand alone: not inside an id or a number of bytes.
pub(super) const RETRYABLE_NUMBERS: &[&str] = &["429", "500", "502", "503", "504", "520", "524"];

/// Wrong or missing credentials.
pub(super) const AUTH: &[&str] = &[
    "invalid~api~key",
    "incorrect api key",
    "invalid x-api-key",
    "no api key",
    "api key is required",
    "unauthorized",
    "unauthenticated",
    "authentication",
    "permission~denied",
    "access denied",
    "forbidden",
];

/// The model is not there.
pub(super) const MODEL_NOT_FOUND: &[&str] = &[
    "model_not_found",
    "model not found",
    "no such model",
    "unknown model",
    "model * does not exist",
    "model * not found",
];

/// The conversation is too long. [`NOT_OVERFLOW`] wins.
pub(super) const OVERFLOW: &[&str] = &[
    "prompt is too long",
    "prompt too long",
    "prompt exceeds max length",
    "request_too_large",
    "input is too long for requested model",
    "exceeds the context window",
    "input token count*exceeds the maximum",
    "maximum prompt length is #",
    "reduce the length of the messages",
    "maximum context length is # tokens",
    "exceeds*maximum context length",
    "exceeds the limit of #",
    "exceeds the available context size",
    "greater than the context length",
    "context window exceeds limit",
    "context window exceeded",
    "exceeded model token limit",
    "too large for model with # maximum context length",
    "model_context_window_exceeded",
    "context~length~exceeded",
    "maximum allowed input length of # tokens",
    "input (# tokens) is longer than the model~s context length",
    "prompt has # tokens, but the configured context size is #",
    "range of input length should be",
    "too many tokens",
    "token limit exceeded",
    // The status of what is too large, in the words of each format.
    "^413",
    "^openai api error (413)",
    "^mistral api error (413)",
];

/// What looks like an overflow and is a limit on requests or on tokens in a time.
pub(super) const NOT_OVERFLOW: &[&str] = &[
    "^throttling error:",
    "^service unavailable:",
    "throttlingexception",
    "rate limit",
    "too many requests",
    "tokens per minute",
    "tokens per day",
    "^429",
];

/// Answers without a body by which Cerebras says that the conversation is too long.
pub(super) const CEREBRAS_OVERFLOW: &[&str] =
    &["^400 (no body)", "^400(no body)", "^400 status code (no body)", "^413 (no body)", "^413 status code (no body)"];

/// Whether any pattern is found in a lower-cased text.
pub(super) fn finds_any(patterns: &[&str], text: &str) -> bool {
    patterns.iter().any(|pattern| finds(pattern, text))
}

/// Whether a number stands alone somewhere in the text: no letter, digit or underscore next to it.
pub(super) fn finds_number(number: &str, text: &str) -> bool {
    let is_word = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    text.match_indices(number).any(|(at, _)| {
        let before = at.checked_sub(1).and_then(|at| text.as_bytes().get(at));
        // Neither are decimals: `500.12` and `0.500` are amounts.
        let after = &text.as_bytes()[at + number.len()..];
        let is_decimal =
            matches!(after, [b'.' | b',', digit, ..] if digit.is_ascii_digit()) || matches!(before, Some(b'.' | b','));
        !is_word(before) && !is_word(after.first()) && !is_decimal
    })
}

fn finds(pattern: &str, text: &str) -> bool {
    if let Some(pattern) = pattern.strip_prefix('^') {
        let is_number = pattern.bytes().all(|b| b.is_ascii_digit());
        return matches_at(pattern, text)
            && !(is_number && text[pattern.len()..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_'));
    }
    // The literal start of a pattern is found fast; only there the rest is looked at.
    let n_literal = pattern.find(['~', '#', '*']).unwrap_or(pattern.len());
    let (literal, rest) = pattern.split_at(n_literal);
    text.match_indices(literal).any(|(at, _)| matches_at(rest, &text[at + literal.len()..]))
}

/// Whether the pattern fits at the very start of the text.
fn matches_at(pattern: &str, text: &str) -> bool {
    let n_literal = pattern.find(['~', '#', '*']).unwrap_or(pattern.len());
    let (literal, rest) = pattern.split_at(n_literal);
    let Some(text) = text.strip_prefix(literal) else { return false };
    let Some(sign) = rest.chars().next() else { return true };
    let rest = &rest[1..];
    match sign {
        '~' => {
            matches_at(rest, text)
                || text.chars().next().is_some_and(|c| c != '\n' && matches_at(rest, &text[c.len_utf8()..]))
        }
        '#' => {
            let after = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == ',');
            text.starts_with(|c: char| c.is_ascii_digit()) && matches_at(rest, after)
        }
        _ => {
            let line = text.split('\n').next().unwrap_or("");
            let starts = line.char_indices().map(|(at, _)| at).chain([line.len()]);
            starts.into_iter().any(|at| matches_at(rest, &text[at..]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, text, expect) in [
            ("rate~limit", "a ratelimit", true),
            ("rate~limit", "rate-limit", true),
            ("rate~limit", "rate  limit", false),
            ("is # tokens", "is 12,000 tokens", true),
            ("is # tokens", "is many tokens", false),
            ("a*b", "xa..b", true),
            ("a*b", "a\nb", false),
            ("^413", "413 {}", true),
            ("^413", "4130 {}", false),
            ("^413", "status 413", false),
            ("model~s", "model’s", true),
        ] {
            assert_eq!(finds(pattern, text), expect, "{pattern} in {text}");
        }
    }

    #[test]
    fn numbers_stand_alone() {
        for (text, expect) in [
            ("503", true),
            ("status=503,", true),
            ("code 15003", false),
            ("id_503", false),
            ("503.2 kb", false),
            ("(503).", true),
        ] {
            assert_eq!(finds_number("503", text), expect, "{text}");
        }
    }
}
