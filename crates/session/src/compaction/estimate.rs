//! Token estimates for messages and contexts without a request: one token per four UTF-16 units, combined with the usage that providers
//! reported.

use std::sync::Arc;

use pinch_llm::message::{AssistantMessage, Block, Content, Message};
use pinch_llm::normalise::system::SystemState;
use pinch_stdx::json::write;
use pinch_stdx::text::utf16_len;
use serde_json::Value;

use crate::session_log::{Context, roles};

/// UTF-16 units charged for an image.
const IMAGE_UNITS: usize = 4800;

/// Estimates the tokens of one message. A system message counts as 0, since it is not part of the conversation; [`context_tokens`] includes
/// it.
pub fn message_tokens(message: &Message) -> u64 {
    (units(message) as u64).div_ceil(4)
}

fn units(message: &Message) -> usize {
    match message {
        Message::System(_) => 0,
        Message::User(user) => content_units(&user.content),
        Message::Assistant(assistant) => assistant.content.iter().map(|block| assistant_units(block)).sum(),
        Message::ToolResult(result) => block_units(&result.content),
        Message::Other(other) => {
            let text = |name: &str| other.raw.get(name).and_then(Value::as_str).map_or(0, utf16_len);
            match other.role() {
                roles::CUSTOM => content_units(&roles::custom_content(other)),
                roles::BASH_EXECUTION => text("command") + text("output"),
                roles::BRANCH_SUMMARY | roles::COMPACTION_SUMMARY => text("summary"),
                _ => 0,
            }
        }
    }
}

fn assistant_units(block: &Block) -> usize {
    match block {
        Block::Text(text) => utf16_len(&text.text),
        Block::Thinking(thinking) => utf16_len(&thinking.thinking),
        Block::ToolCall(call) => {
            utf16_len(&call.name) + write::to_string(&call.arguments).map_or(0, |json| utf16_len(&json))
        }
        Block::Image(_) | Block::Other(_) => 0,
    }
}

fn content_units(content: &Content) -> usize {
    match content {
        Content::Text(text) => utf16_len(text),
        Content::Blocks(blocks) => block_units(blocks),
    }
}

fn block_units(blocks: &[Block]) -> usize {
    let units = |block: &Block| match block {
        Block::Text(text) => utf16_len(&text.text),
        Block::Image(_) => IMAGE_UNITS,
        _ => 0,
    };
    blocks.iter().map(units).sum()
}

/// Estimated tokens of a context, split by source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContextEstimate {
    /// Total tokens.
    pub tokens: u64,
    /// Tokens reported by the provider with the last successful answer.
    pub usage_tokens: u64,
    /// Estimated tokens of the messages after that answer, or of all messages if there is none.
    pub trailing_tokens: u64,
    /// Index of that answer.
    pub last_usage: Option<usize>,
}

/// Estimates the tokens of a context: the usage of the last successful answer plus the messages after it. Without such an answer, the final
/// system prompt and tools are counted; with one, only changes made after it.
///
/// Skips failed answers, answers without usage, and answers older than a compaction summary, since those measured the replaced messages.
pub fn context_tokens(messages: &[Arc<Message>]) -> ContextEstimate {
    tokens_with_usage_from(messages, 0)
}

/// Estimates the tokens of a log's context like [`context_tokens`]; answers older than the last context edit are skipped too.
pub fn tokens_of(context: &Context) -> ContextEstimate {
    tokens_with_usage_from(&context.messages, context.n_edited)
}

fn tokens_with_usage_from(messages: &[Arc<Message>], first: usize) -> ContextEstimate {
    let compacted = messages.iter().filter(|message| is_summary(message)).map(|message| message.timestamp()).max();
    let is_good = |assistant: &AssistantMessage| {
        !assistant.stop_reason.is_failure()
            && !assistant.usage.is_zero()
            && compacted.is_none_or(|compacted| assistant.timestamp > compacted)
    };
    let last = messages.iter().rposition(|message| message.as_assistant().is_some_and(|found| is_good(found)));
    let last = last.filter(|at| *at >= first);
    let usage_tokens =
        last.and_then(|at| messages[at].as_assistant()).map_or(0, |assistant| assistant.usage.context_tokens());
    let rest = &messages[last.map_or(0, |at| at + 1)..];
    let message_total: u64 = rest.iter().map(|message| message_tokens(message)).sum();
    let trailing_tokens = message_total + system_tokens(rest);
    ContextEstimate { tokens: usage_tokens + trailing_tokens, usage_tokens, trailing_tokens, last_usage: last }
}

