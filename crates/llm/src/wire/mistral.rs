//! Mistral's chat format: similar to OpenAI's, but with thinking inside the content, ids of nine letters and digits, and different member
//! names.

use http::{HeaderMap, StatusCode};

mod ids;

mod convert;

mod request;

mod error;

mod content;

mod stream;

use super::{Decoder, HttpRequest, WireCall, WireFormat};
use crate::error::LlmError;
use crate::ids::ApiId;

/// Mistral's chat format. Native options of a call: `promptMode`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mistral;

impl WireFormat for Mistral {
    fn api(&self) -> &'static str {
        ApiId::MISTRAL_CONVERSATIONS
    }

    fn encode(&self, call: &WireCall<'_>) -> Result<HttpRequest, LlmError> {
        request::encode(call)
    }

    fn decoder(&self, call: &WireCall<'_>) -> Box<dyn Decoder> {
        Box::new(stream::MistralDecoder::new(call))
    }

    fn refusal(&self, call: &WireCall<'_>, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> LlmError {
        error::refusal(&call.request.model, status, headers, body)
    }
}
