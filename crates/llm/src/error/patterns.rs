//! The table of text patterns that identify failures.
//!
//! Providers describe the same failure in many ways, and old session files contain only text. All patterns are here, and nowhere else.
//!
//! A pattern is a regular expression that is searched for in the lower-cased message. The patterns of a table are compiled into one set on
//! first use, and all are searched for in time proportional to the text.

use std::sync::OnceLock;

use regex::RegexSet;

/// Maximum bytes of a text that are examined: the provider's message comes first, and the rest may be the request.
const MAX_LOOKED_AT: usize = 8 * 1024;

/// Texts with the same meaning.
#[derive(Debug)]
pub(super) struct PatternTable {
    patterns: &'static [&'static str],
    set: OnceLock<RegexSet>,
}

impl PatternTable {
    const fn new(patterns: &'static [&'static str]) -> Self {
        Self { patterns, set: OnceLock::new() }
    }

    /// Returns whether any pattern occurs in a lower-cased text.
    pub(super) fn finds_any(&self, text: &str) -> bool {
        self.set.get_or_init(|| RegexSet::new(self.patterns).unwrap_or_default()).is_match(text)
    }
}

/// Returns the examined part of a text, in lower case.
pub(super) fn beginning(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_LOOKED_AT)].to_lowercase()
}

/// Failures that no retry fixes: no credit, or no quota for a long time. They take precedence over [`RETRYABLE`].
pub(super) static NOT_RETRYABLE: PatternTable = PatternTable::new(&[
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
    r#""code":1308"#,
    r#""code": 1308"#,
    r#""code":"1308""#,
    r#""code": "1308""#,
]);

/// No credit, in unambiguous words.
pub(super) static BILLING: PatternTable =
    PatternTable::new(&["credit balance", "insufficient balance", "insufficient credits", "payment required"]);

/// No credit, in the words of individual providers.
pub(super) static NO_MONEY: PatternTable = PatternTable::new(&[
    "insufficient[_ ]quota",
    "plans & billing",
    "insufficient usd or diem balance",
    r"requires?\s+more\s+credits",
]);

/// The provider has no capacity.
pub(super) static OVERLOADED: PatternTable = PatternTable::new(&[
    "overloaded",
    "server_busy",
    "servers are currently busy",
    "high demand",
    "model is at capacity",
]);

/// The provider is unavailable, for whatever reason.
pub(super) static UNAVAILABLE: PatternTable = PatternTable::new(&[
    "service.?unavailable",
    "service is unavailable",
    "service temporarily unavailable",
    "service is temporarily unavailable",
    "subscription_sharing_usage_unavailable",
    "subscription_sharing_user_unavailable",
]);

/// Together with [`UNAVAILABLE`]: the provider lacks capacity.
pub(super) static CAPACITY: PatternTable = PatternTable::new(&["overload", "capacity", "high demand"]);

/// A limit of tokens per time, which some providers report with the status of an overflow.
pub(super) static TOKEN_RATE: PatternTable = PatternTable::new(&[r"\btpm\b", "tokens per minute"]);

/// Too many requests.
pub(super) static RATE_LIMIT: PatternTable = PatternTable::new(&[
    "rate.?limit",
    "too many requests",
    "throttl",
    "resourceexhausted",
    "resource_exhausted",
    "tokens per minute",
]);

/// Too many requests or tokens, in words that are not only about rates.
pub(super) static LIMIT: PatternTable = PatternTable::new(&[
    "429",
    "model_cooldown",
    "exceeded your current quota",
    "resource has been exhausted",
    "quota exceeded",
    "usage limit",
    "tokens per day",
]);

/// A limit that resets each day, week or month.
pub(super) static PERIODIC_LIMIT: PatternTable =
    PatternTable::new(&[r"\b(daily|weekly|monthly)(/(daily|weekly|monthly))* (usage )?limits?\b"]);