/// Estimates the tokens of messages, with the final system prompt and tools, from their text alone: no reported usage is considered.
pub fn estimated_tokens(messages: &[Arc<Message>]) -> u64 {
    messages.iter().map(|message| message_tokens(message)).sum::<u64>() + system_tokens(messages)
}

/// Returns the combined tokens of the prompt and tools in the system messages.
fn system_tokens(messages: &[Arc<Message>]) -> u64 {
    let mut state = SystemState::default();
    for message in messages {
        if let Message::System(system) = &**message {
            state.apply(system);
        }
    }
    let instructions = state.instructions.iter().map(String::as_str);
    let texts = instructions.chain(state.sections.iter().map(|(_, text)| &**text));
    let tools = match state.tools.as_slice() {
        [] => 0,
        tools => write::to_string(&tools).map_or(0, |json| utf16_len(&json)),
    };
    let units = texts.map(utf16_len).sum::<usize>() + tools;
    (units as u64).div_ceil(4)
}

fn is_summary(message: &Message) -> bool {
    matches!(message, Message::Other(other) if other.role() == roles::COMPACTION_SUMMARY)
}

/// How full the model's window is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ContextUsage {
    /// Tokens of the context; `None` between a compaction and the next answer, when the count is unknown.
    pub tokens: Option<u64>,
    /// Size of the window in tokens.
    pub context_window: u64,
}

impl ContextUsage {
    /// Returns the used part of the window in percent.
    pub fn percent(&self) -> Option<f64> {
        self.tokens.map(|tokens| tokens as f64 / self.context_window as f64 * 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_usage_the_final_prompt_and_tools_are_counted() {
        let message = |text: &str| Arc::new(Message::from_json(text).unwrap());
        let system = message(
            r#"{"role":"system","content":"","sections":{"preamble":"12345678","cwd":"1234"},"toolsAdded":[{"name":"t","description":"d","parameters":{}}],"timestamp":1}"#,
        );
        let patch = message(
            r#"{"role":"system","content":"","sections":{"preamble":"1234"},"toolsRemoved":[{"name":"t"}],"timestamp":2}"#,
        );
        let user = message(r#"{"role":"user","content":"12345678","timestamp":3}"#);
        let answer = message(r#"{"role":"assistant","content":[],"usage":{"totalTokens":900},"timestamp":5}"#);
        // [{"name":"t","description":"d","parameters":{}}]
        let tools = 48_u64;
        assert_eq!(context_tokens(&[system.clone(), user.clone()]).tokens, (12 + tools).div_ceil(4) + 2);
        assert_eq!(
            context_tokens(&[system.clone(), user.clone(), patch.clone()]).tokens,
            2 + 2,
            "what was replaced is gone"
        );
        assert_eq!(
            context_tokens(&[system, user, answer, patch]).tokens,
            900 + 1,
            "what comes later adds to the usage"
        );
    }

    #[test]
    fn usage_older_than_a_summary_is_ignored() {
        let message = |text: &str| Arc::new(Message::from_json(text).unwrap());
        let summary = |at: u64| {
            message(&format!(
                r#"{{"role":"compactionSummary","summary":"12345678","tokensBefore":1,"timestamp":{at}}}"#
            ))
        };
        let answer = message(
            r#"{"role":"assistant","content":[{"type":"text","text":"1234"}],"usage":{"totalTokens":900},"timestamp":5}"#,
        );
        assert_eq!(context_tokens(&[summary(4), answer.clone()]).tokens, 900);
        assert_eq!(
            context_tokens(&[summary(5), answer]),
            ContextEstimate { tokens: 3, usage_tokens: 0, trailing_tokens: 3, last_usage: None }
        );
    }
}
