//! Conversations as plain text, so that the summarizing model does not continue them.

use std::sync::Arc;

use pinch_llm::message::{AssistantMessage, Block, Message, ToolCall};
use pinch_stdx::json::write;
use pinch_stdx::text::{utf16_len, utf16_prefix};

use crate::session_log::convert_to_llm;

/// Maximum UTF-16 units of a tool result to include.
const MAX_RESULT: usize = 2000;

/// Renders a conversation as text; session-only roles are converted first.
pub fn conversation(messages: &[Arc<Message>]) -> String {
    items(messages).join("\n\n")
}

/// Renders a conversation as pieces of text, one or more per message.
pub(super) fn items(messages: &[Arc<Message>]) -> Vec<String> {
    let mut items = Vec::new();
    for message in convert_to_llm(messages) {
        match &*message {
            Message::User(user) => push(&mut items, "User", &user.content.text("")),
            Message::Assistant(assistant) => push_assistant(&mut items, assistant),
            Message::ToolResult(result) => {
                push(&mut items, "Tool result", &shortened(&pinch_llm::message::block::join_text(&result.content, "")));
            }
            Message::System(_) | Message::Other(_) => {}
        }
    }
    items
}

fn push(items: &mut Vec<String>, who: &str, text: &str) {
    if !text.is_empty() {
        items.push(format!("[{who}]: {text}"));
    }
}

fn push_assistant(items: &mut Vec<String>, assistant: &AssistantMessage) {
    let thinking: Vec<&str> = assistant
        .content
        .iter()
        .filter_map(|block| match &**block {
            Block::Thinking(thinking) => Some(thinking.thinking.as_str()),
            _ => None,
        })
        .collect();
    push(items, "Assistant thinking", &thinking.join("\n"));
    push(items, "Assistant", &assistant.text("\n"));
    let calls: Vec<String> = assistant.tool_calls().map(call_text).collect();
    push(items, "Assistant tool calls", &calls.join("; "));
}

fn call_text(call: &ToolCall) -> String {
    let arguments: Vec<String> = call
        .arguments
        .iter()
        .map(|(name, value)| format!("{name}={}", write::to_string(value).unwrap_or_default()))
        .collect();
    format!("{}({})", call.name, arguments.join(", "))
}

fn shortened(text: &str) -> String {
    let len = utf16_len(text);
    if len <= MAX_RESULT {
        return text.to_owned();
    }
    format!("{}\n\n[... {} more characters truncated]", utf16_prefix(text, MAX_RESULT), len - MAX_RESULT)
}
