//! The scripted model server of the recordings: two wire formats, one script.

use serde_json::{Value, json};

use crate::server::{Fault, Recorded, Server, ServerReply};
use crate::wires::{anthropic, completions};

/// Form of the tool calls in a recording's answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    /// `call_<request>_<number>`: the name first, then the arguments.
    Numbered,
    /// `call_1`, in one chunk.
    One,
}

/// Starts a server that answers request number n with `script[n - 1]`, and with the last entry once the script is exhausted.
///
/// # Errors
///
/// Returns an error if the server cannot listen.
pub async fn start(script: &Value, calls: Calls) -> Result<Server, String> {
    let server = Server::start().await.map_err(|why| why.to_string())?;
    let script = script.as_array().cloned().unwrap_or_default();
    let n_asked = std::sync::atomic::AtomicUsize::new(0);
    // A case without a script has no fixed answers.
    let script = if script.is_empty() { vec![json!({"text": "default"})] } else { script };
    server.answer_with(move |request| {
        let n = n_asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let step = script.get(n).or(script.last())?;
        Some(reply(request, n + 1, step, calls))
    });
    Ok(server)
}

/// Returns the reply of one step to request number `n`.
pub fn reply(request: &Recorded, n: usize, step: &Value, calls: Calls) -> ServerReply {
    let is_anthropic = request.path.contains("/messages");
    if let Some(status) = step["status"].as_u64().and_then(|status| u16::try_from(status).ok()) {
        let error = match calls {
            Calls::One => json!({"message": step["message"]}),
            Calls::Numbered => json!({"message": step["message"], "type": "x"}),
        };
        let body = if is_anthropic { json!({"type": "error", "error": error}) } else { json!({"error": error}) };
        return ServerReply::json(status, &body);
    }
    let blocks = blocks(step, n, calls);
    let frames =
        if is_anthropic { anthropic_frames(step, n, &blocks) } else { completions_frames(step, n, &blocks, calls) };
    let mut reply = ServerReply::events();
    if let Some(ms) = step["headDelay"].as_u64() {
        reply = reply.pause(std::time::Duration::from_millis(ms)).head();
    }
    if let Some(ms) = step["delay"].as_u64() {
        reply = reply.pause(std::time::Duration::from_millis(ms));
    }
    let first_half = || frames.iter().take(frames.len().div_ceil(2)).map(String::as_str).collect::<String>();
    if step["drop"] == true {
        return reply.send(first_half()).pause(std::time::Duration::from_millis(300)).then(Fault::Close);
    }
    if step["hang"] == true {
        return reply.send(first_half()).then(Fault::Hang);
    }
    reply.send(frames.concat())
}

/// A block of an answer.
enum AnswerBlock {
    Text(String),
    Thinking { text: String, signature: String },
    Call { id: String, name: String, arguments: String },
}

fn blocks(step: &Value, n: usize, calls: Calls) -> Vec<AnswerBlock> {
    let mut n_calls = 0;
    let mut call = |tool: &Value| {
        let id = match calls {
            Calls::Numbered => format!("call_{n}_{n_calls}"),
            Calls::One => "call_1".to_owned(),
        };
        n_calls += 1;
        let arguments = tool["rawArgs"].as_str().map_or_else(|| tool["args"].to_string(), str::to_owned);
        AnswerBlock::Call { id, name: tool["name"].as_str().unwrap_or_default().to_owned(), arguments }
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut blocks = Vec::new();
    if step["text"].is_string() {
        blocks.push(AnswerBlock::Text(text(&step["text"])));
    }
    if step["tool"].is_object() {
        blocks.push(call(&step["tool"]));
    }
    blocks.extend(step["tools"].as_array().into_iter().flatten().map(&mut call));
    for block in step["blocks"].as_array().into_iter().flatten() {
        blocks.push(if block["thinking"].is_string() {
            AnswerBlock::Thinking { text: text(&block["thinking"]), signature: text(&block["signature"]) }
        } else if block["tool"].is_object() {
            call(&block["tool"])
        } else {
            AnswerBlock::Text(text(&block["text"]))
        });
    }
    blocks
}

/// Characters per text delta.
const PIECE: usize = 6;

fn stop(step: &Value, blocks: &[AnswerBlock], plain: &str, calls: &str) -> String {
    let has_calls = blocks.iter().any(|block| matches!(block, AnswerBlock::Call { .. }));
    step["stop"].as_str().unwrap_or(if has_calls { calls } else { plain }).to_owned()
}

fn tokens(step: &Value, name: &str, or: u64) -> u64 {
    step["usage"][name].as_u64().unwrap_or(or)
}

fn anthropic_frames(step: &Value, n: usize, blocks: &[AnswerBlock]) -> Vec<String> {
    let usage = json!({"input_tokens": tokens(step, "input", 10), "output_tokens": 1,
        "cache_read_input_tokens": tokens(step, "cacheRead", 0),
        "cache_creation_input_tokens": tokens(step, "cacheWrite", 0),
        "cache_creation": {"ephemeral_1h_input_tokens": tokens(step, "cache1h", 0)}});
    let mut response = anthropic::AnthropicResponse::with_usage(&format!("msg_{n}"), &usage);
    for block in blocks {
        response = match block {
            AnswerBlock::Text(text) => response.with_chunks_of(PIECE).text(text),
            AnswerBlock::Thinking { text, signature } => response.with_chunks_of(PIECE).thinking(text, signature),
            AnswerBlock::Call { id, name, arguments } => response.with_chunks(1).tool_call(id, name, arguments),
        };
    }
    let delta = json!({"stop_reason": stop(step, blocks, "end_turn", "tool_use")});
    let end = json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": tokens(step, "output", 5)}});
    response.event(end).event(json!({"type": "message_stop"})).frames()
}

fn completions_frames(step: &Value, n: usize, blocks: &[AnswerBlock], calls: Calls) -> Vec<String> {
    let id = if calls == Calls::One { "c1".to_owned() } else { format!("c{n}") };
    // The recorded one had no model.
    let mut response = completions::CompletionsResponse::new(&id, "");
    let mut n_calls = 0;
    for block in blocks {
        response = match block {
            AnswerBlock::Text(text) => response.with_chunks_of(PIECE).text(text),
            AnswerBlock::Thinking { text, .. } => response.with_chunks_of(PIECE).thinking("reasoning_content", text),
            AnswerBlock::Call { id, name, arguments } if calls == Calls::One => {
                response.with_chunks(1).tool_call(id, name, arguments)
            }
            // The name comes first, followed by the arguments in one chunk.
            AnswerBlock::Call { id, name, arguments } => {
                let rest = json!({"tool_calls": [{"index": n_calls, "function": {"arguments": arguments}}]});
                n_calls += 1;
                response.with_chunks(1).tool_call(id, name, "").delta(&rest)
            }
        };
    }
    let read = tokens(step, "cacheRead", 0);
    let written = tokens(step, "cacheWrite", 0);
    let input = tokens(step, "input", 10) + read + written;
    let details = json!({"cached_tokens": read + written, "cache_write_tokens": written});
    let usage = json!({"prompt_tokens": input, "completion_tokens": tokens(step, "output", 5), "prompt_tokens_details": details});
    response.finish(&stop(step, blocks, "stop", "tool_calls")).usage(&usage).done()
}