/// The connection failed before the answer started.
pub(super) static CONNECT: PatternTable = PatternTable::new(&[
    "connection.?error",
    "connection.?refused",
    "connection.?lost",
    "network.?error",
    "fetch failed",
    "getaddrinfo",
    "enotfound",
    "eai_again",
    "econnrefused",
    "econnreset",
    "upstream.?connect",
    "reset before headers",
    "socket hang up",
    "socket connection was closed",
    "other side closed",
    "websocket.?closed",
    "websocket.?error",
    "unable to forward upstream",
    "request to .* failed, reason:",
    "http2 request did not get a response",
]);

/// The answer broke off.
pub(super) static STREAM_CUT: PatternTable = PatternTable::new(&[
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
]);

/// A deadline passed.
pub(super) static TIMEOUT: PatternTable = PatternTable::new(&["timed out", "time out", "timeout"]);

/// No answer arrived, in words other than those of [`TIMEOUT`] and [`CONNECT`].
pub(super) static NO_ANSWER: PatternTable = PatternTable::new(&[
    "deadline exceeded",
    "network request failed",
    r"\b(econnaborted|enetunreach|ehostunreach|ehostdown|enetreset|etimedout|esockettimedout|epipe)\b",
    "without sending (any )?chunks?",
    r"\breason:\s*(abort|error|malformed_response|network_error)\b",
]);

/// The provider failed.
pub(super) static SERVER: PatternTable = PatternTable::new(&[
    "server.?error",
    "internal.?error",
    "provider.?returned.?error",
    "provider returned an error",
    "upstream request failed",
]);

/// The provider failed, in the words of gateways.
pub(super) static GATEWAY: PatternTable = PatternTable::new(&[
    "an error occurred while processing",
    "service temporarily unavailable",
    "service_unavailable",
    "bad[_ ]gateway",
    "gateway[_ ]timeout",
    "upstream error",
    "upstream connect error",
    "connection reset",
]);

