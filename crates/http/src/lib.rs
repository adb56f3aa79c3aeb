#![doc = include_str!("../README.md")]
//!
//! ## Modules
//!
//! * [`HttpClient`]: pooled connections, proxies from an environment that the caller passes in, no redirects;
//! * [`Timeouts`], [`idle`]: time limits of a call and their enforcement;
//! * [`url_parts`]: parts of URLs, and which of them may be shown;
//! * `websocket` (feature `websocket`): a connection upgraded to a WebSocket.

use std::error::Error;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use pinch_stdx::host::Env;

pub mod url_parts;
mod coding;
pub mod idle;
mod pace;
mod probe;
mod proxy;
#[cfg(feature = "tls")]
mod tls;
#[cfg(feature = "websocket")]
pub mod websocket;

use coding::Coding;
pub use idle::Timeouts;
use pace::{ReadPace, Readers};
use proxy::Proxies;

/// Number of cached clients with different settings; if more are needed, probably every call has its own.
const MAX_CLIENTS: usize = 8;

/// Sends requests over pooled connections. Share the pool by cloning an `Arc` of the client.
///
/// Clients are built on first use: one for plain HTTP, which loads no certificates, and one for TLS; more only if callers use different
/// proxies or time limits. The process environment is never read.
#[derive(Debug, Default)]
pub struct HttpClient {
    clients: Mutex<Vec<(ClientSettings, reqwest::Client)>>,
    readers: Readers,
}

/// Settings that require separate clients.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ClientSettings {
    tls: bool,
    connect: Option<Duration>,
    proxies: Proxies,
    /// Whether to use only HTTP/1.1.
    http1: bool,
}

/// A request to send.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// The method.
    pub method: Method,
    /// The URL.
    pub url: String,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl Outgoing {
    /// Creates a GET request, which has no body.
    pub fn get(url: impl Into<String>, headers: HeaderMap) -> Self {
        Self { method: Method::GET, url: url.into(), headers, body: Bytes::new() }
    }
}

/// A response whose body has not been read yet. Dropping it closes the connection, unless the body was read to its end.
#[derive(Debug)]
pub struct IncomingResponse {
    response: reqwest::Response,
    coding: Option<Coding>,
    pace: ReadPace,
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// The connection could not be established.
    #[error("Connection error: {cause}{place}")]
    Connect {
        /// The system's error.
        cause: String,
        /// The address, if it is on this machine or its network, and the proxy, if one is set; empty otherwise.
        place: String,
    },
    /// The connection broke before the response started. The text does not name the cause, because recorded cases expect exactly this text
    /// (`stream/retry/connection-reset`); it is in `source`.
    #[error("Connection error.")]
    Reset {
        /// The system's error.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The body ended early.
    #[error("Connection error: stream terminated ({cause})")]
    Cut {
        /// The system's error.
        cause: String,
    },
    /// The body uses an unsupported compression.
    #[error("The response is compressed ({name}) although nothing but identity was accepted")]
    Coding {
        /// Name of the encoding.
        name: String,
    },
    /// The URL cannot be used.
    #[error("Invalid URL: {cause}")]
    Url {
        /// The reason, without the URL.
        cause: String,
    },
    /// The request is invalid.
    #[error("Invalid request: {cause}")]
    Invalid {
        /// The reason.
        cause: String,
    },
}

impl HttpClient {
    /// Creates a client without connections.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sends a request and waits for the response headers. Only connecting has a time limit here.
    ///
    /// # Errors
    /// Returns [`HttpError`] if no response arrives; a response with an error status is not an error.
    pub async fn send(
        &self,
        outgoing: Outgoing,
        env: &Env,
        connect: Option<Duration>,
    ) -> Result<IncomingResponse, HttpError> {
        self.send_over(outgoing, env, connect, false).await
    }

    /// Sends a request like [`HttpClient::send`], over HTTP/1.1 only.
    ///
    /// # Errors
    /// See [`HttpClient::send`].
    pub async fn send_http1(
        &self,
        outgoing: Outgoing,
        env: &Env,
        connect: Option<Duration>,
    ) -> Result<IncomingResponse, HttpError> {
        self.send_over(outgoing, env, connect, true).await
    }

    async fn send_over(
        &self,
        outgoing: Outgoing,
        env: &Env,
        connect: Option<Duration>,
        http1: bool,
    ) -> Result<IncomingResponse, HttpError> {
        let client = self.client(&outgoing.url, env, connect, http1)?;
        let Outgoing { method, url, mut headers, body } = outgoing;
        // Compressed events would be delayed in the compressor's buffer.
        headers.entry(header::ACCEPT_ENCODING).or_insert(HeaderValue::from_static("identity"));
        let sent = client.request(method, &url).headers(headers).body(body).send().await;
        let response = match sent {
            Ok(response) => response,
            Err(error) => {
                let answered = what_answered(&error, &url, env).await;
                return Err(answered.unwrap_or_else(|| send_error(error, &url, env)));
            }
        };
        let coding = Coding::of(response.headers())?;
        let pace = self.readers.one_more(response.headers().contains_key(header::TRANSFER_ENCODING));
        Ok(IncomingResponse { response, coding, pace })
    }

