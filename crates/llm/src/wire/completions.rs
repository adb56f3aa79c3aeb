//! OpenAI's Chat Completions format and its many variants.

use http::{HeaderMap, StatusCode};

mod convert;

mod models;

mod request;

mod error;

pub(super) mod stream;

use super::{Decoder, HttpRequest, WireCall, WireFormat};
use crate::error::LlmError;
use crate::ids::ApiId;

/// OpenAI's Chat Completions format.
#[derive(Clone, Copy, Debug, Default)]
pub struct Completions;

impl WireFormat for Completions {
    fn api(&self) -> &'static str {
        ApiId::OPENAI_COMPLETIONS
    }

    fn encode(&self, call: &WireCall<'_>) -> Result<HttpRequest, LlmError> {
        request::encode(call)
    }

    fn decoder(&self, call: &WireCall<'_>) -> Box<dyn Decoder> {
        Box::new(stream::CompletionsDecoder::new(call))
    }

    fn refusal(&self, call: &WireCall<'_>, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> LlmError {
        error::refusal(&call.request.model, status, headers, body)
    }
}
