//! OpenAI's Responses format on Azure.

use http::{HeaderMap, StatusCode};

mod request;

mod error;

use super::responses::error as shared_error;
use super::responses::stream::ResponsesDecoder;
use super::{Decoder, HttpRequest, WireCall, WireFormat};
use crate::error::LlmError;
use crate::ids::ApiId;

/// OpenAI's Responses format on Azure. Native options of a call: `azureApiVersion`, `azureBaseUrl`, `azureResourceName`,
/// `azureDeploymentName`; each also has an environment variable.
#[derive(Clone, Copy, Debug, Default)]
pub struct Azure;

impl WireFormat for Azure {
    fn api(&self) -> &'static str {
        ApiId::AZURE_RESPONSES
    }

    fn encode(&self, call: &WireCall<'_>) -> Result<HttpRequest, LlmError> {
        request::encode(call)
    }

    fn decoder(&self, call: &WireCall<'_>) -> Box<dyn Decoder> {
        Box::new(ResponsesDecoder::new(call, error::AzureErrors))
    }

    fn refusal(&self, call: &WireCall<'_>, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> LlmError {
        shared_error::refusal("Azure OpenAI API error", &call.request.model, status, headers, body)
    }
}
