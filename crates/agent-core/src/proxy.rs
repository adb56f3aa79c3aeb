//! A provider that asks one's own server, and what such a server needs.
//!
//! A program that holds no keys (a desktop application, say) sends its requests to a server of its vendor, which calls the real
//! provider and forwards the events. [`ProxyProvider`] is the client. On the server, [`ProxyCall`] reads the request, and [`lines`] writes the events
//! of whatever provider answers it. Put together, the client's events are those of the server's provider.
//!
//! The exchange is pi's: `POST {url}/api/stream` with a bearer token and the body `{model, context, options}`; the answer is lines, and those
//! that begin with `data: ` hold one event each. Ours say more than pi's, in members that pi passes over: what the events of pi cannot rebuild.
//! Servers and clients of pi are understood, too. Of the options these travel: `temperature`, `maxTokens`, `reasoning`, `cacheRetention`,
//! `sessionId`, `headers`, `metadata`, `transport`, `thinkingBudgets`, `maxRetryDelayMs`. The credentials of a request never do, which include
//! the headers of its model and passwords in URLs; its timeouts and observers stay with the client. Nothing is repeated: the server decides
//! about that on its side.
//!
//! **For servers:** a client may name any model and any URL. Take the model and its key from your own table ([`ProxyCall::into_request`] wants both)
//! and check `options.headers` before they are sent.
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
//! // The server's handler of `POST /api/stream`, once it knows who asks:
//! async fn handle(body: &[u8], provider: &dyn Provider, ours: Arc<Model>) -> Result<Vec<String>, Box<dyn std::error::Error>> {
//!     let request = ProxyCall::read(body)?.into_request(ours, Auth::keyless(), Host::system());
//!     let lines = lines(provider.stream(request, Cancel::new()));
//!     Ok(lines.collect().await) // a real one writes each line as it comes
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

pub use body::{ProxyBodyError, ProxyCall};
pub use writer::{LineWriter, lines};

/// Asks one's own server for whatever model a request names.
///
/// Cancelling ends the answer as aborted, with what had come; dropping the stream closes the connection. `duration_ms` of an answer is the
/// time it took for this client.
#[derive(Clone, Debug)]
pub struct ProxyProvider(HttpProvider);

impl ProxyProvider {
    /// A client of the server at `url` (`/api/stream` is appended), which knows it by its token.
    pub fn new(url: &str, token: impl Into<Secret>) -> Self {
        Self::with_client(url, token, Arc::new(HttpClient::new()))
    }

    /// The same, with a client whose connections others share.
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

/// What goes over the network between the client and its server.
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
        Ok(HttpRequest::new(self.url.clone(), headers, body::write(call.request)))
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
