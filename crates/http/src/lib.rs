//! HTTP for model calls: sends a request, gives back status, headers and the body piece by piece. The only user of reqwest.
//!
//! * [`HttpClient`]: pooled connections, proxies from an environment that the caller hands in, no redirects;
//! * [`Timeouts`], [`idle`]: how long a call may take, and the watch over what streams;
//! * [`url_parts`]: URLs in parts, and what of them may be shown;
//! * `websocket` (feature `websocket`): a connection that became a WebSocket.

use std::error::Error;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use pinch_stdx::host::Env;

pub mod url_parts;
mod coding;
pub mod idle;
mod probe;
mod proxy;
#[cfg(feature = "tls")]
mod tls;
#[cfg(feature = "websocket")]
pub mod websocket;

use coding::Coding;
pub use idle::Timeouts;
use proxy::Proxies;

/// Clients of different settings that are kept; more than a few mean that every call has its own.
const MAX_CLIENTS: usize = 8;

/// Sends requests over pooled connections. Cloning the `Arc` it is kept in shares the pool.
///
/// Clients are built when they are first needed: one for plain HTTP, which loads no certificates, and one for TLS; more only when callers
/// have different proxies or time limits. The process environment is never read.
#[derive(Debug, Default)]
pub struct HttpClient {
    clients: Mutex<Vec<(ClientSettings, reqwest::Client)>>,
}

/// What makes one client differ from another.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ClientSettings {
    tls: bool,
    connect: Option<Duration>,
    proxies: Proxies,
    /// Only HTTP/1.1.
    http1: bool,
}

/// A request as it goes out.
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
    /// A GET request, which has no body.
    pub fn get(url: impl Into<String>, headers: HeaderMap) -> Self {
        Self { method: Method::GET, url: url.into(), headers, body: Bytes::new() }
    }
}

/// A response whose body has not been read yet. Dropping it closes the connection, unless the body was read to its end.
#[derive(Debug)]
pub struct IncomingResponse {
    response: reqwest::Response,
    coding: Option<Coding>,
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// No connection.
    #[error("Connection error: {cause}{place}")]
    Connect {
        /// What the system says.
        cause: String,
        /// Where to, when that is this machine or its network; empty otherwise.
        place: String,
    },
    /// The connection broke before the response began. The text names no cause, for recorded cases want exactly this one
    /// (`stream/retry/connection-reset`); it is in `source`.
    #[error("Connection error.")]
    Reset {
        /// What the system says.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The body broke off.
    #[error("Connection error: stream terminated ({cause})")]
    Cut {
        /// What the system says.
        cause: String,
    },
    /// The body is compressed in a way that cannot be decoded.
    #[error("The response is compressed ({name}) although nothing but identity was accepted")]
    Coding {
        /// The name of the way.
        name: String,
    },
    /// The request cannot be sent as it is.
    #[error("Invalid request: {cause}")]
    Invalid {
        /// Why.
        cause: String,
    },
}

impl HttpClient {
    /// A client without connections.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sends a request and waits for the response's headers. Only connecting has a time limit here.
    ///
    /// # Errors
    /// [`HttpError`]; a response with a failing status is not an error.
    pub async fn send(
        &self,
        outgoing: Outgoing,
        env: &Env,
        connect: Option<Duration>,
    ) -> Result<IncomingResponse, HttpError> {
        self.send_over(outgoing, env, connect, false).await
    }

    /// As [`HttpClient::send`], over HTTP/1.1 only.
    ///
    /// # Errors
    /// As there.
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
        // Compressed events would wait in the compressor's buffer.
        headers.entry(header::ACCEPT_ENCODING).or_insert(HeaderValue::from_static("identity"));
        let sent = client.request(method, &url).headers(headers).body(body).send().await;
        let response = match sent {
            Ok(response) => response,
            Err(error) => {
                let answered = what_answered(&error, &url, env).await;
                return Err(answered.unwrap_or_else(|| send_error(error, &url)));
            }
        };
        let coding = Coding::of(response.headers())?;
        Ok(IncomingResponse { response, coding })
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
    // A redirected request would carry its credentials to a host that the caller did not name: redirects are returned like any other response.
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
    /// The status.
    pub fn status(&self) -> StatusCode {
        self.response.status()
    }

    /// The headers.
    pub fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// Frees the headers, and with them the buffer that they were read into: none are left for [`IncomingResponse::headers`].
    pub fn forget_headers(&mut self) {
        drop(std::mem::take(self.response.headers_mut()));
    }

    /// The next piece of the body; `None` at its end.
    ///
    /// # Errors
    /// [`HttpError::Cut`] when the body breaks off.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, HttpError> {
        loop {
            let piece = self.response.chunk().await.map_err(|error| HttpError::Cut { cause: root_cause(&error) })?;
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

    /// The body up to a limit; what breaks off or goes beyond is left out.
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

/// What answered instead of the intended server, for example a proxy. `None` for all other failures.
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

fn send_error(error: reqwest::Error, url: &str) -> HttpError {
    if error.is_builder() {
        return HttpError::Invalid { cause: root_cause(&error) };
    }
    if !error.is_connect() {
        // The URL may hold secrets.
        return HttpError::Reset { source: Box::new(error.without_url()) };
    }
    let cause = if error.is_timeout() { "connect timeout".into() } else { root_cause(&error) };
    HttpError::Connect { cause, place: near_place(url) }
}

/// The URL, when it is on this machine or its network.
fn near_place(url: &str) -> String {
    let is_near = url_parts::is_this_machine(url) || url_parts::host_is(url, "local");
    if is_near { format!(" ({})", url_parts::without_secrets(url)) } else { String::new() }
}

/// The innermost cause: the outer ones repeat the URL, which may hold secrets.
fn root_cause(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
