//! Neutralizes Anthropic's test string for refusals.
//!
//! A request that contains it anywhere is refused, so anyone who gets it into a conversation (for example through a file that a tool reads)
//! would end that conversation for good. The replacement text is OpenClaw's.

use std::borrow::Cow;

const TRIGGER: &str = "ANTHROPIC_MAGIC_STRING_TRIGGER_REFUSAL";
const HARMLESS: &str = "ANTHROPIC MAGIC STRING TRIGGER REFUSAL (redacted)";

/// Returns the text without the trigger.
pub(super) fn scrub(text: &str) -> Cow<'_, str> {
    match memchr::memmem::find(text.as_bytes(), TRIGGER.as_bytes()) {
        None => Cow::Borrowed(text),
        Some(_) => Cow::Owned(text.replace(TRIGGER, HARMLESS)),
    }
}
