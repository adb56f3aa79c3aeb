//! OpenAI's Chat Completions format, and what its many imitations make of it.

use http::{HeaderMap, StatusCode};

mod convert;
mod error;
mod models;
mod request;
mod stream;

use super::{Call, Decoder, HttpRequest, WireFormat};
use crate::error::LlmError;
use crate::ids::ApiId;
use crate::model::Model;

/// OpenAI's Chat Completions format.
#[derive(Clone, Copy, Debug, Default)]
pub struct Completions;

impl WireFormat for Completions {
    fn api(&self) -> &'static str {
        ApiId::OPENAI_COMPLETIONS
    }

    fn encode(&self, call: &Call<'_>) -> Result<HttpRequest, LlmError> {
        request::encode(call)
    }

    fn decoder(&self, call: &Call<'_>) -> Box<dyn Decoder> {
        Box::new(stream::CompletionsDecoder::new(call))
    }

    fn refusal(&self, model: &Model, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> LlmError {
        error::refusal(model, status, headers, body)
    }
}

/// Members in which servers put reasoning, in the order in which they are looked at. Only these are ever written back: the name comes from a
/// session file, and a file that says `role` must not be able to set it.
const REASONING_MEMBERS: [&str; 3] = ["reasoning_content", "reasoning", "reasoning_text"];
