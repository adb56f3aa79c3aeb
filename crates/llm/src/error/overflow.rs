//! Detects answers and texts that report that the conversation is too long for the model.

use super::patterns::{CEREBRAS_OVERFLOW, NOT_OVERFLOW, OVERFLOW, TOKEN_RATE, TOO_LONG, WINDOW_EXCEEDED, beginning};
use super::payment::is_billing;
use super::rate::is_rate_limit;
use super::words::{all, any, in_order, number_after, then, word};
use crate::message::{AssistantMessage, StopReason};

/// Returns whether an answer failed, or is empty, because the conversation is too long: by its error text, or, if the window is known, by
/// its usage. Some providers truncate the conversation silently; others return nothing.
pub fn is_context_overflow(message: &AssistantMessage, context_window: Option<u64>) -> bool {
    let usage = &message.usage;
    match (message.stop_reason, context_window.filter(|window| *window > 0)) {
        (StopReason::Error, _) => {
            message.error_message.as_deref().is_some_and(|text| text_is_overflow(message.provider.as_str(), text))
        }
        (StopReason::Stop, Some(window)) => usage.input + usage.cache_read + usage.cache_write > window,
        // At least 99 % of the window.
        (StopReason::Length, Some(window)) => {
            usage.output == 0 && (usage.input + usage.cache_read) * 100 >= window * 99
        }
        _ => false,
    }
}

/// Returns whether an error text reports that the conversation is too long.
pub fn text_is_overflow(provider: &str, text: &str) -> bool {
    let text = beginning(text);
    !NOT_OVERFLOW.finds_any(&text)
        && (TOO_LONG.finds_any(&text)
            || OVERFLOW.finds_any(&text)
            || (provider == "cerebras" && CEREBRAS_OVERFLOW.finds_any(&text)))
}

const PAIRS: &[&[&str]] = &[
    &["invalid_argument", "maximum number of tokens"],
    &["input exceeds", "maximum number of tokens"],
    &["request size exceeds", "context window"],
    &["request size exceeds", "context length"],
    &["max_tokens", "exceed", "context"],
    &["input length", "exceed", "context"],
    &["413", "too large"],
];

/// Returns whether a text reports that reasoning cannot be disabled for a model.
pub fn is_reasoning_required(text: &str) -> bool {
    let text = beginning(text);
    any(&text, &["reasoning is mandatory", "reasoning is required", "requires reasoning"])
        || in_order(&text, &["reasoning", "cannot be disabled"])
}

/// Returns whether a text clearly reports an overflow.
pub fn is_overflow_text(text: &str) -> bool {
    let lower = beginning(text);
    if lower.trim().is_empty() || TOKEN_RATE.finds_any(&lower) || is_reasoning_required(&lower) {
        return false;
    }
    TOO_LONG.finds_any(&lower)
        || WINDOW_EXCEEDED.finds_any(&lower)
        || PAIRS.iter().any(|pair| all(&lower, pair))
        || of_provider(&lower)
        || (!is_rate_limit(&lower) && text_is_overflow("", text))
}

/// Matches texts of individual providers.
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

/// Returns whether a text probably reports an overflow.
pub fn is_likely_overflow_text(text: &str) -> bool {
    let lower = beginning(text);
    if TOKEN_RATE.finds_any(&lower) || is_reasoning_required(&lower) || is_billing(&lower) || is_rate_limit(&lower) {
        return false;
    }
    if then(&lower, &["context window"], &["too small", "minimum is"]) {
        return false;
    }
    if is_overflow_text(text) {
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

/// Returns whether a text reports that a compaction failed because its request was too long.
pub fn is_compaction_failure(text: &str) -> bool {
    let lower = beginning(text);
    any(&lower, &["compaction", "summarization failed"])
        && (is_likely_overflow_text(text) || lower.contains("context overflow"))
}

/// Returns the number of tokens of the request, if the text names it.
pub fn observed_tokens(text: &str) -> Option<u64> {
    let lower = beginning(text);
    let named = number_after(&lower, "prompt is too long:");
    let number = |phrase: &str| number_after(&lower, phrase).filter(|_| lower.contains("token"));
    named.or_else(|| number("requested")).or_else(|| number("resulted in")).or_else(|| number("request ("))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_413_at_the_start_is_an_overflow() {
        for (text, expect) in [
            ("413 {\"error\":\"x\"}", true),
            ("413: {}", true),
            ("OpenAI API error (413): {\"message\":\"x\"}", true),
            ("Mistral API error (413): Payload Too Large", true),
            ("OpenAI API error (400): {\"id\":\"(413)\"}", false),
        ] {
            assert_eq!(text_is_overflow("p", text), expect, "{text}");
        }
    }

    #[test]
    fn the_length_of_a_refused_prompt_is_read() {
        for (text, expect) in [
            ("prompt is too long: 208,310 tokens > 200000 maximum", Some(208_310)),
            (
                "400 request (6010 tokens) exceeds the available context size (4096 tokens), try increasing it",
                Some(6_010),
            ),
            ("the request exceeds the available context size", None),
        ] {
            assert_eq!(observed_tokens(text), expect, "{text}");
        }
    }
}
