//! Responses in Mistral's chat format.

use serde_json::{Value, json};

use super::{Answer, AnswerPart, End, Tokens, Wire};

/// Builds a response delta by delta.
#[derive(Clone, Debug)]
pub struct MistralResponse {
    id: String,
    model: String,
    frames: Vec<String>,
    n_calls: usize,
    pieces: usize,
}

impl MistralResponse {
    /// Creates a response of a model. Its first delta has a role and no text, like Mistral's.
    pub fn new(id: &str, model: &str) -> Self {
        let response = Self { id: id.to_owned(), model: model.to_owned(), frames: Vec::new(), n_calls: 0, pieces: 1 };
        response.delta(&json!({"role": "assistant", "content": ""}))
    }

    /// Splits subsequent parts into `n` deltas each.
    #[must_use]
    pub fn with_chunks(mut self, n: usize) -> Self {
        self.pieces = n.max(1);
        self
    }

    /// Adds text.
    #[must_use]
    pub fn text(self, text: &str) -> Self {
        let parts = super::split(text, self.pieces);
        parts.into_iter().fold(self, |this, part| this.delta(&json!({"content": part})))
    }

    /// Adds thinking.
    #[must_use]
    pub fn thinking(self, text: &str) -> Self {
        let parts = super::split(text, self.pieces);
        parts.into_iter().fold(self, |this, part| {
            let thought = json!({"type": "thinking", "thinking": [{"type": "text", "text": part}]});
            this.delta(&json!({"content": [thought]}))
        })
    }

    /// Adds a tool call; the arguments are JSON text and may be invalid. Only the first chunk has the id.
    #[must_use]
    pub fn tool_call(mut self, id: &str, name: &str, arguments: &str) -> Self {
        let index = self.n_calls;
        self.n_calls += 1;
        for (at, part) in super::split(arguments, self.pieces).into_iter().enumerate() {
            let call = if at == 0 {
                json!({"index": index, "id": id, "function": {"name": name, "arguments": part}})
            } else {
                json!({"index": index, "id": "null", "function": {"name": "", "arguments": part}})
            };
            self = self.delta(&json!({"tool_calls": [call]}));
        }
        self
    }

    /// Adds any delta of the first choice.
    #[must_use]
    pub fn delta(self, delta: &Value) -> Self {
        self.chunk(json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]}))
    }

    /// Adds the usage.
    #[must_use]
    pub fn usage(self, usage: &Value) -> Self {
        self.chunk(json!({"choices": [], "usage": usage}))
    }

    /// Adds the finish reason.
    #[must_use]
    pub fn finish(self, reason: &str) -> Self {
        self.chunk(json!({"choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": reason}]}))
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

    /// Ends the response with a finish reason; returns the events as text, one frame each.
    pub fn stop(self, reason: &str) -> Vec<String> {
        self.finish(reason).done()
    }

    /// Adds the end marker; returns the events as text, one frame each.
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
pub struct MistralServer;

impl Wire for MistralServer {
    fn api(&self) -> &'static str {
        "mistral-conversations"
    }

    fn frames(&self, answer: &Answer) -> Vec<Vec<u8>> {
        let mut response = MistralResponse::new("m1", "m").with_chunks(answer.pieces);
        for part in &answer.parts {
            response = match part {
                AnswerPart::Text(text) => response.text(text),
                AnswerPart::Thinking(text) => response.thinking(text),
                AnswerPart::Call { id, name, arguments } => response.tool_call(id, name, arguments),
            };
        }
        let Tokens { input, output, cached } = answer.tokens;
        let usage = json!({"prompt_tokens": input + cached, "completion_tokens": output,
            "total_tokens": input + cached + output, "prompt_tokens_details": {"cached_tokens": cached}});
        super::bytes(match &answer.end {
            End::Stop => response.usage(&usage).stop("stop"),
            End::Calls => response.usage(&usage).stop("tool_calls"),
            End::Length => response.usage(&usage).stop("length"),
            End::Word(word) => response.usage(&usage).stop(word),
            End::Error(message) => {
                let mut frames = response.frames();
                frames.push(format!("data: {}\n\n", json!({"object": "error", "message": message})));
                frames
            }
        })
    }

    fn unknown_event(&self) -> Vec<u8> {
        b"event: surprise\ndata: {\"object\":\"surprise\",\"choices\":[]}\n\n".to_vec()
    }

    fn refusal(&self, message: &str) -> Value {
        json!({"object": "error", "message": message})
    }
}
