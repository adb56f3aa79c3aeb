//! Requests of logins, and processing of their responses.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use pinch_http::{HttpClient, HttpError, Outgoing};
use pinch_stdx::host::Env;
use serde_json::Value;
use url::form_urlencoded;

use super::{OAuthCx, OAuthError};

/// Time limit of a server.
const LIMIT: Duration = Duration::from_secs(30);
/// Maximum bytes of a response that are read.
const MAX_BYTES: usize = 1024 * 1024;
/// Maximum characters of a server's message that are shown.
const MAX_WORDS: usize = 300;

/// A server's response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OAuthResponse {
    /// The status.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
}

/// Sends requests of logins; tests replace it.
pub trait OAuthTransport: Send + Sync {
    /// Sends a request and reads the whole response. Cancel by dropping the future.
    ///
    /// # Errors
    /// Returns why there is no response. Never contains anything that was sent.
    fn send(&self, request: Outgoing) -> BoxFuture<'_, Result<OAuthResponse, String>>;
}

/// Sends requests over the network.
#[derive(Clone, Debug)]
pub struct HttpTransport {
    client: Arc<HttpClient>,
    env: Env,
}

impl HttpTransport {
    /// Creates a transport with a shared client, through the proxies of an environment.
    pub fn new(client: Arc<HttpClient>, env: Env) -> Self {
        Self { client, env }
    }
}

impl OAuthTransport for HttpTransport {
    fn send(&self, request: Outgoing) -> BoxFuture<'_, Result<OAuthResponse, String>> {
        Box::pin(async move {
            let sending = async {
                let mut incoming = self.client.send(request, &self.env, Some(LIMIT)).await?;
                let body = incoming.text_up_to(MAX_BYTES).await;
                Ok::<_, HttpError>(OAuthResponse { status: incoming.status().as_u16(), body })
            };
            match tokio::time::timeout(LIMIT, sending).await {
                Ok(answer) => answer.map_err(|error| error.to_string()),
                Err(_) => Err(format!("no answer within {} s", LIMIT.as_secs())),
            }
        })
    }
}

/// A request to be sent.
pub(super) struct OAuthRequest<'a> {
    /// The action, for error texts.
    what: &'a str,
    outgoing: Outgoing,
    /// Texts that no error may contain.
    secrets: Vec<String>,
}

impl<'a> OAuthRequest<'a> {
    pub(super) fn new(what: &'a str, method: Method, url: impl Into<String>) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(http::header::ACCEPT, HeaderValue::from_static("application/json"));
        let outgoing = Outgoing { method, url: url.into(), headers, body: Bytes::new() };
        Self { what, outgoing, secrets: Vec::new() }
    }

    /// Sets a form as the body.
    pub(super) fn form(mut self, pairs: &[(&str, &str)]) -> Self {
        self.outgoing.body = Bytes::from(form(pairs));
        self.keep_from_errors(pairs.iter().map(|(_, value)| *value));
        self.header("content-type", "application/x-www-form-urlencoded")
    }

    /// Sets JSON as the body.
    pub(super) fn json(mut self, body: &Value) -> Self {
        self.outgoing.body = Bytes::from(body.to_string());
        self.keep_from_errors(body.as_object().into_iter().flatten().filter_map(|(_, value)| value.as_str()));
        self.header("content-type", "application/json")
    }

    /// Sets a header; an invalid one is omitted, and the server reports that it is missing.
    pub(super) fn header(mut self, name: &'static str, value: &str) -> Self {
        if let Ok(mut value) = HeaderValue::from_str(value) {
            value.set_sensitive(name == "authorization");
            self.outgoing.headers.insert(HeaderName::from_static(name), value);
        }
        self
    }

    pub(super) fn bearer(mut self, token: &str) -> Self {
        self.keep_from_errors([token]);
        self.header("authorization", &format!("Bearer {token}"))
    }

    fn keep_from_errors<'t>(&mut self, texts: impl IntoIterator<Item = &'t str>) {
        // Short ones are words such as `refresh_token`, which errors may contain.
        self.secrets.extend(texts.into_iter().filter(|text| text.len() >= 24).map(str::to_owned));
    }

    /// Sends the request and returns the response with its status.
    pub(super) async fn answer(self, cx: OAuthCx<'_>) -> Result<OAuthAnswer<'a>, OAuthError> {
        let Self { what, outgoing, secrets } = self;
        let sent = cx.cancel.run(cx.transport.send(outgoing)).await.map_err(|_| OAuthError::Cancelled)?;
        let answer = sent.map_err(|reason| OAuthError::Network { what: what.to_owned(), reason })?;
        let json = serde_json::from_slice(&answer.body).unwrap_or(Value::Null);
        Ok(OAuthAnswer { what, status: answer.status, json, body: answer.body, secrets })
    }

    /// Sends the request and returns the JSON of a successful response.
    pub(super) async fn good(self, cx: OAuthCx<'_>) -> Result<Value, OAuthError> {
        let said = self.answer(cx).await?;
        if (200..300).contains(&said.status) { Ok(said.json) } else { Err(said.refused()) }
    }
}

/// A parsed response.
pub(super) struct OAuthAnswer<'a> {
    what: &'a str,
    pub(super) status: u16,
    pub(super) json: Value,
    body: Vec<u8>,
    secrets: Vec<String>,
}

impl OAuthAnswer<'_> {
    /// Creates the error for a failing status, with the server's message.
    pub(super) fn refused(&self) -> OAuthError {
        let error = &self.json["error"];
        let (kind, more) = (error.as_str().or_else(|| error["type"].as_str()), self.json["error_description"].as_str());
        let more = more.or_else(|| error["message"].as_str()).or_else(|| self.json["message"].as_str());
        let text = match (kind, more) {
            (Some(kind), Some(more)) => format!("{kind}: {more}"),
            (Some(text), None) | (None, Some(text)) => text.to_owned(),
            // JSON of another shape may contain anything.
            (None, None) if !self.json.is_null() => "no reason given".to_owned(),
            (None, None) => String::from_utf8_lossy(&self.body).into_owned(),
        };
        OAuthError::Refused { what: self.what.to_owned(), status: self.status, text: self.presentable(&text) }
    }

    /// Returns a server's message on one short line, without anything that was sent to it.
    fn presentable(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in &self.secrets {
            text = text.replace(secret, "…");
        }
        text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_WORDS).collect::<String>().trim().to_owned()
    }
}

/// Encodes pairs for forms and queries.
pub(super) fn form(pairs: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}

/// Tokens in a server's response.
pub(super) struct TokenSet {
    pub(super) access: String,
    pub(super) refresh: Option<String>,
    /// Validity in milliseconds.
    pub(super) lasts: i64,
}

/// Parses tokens. A response without an access token or validity is an error that names the missing member.
pub(super) fn tokens(json: &Value, what: &str) -> Result<TokenSet, OAuthError> {
    let text = |name: &str| json[name].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let seconds = json["expires_in"].as_f64().filter(|seconds| *seconds >= 0.0);
    match (text("access_token"), seconds) {
        (Some(access), Some(seconds)) => {
            Ok(TokenSet { access, refresh: text("refresh_token"), lasts: (seconds * 1_000.0) as i64 })
        }
        (access, _) => {
            let missing = if access.is_none() { "access_token" } else { "expires_in" };
            Err(OAuthError::Invalid(format!("{what}: the answer has no {missing}")))
        }
    }
}
