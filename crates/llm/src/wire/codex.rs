//! OpenAI's Responses format for ChatGPT subscriptions.

use http::{HeaderMap, StatusCode};

mod account;

pub(crate) mod request;

pub(crate) mod error;

pub(crate) use account::{ACCOUNT_HEADER, account_in};

use super::responses::models;
use super::responses::stream::ResponsesDecoder;
use super::{Decoder, HttpRequest, WireCall, WireFormat};
use crate::error::LlmError;
use crate::ids::ApiId;

/// OpenAI's Responses format for ChatGPT subscriptions, over server-sent events. Native options of a call: `serviceTier`, `textVerbosity`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Codex;

impl WireFormat for Codex {
    fn api(&self) -> &'static str {
        ApiId::CODEX_RESPONSES
    }

    fn encode(&self, call: &WireCall<'_>) -> Result<HttpRequest, LlmError> {
        request::encode(call)
    }

    fn decoder(&self, call: &WireCall<'_>) -> Box<dyn Decoder> {
        decoder(call, "Invalid Codex SSE JSON")
    }

    fn refusal(&self, call: &WireCall<'_>, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> LlmError {
        error::refusal(&call.request.model, status, headers, body, call.timestamp)
    }
}

/// Creates a decoder with an error text for unreadable frames.
pub(crate) fn decoder(call: &WireCall<'_>, bad_json: &'static str) -> Box<dyn Decoder> {
    let tier = models::service_tier(call.request).map(str::to_owned);
    Box::new(ResponsesDecoder::new(call, error::CodexErrors { tier, now: call.timestamp, bad_json }))
}
