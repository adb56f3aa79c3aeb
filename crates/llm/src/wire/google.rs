//! Google's Generative Language format.

use http::{HeaderMap, StatusCode};

mod convert;

mod models;

pub(super) mod request;

pub(super) mod error;

pub(super) mod stream;

use super::{Call, Decoder, Encoding, HttpRequest, WireFormat};
use crate::error::LlmError;
use crate::ids::ApiId;

/// Google's Generative Language format.
#[derive(Clone, Copy, Debug, Default)]
pub struct Google;

impl WireFormat for Google {
    fn api(&self) -> &'static str {
        ApiId::GOOGLE_GENERATIVE_AI
    }

    fn encode(&self, call: &Call<'_>) -> Result<HttpRequest, LlmError> {
        request::encode(call)
    }

    fn decoder(&self, call: &Call<'_>) -> Box<dyn Decoder> {
        Box::new(stream::GoogleDecoder::new(call))
    }

    fn refusal(&self, call: &Call<'_>, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> LlmError {
        error::refusal(&call.request.model, status, headers, body)
    }

    fn reencode(&self, call: &Call<'_>, error: &LlmError) -> Option<Encoding> {
        request::reencode(call, error)
    }
}
