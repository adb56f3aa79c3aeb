//! Hidden notes that ask a model to go on.

use std::sync::Arc;

use pinch_coding_agent::entry::CustomMessage;
use pinch_llm::message::{Content, Message};

/// Returns the note for a model that stopped without any text.
pub(super) fn continue_note() -> CustomMessage {
    let text = "Your last turn ended without any text for the user. Go on: finish what you were doing, and then answer the user. If the user \
                needs no answer, reply with NO_REPLY.";
    hidden_note("pinch.continue", text)
}

/// Type of the note for a model whose answer broke off.
const INTERRUPTED: &str = "pinch.interrupted";

/// Returns whether a message is an answer that failed after its beginning had arrived.
pub(super) fn broke_off(message: &Arc<Message>) -> bool {
    message.as_assistant().is_some_and(|answer| answer.stop_reason.is_failure() && !answer.content.is_empty())
}

/// Returns whether a message is the note about an answer that broke off.
pub(super) fn is_interrupted_note(message: &Arc<Message>) -> bool {
    matches!(&**message, Message::Other(other) if other.raw.get("customType").is_some_and(|name| name == INTERRUPTED))
}

/// Returns the note for a model whose answer broke off.
pub(super) fn interrupted_note() -> CustomMessage {
    let text = "Your last answer was interrupted by an error before it was complete, and is lost; none of its tool calls ran. What came before it \
                was done. Check that before you repeat anything, and go on.";
    hidden_note(INTERRUPTED, text)
}

/// Returns the note for a model that stopped without a required answer.
pub(super) fn final_reply_note() -> CustomMessage {
    let text = "Your last turn ended without an answer for the user. Answer the user now, in plain text, from what you know so far. Tools are \
                not available, and NO_REPLY is not an answer.";
    hidden_note("pinch.final-reply", text)
}

fn hidden_note(custom_type: &str, text: &str) -> CustomMessage {
    CustomMessage {
        custom_type: custom_type.to_owned(),
        content: Content::Text(text.into()),
        display: false,
        details: None,
    }
}
