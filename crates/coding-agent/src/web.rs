//! Requests for JSON documents from servers other than model providers.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, header};
use pinch_llm::http::{HttpClient, Outgoing};
use pinch_stdx::host::Host;
use serde_json::Value;

/// Creates a request for a JSON document.
pub(crate) fn json_request(url: impl Into<String>) -> Outgoing {
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    headers.insert(header::USER_AGENT, HeaderValue::from_static(concat!("pinch/", env!("CARGO_PKG_VERSION"))));
    Outgoing::get(url, headers)
}

/// Returns the JSON document that a server answers with, or `None` without a successful answer of at most `max` bytes within `patience`.
pub(crate) async fn json_answer(
    client: &HttpClient,
    request: Outgoing,
    host: &Host,
    patience: Duration,
    max: usize,
) -> Option<Value> {
    let answer = async {
        let mut incoming = client.send(request, host.env(), Some(patience)).await.ok()?;
        let status = incoming.status();
        let body = incoming.text_up_to(max).await;
        status.is_success().then_some(body)
    };
    let body = tokio::time::timeout(patience, answer).await.ok()??;
    serde_json::from_slice(&body).ok()
}
