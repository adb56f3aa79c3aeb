//! The table of texts by which failures are recognised.
//!
//! Providers name the same failure in many words, and old session files hold nothing but words. All of them are here, and nowhere else.
//!
//! A pattern is lower-case text to be found anywhere in the lower-cased message. `~` stands for at most one character, `#` for a number,
//! `*` for anything on the same line, a leading `^` for the start of the message. Each table becomes one set of regular expressions, so that
//! looking for all of them takes time in proportion to the text.

use std::sync::OnceLock;

use regex::RegexSet;

/// Bytes of a text that are looked at: what a provider says about a failure comes first, and what follows may be the request.
const MAX_LOOKED_AT: usize = 8 * 1024;

/// Texts that mean the same.
#[derive(Debug)]
pub(super) struct Table {
    patterns: &'static [&'static str],
    set: OnceLock<RegexSet>,
}

impl Table {
    const fn new(patterns: &'static [&'static str]) -> Self {
        Self { patterns, set: OnceLock::new() }
    }

    /// Whether any pattern is found in a lower-cased text.
    pub(super) fn finds_any(&self, text: &str) -> bool {
        let patterns = || self.patterns.iter().map(|pattern| expression(pattern));
        self.set.get_or_init(|| RegexSet::new(patterns()).unwrap_or_else(|_| RegexSet::empty())).is_match(text)
    }
}

/// What is looked at of a text, in lower case.
pub(super) fn beginning(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_LOOKED_AT)].to_lowercase()
}

/// Failures that no repetition mends: no money, no quota left for long. They win over [`RETRYABLE`].
pub(super) static NOT_RETRYABLE: Table = Table::new(&[
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
]);

/// No money or no quota: [`NOT_RETRYABLE`] and words that come with a status of their own.
pub(super) static BILLING: Table =
    Table::new(&["credit balance", "insufficient balance", "insufficient credits", "payment required"]);

/// The provider has no capacity.
pub(super) static OVERLOADED: Table = Table::new(&[
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
]);

/// Too many requests.
pub(super) static RATE_LIMIT: Table = Table::new(&[
    "rate~limit",
    "too many requests",
    "throttl",
    "resourceexhausted",
    "resource_exhausted",
    "tokens per minute",
]);

/// The connection failed before the answer began.
pub(super) static CONNECT: Table = Table::new(&[
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
]);

/// The answer broke off.
pub(super) static STREAM_CUT: Table = Table::new(&[
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
pub(super) static TIMEOUT: Table = Table::new(&["timed out", "time out", "timeout"]);

/// The provider failed.
pub(super) static SERVER: Table = Table::new(&[
    "server~error",
    "internal~error",
    "provider~returned~error",
    "provider returned an error",
    "upstream request failed",
]);

/// Words that only say that another try may help.
pub(super) static TRY_AGAIN: Table = Table::new(&[
    "exceeded request buffer limit while retrying upstream",
    "you can retry",
    "try again",
    "please retry your request",
    "retry delay",
]);

/// All texts after which another try may help.
pub(super) static RETRYABLE: [&Table; 7] =
    [&OVERLOADED, &RATE_LIMIT, &CONNECT, &STREAM_CUT, &TIMEOUT, &SERVER, &TRY_AGAIN];

/// Status codes after which another try may help, when they stand alone: not inside an id or a number of bytes.
pub(super) const RETRYABLE_NUMBERS: &[&str] = &["429", "500", "502", "503", "504", "520", "524"];

/// Wrong or missing credentials.
pub(super) static AUTH: Table = Table::new(&[
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
]);

/// The model is not there.
pub(super) static MODEL_NOT_FOUND: Table = Table::new(&[
    "model_not_found",
    "model not found",
    "no such model",
    "unknown model",
    "model * does not exist",
    "model * not found",
]);

/// The conversation is too long. [`NOT_OVERFLOW`] wins.
pub(super) static OVERFLOW: Table = Table::new(&[
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
]);

/// What looks like an overflow and is a limit on requests or on tokens in a time.
pub(super) static NOT_OVERFLOW: Table = Table::new(&[
    "^throttling error:",
    "^service unavailable:",
    "throttlingexception",
    "rate limit",
    "too many requests",
    "tokens per minute",
    "tokens per day",
    "^429",
]);

/// Answers without a body by which Cerebras says that the conversation is too long.
pub(super) static CEREBRAS_OVERFLOW: Table = Table::new(&[
    "^400 (no body)",
    "^400(no body)",
    "^400 status code (no body)",
    "^413 (no body)",
    "^413 status code (no body)",
]);

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

/// The regular expression of a pattern.
fn expression(pattern: &str) -> String {
    let (start, rest) = pattern.strip_prefix('^').map_or(("", pattern), |rest| ("^", rest));
    let mut expression = start.to_owned();
    for sign in rest.chars() {
        match sign {
            '~' => expression.push_str(".?"),
            '#' => expression.push_str("[0-9][0-9,]*"),
            '*' => expression.push_str(".*"),
            sign => expression.push_str(&regex::escape(sign.encode_utf8(&mut [0; 4]))),
        }
    }
    // A status stands alone.
    if !start.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()) {
        expression.push_str("(?:[^a-z0-9_]|$)");
    }
    expression
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
            let found = regex::Regex::new(&expression(pattern)).unwrap().is_match(text);
            assert_eq!(found, expect, "{pattern} in {text}");
        }
    }

    #[test]
    fn every_table_can_be_read() {
        let more = [&NOT_RETRYABLE, &BILLING, &AUTH, &MODEL_NOT_FOUND, &OVERFLOW, &NOT_OVERFLOW, &CEREBRAS_OVERFLOW];
        for table in RETRYABLE.iter().chain(&more) {
            let sample = table.patterns[0].trim_start_matches('^').replace(['~', '*'], "").replace('#', "7");
            assert!(table.finds_any(&sample), "{sample}");
            assert_eq!(table.set.get().unwrap().len(), table.patterns.len());
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
