//! OpenAI's Responses format, and the parts shared with its two variants.

use http::{HeaderMap, StatusCode};

pub(super) mod grammar;

pub(super) mod convert;

pub(super) mod models;

pub(super) mod request;

pub(super) mod error;

mod events;

pub(super) mod stream;

use super::{Decoder, HttpRequest, WireCall, WireFormat};
use crate::error::LlmError;
use crate::ids::ApiId;

/// OpenAI's Responses format.
#[derive(Clone, Copy, Debug, Default)]
pub struct Responses;

impl WireFormat for Responses {
    fn api(&self) -> &'static str {
        ApiId::OPENAI_RESPONSES
    }

    fn encode(&self, call: &WireCall<'_>) -> Result<HttpRequest, LlmError> {
        request::encode(call)
    }

    fn decoder(&self, call: &WireCall<'_>) -> Box<dyn Decoder> {
        let tier = models::service_tier(call.request).map(str::to_owned);
        Box::new(stream::ResponsesDecoder::new(call, error::OpenAi { tier }))
    }

    fn refusal(&self, call: &WireCall<'_>, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> LlmError {
        let model = &call.request.model;
        // Many providers use this format, so an error names its origin.
        let whose = if model.provider == *"openai" { "OpenAI" } else { model.provider.as_str() };
        error::refusal(&format!("{whose} API error"), model, status, headers, body)
    }
}
