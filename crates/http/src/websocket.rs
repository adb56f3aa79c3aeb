//! A WebSocket: an upgraded HTTP connection that uses the client's proxies, certificates and time limits.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Buf, BytesMut};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use pinch_stdx::host::Host;
use sha1::{Digest, Sha1};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

use crate::{HttpClient, HttpError, IncomingResponse, Outgoing};

pub mod frame;

pub use frame::ProtocolViolation;

use frame::{self as frames, FrameDecoder, FrameMessage};

/// The suffix that RFC 6455 appends to a key.
const MAGIC: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// Bytes per read.
const READ_BYTES: usize = 16 * 1024;

/// An open WebSocket. Dropping it closes the connection without a close frame.
pub struct WebSocket {
    io: reqwest::Upgraded,
    host: Host,
    frames: FrameDecoder,
    input: BytesMut,
    /// Bytes waiting to be written.
    output: BytesMut,
    opened: Instant,
}

/// A message received over a WebSocket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// A text message.
    Text(String),
    /// The connection is closed; the code is 1006 if the other side sent no close frame.
    Closed {
        /// The close code (RFC 6455, section 7.4).
        code: u16,
        /// The other side's reason.
        reason: String,
    },
}

/// Reasons why a WebSocket failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SocketError {
    /// There was no HTTP response.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// The server does not switch protocols.
    #[error("WebSocket upgrade refused with status {status}")]
    Refused {
        /// The response's status.
        status: StatusCode,
    },
    /// The server switches protocols, but violates RFC 6455.
    #[error("invalid response to the WebSocket upgrade: {what}")]
    Handshake {
        /// What is wrong.
        what: &'static str,
    },
    /// The connection broke.
    #[error("WebSocket error: {cause}")]
    Cut {
        /// The system's error.
        cause: String,
    },
    /// A frame is invalid or too long.
    #[error("WebSocket error: {0}")]
    Broken(#[from] ProtocolViolation),
}

/// The response to an upgrade request.
pub struct UpgradeResponse {
    incoming: IncomingResponse,
    accept: String,
}

impl UpgradeResponse {
    /// Returns the status.
    pub fn status(&self) -> StatusCode {
        self.incoming.status()
    }

    /// Returns the headers.
    pub fn headers(&self) -> &HeaderMap {
        self.incoming.headers()
    }

    /// Turns the response into a socket if it is a valid upgrade.
    ///
    /// # Errors
    /// Returns [`SocketError::Refused`] or [`SocketError::Handshake`] if it is not, and [`SocketError::Cut`] if the connection is gone.
    pub async fn into_socket(self, host: Host) -> Result<WebSocket, SocketError> {
        if self.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Err(SocketError::Refused { status: self.status() });
        }
        let accept = self.headers().get(header::SEC_WEBSOCKET_ACCEPT).map(HeaderValue::as_bytes);
        if accept != Some(self.accept.as_bytes()) {
            return Err(SocketError::Handshake { what: "the key is not ours" });
        }
        let upgraded = self.incoming.response.upgrade().await;
        let io = upgraded.map_err(|error| SocketError::Cut { cause: crate::root_cause(&error) })?;
        Ok(WebSocket {
            io,
            host,
            frames: FrameDecoder::default(),
            input: BytesMut::new(),
            output: BytesMut::new(),
            opened: Instant::now(),
        })
    }
}

impl HttpClient {
    /// Requests a WebSocket at an HTTP URL. Only connecting has a time limit here.
    ///
    /// # Errors
    /// Returns [`HttpError`] if no response arrives; a response that refuses the upgrade is not an error.
    pub async fn upgrade(
        &self,
        url: &str,
        mut headers: HeaderMap,
        host: &Host,
        connect: Option<std::time::Duration>,
    ) -> Result<UpgradeResponse, HttpError> {
        let key = STANDARD.encode(random(host));
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        let value = HeaderValue::from_str(&key).map_err(|error| HttpError::Invalid { cause: error.to_string() })?;
        headers.insert(header::SEC_WEBSOCKET_KEY, value);
        let outgoing = Outgoing::get(url.to_owned(), headers);
        let incoming = self.send_http1(outgoing, host.env(), connect).await?;
        let hash = Sha1::digest((key + MAGIC).as_bytes());
        Ok(UpgradeResponse { incoming, accept: STANDARD.encode(hash) })
    }
}

/// Returns sixteen unpredictable bytes.
fn random(host: &Host) -> [u8; 16] {
    let id = host.ids().uuid_v4().replace('-', "");
    u128::from_str_radix(&id, 16).unwrap_or(0).to_be_bytes()
}

fn mask(host: &Host) -> [u8; 4] {
    let [a, b, c, d, ..] = random(host);
    [a, b, c, d]
}

impl std::fmt::Debug for WebSocket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebSocket").finish_non_exhaustive()
    }
}

impl WebSocket {
    /// Returns when the socket was opened.
    pub fn opened(&self) -> Instant {
        self.opened
    }

    /// Sends a text message.
    ///
    /// # Errors
    /// Returns [`SocketError::Cut`] if the connection is gone.
    pub async fn send(&mut self, text: &str) -> Result<(), SocketError> {
        self.output.extend_from_slice(&frames::text(text, mask(&self.host)));
        self.flush().await
    }

    /// Returns the next message and answers pings meanwhile. Cancel safe.
    ///
    /// # Errors
    /// Returns [`SocketError::Cut`] if the connection breaks, and [`SocketError::Broken`] for an invalid frame.
    pub async fn next(&mut self) -> Result<Received, SocketError> {
        loop {
            match self.frames.next_message()? {
                Some(FrameMessage::Text(text)) => return Ok(Received::Text(text)),
                Some(FrameMessage::Close { code, reason }) => return Ok(Received::Closed { code, reason }),
                Some(FrameMessage::Ping(payload)) => {
                    self.output.extend_from_slice(&frames::pong(&payload, mask(&self.host)));
                    self.flush().await?;
                    continue;
                }
                None => {}
            }
            self.flush().await?;
            self.input.reserve(READ_BYTES);
            let n = self.io.read_buf(&mut self.input).await.map_err(cut)?;
            if n == 0 {
                return Ok(Received::Closed { code: 1006, reason: String::new() });
            }
            self.frames.push(&self.input);
            self.input.clear();
        }
    }

    /// Sends a close frame with a code and reason, and closes the connection.
    pub async fn close(mut self, code: u16, reason: &str) {
        self.output.extend_from_slice(&frames::close(code, reason, mask(&self.host)));
        if self.flush().await.is_ok() {
            // The other side may be gone already.
            let _result = self.io.shutdown().await;
        }
    }

    /// Writes pending bytes. If dropped, bytes that were already written are not written again.
    async fn flush(&mut self) -> Result<(), SocketError> {
        while !self.output.is_empty() {
            let n = self.io.write(&self.output).await.map_err(cut)?;
            if n == 0 {
                return Err(SocketError::Cut { cause: "nothing more can be written".into() });
            }
            self.output.advance(n);
        }
        self.io.flush().await.map_err(cut)
    }
}

fn cut(error: std::io::Error) -> SocketError {
    SocketError::Cut { cause: error.to_string() }
}
