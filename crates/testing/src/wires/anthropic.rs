//! Responses in Anthropic's Messages format.

use serde_json::{Value, json};

use super::{Answer, AnswerPart, End, TextPieces, Wire, split};

/// Builds a response block by block. Texts are split on request.
#[derive(Clone, Debug)]
pub struct AnthropicResponse {
    events: Vec<Value>,
    n_blocks: usize,
    pieces: TextPieces,
}

impl AnthropicResponse {
    /// Creates a response with an id, 10 input and 5 output tokens.
    pub fn new(id: &str) -> Self {
        Self::with_usage(id, &json!({"input_tokens": 10, "output_tokens": 5}))
    }

    /// Creates a response with an id and a usage.
    pub fn with_usage(id: &str, usage: &Value) -> Self {
        let message = json!({"id": id, "type": "message", "role": "assistant", "content": [], "usage": usage});
        Self {
            events: vec![json!({"type": "message_start", "message": message})],
            n_blocks: 0,
            pieces: TextPieces::Many(1),
        }
    }

    /// Splits subsequent blocks into `n` deltas each.
    #[must_use]
    pub fn with_chunks(mut self, n: usize) -> Self {
        self.pieces = TextPieces::Many(n);
        self
    }

    /// Splits subsequent blocks into deltas of this many characters.
    #[must_use]
    pub fn with_chunks_of(mut self, n_chars: usize) -> Self {
        self.pieces = TextPieces::Of(n_chars);
        self
    }

    /// Adds a text block.
    #[must_use]
    pub fn text(self, text: &str) -> Self {
        let deltas = self.split(text).into_iter().map(|part| json!({"type": "text_delta", "text": part})).collect();
        self.block(&json!({"type": "text", "text": ""}), deltas)
    }

    /// Adds a thinking block with its signature.
    #[must_use]
    pub fn thinking(self, text: &str, signature: &str) -> Self {
        let parts = self.split(text).into_iter();
        let mut deltas: Vec<Value> = parts.map(|part| json!({"type": "thinking_delta", "thinking": part})).collect();
        deltas.push(json!({"type": "signature_delta", "signature": signature}));
        self.block(&json!({"type": "thinking", "thinking": ""}), deltas)
    }

    /// Adds a tool call; the arguments are JSON text and may be invalid.
    #[must_use]
    pub fn tool_call(self, id: &str, name: &str, arguments: &str) -> Self {
        let parts = self.split(arguments).into_iter();
        let deltas = parts.map(|part| json!({"type": "input_json_delta", "partial_json": part})).collect();
        self.block(&json!({"type": "tool_use", "id": id, "name": name, "input": {}}), deltas)
    }

    /// Adds a block of any kind.
    #[must_use]
    pub fn block(mut self, start: &Value, deltas: Vec<Value>) -> Self {
        let index = self.n_blocks;
        self.n_blocks += 1;
        self.events.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
        for delta in deltas {
            self.events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        self.events.push(json!({"type": "content_block_stop", "index": index}));
        self
    }

    /// Adds any event.
    #[must_use]
    pub fn event(mut self, event: Value) -> Self {
        self.events.push(event);
        self
    }

    /// Ends the response with a stop reason; returns the events as text, one frame each.
    pub fn stop(self, reason: &str) -> Vec<String> {
        self.event(json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 5}}))
            .event(json!({"type": "message_stop"}))
            .frames()
    }

    /// Returns the events so far as text, one frame each: a response that breaks off.
    pub fn frames(self) -> Vec<String> {
        self.events.iter().map(frame).collect()
    }

    fn split(&self, text: &str) -> Vec<String> {
        split(text, self.pieces)
    }
}

/// Formats one event.
pub fn frame(event: &Value) -> String {
    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or(""))
}

/// The format, for tests that cover all of them.
#[derive(Clone, Copy, Debug)]
pub struct AnthropicServer;

impl Wire for AnthropicServer {
    fn api(&self) -> &'static str {
        "anthropic-messages"
    }

    fn frames(&self, answer: &Answer) -> Vec<Vec<u8>> {
        let tokens = answer.tokens;
        let usage = json!({"input_tokens": tokens.input, "output_tokens": 1, "cache_read_input_tokens": tokens.cached});
        let mut response = AnthropicResponse::with_usage("msg_1", &usage).with_chunks(answer.pieces);
        for part in &answer.parts {
            response = match part {
                AnswerPart::Text(text) => response.text(text),
                AnswerPart::Thinking(text) => response.thinking(text, "U0lH"),
                AnswerPart::Call { id, name, arguments } => response.tool_call(id, name, arguments),
            };
        }
        let word = match &answer.end {
            End::Stop => "end_turn",
            End::Calls => "tool_use",
            End::Length => "max_tokens",
            End::Word(word) => word,
            End::Error(message) => {
                let error = json!({"type": "error", "error": {"type": "api_error", "message": message}});
                return super::bytes(response.event(error).frames());
            }
        };
        let delta = json!({"stop_reason": word});
        let end = json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": tokens.output}});
        super::bytes(response.event(end).event(json!({"type": "message_stop"})).frames())
    }

    fn unknown_event(&self) -> Vec<u8> {
        b"event: surprise\ndata: {\"type\":\"surprise\"}\n\n".to_vec()
    }

    fn keep_alive(&self) -> Option<Vec<u8>> {
        Some(b"event: ping\ndata: {\"type\": \"ping\"}\n\n".to_vec())
    }

    fn refusal(&self, message: &str) -> Value {
        json!({"type": "error", "error": {"type": "error", "message": message}})
    }
}
