//! Amazon Bedrock's Converse format.

use http::{HeaderMap, StatusCode};

mod models;

pub(crate) mod endpoint;

mod convert;

mod request;

pub(crate) mod sign;

mod error;

mod stream;

use super::{Decoder, Encoding, HttpRequest, Signing, WireCall, WireFormat, anthropic};
use crate::error::LlmError;
use crate::frame::Framing;
use crate::ids::ApiId;

/// Amazon Bedrock's Converse format.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bedrock;

impl WireFormat for Bedrock {
    fn api(&self) -> &'static str {
        ApiId::BEDROCK_CONVERSE_STREAM
    }

    fn framing(&self) -> Framing {
        Framing::AwsEvents
    }

    /// Some gateways in front of Bedrock break streams over HTTP/2, which `AWS_BEDROCK_FORCE_HTTP1=1` avoids.
    fn needs_http1(&self, call: &WireCall<'_>) -> bool {
        call.request.host.env().get("AWS_BEDROCK_FORCE_HTTP1") == Some("1")
    }

    fn encode(&self, call: &WireCall<'_>) -> Result<HttpRequest, LlmError> {
        request::encode(call)
    }

    fn sign(&self, call: &WireCall<'_>, parts: Signing<'_>) -> Result<(), LlmError> {
        sign::authorise(call, parts)
    }

    fn decoder(&self, call: &WireCall<'_>) -> Box<dyn Decoder> {
        Box::new(stream::BedrockDecoder::new(call))
    }

    fn refusal(&self, call: &WireCall<'_>, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> LlmError {
        error::refusal(&call.request.model, status, headers, body)
    }

    fn reencode(&self, call: &WireCall<'_>, error: &LlmError) -> Option<Encoding> {
        (anthropic::is_strict_limit(error) && request::can_relax(call)).then_some(Encoding::PlainTools)
    }
}
