//! A provider that calls your own server, and the server's side of the protocol.
//!
//! A program without keys (such as a desktop application) sends its requests to its vendor's server, which calls the real provider and
//! forwards the events. [`ProxyProvider`] is the client. On the server, [`ProxyCall`] parses the request, and [`lines`] writes the events
//! of the provider that answers it. End to end, the client receives the same events as the server.
//!
//! The protocol is pi's: `POST {url}/api/stream` with a bearer token and the body `{model, context, options}`; in the response, lines that
//! begin with `data: ` hold one event each. Our events have additional members, which pi ignores, for everything that cannot be rebuilt
//! from pi's events. Servers and clients of pi are supported, too. These options are transmitted: `temperature`, `maxTokens`, `reasoning`,
//! `cacheRetention`, `sessionId`, `headers`, `metadata`, `transport`, `thinkingBudgets`, `maxRetryDelayMs`. Credentials of a request are
//! never transmitted, which includes the headers of its model and passwords in URLs; its timeouts and observers stay with the client. The
//! client retries nothing: that is up to the server.
//!
//! **For servers:** a client may name any model and any URL. Take the model and its key from your own table ([`ProxyCall::into_request`]
//! requires both) and check `options.headers` before you send them.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use std::sync::Arc;
//! use futures::StreamExt;
//! use pinch_agent_core::proxy::{ProxyCall, lines};
//! use pinch_llm::model::Model;
//! use pinch_llm::provider::{Provider, scripted::{ScriptedReply, ScriptedProvider}};
//! use pinch_llm::request::Auth;
//! use pinch_stdx::{cancel::Cancel, host::Host};
//!
//! // The server's handler for `POST /api/stream`, once the client is authenticated:
//! async fn handle(body: &[u8], provider: &dyn Provider, ours: Arc<Model>) -> Result<Vec<String>, Box<dyn std::error::Error>> {
//!     let request = ProxyCall::read(body)?.into_request(ours, Auth::keyless(), Host::system());
//!     let lines = lines(provider.stream(request, Cancel::new()));
//!     Ok(lines.collect().await) // a real server writes each line as it arrives
//! }
//!
//! let model = serde_json::json!({"id": "m", "api": "scripted", "provider": "p"});
//! let body = serde_json::json!({"model": model, "context": {"messages": [{"role": "user", "content": "hi", "timestamp": 1}]}});
//! let provider = ScriptedProvider::new([ScriptedReply::text("hello")]);
//! let ours = Arc::new(Model::from_record(&model).unwrap());
//! let written = handle(body.to_string().as_bytes(), &provider, ours).await.unwrap();
//! assert!(written[0].starts_with("data: {\"type\":\"start\""));
//! assert!(written.last().unwrap().starts_with("data: {\"type\":\"done\",\"reason\":\"stop\""));
//! # });
//! ```

mod failure;

mod body;

mod writer;

mod reader;

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, StatusCode, header};
use pinch_llm::error::{LlmError, LlmErrorKind};
use pinch_llm::event::EventStream;
use pinch_llm::frame::Framing;
use pinch_llm::http::HttpClient;
use pinch_llm::ids::ApiId;
use pinch_llm::provider::Provider;
use pinch_llm::provider::http::HttpProvider;
use pinch_llm::request::Request;
use pinch_llm::wire::{Decoder, HttpRequest, WireCall, WireFormat};
use pinch_stdx::cancel::Cancel;
use pinch_stdx::secret::Secret;
use serde_json::Value;

pub use body::{ProxyBodyError, ProxyCall, body};
pub use reader::read;
pub use writer::{LineWriter, lines};

/// Calls your own server for any model that a request names.
///
/// Cancelling ends the answer as aborted, with the part that had arrived; dropping the stream closes the connection. An answer's
/// `duration_ms` is measured by this client.
#[derive(Clone, Debug)]
pub struct ProxyProvider(HttpProvider);

impl ProxyProvider {
    /// Creates a client for the server at `url` (`/api/stream` is appended), authenticated with a token.
    pub fn new(url: &str, token: impl Into<Secret>) -> Self {
        Self::with_client(url, token, Arc::new(HttpClient::new()))
    }

    /// Creates a client that uses a shared HTTP client.
    pub fn with_client(url: &str, token: impl Into<Secret>, client: Arc<HttpClient>) -> Self {
        let url = format!("{}/api/stream", url.trim_end_matches('/'));
        Self(HttpProvider::new(Box::new(ProxyFormat { url, token: token.into() }), client))
    }
}

impl Provider for ProxyProvider {
    fn stream(&self, request: Request, cancel: Cancel) -> EventStream {
        self.0.stream(request, cancel)
    }
}

/// The wire format between the client and its server.
#[derive(Clone, Debug)]
struct ProxyFormat {
    url: String,
    token: Secret,
}

impl WireFormat for ProxyFormat {
    fn api(&self) -> &'static str {
        "proxy"
    }

    fn serves(&self, _: &ApiId) -> bool {
        true
    }

    fn framing(&self) -> Framing {
        Framing::DataLines
    }

    fn encode(&self, call: &WireCall<'_>) -> Result<HttpRequest, LlmError> {
        let mut token = HeaderValue::try_from(format!("Bearer {}", self.token.reveal())).map_err(|_| {
            let text = "Proxy error: the token is not a valid header value";
            LlmError::new(call.request.model.provider.clone(), LlmErrorKind::Auth, text)
        })?;
        token.set_sensitive(true);
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, token);
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(HttpRequest::new(self.url.clone(), headers, body(call.request)))
    }

    fn decoder(&self, call: &WireCall<'_>) -> Box<dyn Decoder> {
        Box::new(reader::LineReader::new(call))
    }

    fn refusal(&self, call: &WireCall<'_>, status: StatusCode, _: &HeaderMap, body: &[u8]) -> LlmError {
        let json: Value = serde_json::from_slice(body).unwrap_or_default();
        let said = json["error"].as_str().or_else(|| json["error"]["message"].as_str()).filter(|said| !said.is_empty());
        let text = match said {
            Some(said) => format!("Proxy error: {said}"),
            None => format!("Proxy error: {} {}", status.as_u16(), status.canonical_reason().unwrap_or("")),
        };
        LlmError::refused(call.request.model.provider.clone(), Some(status), None, text.trim_end())
    }
}

#[cfg(test)]
mod tests;
