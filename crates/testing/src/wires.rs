//! The text of responses in the formats of providers.
//!
//! Each module builds responses of one format piece by piece. [`Wire`] is what they have in common: an [`Answer`] in no format goes in, the
//! frames of a response come out, so that one test can speak every format.

pub mod completions;
pub mod anthropic;
pub mod responses;
pub mod google;
pub mod mistral;
pub mod bedrock;

use serde_json::{Value, json};

/// An answer of a model, in no format yet.
#[derive(Clone, Debug)]
pub struct Answer {
    /// What it says, in order.
    pub parts: Vec<AnswerPart>,
    /// How it ends.
    pub end: End,
    /// What it cost.
    pub tokens: Tokens,
    /// Deltas a part is split into.
    pub pieces: usize,
}

/// One part of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerPart {
    /// Text.
    Text(String),
    /// Thinking, signed where the format signs it.
    Thinking(String),
    /// A tool call; the arguments are JSON text and may be broken.
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
    /// It is finished.
    Stop,
    /// It wants its calls run.
    Calls,
    /// It reached the limit of its length.
    Length,
    /// It stopped for a reason of this name.
    Word(String),
    /// The server reports an error in the stream.
    Error(String),
}

/// What an answer cost, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tokens {
    /// Of the request, without what was read from a cache.
    pub input: u64,
    /// Of the answer.
    pub output: u64,
    /// Of the request, read from a cache.
    pub cached: u64,
}

impl Answer {
    /// An answer of these parts that ends well, 10 tokens of request and 5 of answer, each part in three deltas.
    pub fn of(parts: impl IntoIterator<Item = AnswerPart>) -> Self {
        let parts: Vec<AnswerPart> = parts.into_iter().collect();
        let calls = parts.iter().any(|part| matches!(part, AnswerPart::Call { .. }));
        let tokens = Tokens { input: 10, output: 5, cached: 0 };
        Self { parts, end: if calls { End::Calls } else { End::Stop }, tokens, pieces: 3 }
    }

    /// The same answer with another end.
    #[must_use]
    pub fn ending(mut self, end: End) -> Self {
        self.end = end;
        self
    }
}

impl AnswerPart {
    /// Text.
    pub fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    /// Thinking.
    pub fn thinking(text: &str) -> Self {
        Self::Thinking(text.to_owned())
    }

    /// A tool call.
    pub fn call(id: &str, name: &str, arguments: &str) -> Self {
        Self::Call { id: id.to_owned(), name: name.to_owned(), arguments: arguments.to_owned() }
    }
}

/// The server side of a wire format.
pub trait Wire: Sync {
    /// The format's name.
    fn api(&self) -> &'static str;

    /// The format as a client speaks it: that of pinch-llm with this name. A format of your own returns itself.
    #[cfg(feature = "llm")]
    fn format(&self) -> Option<Box<dyn pinch_llm::wire::WireFormat>> {
        pinch_llm::wire::builtin().into_iter().find(|format| format.api() == self.api())
    }

    /// The frames of a response with this answer, in order.
    fn frames(&self, answer: &Answer) -> Vec<Vec<u8>>;

    /// A frame that clients ignore: an event of an unknown type.
    fn unknown_event(&self) -> Vec<u8>;

    /// A keep-alive, where the format has one.
    fn keep_alive(&self) -> Option<Vec<u8>> {
        Some(b": keep-alive\n\n".to_vec())
    }

    /// The content type of responses.
    fn content_type(&self) -> &'static str {
        "text/event-stream"
    }

    /// The body of a refusal with this message.
    fn refusal(&self, message: &str) -> Value {
        json!({"error": {"message": message}})
    }

    /// Whether clients replace the message of a refusal with this status.
    fn is_reworded(&self, status: u16) -> bool {
        let _ = status;
        false
    }

    /// A key in the form that the format needs.
    fn key(&self) -> String {
        "secret-key".to_owned()
    }

    /// Path under which the format lies on a server.
    fn base_path(&self) -> &'static str {
        ""
    }
}

/// How a text is cut into pieces.
#[derive(Clone, Copy, Debug)]
enum TextPieces {
    /// At most so many, of about the same length.
    Many(usize),
    /// Of so many characters each; the last one may be shorter.
    Of(usize),
}

impl From<usize> for TextPieces {
    fn from(n: usize) -> Self {
        Self::Many(n)
    }
}

/// A text in pieces; one empty piece for an empty text.
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