/// The provider's own code for an internal failure.
pub(super) static SERVER_FAULT: PatternTable = PatternTable::new(&[r#""(type|code)"\s*:\s*"server_error""#]);

/// A vague failure code, which may be transient together with [`PASSING`].
pub(super) static API_ERROR: PatternTable = PatternTable::new(&[r#""type"\s*:\s*"api_error""#]);

/// Together with [`API_ERROR`]: the failure is transient.
pub(super) static PASSING: PatternTable = PatternTable::new(&[
    "internal server error",
    "overload",
    "temporarily unavailable",
    "service unavailable",
    "unknown error",
    "server error",
    "bad gateway",
    "gateway timeout",
    "upstream error",
    "backend error",
    "try again later",
    "unexpected error",
]);

/// Words that only suggest another attempt.
pub(super) static TRY_AGAIN: PatternTable = PatternTable::new(&[
    "exceeded request buffer limit while retrying upstream",
    "you can retry",
    "try again",
    "please retry your request",
    "retry delay",
]);

/// Status codes after which a retry may help, as separate words only: not inside an id, a number of bytes (`15003`) or a decimal
/// (`500.12`).
pub(super) static RETRYABLE_STATUS: PatternTable =
    PatternTable::new(&["(?:^|[^0-9a-z_.,])(?:429|500|502|503|504|520|524)(?:[.,](?:[^0-9]|$)|[^0-9a-z_.,]|$)"]);

/// All texts after which another attempt may help.
pub(super) static RETRYABLE: [&PatternTable; 9] =
    [&OVERLOADED, &UNAVAILABLE, &RATE_LIMIT, &CONNECT, &STREAM_CUT, &TIMEOUT, &SERVER, &TRY_AGAIN, &RETRYABLE_STATUS];

/// Wrong or missing credentials.
pub(super) static AUTH: PatternTable = PatternTable::new(&[
    "invalid.?api.?key",
    "incorrect api key",
    "invalid x-api-key",
    "no api key",
    "api key is required",
    "unauthorized",
    "unauthenticated",
    "authentication",
    "permission.?denied",
    "access denied",
    "forbidden",
]);

/// Rejected credentials, in words that are not only about credentials.
pub(super) static REFUSED: PatternTable = PatternTable::new(&[
    "invalid token",
    "re-authenticate",
    "oauth token refresh failed",
    "insufficient permission",
    "missing scopes?:",
    "expired",
    r"\b401\b",
    r"\b403\b",
    "no credentials found",
]);

/// Credentials that are permanently invalid.
pub(super) static AUTH_PERMANENT: PatternTable = PatternTable::new(&[
    "api[_ ]?key[_ ]?(revoked|invalid|deactivated|deleted)",
    "invalid_api_key",
    "key has been disabled",
    "key has been revoked",
    "account has been deactivated",
    "could not (authenticate|validate).*(api[_ ]?key|credentials)",
    "permission_error",
    "not allowed for this organization",
    "oauth token refresh failed",
]);

/// The provider no longer has the conversation.
pub(super) static SESSION_EXPIRED: PatternTable = PatternTable::new(&[
    "(session|conversation) (not found|does not exist|expired|invalid)",
    "no conversation found",
    "no such session",
    "invalid session",
    "(session|conversation) id not found",
]);

/// The form of the request was rejected.
pub(super) static FORMAT: PatternTable = PatternTable::new(&[
    "string should match pattern",
    r"tool_use[._]id",
    "invalid request format",
    "tool call id was.*must be",
]);

/// The model does not exist.
pub(super) static MODEL_NOT_FOUND: PatternTable = PatternTable::new(&[
    "model_not_found",
    "model not found",
    "no such model",
    "unknown model",
    "(?s)model.*does not exist",
    "(?s)model.{0,60}not found",
    "model[-_]?not[-_]?found",
    "no endpoints found for",
    "router not found",
    "not_found_error",
    "not supported model",
    "is not a valid model id",
    r"(?s)\b404\b.*not found",
    r"(?s)not found.*\b404\b",
    "models/.* is not found",
    "(?s)selected model.*not found",
    "(?s)model.*deprecated.*(upgrade|transition) to",
    "(?s)stealth model.*find it here",
    "(?s)model.*(was|is|has been) retired",
    "(?s)is not supported when using.*with a chatgpt account",
]);

/// An invalid model name, unless it is [`INVALID_REFERENCE`].
pub(super) static INVALID_MODEL: PatternTable = PatternTable::new(&["invalid model"]);

/// An invalid name in a configuration, which does not come from a provider.
pub(super) static INVALID_REFERENCE: PatternTable = PatternTable::new(&["invalid model reference"]);

/// The conversation is too long, in unambiguous words.
pub(super) static TOO_LONG: PatternTable =
    PatternTable::new(&["prompt is too long", "prompt too long", "request_too_large"]);

/// The conversation is too long, in words that also occur in other errors.
pub(super) static WINDOW_EXCEEDED: PatternTable = PatternTable::new(&[
    "request exceeds the maximum size",
    "context length exceeded",
    "maximum context length",
    "exceeds model context window",
    "model token limit",
    "context overflow:",
    "exceed context limit",
    "exceeds the model's maximum context",
    "context_window_exceeded",
    "上下文过长",
    "上下文超出",
    "上下文长度超",
    "超出最大上下文",
    "请压缩上下文",
]);

/// The conversation is too long, in the words of individual providers. [`NOT_OVERFLOW`] takes precedence over this and [`TOO_LONG`].
pub(super) static OVERFLOW: PatternTable = PatternTable::new(&[
    "prompt exceeds max length",
    "input is too long for requested model",
    "exceeds the context window",
    "input token count.*exceeds the maximum",
    "maximum prompt length is [0-9][0-9,]*",
    "reduce the length of the messages",
    "maximum context length is [0-9][0-9,]* tokens",
    "exceeds.*maximum context length",
    "exceeds the limit of [0-9][0-9,]*",
    "exceeds the available context size",
    "greater than the context length",
    "context window exceeds limit",
    "context window exceeded",
    "exceeded model token limit",
    "too large for model with [0-9][0-9,]* maximum context length",
    "model_context_window_exceeded",
    "context.?length.?exceeded",
    "maximum allowed input length of [0-9][0-9,]* tokens",
    r"input \([0-9][0-9,]* tokens\) is longer than the model.?s context length",
    "prompt has [0-9][0-9,]* tokens, but the configured context size is [0-9][0-9,]*",
    "range of input length should be",
    "too many tokens",
    "token limit exceeded",
    // The status for a request that is too large, in the words of each format.
    r"^413(?-u:\b)",
    r"^openai api error \(413\)",
    r"^mistral api error \(413\)",
]);

/// Texts that look like an overflow but report a limit on requests or on tokens per time.
pub(super) static NOT_OVERFLOW: PatternTable = PatternTable::new(&[
    "^throttling error:",
    "^service unavailable:",
    "throttlingexception",
    "rate limit",
    "too many requests",
    "tokens per minute",
    "tokens per day",
    r"^429(?-u:\b)",
]);

/// Responses without a body by which Cerebras reports that the conversation is too long.
pub(super) static CEREBRAS_OVERFLOW: PatternTable = PatternTable::new(&[
    r"^400 \(no body\)",
    r"^400\(no body\)",
    r"^400 status code \(no body\)",
    r"^413 \(no body\)",
    r"^413 status code \(no body\)",
]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_provider_spellings_and_no_similar_texts() {
        for (table, text, expect) in [
            (&RATE_LIMIT, "a ratelimit", true),
            (&RATE_LIMIT, "rate-limit", true),
            (&RATE_LIMIT, "rate  limit", false),
            (&OVERFLOW, "maximum context length is 12,000 tokens", true),
            (&OVERFLOW, "maximum context length is many tokens", false),
            (&OVERFLOW, "input (9 tokens) is longer than the model’s context length", true),
            (&OVERFLOW, "exceeds the\nmaximum context length", false),
            (&OVERFLOW, "413 {}", true),
            (&OVERFLOW, "4130 {}", false),
            (&OVERFLOW, "status 413", false),
            (&OVERFLOW, "openai api error (413): x", true),
            (&CEREBRAS_OVERFLOW, "400 (no body)", true),
            (&CEREBRAS_OVERFLOW, "400 no body", false),
            (&CONNECT, "request to https://x/v1 failed, reason: y", true),
            (&CONNECT, "request to https://x/v1\nfailed, reason: y", false),
            (&NOT_RETRYABLE, "{\"code\":\"1308\"}", true),
            (&NOT_RETRYABLE, "{\"code\": 1308}", true),
        ] {
            assert_eq!(table.finds_any(text), expect, "{text}");
        }
    }

    #[test]
    fn every_table_compiles() {
        let more = [
            &NOT_RETRYABLE,
            &BILLING,
            &NO_MONEY,
            &CAPACITY,
            &LIMIT,
            &PERIODIC_LIMIT,
            &NO_ANSWER,
            &GATEWAY,
            &SERVER_FAULT,
            &API_ERROR,
            &PASSING,
            &AUTH,
            &REFUSED,
            &AUTH_PERMANENT,
            &SESSION_EXPIRED,
            &FORMAT,
            &MODEL_NOT_FOUND,
            &INVALID_MODEL,
            &INVALID_REFERENCE,
            &TOKEN_RATE,
            &TOO_LONG,
            &WINDOW_EXCEEDED,
            &OVERFLOW,
            &NOT_OVERFLOW,
            &CEREBRAS_OVERFLOW,
        ];
        for table in RETRYABLE.iter().chain(&more) {
            assert!(!table.finds_any(""), "{table:?}");
            assert_eq!(table.set.get().unwrap().len(), table.patterns.len(), "{table:?}");
        }
    }

    #[test]
    fn a_status_matches_only_as_a_separate_word() {
        for (text, expect) in [
            ("503", true),
            ("status=503,", true),
            ("status=503, 504", true),
            ("ended (503).", true),
            ("code 15003", false),
            ("id_503", false),
            ("503.2 kb", false),
            ("0.503", false),
            ("503,000 tokens, then 503", true),
            ("größe503ü 503", true),
            ("(503).", true),
        ] {
            assert_eq!(RETRYABLE_STATUS.finds_any(text), expect, "{text}");
        }
    }
}
