//! Google's format on Google Cloud: other addresses and credentials, the same messages.

use http::{HeaderMap, StatusCode};
use serde_json::Value;

mod request;

pub(crate) use request::{key, place};

use super::google::{error, stream::GoogleDecoder};
use super::{Decoder, Encoding, HttpRequest, WireCall, WireFormat};
use crate::error::LlmError;
use crate::ids::ApiId;

/// Google's format on Google Cloud. Native options of a call: `project`, `location`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Vertex;

impl WireFormat for Vertex {
    fn api(&self) -> &'static str {
        ApiId::GOOGLE_VERTEX
    }

    fn encode(&self, call: &WireCall<'_>) -> Result<HttpRequest, LlmError> {
        request::encode(call)
    }

    fn decoder(&self, call: &WireCall<'_>) -> Box<dyn Decoder> {
        Box::new(GoogleDecoder::new(call))
    }

    fn refusal(&self, call: &WireCall<'_>, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> LlmError {
        let text = String::from_utf8_lossy(body);
        let json: Option<Value> = serde_json::from_str(text.trim()).ok();
        let said = json.as_ref().and_then(|json| error::member(json)["message"].as_str()).unwrap_or(text.trim());
        let said = if said.is_empty() { "status code (no body)" } else { said };
        error::refuse(&call.request.model, status, headers, json.as_ref(), format!("{} {said}", status.as_u16()))
    }

    fn reencode(&self, call: &WireCall<'_>, error: &LlmError) -> Option<Encoding> {
        super::google::request::reencode(call, error)
    }
}
