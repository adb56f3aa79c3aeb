//! Hiding system messages from extensions: the conversation carries prompt and tools in them.

use std::sync::Arc;

use pinch_llm::message::Message;

pub(super) fn is_system(message: &Message) -> bool {
    matches!(message, Message::System(_))
}

/// Returns the messages without system messages.
pub(super) fn without_system(messages: &[Arc<Message>]) -> Vec<Arc<Message>> {
    messages.iter().filter(|message| !is_system(message)).cloned().collect()
}

/// Restores the system messages in order: each follows its original predecessor, if that is still present. System messages added by
/// extensions are dropped.
pub(super) fn with_system(before: &[Arc<Message>], after: Vec<Arc<Message>>) -> Vec<Arc<Message>> {
    let after: Vec<Arc<Message>> = after.into_iter().filter(|message| !is_system(message)).collect();
    let mut whole = Vec::with_capacity(before.len() + after.len());
    let mut n_taken = 0;
    let mut anchor: Option<&Arc<Message>> = None;
    for message in before {
        if !is_system(message) {
            anchor = Some(message);
            continue;
        }
        let same =
            |other: &Arc<Message>| anchor.is_some_and(|anchor| Arc::ptr_eq(anchor, other) || **anchor == **other);
        if let Some(at) = after[n_taken..].iter().position(same) {
            whole.extend_from_slice(&after[n_taken..=n_taken + at]);
            n_taken += at + 1;
        }
        whole.push(Arc::clone(message));
    }
    whole.extend_from_slice(&after[n_taken..]);
    whole
}

#[cfg(test)]
mod tests {
    use pinch_llm::message::{Content, SystemMessage};

    use super::*;

    fn system(text: &str) -> Arc<Message> {
        Arc::new(Message::System(SystemMessage { content: Content::Text(text.into()), ..SystemMessage::default() }))
    }

    fn say(text: &str) -> Arc<Message> {
        Arc::new(Message::user(text, 0))
    }

    #[track_caller]
    fn check(after: Vec<Arc<Message>>, expected: &[Arc<Message>]) {
        let before = [system("1"), say("a"), say("b"), system("2"), say("c"), system("3")];
        assert_eq!(with_system(&before, after), expected);
    }

    #[test]
    fn system_messages_keep_their_positions() {
        check(
            vec![say("a"), say("b"), say("c")],
            &[system("1"), say("a"), say("b"), system("2"), say("c"), system("3")],
        );
        check(
            vec![say("b"), say("c"), say("d")],
            &[system("1"), say("b"), system("2"), say("c"), system("3"), say("d")],
        );
        check(vec![say("c")], &[system("1"), system("2"), say("c"), system("3")]);
        check(vec![say("c"), say("b")], &[system("1"), say("c"), say("b"), system("2"), system("3")]);
        check(vec![system("x")], &[system("1"), system("2"), system("3")]);
    }
}
