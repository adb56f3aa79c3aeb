//! Recognises texts about a conversation that is too long for the model.

use pinch_llm::error::overflow::text_is_overflow;

use super::find::{all, any, in_order, number_after, then, word};
use super::payment::is_billing;
use super::rate::is_rate_limit;

const PHRASES: &[&str] = &[
    "request_too_large",
    "request exceeds the maximum size",
    "context length exceeded",
    "maximum context length",
    "prompt is too long",
    "prompt too long",
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
];

const PAIRS: &[&[&str]] = &[
    &["invalid_argument", "maximum number of tokens"],
    &["input exceeds", "maximum number of tokens"],
    &["request size exceeds", "context window"],
    &["request size exceeds", "context length"],
    &["max_tokens", "exceed", "context"],
    &["input length", "exceed", "context"],
    &["413", "too large"],
];

/// Whether a text is about a limit on tokens per time, which some providers report with the status of an overflow.
fn is_token_rate(text: &str) -> bool {
    word(text, "tpm") || text.contains("tokens per minute")
}

/// Whether a text reports that reasoning cannot be disabled for a model.
pub fn is_reasoning_required(text: &str) -> bool {
    let text = text.to_lowercase();
    any(&text, &["reasoning is mandatory", "reasoning is required", "requires reasoning"])
        || in_order(&text, &["reasoning", "cannot be disabled"])
}

/// Whether a text clearly reports an overflow.
pub fn is_context_overflow(text: &str) -> bool {
    let lower = text.to_lowercase();
    if lower.trim().is_empty() || is_token_rate(&lower) || is_reasoning_required(&lower) {
        return false;
    }
    any(&lower, PHRASES)
        || PAIRS.iter().any(|pair| all(&lower, pair))
        || of_provider(&lower)
        || (!is_rate_limit(&lower) && text_is_overflow("", text))
}

/// Texts of individual providers.
fn of_provider(text: &str) -> bool {
    then(
        text,
        &["validationexception"],
        &["input too long", "input is too long", "max input token", "exceeds the max number of tokens"],
    ) || in_order(text, &["validationexception", "input token", "exceed"])
        || then(text, &["modelstreamerrorexception"], &["input is too long", "too many input tokens"])
        || (text.contains("content_filter") && then(text, &["prompt", "input"], &["too long", "exceed"]))
        || then(text, &["ollama"], &["context length", "too many tokens", "context window"])
        || in_order(text, &["truncating input", "too long"])
        || then(text, &["mistral"], &["input too long", "token limit exceeded"])
        || (in_order(text, &["total tokens", "exceeds"]) && any(text, &["max", "limit"]))
        || then(text, &["deepseek"], &["input too long", "input is too long", "context exceed"])
        || then(text, &["input is too long for", "input too long for"], &["model"])
}

/// Whether a text probably reports an overflow.
pub fn is_likely_context_overflow(text: &str) -> bool {
    let lower = text.to_lowercase();
    if is_token_rate(&lower) || is_reasoning_required(&lower) || is_billing(&lower) || is_rate_limit(&lower) {
        return false;
    }
    if then(&lower, &["context window"], &["too small", "minimum is"]) {
        return false;
    }
    if is_context_overflow(text) {
        return true;
    }
    let limits = [
        "rate limit",
        "too many requests",
        "requests per minute",
        "requests per hour",
        "requests per day",
        "quota",
        "throttl",
        "tokens per day",
    ];
    if any(&lower, &limits) || word(&lower, "429") {
        return false;
    }
    const TOO_MUCH: &[&str] = &["too large", "too long", "exceed", "over", "limit", "max"];
    const WINDOW: &[&str] = &["too large", "too long", "exceed", "over", "limit", "max", "requested", "sent", "tokens"];
    in_order(&lower, &["context", "overflow"])
        || then(&lower, &["context window"], WINDOW)
        || then(&lower, &["prompt"], TOO_MUCH)
        || ["request", "input"].iter().any(|first| {
            lower.find(first).is_some_and(|at| then(&lower[at..], &["context", "window", "length", "token"], WINDOW))
        })
}

/// Whether a text reports that a compaction failed because its request was too long.
pub fn is_compaction_failure(text: &str) -> bool {
    let lower = text.to_lowercase();
    any(&lower, &["compaction", "summarization failed"])
        && (is_likely_context_overflow(text) || lower.contains("context overflow"))
}

/// The number of tokens of the request, if the text names it.
pub fn observed_tokens(text: &str) -> Option<u64> {
    let lower = text.to_lowercase();
    let named = number_after(&lower, "prompt is too long:");
    let number = |phrase: &str| number_after(&lower, phrase).filter(|_| lower.contains("token"));
    named.or_else(|| number("requested")).or_else(|| number("resulted in"))
}
