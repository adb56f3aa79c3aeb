//! Google's Cloud Code Assist: Google's messages in another envelope, paid for with a Google account.

use http::{HeaderMap, StatusCode};

mod request;

mod error;

mod stream;

use super::{Decoder, Encoding, HttpRequest, WireCall, WireFormat};
use crate::error::LlmError;
use crate::ids::ApiId;

/// Cloud Code Assist. The key of a request is the JSON text `{"token": …, "projectId": …}`, or only a token if the option `project` or the
/// environment names the project.
#[derive(Clone, Copy, Debug, Default)]
pub struct CloudCode;

impl WireFormat for CloudCode {
    fn api(&self) -> &'static str {
        ApiId::CLOUD_CODE_ASSIST
    }

    fn encode(&self, call: &WireCall<'_>) -> Result<HttpRequest, LlmError> {
        request::encode(call)
    }

    fn decoder(&self, call: &WireCall<'_>) -> Box<dyn Decoder> {
        Box::new(stream::CloudCodeDecoder::new(call))
    }

    fn refusal(&self, call: &WireCall<'_>, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> LlmError {
        error::refusal(&call.request.model, call.timestamp, status, headers, body)
    }

    fn reencode(&self, call: &WireCall<'_>, error: &LlmError) -> Option<Encoding> {
        request::reencode(call, error)
    }
}
