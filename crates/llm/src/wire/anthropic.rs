//! Anthropic's Messages format.

use http::{HeaderMap, StatusCode};

mod names;

mod scrub;

mod convert;

mod system;

mod models;

mod request;

mod error;

mod stream;

#[cfg(feature = "bedrock")]
pub(super) use error::is_strict_limit;
#[cfg(feature = "bedrock")]
pub(super) use models::effort_word;

use super::{Decoder, Encoding, HttpRequest, WireCall, WireFormat};
use crate::error::LlmError;
use crate::ids::ApiId;

/// Anthropic's Messages format.
#[derive(Clone, Copy, Debug, Default)]
pub struct Anthropic;

impl WireFormat for Anthropic {
    fn api(&self) -> &'static str {
        ApiId::ANTHROPIC_MESSAGES
    }

    fn encode(&self, call: &WireCall<'_>) -> Result<HttpRequest, LlmError> {
        request::encode(call)
    }

    fn decoder(&self, call: &WireCall<'_>) -> Box<dyn Decoder> {
        Box::new(stream::AnthropicDecoder::new(call))
    }

    fn refusal(&self, call: &WireCall<'_>, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> LlmError {
        error::refusal(&call.request.model, status, headers, body)
    }

    fn reencode(&self, call: &WireCall<'_>, error: &LlmError) -> Option<Encoding> {
        (error::is_strict_limit(error) && request::can_relax(call)).then_some(Encoding::PlainTools)
    }
}
