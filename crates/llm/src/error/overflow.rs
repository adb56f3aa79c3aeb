//! Whether an answer says that the conversation is too long for the model.

use super::patterns::{CEREBRAS_OVERFLOW, NOT_OVERFLOW, OVERFLOW, beginning};
use crate::message::{AssistantMessage, StopReason};

/// Whether an answer failed, or came out empty, because the conversation is too long: by its error text, or, where the window is known, by
/// its usage. Some providers cut the conversation silently; others give back nothing.
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

/// Whether an error text says that the conversation is too long.
pub fn text_is_overflow(provider: &str, text: &str) -> bool {
    let text = beginning(text);
    !NOT_OVERFLOW.finds_any(&text)
        && (OVERFLOW.finds_any(&text) || (provider == "cerebras" && CEREBRAS_OVERFLOW.finds_any(&text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_of_what_is_too_large() {
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
}
