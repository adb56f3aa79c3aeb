//! Responses in the Converse format of Amazon Bedrock: binary frames.

use serde_json::{Value, json};

use super::{Answer, AnswerPart, End, Wire, split};

/// The format itself.
#[derive(Clone, Copy, Debug)]
pub struct BedrockServer;

impl Wire for BedrockServer {
    fn api(&self) -> &'static str {
        "bedrock-converse-stream"
    }

    fn frames(&self, answer: &Answer) -> Vec<Vec<u8>> {
        let mut response = BedrockResponse::new().with_chunks(answer.pieces);
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
                let mut frames = response.frames();
                frames.push(exception("internalServerException", message));
                return frames;
            }
        };
        let tokens = answer.tokens;
        let usage = json!({
            "inputTokens": tokens.input, "outputTokens": tokens.output, "cacheReadInputTokens": tokens.cached,
            "totalTokens": tokens.input + tokens.output + tokens.cached,
        });
        let end = response.event("messageStop", json!({"stopReason": word}));
        end.event("metadata", json!({ "usage": usage })).frames()
    }

    fn unknown_event(&self) -> Vec<u8> {
        message("surprise", &json!({"p": "abc"}))
    }

    fn keep_alive(&self) -> Option<Vec<u8>> {
        None
    }

    fn content_type(&self) -> &'static str {
        "application/vnd.amazon.eventstream"
    }

    fn refusal(&self, message: &str) -> Value {
        json!({ "message": message })
    }
}

/// Builds a response block by block. Texts are split on request.
#[derive(Clone, Debug)]
pub struct BedrockResponse {
    events: Vec<(&'static str, Value)>,
    n_blocks: usize,
    pieces: usize,
}

impl Default for BedrockResponse {
    fn default() -> Self {
        Self::new()
    }
}

impl BedrockResponse {
    /// Creates a response of the assistant.
    pub fn new() -> Self {
        Self { events: vec![("messageStart", json!({"role": "assistant"}))], n_blocks: 0, pieces: 1 }
    }

    /// Splits subsequent blocks into `n` deltas each.
    #[must_use]
    pub fn with_chunks(mut self, n: usize) -> Self {
        self.pieces = n.max(1);
        self
    }

    /// Adds a text block.
    #[must_use]
    pub fn text(self, text: &str) -> Self {
        let deltas = split(text, self.pieces).into_iter().map(|part| json!({"text": part})).collect();
        self.block(None, deltas)
    }

    /// Adds a thinking block with its signature; an empty signature is not sent.
    #[must_use]
    pub fn thinking(self, text: &str, signature: &str) -> Self {
        let parts = split(text, self.pieces).into_iter();
        let mut deltas: Vec<Value> = parts.map(|part| json!({"reasoningContent": {"text": part}})).collect();
        if !signature.is_empty() {
            deltas.push(json!({"reasoningContent": {"signature": signature}}));
        }
        self.block(None, deltas)
    }

    /// Adds a tool call; the arguments are JSON text and may be invalid.
    #[must_use]
    pub fn tool_call(self, id: &str, name: &str, arguments: &str) -> Self {
        let parts = split(arguments, self.pieces).into_iter();
        let deltas = parts.map(|part| json!({"toolUse": {"input": part}})).collect();
        self.block(Some(json!({"toolUse": {"toolUseId": id, "name": name}})), deltas)
    }

    /// Adds a block of any kind. Only tool calls have a start.
    #[must_use]
    pub fn block(mut self, start: Option<Value>, deltas: Vec<Value>) -> Self {
        let index = self.n_blocks;
        self.n_blocks += 1;
        if let Some(start) = start {
            self.events.push(("contentBlockStart", json!({"contentBlockIndex": index, "start": start})));
        }
        for delta in deltas {
            self.events.push(("contentBlockDelta", json!({"contentBlockIndex": index, "delta": delta})));
        }
        self.events.push(("contentBlockStop", json!({"contentBlockIndex": index})));
        self
    }

    /// Adds any event.
    #[must_use]
    pub fn event(mut self, name: &'static str, payload: Value) -> Self {
        self.events.push((name, payload));
        self
    }

    /// Ends the response with a stop reason and a usage of 10 input and 5 output tokens; returns one frame per event.
    pub fn stop(self, reason: &str) -> Vec<Vec<u8>> {
        let usage = json!({"inputTokens": 10, "outputTokens": 5, "totalTokens": 15});
        self.event("messageStop", json!({"stopReason": reason})).event("metadata", json!({"usage": usage})).frames()
    }

    /// Returns the events so far, one frame each: a response that breaks off.
    pub fn frames(self) -> Vec<Vec<u8>> {
        self.events.iter().map(|(name, payload)| message(name, payload)).collect()
    }
}

/// Encodes the frame of an event.
pub fn message(event: &str, payload: &Value) -> Vec<u8> {
    let headers = [(":message-type", "event"), (":event-type", event), (":content-type", "application/json")];
    frame(&headers, payload.to_string().as_bytes())
}

/// Encodes the frame of an exception that ends the stream, e.g. `throttlingException`.
pub fn exception(name: &str, text: &str) -> Vec<u8> {
    let headers = [(":message-type", "exception"), (":exception-type", name), (":content-type", "application/json")];
    frame(&headers, json!({ "message": text }).to_string().as_bytes())
}

/// Encodes a frame with text headers.
pub fn frame(headers: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, value) in headers {
        bytes.push(name.len() as u8);
        bytes.extend(name.as_bytes());
        bytes.push(7);
        bytes.extend((value.len() as u16).to_be_bytes());
        bytes.extend(value.as_bytes());
    }
    raw_frame(&bytes, payload)
}

/// Encodes a frame with encoded headers.
pub fn raw_frame(headers: &[u8], payload: &[u8]) -> Vec<u8> {
    let total = 16 + headers.len() + payload.len();
    let mut bytes = Vec::with_capacity(total);
    bytes.extend((total as u32).to_be_bytes());
    bytes.extend((headers.len() as u32).to_be_bytes());
    bytes.extend(crc32(&bytes).to_be_bytes());
    bytes.extend(headers);
    bytes.extend(payload);
    bytes.extend(crc32(&bytes).to_be_bytes());
    bytes
}

/// Computes IEEE CRC-32 bit by bit: slow, but independent of the code under test.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 })
    })
}
