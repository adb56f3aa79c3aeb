//! Estimated usage: four characters per token, and a cache of each session's last prompt.

use std::collections::HashMap;

use serde_json::Value;

use crate::ids::SessionId;
use crate::message::{Block, Content, Message, Usage};
use crate::normalise::system;
use crate::request::{CacheRetention, Request};
use crate::wire::headers;

/// Maximum number of cached prompts.
const MAX_SESSIONS: usize = 1_000;

/// The estimated tokens of a prompt.
#[derive(Clone, Copy, Debug)]
pub(super) struct PromptCost {
    input: u64,
    cache_read: u64,
    cache_write: u64,
}

impl PromptCost {
    /// Estimates the prompt of a request and caches it for its session.
    pub(super) fn of(request: &Request, prompts: &mut HashMap<SessionId, String>) -> Self {
        let text = prompt_text(request);
        let all = tokens(&text);
        let session =
            request.options.session_id.clone().filter(|_| headers::retention(request) != CacheRetention::None);
        let Some(session) = session else {
            return Self { input: all, cache_read: 0, cache_write: 0 };
        };
        if prompts.len() >= MAX_SESSIONS && !prompts.contains_key(&session) {
            prompts.clear();
        }
        let Some(earlier) = prompts.insert(session, text.clone()) else {
            return Self { input: all, cache_read: 0, cache_write: all };
        };
        let common: usize =
            earlier.chars().zip(text.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum();
        let (cache_read, cache_write) = (tokens(&text[..common]), tokens(&text[common..]));
        Self { input: all.saturating_sub(cache_read), cache_read, cache_write }
    }

    /// Returns the usage with this answer.
    pub(super) fn usage(self, content: &[std::sync::Arc<Block>]) -> Usage {
        let lines: Vec<String> = content.iter().map(|block| block_text(block)).collect();
        let Self { input, cache_read, cache_write } = self;
        let output = tokens(&lines.join("\n"));
        let total_tokens = input + output + cache_read + cache_write;
        Usage { input, output, cache_read, cache_write, total_tokens, ..Usage::default() }
    }
}

fn tokens(text: &str) -> u64 {
    pinch_stdx::text::utf16_len(text).div_ceil(4) as u64
}

fn prompt_text(request: &Request) -> String {
    let conversation = system::collapse(&request.system, &request.tools, &request.messages);
    let mut parts = Vec::new();
    let prompt = conversation.head.text();
    if !prompt.is_empty() {
        parts.push(format!("system:{prompt}"));
    }
    parts.extend(conversation.messages.iter().map(|message| message_text(message)));
    if !conversation.current.tools.is_empty() {
        parts.push(format!("tools:{}", serde_json::to_string(&conversation.current.tools).unwrap_or_default()));
    }
    parts.join("\n\n")
}

fn message_text(message: &Message) -> String {
    let lines = |blocks: &[Block]| blocks.iter().map(block_text).collect::<Vec<_>>().join("\n");
    match message {
        Message::User(user) => match &user.content {
            Content::Text(text) => format!("user:{text}"),
            Content::Blocks(blocks) => format!("user:{}", lines(blocks)),
        },
        Message::Assistant(answer) => {
            let blocks: Vec<String> = answer.content.iter().map(|block| block_text(block)).collect();
            format!("assistant:{}", blocks.join("\n"))
        }
        Message::ToolResult(result) => format!("toolResult:{}\n{}", result.tool_name, lines(&result.content)),
        Message::System(_) | Message::Other(_) => String::new(),
    }
}

fn block_text(block: &Block) -> String {
    match block {
        Block::Text(text) => text.text.clone(),
        Block::Thinking(thinking) => thinking.thinking.clone(),
        Block::Image(image) => format!("[image:{}:{}]", image.mime_type, image.data.len()),
        Block::ToolCall(call) => format!("{}:{}", call.name, Value::Object(call.arguments.clone())),
        Block::Other(_) => String::new(),
    }
}
