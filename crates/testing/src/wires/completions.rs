//! Responses in OpenAI's Chat Completions format.

use serde_json::{Value, json};

use super::{Answer, AnswerPart, End, TextPieces, Tokens, Wire, split};

/// Builds a response delta by delta.
#[derive(Clone, Debug)]
pub struct CompletionsResponse {
    id: String,
    model: String,
    frames: Vec<String>,
    n_calls: usize,
    pieces: TextPieces,
}

impl CompletionsResponse {
    /// Creates a response of a model.
    pub fn new(id: &str, model: &str) -> Self {
        Self { id: id.to_owned(), model: model.to_owned(), frames: Vec::new(), n_calls: 0, pieces: TextPieces::Many(1) }
    }

    /// Splits subsequent parts into `n` deltas each.
    #[must_use]
    pub fn with_chunks(mut self, n: usize) -> Self {
        self.pieces = TextPieces::Many(n);
        self
    }

    /// Splits subsequent parts into deltas of this many characters.
    #[must_use]
    pub fn with_chunks_of(mut self, n_chars: usize) -> Self {
        self.pieces = TextPieces::Of(n_chars);
        self
    }

    /// Adds text.
    #[must_use]
    pub fn text(self, text: &str) -> Self {
        let parts = split(text, self.pieces);
        parts.into_iter().fold(self, |this, part| this.delta(&json!({"content": part})))
    }

    /// Adds thinking, in the member of that name (`reasoning_content`, `reasoning`, `reasoning_text`).
    #[must_use]
    pub fn thinking(self, member: &str, text: &str) -> Self {
        let parts = split(text, self.pieces);
        parts.into_iter().fold(self, |this, part| this.delta(&json!({member: part})))
    }

    /// Adds a tool call; the arguments are JSON text and may be invalid.
    #[must_use]
    pub fn tool_call(mut self, id: &str, name: &str, arguments: &str) -> Self {
        let index = self.n_calls;
        self.n_calls += 1;
        for (at, part) in split(arguments, self.pieces).into_iter().enumerate() {
            let call = if at == 0 {
                json!({"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": part}})
            } else {
                json!({"index": index, "function": {"arguments": part}})
            };
            self = self.delta(&json!({"tool_calls": [call]}));
        }
        self
    }

    /// Adds any delta of the first choice.
    #[must_use]
    pub fn delta(self, delta: &Value) -> Self {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": null});
        self.chunk(json!({"choices": [choice]}))
    }

    /// Adds the usage.
    #[must_use]
    pub fn usage(self, usage: &Value) -> Self {
        self.chunk(json!({"choices": [], "usage": usage}))
    }

    /// Adds the finish reason.
    #[must_use]
    pub fn finish(self, reason: &str) -> Self {
        self.chunk(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}))
    }

    /// Adds any chunk, with id and model.
    #[must_use]
    pub fn chunk(mut self, mut chunk: Value) -> Self {
        chunk["id"] = self.id.as_str().into();
        chunk["object"] = "chat.completion.chunk".into();
        chunk["model"] = self.model.as_str().into();
        self.frames.push(format!("data: {chunk}\n\n"));
        self
    }

    /// Ends the response; returns the events as text, one frame each.
    pub fn done(mut self) -> Vec<String> {
        self.frames.push("data: [DONE]\n\n".to_owned());
        self.frames
    }

    /// Returns the events so far as text, one frame each: a response that breaks off.
    pub fn frames(self) -> Vec<String> {
        self.frames
    }
}

/// The format, for tests that cover all of them.
#[derive(Clone, Copy, Debug)]
pub struct CompletionsServer;

impl Wire for CompletionsServer {
    fn api(&self) -> &'static str {
        "openai-completions"
    }

    fn frames(&self, answer: &Answer) -> Vec<Vec<u8>> {
        let mut response = CompletionsResponse::new("c1", "m").with_chunks(answer.pieces);
        for part in &answer.parts {
            response = match part {
                AnswerPart::Text(text) => response.text(text),
                AnswerPart::Thinking(text) => response.thinking("reasoning_content", text),
                AnswerPart::Call { id, name, arguments } => response.tool_call(id, name, arguments),
            };
        }
        response = match &answer.end {
            End::Stop => response.finish("stop"),
            End::Calls => response.finish("tool_calls"),
            End::Length => response.finish("length"),
            End::Word(word) => response.finish(word),
            End::Error(message) => {
                return super::bytes(response.chunk(json!({"error": {"message": message}})).frames());
            }
        };
        let Tokens { input, output, cached } = answer.tokens;
        let details = json!({"cached_tokens": cached});
        let usage =
            json!({"prompt_tokens": input + cached, "completion_tokens": output, "prompt_tokens_details": details});
        super::bytes(response.usage(&usage).done())
    }

    fn unknown_event(&self) -> Vec<u8> {
        b"event: surprise\ndata: {\"object\":\"surprise\",\"choices\":[]}\n\n".to_vec()
    }
}
