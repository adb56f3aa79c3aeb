//! Google's Generative Language format.

use http::{HeaderMap, StatusCode};

mod convert;

mod models;

pub(super) mod request;

pub(super) mod error;

pub(super) mod stream;

use super::{Decoder, Encoding, HttpRequest, WireCall, WireFormat};
use crate::error::LlmError;
use crate::ids::ApiId;

/// Google's Generative Language format.
#[derive(Clone, Copy, Debug, Default)]
pub struct Google;

impl WireFormat for Google {
    fn api(&self) -> &'static str {
        ApiId::GOOGLE_GENERATIVE_AI
    }

    fn encode(&self, call: &WireCall<'_>) -> Result<HttpRequest, LlmError> {
        request::encode(call)
    }

    fn decoder(&self, call: &WireCall<'_>) -> Box<dyn Decoder> {
        Box::new(stream::GoogleDecoder::new(call))
    }

    fn refusal(&self, call: &WireCall<'_>, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> LlmError {
        error::refusal(&call.request.model, status, headers, body)
    }

    fn reencode(&self, call: &WireCall<'_>, error: &LlmError) -> Option<Encoding> {
        request::reencode(call, error)
    }
}
