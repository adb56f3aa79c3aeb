//! Replies, step by step.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::faults::Fault;
use super::forward::Upstream;
use super::gate::Gate;
use super::record::Recorded;

/// Reaction to a request: status, headers, and then a sequence of steps. The body ends after the last step.
#[derive(Clone, Debug)]
pub struct ServerReply {
    status: u16,
    headers: Vec<(String, String)>,
    steps: Vec<ReplyStep>,
    /// Upgrades the connection to a WebSocket instead.
    #[cfg(feature = "socket")]
    pub(super) socket: Option<super::socket::SocketScript>,
}

#[derive(Clone, Debug)]
pub(super) enum ReplyStep {
    Send(Bytes),
    Pause(Duration),
    Gate(Gate),
    Fault(Fault),
    /// Sends status and headers here; without this step they are sent first.
    Head,
    Forward(Upstream, Recorded),
}

impl ServerReply {
    /// Creates an empty response with a status.
    pub fn status(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            steps: Vec::new(),
            #[cfg(feature = "socket")]
            socket: None,
        }
    }

    /// Creates a successful event stream that starts with this text.
    pub fn sse(body: impl Into<Bytes>) -> Self {
        Self::status(200).header("content-type", "text/event-stream").send(body)
    }

    /// Creates a successful event stream without events.
    pub fn events() -> Self {
        Self::status(200).header("content-type", "text/event-stream")
    }

    /// Creates a JSON response.
    pub fn json(status: u16, body: &Value) -> Self {
        Self::status(status).header("content-type", "application/json").send(body.to_string())
    }

    /// Creates no response at all: not even a status.
    pub fn fault(fault: Fault) -> Self {
        Self { steps: vec![ReplyStep::Fault(fault)], ..Self::status(0) }
    }

    /// Passes on the response of another server, as it arrives, to this request: the received one, or a changed copy.
    pub fn forward(upstream: &Upstream, request: Recorded) -> Self {
        Self { steps: vec![ReplyStep::Forward(upstream.clone(), request)], ..Self::status(0) }
    }

    /// Upgrades the connection to a WebSocket, if that was requested.
    #[cfg(feature = "socket")]
    pub fn socket(script: super::socket::SocketScript) -> Self {
        Self { socket: Some(script), ..Self::status(426) }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sends a chunk of the body in a separate write.
    #[must_use]
    pub fn send(self, piece: impl Into<Bytes>) -> Self {
        self.step(ReplyStep::Send(piece.into()))
    }

    /// Sends chunks of the body with a gate before each.
    #[must_use]
    pub fn gated<P: Into<Bytes>>(self, gate: &Gate, pieces: impl IntoIterator<Item = P>) -> Self {
        pieces.into_iter().fold(self, |reply, piece| reply.gate(gate).send(piece))
    }

    /// Waits until the test opens the gate.
    #[must_use]
    pub fn gate(self, gate: &Gate) -> Self {
        self.step(ReplyStep::Gate(gate.clone()))
    }

    /// Pauses.
    #[must_use]
    pub fn pause(self, time: Duration) -> Self {
        self.step(ReplyStep::Pause(time))
    }

    /// Sends status and headers here instead of at the start, so that earlier steps delay them.
    #[must_use]
    pub fn head(self) -> Self {
        self.step(ReplyStep::Head)
    }

    /// Ends the connection prematurely.
    #[must_use]
    pub fn then(self, fault: Fault) -> Self {
        self.step(ReplyStep::Fault(fault))
    }

    fn step(mut self, step: ReplyStep) -> Self {
        self.steps.push(step);
        self
    }

    fn head_bytes(&self) -> Vec<u8> {
        let mut head = format!("HTTP/1.1 {} Scripted\r\n", self.status);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("transfer-encoding: chunked\r\n\r\n");
        head.into_bytes()
    }
}

/// State of a connection after a reply.
pub(super) enum ConnectionEnd {
    KeepAlive,
    Broken,
}

/// Plays a reply to its end.
pub(super) async fn play(stream: &mut TcpStream, reply: ServerReply) -> io::Result<ConnectionEnd> {
    let head_is_held = reply.steps.iter().any(|step| matches!(step, ReplyStep::Head));
    if reply.status != 0 && !head_is_held {
        stream.write_all(&reply.head_bytes()).await?;
    }
    for step in &reply.steps {
        match step {
            // An empty chunk would end the body.
            ReplyStep::Send(piece) if piece.is_empty() => {}
            ReplyStep::Send(piece) => {
                let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
                chunk.extend_from_slice(piece);
                chunk.extend_from_slice(b"\r\n");
                stream.write_all(&chunk).await?;
            }
            ReplyStep::Pause(time) => tokio::time::sleep(*time).await,
            ReplyStep::Gate(gate) => gate.pass().await,
            ReplyStep::Head => stream.write_all(&reply.head_bytes()).await?,
            ReplyStep::Fault(fault) => {
                fault.strike(stream).await?;
                return Ok(ConnectionEnd::Broken);
            }
            ReplyStep::Forward(upstream, request) => {
                upstream.forward(stream, request).await?;
                return Ok(ConnectionEnd::Broken);
            }
        }
    }
    stream.write_all(b"0\r\n\r\n").await?;
    Ok(ConnectionEnd::KeepAlive)
}
