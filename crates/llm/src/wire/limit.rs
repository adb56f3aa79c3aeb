//! Limits of answers: the model's limit, or the rest of its context window.

use crate::message::{Block, Content, Message, ToolDecl};
use crate::model::Model;
use crate::request::Request;

/// Characters per token. Rather too low than too high: underestimating the tokens causes a failed call.
const CHARACTERS_PER_TOKEN: f64 = 3.5;
/// Estimated size of an image, in characters.
const IMAGE_CHARACTERS: usize = 4_800;
/// Room that is always left free.
const SMALL_MARGIN: u64 = 4_096;
/// Minimum room for an answer, unless less than twice as much is left.
const USABLE_ROOM: u64 = 1_024;
/// Below this much room the margin shrinks.
const COMFORTABLE_ROOM: u64 = 32_768;

/// Returns the limit to send: the requested one, or the model's own, but never more than the room. 0 means that neither is known.
pub fn output_limit(request: &Request, wanted: Option<u64>) -> u64 {
    let model = &*request.model;
    let limit = wanted.filter(|n| *n > 0).unwrap_or(model.max_tokens);
    if limit == 0 {
        return 0;
    }
    room(model, request).map_or(limit, |room| limit.min(room.max(1)))
}

/// Returns the limit to send in formats that require none; `None` if the server may choose.
pub fn limit_to_send(request: &Request) -> Option<u64> {
    let wanted = request.options.max_tokens.filter(|n| *n > 0);
    if wanted.is_none() && request.options.omit_output_limit {
        return None;
    }
    Some(output_limit(request, wanted)).filter(|limit| *limit > 0)
}

/// Returns the tokens left for the answer, or `None` if the model's window is unknown.
fn room(model: &Model, request: &Request) -> Option<u64> {
    if model.context_window == 0 {
        return None;
    }
    let input = estimate_request(request);
    let margin = SMALL_MARGIN.max((input as f64 * 0.15).ceil() as u64);
    let room = model.context_window.saturating_sub(input).saturating_sub(margin);
    if room >= COMFORTABLE_ROOM {
        return Some(room);
    }
    let left = model.context_window.saturating_sub(input);
    // An estimate that leaves hardly any room may be too high, and an answer of one token would be useless.
    let room = COMFORTABLE_ROOM.min(left.saturating_sub(SMALL_MARGIN)).max(USABLE_ROOM.min(left / 2));
    // The margin suits larger windows: a small one keeps an eighth free, or half of the rest if that is less.
    let is_small = model.context_window < 2 * SMALL_MARGIN;
    Some(if is_small { left.saturating_sub(model.context_window / 8).max(left / 2) } else { room })
}

/// Estimates the tokens of a request: the last reported usage, plus an estimate of the messages after it.
pub fn estimate_request(request: &Request) -> u64 {
    let messages = &request.messages;
    let reported = (0..messages.len()).rev().find_map(|at| {
        let answer = messages[at].as_assistant()?;
        let valid = !answer.stop_reason.is_failure() && !answer.usage.is_zero();
        // A prefix that is newer than the answer was inserted by a compaction, so the usage counts removed messages.
        let as_then = messages[..at].iter().all(|earlier| earlier.timestamp() <= answer.timestamp);
        (valid && as_then).then(|| (at + 1, answer.usage.context_tokens()))
    });
    let (from, counted) = reported.unwrap_or_else(|| {
        let prompt: usize = request.system.sections.iter().map(|section| section.text.len()).sum();
        let tools: usize = request.tools.iter().map(tool_characters).sum();
        (0, to_tokens(prompt + tools))
    });
    counted + messages[from..].iter().map(|message| estimate_message(message)).sum::<u64>()
}

/// Estimates the tokens of one message.
pub fn estimate_message(message: &Message) -> u64 {
    to_tokens(match message {
        Message::System(m) => {
            let sections: usize = m.sections.iter().filter_map(|(_, text)| text.as_ref()).map(|text| text.len()).sum();
            content_characters(&m.content) + sections + m.tools_added.iter().map(tool_characters).sum::<usize>()
        }
        Message::User(m) => content_characters(&m.content),
        Message::Assistant(m) => m.content.iter().map(|block| block_characters(block)).sum(),
        Message::ToolResult(m) => m.content.iter().map(block_characters).sum(),
        Message::Other(_) => 0,
    })
}

fn to_tokens(characters: usize) -> u64 {
    (characters as f64 / CHARACTERS_PER_TOKEN).ceil() as u64
}

fn content_characters(content: &Content) -> usize {
    match content {
        Content::Text(text) => characters(text),
        Content::Blocks(blocks) => blocks.iter().map(block_characters).sum(),
    }
}

fn block_characters(block: &Block) -> usize {
    match block {
        Block::Text(text) => characters(&text.text),
        Block::Thinking(thinking) => characters(&thinking.thinking),
        Block::Image(_) => IMAGE_CHARACTERS,
        Block::ToolCall(call) => call.name.len() + json_characters(&call.arguments),
        Block::Other(_) => 0,
    }
}

fn tool_characters(tool: &ToolDecl) -> usize {
    tool.name.len() + tool.description.len() + json_characters(&**tool.parameters.raw())
}

fn json_characters(value: &impl serde::Serialize) -> usize {
    serde_json::to_string(value).map_or(0, |text| text.len())
}

fn characters(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { pinch_stdx::text::utf16_len(text) }
}
