//! Responses in the formats of providers.
//!
//! Each module builds responses of one format chunk by chunk. [`Wire`] is the common interface: it converts a format-independent [`Answer`]
//! to the frames of a response, so that one test covers every format.

pub mod completions;
pub mod anthropic;
pub mod responses;
pub mod google;
pub mod mistral;
pub mod bedrock;

use serde_json::{Value, json};

/// A model's answer, independent of the format.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Its parts, in order.
    pub parts: Vec<AnswerPart>,
    /// How it ends.
    pub end: End,
    /// Its usage.
    pub tokens: Tokens,
    /// Number of deltas per part.
    pub pieces: usize,
}

/// One part of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerPart {
    /// Text.
    Text(String),
    /// Thinking, signed if the format supports it.
    Thinking(String),
    /// A tool call; the arguments are JSON text and may be invalid.
    Call {
        /// The call's id.
        id: String,
        /// The tool's name.
        name: String,
        /// JSON text.
        arguments: String,
    },
}

/// How an answer ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// It is complete.
    Stop,
    /// It waits for its calls.
    Calls,
    /// It reached its length limit.
    Length,
    /// It stopped for the named reason.
    Word(String),
    /// The server reports an error in the stream.
    Error(String),
}

/// Tokens of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tokens {
    /// Uncached input tokens.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// Cached input tokens.
    pub cached: u64,
}

impl Answer {
    /// Creates an answer of these parts that ends successfully, with 10 input and 5 output tokens, and three deltas per part.
    pub fn of(parts: impl IntoIterator<Item = AnswerPart>) -> Self {
        let parts: Vec<AnswerPart> = parts.into_iter().collect();
        let calls = parts.iter().any(|part| matches!(part, AnswerPart::Call { .. }));
        let tokens = Tokens { input: 10, output: 5, cached: 0 };
        Self { parts, end: if calls { End::Calls } else { End::Stop }, tokens, pieces: 3 }
    }

    /// Sets another end.
    #[must_use]
    pub fn ending(mut self, end: End) -> Self {
        self.end = end;
        self
    }
}

impl AnswerPart {
    /// Creates text.
    pub fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    /// Creates thinking.
    pub fn thinking(text: &str) -> Self {
        Self::Thinking(text.to_owned())
    }

    /// Creates a tool call.
    pub fn call(id: &str, name: &str, arguments: &str) -> Self {
        Self::Call { id: id.to_owned(), name: name.to_owned(), arguments: arguments.to_owned() }
    }
}

/// The server side of a wire format.
pub trait Wire: Sync {
    /// Returns the format's name.
    fn api(&self) -> &'static str;

    /// Returns the client side of the format: by default pinch-llm's format of this name. A custom format returns itself.
    #[cfg(feature = "llm")]
    fn format(&self) -> Option<Box<dyn pinch_llm::wire::WireFormat>> {
        pinch_llm::wire::builtin().into_iter().find(|format| format.api() == self.api())
    }

    /// Returns the frames of a response with this answer, in order.
    fn frames(&self, answer: &Answer) -> Vec<Vec<u8>>;

    /// Returns a frame that clients ignore: an event of an unknown type.
    fn unknown_event(&self) -> Vec<u8>;

    /// Returns a keep-alive, if the format has one.
    fn keep_alive(&self) -> Option<Vec<u8>> {
        Some(b": keep-alive\n\n".to_vec())
    }

    /// Returns the content type of responses.
    fn content_type(&self) -> &'static str {
        "text/event-stream"
    }

    /// Returns the body of an error response with this message.
    fn refusal(&self, message: &str) -> Value {
        json!({"error": {"message": message}})
    }

    /// Returns whether clients replace the message of an error response with this status.
    fn is_reworded(&self, status: u16) -> bool {
        let _ = status;
        false
    }

    /// Returns a valid key for the format.
    fn key(&self) -> String {
        "secret-key".to_owned()
    }

    /// Returns the format's base path on a server.
    fn base_path(&self) -> &'static str {
        ""
    }
}

/// How a text is split.
#[derive(Clone, Copy, Debug)]
enum TextPieces {
    /// Into at most this many chunks of about the same length.
    Many(usize),
    /// Into chunks of this many characters; the last one may be shorter.
    Of(usize),
}

impl From<usize> for TextPieces {
    fn from(n: usize) -> Self {
        Self::Many(n)
    }
}

/// Splits a text; returns one empty chunk for an empty text.
fn split(text: &str, pieces: impl Into<TextPieces>) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    if chars.is_empty() {
        return vec![String::new()];
    }
    let length = match pieces.into() {
        TextPieces::Many(n) => chars.len().div_ceil(n.max(1)),
        TextPieces::Of(length) => length.max(1),
    };
    chars.chunks(length).map(|piece| piece.iter().collect()).collect()
}

fn bytes(frames: Vec<String>) -> Vec<Vec<u8>> {
    frames.into_iter().map(String::into_bytes).collect()
}
