//! Responses in Google's formats: the Generative Language API and Google Cloud.

use serde_json::{Value, json};

use super::{Answer, AnswerPart, End, Tokens, Wire};

/// Builds a response part by part.
#[derive(Clone, Debug)]
pub struct GoogleResponse {
    id: String,
    model: String,
    frames: Vec<String>,
    pieces: usize,
}

impl GoogleResponse {
    /// Creates a response of a model.
    pub fn new(id: &str, model: &str) -> Self {
        Self { id: id.to_owned(), model: model.to_owned(), frames: Vec::new(), pieces: 1 }
    }

    /// Splits subsequent texts into `n` chunks each. Calls are never split.
    #[must_use]
    pub fn with_chunks(mut self, n: usize) -> Self {
        self.pieces = n.max(1);
        self
    }

    /// Adds text.
    #[must_use]
    pub fn text(self, text: &str) -> Self {
        let parts = super::split(text, self.pieces);
        parts.into_iter().fold(self, |this, part| this.part(&json!({"text": part})))
    }

    /// Adds thinking; the last chunk is signed, unless the signature is empty.
    #[must_use]
    pub fn thinking(self, text: &str, signature: &str) -> Self {
        let parts = super::split(text, self.pieces);
        let last = parts.len() - 1;
        parts.into_iter().enumerate().fold(self, |this, (at, part)| {
            let mut part = json!({"text": part, "thought": true});
            if at == last && !signature.is_empty() {
                part["thoughtSignature"] = signature.into();
            }
            this.part(&part)
        })
    }

    /// Adds a tool call, without an id if that is empty.
    #[must_use]
    pub fn tool_call(self, id: &str, name: &str, arguments: &Value) -> Self {
        let mut call = json!({"name": name, "args": arguments});
        if !id.is_empty() {
            call["id"] = id.into();
        }
        self.part(&json!({"functionCall": call}))
    }

    /// Adds any part of the first candidate.
    #[must_use]
    pub fn part(self, part: &Value) -> Self {
        self.chunk(json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}}]}))
    }

    /// Adds the finish reason.
    #[must_use]
    pub fn finish(self, reason: &str) -> Self {
        self.chunk(json!({"candidates": [{"index": 0, "finishReason": reason}]}))
    }

    /// Adds the usage.
    #[must_use]
    pub fn usage(self, usage: &Value) -> Self {
        self.chunk(json!({"usageMetadata": usage}))
    }

    /// Adds any chunk, with id and model.
    #[must_use]
    pub fn chunk(mut self, mut chunk: Value) -> Self {
        chunk["responseId"] = self.id.as_str().into();
        chunk["modelVersion"] = self.model.as_str().into();
        self.frames.push(format!("data: {chunk}\n\n"));
        self
    }

    /// Ends the response with a finish reason; returns the events as text, one frame each. No frame marks the end.
    pub fn stop(self, reason: &str) -> Vec<String> {
        self.finish(reason).frames()
    }

    /// Returns the events so far as text, one frame each: a response that breaks off.
    pub fn frames(self) -> Vec<String> {
        self.frames
    }
}

/// The formats, for tests that cover all of them.
#[derive(Clone, Copy, Debug)]
pub enum GoogleServer {
    /// The Generative Language API.
    Generative,
    /// Google Cloud.
    Vertex,
    /// Cloud Code Assist: the same chunks, each in an envelope.
    CodeAssist,
}

impl GoogleServer {
    fn wrapped(self, frames: Vec<String>) -> Vec<String> {
        let wrap = |frame: String| match frame.trim_end().strip_prefix("data: ") {
            Some(chunk) => format!("data: {{\"response\":{chunk},\"traceId\":\"t\"}}\n\n"),
            None => frame,
        };
        if matches!(self, Self::CodeAssist) { frames.into_iter().map(wrap).collect() } else { frames }
    }
}

impl Wire for GoogleServer {
    fn api(&self) -> &'static str {
        match self {
            Self::Generative => "google-generative-ai",
            Self::Vertex => "google-vertex",
            Self::CodeAssist => "google-gemini-cli",
        }
    }

    fn frames(&self, answer: &Answer) -> Vec<Vec<u8>> {
        let mut response = GoogleResponse::new("r1", "m").with_chunks(answer.pieces);
        for part in &answer.parts {
            response = match part {
                AnswerPart::Text(text) => response.text(text),
                AnswerPart::Thinking(text) => response.thinking(text, "c2ln"),
                AnswerPart::Call { id, name, arguments } => {
                    // Calls are JSON objects. Gateways pass on anything else as text.
                    let object = serde_json::from_str(arguments).ok().filter(Value::is_object);
                    response.tool_call(id, name, &object.unwrap_or_else(|| json!(arguments)))
                }
            };
        }
        let Tokens { input, output, cached } = answer.tokens;
        let usage = json!({"promptTokenCount": input + cached, "candidatesTokenCount": output,
            "cachedContentTokenCount": cached, "totalTokenCount": input + cached + output});
        let frames = match &answer.end {
            End::Stop | End::Calls => response.usage(&usage).stop("STOP"),
            End::Length => response.usage(&usage).stop("MAX_TOKENS"),
            End::Word(word) => response.usage(&usage).stop(word),
            End::Error(message) => {
                let error = json!({"error": {"code": 500, "status": "INTERNAL", "message": message}});
                response.chunk(error).frames()
            }
        };
        super::bytes(self.wrapped(frames))
    }

    fn unknown_event(&self) -> Vec<u8> {
        b"event: surprise\ndata: {\"surprise\":{}}\n\n".to_vec()
    }

    fn refusal(&self, message: &str) -> Value {
        json!({"error": {"message": message, "status": "SOMETHING"}})
    }

    fn base_path(&self) -> &'static str {
        "/v1beta"
    }
}
