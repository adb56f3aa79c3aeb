//! Wire formats: how requests are written and responses are read, as pure functions. Nothing here opens a connection, waits or reads the
//! clock.
//!
//! A format of your own implements [`WireFormat`] and [`Decoder`]; [`reply`], [`frame_json`], [`headers`], [`address`], [`limit`],
//! [`refusal`] and [`tool_output`] are the parts that the built-in formats share.

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

/// One call: everything an encoder may look at.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct WireCall<'a> {
    /// The request.
    pub request: &'a Request,
    /// When the call was made, Unix milliseconds.
    pub timestamp: i64,
    /// The requested form of the request.
    pub encoding: Encoding,
}

impl<'a> WireCall<'a> {
    /// A call in the usual encoding.
    pub fn new(request: &'a Request, timestamp: i64) -> Self {
        Self { request, timestamp, encoding: Encoding::Usual }
    }
}

/// Forms of one request. A provider that refuses the first may accept another; see [`WireFormat::reencode`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Encoding {
    /// As the model's dialect demands.
    #[default]
    Usual,
    /// Without strict schemas for the tools that merely prefer them.
    PlainTools,
    /// With a mark in place of the signatures that calls of other models lack.
    MarkedCalls,
    /// With the least thinking the model knows, where none was requested.
    LeastThinking,
    /// The same at another address of the provider.
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
    /// The body; serialised after observers have seen it.
    pub body: Value,
}

impl HttpRequest {
    /// A request with a JSON body.
    pub fn new(url: String, headers: HeaderMap, body: Value) -> Self {
        Self { url, headers, body }
    }
}

/// A request about to be sent, for its signature.
#[derive(Debug)]
pub struct Signing<'a> {
    /// The URL.
    pub url: &'a str,
    /// The headers, to which the signature's are added.
    pub headers: &'a mut HeaderMap,
    /// The bytes of the body.
    pub body: &'a [u8],
}

/// A wire format: how a request is written and how its response is read.
pub trait WireFormat: Send + Sync {
    /// Its name.
    fn api(&self) -> &'static str;

    /// Whether it serves models of this format. A format between a client and its own server serves all.
    fn serves(&self, api: &ApiId) -> bool {
        *api == self.api()
    }

    /// How the response is divided into frames.
    fn framing(&self) -> Framing {
        Framing::Sse
    }

    /// Whether the request must use HTTP/1.1.
    fn needs_http1(&self, call: &WireCall<'_>) -> bool {
        let _ = call;
        false
    }

    /// Writes a request.
    ///
    /// # Errors
    /// When something needed is missing: a key, a variable of the base URL.
    fn encode(&self, call: &WireCall<'_>) -> Result<HttpRequest, LlmError>;

    /// Signs a request whose body is final, in formats that do.
    ///
    /// # Errors
    /// When there is nothing to sign with.
    fn sign(&self, call: &WireCall<'_>, parts: Signing<'_>) -> Result<(), LlmError> {
        let _ = (call, parts);
        Ok(())
    }

    /// A decoder of the response.
    fn decoder(&self, call: &WireCall<'_>) -> Box<dyn Decoder>;

    /// The error for a response with a failing status.
    fn refusal(&self, call: &WireCall<'_>, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> LlmError;

    /// Another form in which a refused request is sent once more, immediately.
    fn reencode(&self, call: &WireCall<'_>, error: &LlmError) -> Option<Encoding> {
        let _ = (call, error);
        None
    }
}

/// Reads one response. It never fails: failures are the end that it emits. After the end it emits nothing.
pub trait Decoder: Send {
    /// Reads a frame.
    fn push(&mut self, frame: Frame<'_>, emit: &mut Emit) -> FrameKind;

    /// The response has ended; emits the end unless a frame has.
    fn finish(&mut self, emit: &mut Emit);

    /// The response was cut off or abandoned; emits the end with what was collected.
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
    /// Content if `has_content`, else a keep-alive.
    pub fn content_if(has_content: bool) -> Self {
        if has_content { Self::Content } else { Self::KeepAlive }
    }
}

/// The wire formats of this crate.
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