    fn client(
        &self,
        url: &str,
        env: &Env,
        connect: Option<Duration>,
        http1: bool,
    ) -> Result<reqwest::Client, HttpError> {
        if cfg!(not(any(feature = "ring", feature = "aws-lc-rs"))) && url.starts_with("https://") {
            let cause = "this program was built without TLS (feature ring or aws-lc-rs of pinch-http)".to_owned();
            return Err(HttpError::Invalid { cause });
        }
        let proxies = Proxies::of(env);
        let tls = !url.starts_with("http://") || proxies.need_tls();
        let settings = ClientSettings { tls, connect, proxies, http1 };
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, client)) = clients.iter().find(|(known, _)| *known == settings) {
            return Ok(client.clone());
        }
        let client = build(&settings).map_err(|error| HttpError::Invalid { cause: root_cause(&*error) })?;
        if clients.len() >= MAX_CLIENTS {
            clients.remove(0);
        }
        clients.push((settings, client.clone()));
        Ok(client)
    }
}

fn build(settings: &ClientSettings) -> Result<reqwest::Client, Box<dyn Error>> {
    // Following a redirect would send credentials to a host that the caller did not name, so redirects are returned like any other
    // response.
    let mut builder = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
    if let Some(limit) = settings.connect {
        builder = builder.connect_timeout(limit);
    }
    if settings.http1 {
        builder = builder.http1_only();
    }
    #[cfg(feature = "tls")]
    {
        builder = builder.tls_backend_preconfigured(tls::config(settings)?);
    }
    for proxy in settings.proxies.to_reqwest()? {
        builder = builder.proxy(proxy);
    }
    Ok(builder.build()?)
}

impl IncomingResponse {
    /// Returns the status.
    pub fn status(&self) -> StatusCode {
        self.response.status()
    }

    /// Returns the headers.
    pub fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// Frees the headers and the buffer that they were read into; [`IncomingResponse::headers`] is empty afterwards.
    pub fn forget_headers(&mut self) {
        drop(std::mem::take(self.response.headers_mut()));
    }

    /// Returns the next chunk of the body, or `None` at its end. A client that reads more than a hundred bodies at once (for each thread of
    /// the runtime) reads each of them less often, with 2 000 every 200 ms, and at least every 250 ms.
    ///
    /// # Errors
    /// Returns [`HttpError::Cut`] if the body ends early.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, HttpError> {
        loop {
            let piece = self.pace.read(self.response.chunk()).await;
            let piece = piece.map_err(|error| HttpError::Cut { cause: root_cause(&error) })?;
            let Some(coding) = &mut self.coding else { return Ok(piece) };
            let broken = |coding: &Coding, why: std::io::Error| HttpError::Cut { cause: format!("{coding:?}: {why}") };
            let Some(piece) = piece else {
                let ended = coding.finish();
                return ended.map(|()| None).map_err(|why| broken(coding, why));
            };
            let decoded = coding.decode(&piece).map_err(|why| broken(coding, why))?;
            if !decoded.is_empty() {
                return Ok(Some(decoded.into()));
            }
        }
    }

    /// Reads the body up to a limit; the rest, or anything after a failure, is dropped.
    pub async fn text_up_to(&mut self, limit: usize) -> Vec<u8> {
        let mut body = Vec::new();
        while let Ok(Some(chunk)) = self.chunk().await {
            let room = limit - body.len();
            body.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if body.len() == limit {
                break;
            }
        }
        body
    }
}

/// Describes what answered instead of the intended server, for example a proxy. Returns `None` for all other failures.
async fn what_answered(error: &reqwest::Error, url: &str, env: &Env) -> Option<HttpError> {
    let cause = root_cause(error);
    // reqwest has no names for these failures.
    let is_tunnel = error.is_connect() && (cause.contains("tunnel") || cause.contains("proxy"));
    let is_plain = error.is_connect() && cause.contains("InvalidContentType");
    let is_foreign = !error.is_connect() && cause.starts_with("invalid HTTP");
    let (who, answer) = if is_tunnel {
        let proxy = Proxies::of(env).for_tunnels()?;
        ("the proxy answered", probe::proxy(&proxy, url).await?)
    } else if is_plain {
        ("the server does not speak TLS; it answered", probe::server(url).await?)
    } else if is_foreign {
        ("the server does not speak HTTP; it answered", probe::server(url).await?)
    } else {
        return None;
    };
    Some(HttpError::Connect { cause: format!("{who} {answer}"), place: near_place(url) })
}

fn send_error(error: reqwest::Error, url: &str, env: &Env) -> HttpError {
    if error.is_builder() {
        return HttpError::Url { cause: root_cause(&error) };
    }
    if !error.is_connect() {
        // The URL may contain secrets.
        return HttpError::Reset { source: Box::new(error.without_url()) };
    }
    let cause = if error.is_timeout() { "connect timeout".into() } else { root_cause(&error) };
    let proxies = Proxies::of(env);
    let proxy = proxies.used_for(url).map(url_parts::without_secrets);
    let proxy = proxy.map(|proxy| format!("; a proxy is set: {proxy}")).unwrap_or_default();
    HttpError::Connect { cause, place: near_place(url) + &proxy }
}

/// Returns the URL if it is on this machine or its network.
fn near_place(url: &str) -> String {
    let is_near = url_parts::is_this_machine(url) || url_parts::host_is(url, "local");
    if is_near { format!(" ({})", url_parts::without_secrets(url)) } else { String::new() }
}

/// Returns the innermost cause: the outer ones repeat the URL, which may contain secrets.
fn root_cause(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
