//! Wire formats: encoding of requests and decoding of responses, as pure functions. Nothing here opens a connection, waits or reads the
//! clock.
//!
//! A custom format implements [`WireFormat`] and [`Decoder`]; [`reply`], [`frame_json`], [`headers`], [`address`], [`limit`], [`refusal`]
//! and [`tool_output`] are the parts shared by the built-in formats.

use http::{HeaderMap, StatusCode};
use serde_json::Value;

pub mod frame_json;

pub mod reply;

pub mod limit;

pub mod strict;

mod structured;

pub(crate) mod effort;

pub(crate) mod sampling;

pub mod address;

pub mod headers;

pub mod refusal;

pub mod tool_output;

pub mod anthropic;

pub mod completions;

pub mod responses;

pub mod azure;

pub mod codex;

pub mod google;

pub mod mistral;

#[cfg(feature = "vertex")]
pub mod vertex;

#[cfg(feature = "cloud-code-assist")]
pub mod cloud_code;

#[cfg(feature = "bedrock")]
pub mod bedrock;

use crate::error::LlmError;
use crate::event::Emit;
use crate::frame::{Frame, Framing};
use crate::ids::ApiId;
use crate::request::Request;

/// One call: the input of an encoder.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct WireCall<'a> {
    /// The request.
    pub request: &'a Request,
    /// Time of the call, in Unix milliseconds.
    pub timestamp: i64,
    /// The encoding to use.
    pub encoding: Encoding,
}

impl<'a> WireCall<'a> {
    /// Creates a call in the usual encoding.
    pub fn new(request: &'a Request, timestamp: i64) -> Self {
        Self { request, timestamp, encoding: Encoding::Usual }
    }
}

/// Encodings of a request. A provider that rejects the first may accept another; see [`WireFormat::reencode`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Encoding {
    /// As required by the model's dialect.
    #[default]
    Usual,
    /// Without strict schemas for tools that merely prefer them.
    PlainTools,
    /// With a placeholder for missing signatures in calls of other models.
    MarkedCalls,
    /// With the model's minimum thinking, if none was requested.
    LeastThinking,
    /// At another address of the provider.
    OtherAddress,
}

/// An encoded request: always a POST of JSON.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HttpRequest {
    /// The URL.
    pub url: String,
    /// The headers.
    pub headers: HeaderMap,
    /// The body; serialized after observers have seen it.
    pub body: Value,
}

impl HttpRequest {
    /// Creates a request with a JSON body.
    pub fn new(url: String, headers: HeaderMap, body: Value) -> Self {
        Self { url, headers, body }
    }
}

/// A request about to be sent, for signing.
#[derive(Debug)]
pub struct Signing<'a> {
    /// The URL.
    pub url: &'a str,
    /// The headers, to which the signature is added.
    pub headers: &'a mut HeaderMap,
    /// The bytes of the body.
    pub body: &'a [u8],
}

/// A wire format: encodes requests and decodes their responses.
pub trait WireFormat: Send + Sync {
    /// Returns the format's name.
    fn api(&self) -> &'static str;

    /// Returns whether the format serves models of this API. A format between a client and its own server serves all of them.
    fn serves(&self, api: &ApiId) -> bool {
        *api == self.api()
    }

    /// Returns the framing of responses.
    fn framing(&self) -> Framing {
        Framing::Sse
    }

    /// Returns whether the request must use HTTP/1.1.
    fn needs_http1(&self, call: &WireCall<'_>) -> bool {
        let _ = call;
        false
    }

    /// Encodes a request.
    ///
    /// # Errors
    /// Returns an error if something required is missing: a key, a variable in the base URL.
    fn encode(&self, call: &WireCall<'_>) -> Result<HttpRequest, LlmError>;

    /// Signs a request with a final body, in formats with signatures.
    ///
    /// # Errors
    /// Returns an error if there are no keys.
    fn sign(&self, call: &WireCall<'_>, parts: Signing<'_>) -> Result<(), LlmError> {
        let _ = (call, parts);
        Ok(())
    }

    /// Creates a decoder for the response.
    fn decoder(&self, call: &WireCall<'_>) -> Box<dyn Decoder>;

    /// Returns the error for a response with a failing status.
    fn refusal(&self, call: &WireCall<'_>, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> LlmError;

    /// Returns another encoding in which a rejected request is immediately resent.
    fn reencode(&self, call: &WireCall<'_>, error: &LlmError) -> Option<Encoding> {
        let _ = (call, error);
        None
    }
}

/// Decodes a response. It never fails: failures are emitted as the end. After the end it emits nothing.
pub trait Decoder: Send {
    /// Decodes a frame.
    fn push(&mut self, frame: Frame<'_>, emit: &mut Emit) -> FrameKind;

    /// Ends the response; emits the end unless a frame has done so.
    fn finish(&mut self, emit: &mut Emit);

    /// Ends a response that was cut off or abandoned; emits the end with what has arrived.
    fn fail(&mut self, error: LlmError, emit: &mut Emit);
}

/// Whether a frame has content, which resets the idle timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// Part of the answer.
    Content,
    /// A keep-alive.
    KeepAlive,
}

impl FrameKind {
    /// Returns `Content` if `has_content` is set, else `KeepAlive`.
    pub fn content_if(has_content: bool) -> Self {
        if has_content { Self::Content } else { Self::KeepAlive }
    }
}

/// Returns the wire formats of this crate.
pub fn builtin() -> Vec<Box<dyn WireFormat>> {
    vec![
        Box::new(anthropic::Anthropic),
        Box::new(completions::Completions),
        Box::new(responses::Responses),
        Box::new(azure::Azure),
        Box::new(codex::Codex),
        Box::new(google::Google),
        Box::new(mistral::Mistral),
        #[cfg(feature = "vertex")]
        Box::new(vertex::Vertex),
        #[cfg(feature = "cloud-code-assist")]
        Box::new(cloud_code::CloudCode),
        #[cfg(feature = "bedrock")]
        Box::new(bedrock::Bedrock),
    ]
}
