//! Scripted WebSockets.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use sha1::{Digest, Sha1};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use super::gate::Gate;

const MAGIC: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Reaction to a WebSocket: a sequence of steps. After the last one the server listens until the client disconnects.
#[derive(Clone, Debug)]
pub struct SocketScript {
    steps: Vec<SocketStep>,
    log: SocketLog,
}

#[derive(Clone, Debug)]
enum SocketStep {
    Hear,
    Send(String),
    Ping(Vec<u8>),
    Gate(Gate),
    Close { code: u16, reason: String },
    Drop,
}

/// Messages of clients over WebSockets. Clones are the same log.
#[derive(Clone, Debug, Default)]
pub struct SocketLog(Arc<(Mutex<Vec<ClientFrame>>, Notify)>);

/// A client's frame.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientFrame {
    /// The connection was upgraded.
    Opened,
    /// A text as JSON, or null if it is not JSON.
    Text(Value),
    /// The answer to a ping.
    Pong(Vec<u8>),
    /// The client closes the connection.
    Close {
        /// The close code.
        code: u16,
        /// The close reason.
        reason: String,
    },
}

impl SocketLog {
    /// Returns all frames so far, of all clients.
    pub fn frames(&self) -> Vec<ClientFrame> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the texts so far.
    pub fn texts(&self) -> Vec<Value> {
        let text = |frame: ClientFrame| match frame {
            ClientFrame::Text(text) => Some(text),
            _ => None,
        };
        self.frames().into_iter().filter_map(text).collect()
    }

    /// Returns how many WebSockets were opened.
    pub fn n_opened(&self) -> usize {
        self.frames().iter().filter(|frame| **frame == ClientFrame::Opened).count()
    }

    /// Waits for a matching frame.
    pub async fn wait_for(&self, wanted: impl Fn(&ClientFrame) -> bool) {
        loop {
            let said = self.0.1.notified();
            if self.frames().iter().any(&wanted) {
                return;
            }
            said.await;
        }
    }

    fn add(&self, frame: ClientFrame) {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner).push(frame);
        self.0.1.notify_waiters();
    }
}

impl SocketScript {
    /// Creates a script that only listens.
    pub fn new(log: &SocketLog) -> Self {
        Self { steps: Vec::new(), log: log.clone() }
    }

    /// Waits for a text.
    #[must_use]
    pub fn hear(self) -> Self {
        self.step(SocketStep::Hear)
    }

    /// Sends events as separate texts.
    #[must_use]
    pub fn send<'e>(self, events: impl IntoIterator<Item = &'e Value>) -> Self {
        events.into_iter().fold(self, |script, event| script.step(SocketStep::Send(event.to_string())))
    }

    /// Sends a text.
    #[must_use]
    pub fn send_text(self, text: impl Into<String>) -> Self {
        self.step(SocketStep::Send(text.into()))
    }

    /// Sends a ping.
    #[must_use]
    pub fn ping(self, payload: &[u8]) -> Self {
        self.step(SocketStep::Ping(payload.to_vec()))
    }

    /// Waits until the test opens the gate.
    #[must_use]
    pub fn gate(self, gate: &Gate) -> Self {
        self.step(SocketStep::Gate(gate.clone()))
    }

    /// Sends a close frame, and closes the connection. Any code is possible, even invalid ones.
    #[must_use]
    pub fn close(self, code: u16, reason: &str) -> Self {
        self.step(SocketStep::Close { code, reason: reason.to_owned() })
    }

    /// Closes the connection without a close frame.
    #[must_use]
    pub fn drop(self) -> Self {
        self.step(SocketStep::Drop)
    }

    fn step(mut self, step: SocketStep) -> Self {
        self.steps.push(step);
        self
    }
}

/// Upgrades a connection and plays the script to its end.
pub(super) async fn play(stream: &mut TcpStream, key: &str, script: SocketScript) -> io::Result<()> {
    let accept = STANDARD.encode(Sha1::digest(format!("{key}{MAGIC}").as_bytes()));
    let head = format!(
        "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: {accept}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    script.log.add(ClientFrame::Opened);
    for step in &script.steps {
        match step {
            SocketStep::Hear => while !matches!(hear(stream, &script.log).await?, ClientFrame::Text(_)) {},
            SocketStep::Send(text) => send(stream, 0x81, text.as_bytes()).await?,
            SocketStep::Ping(payload) => send(stream, 0x89, payload).await?,
            SocketStep::Gate(gate) => gate.pass().await,
            SocketStep::Close { code, reason } => {
                let payload = [&code.to_be_bytes(), reason.as_bytes()].concat();
                send(stream, 0x88, &payload).await?;
                return stream.shutdown().await;
            }
            SocketStep::Drop => return stream.shutdown().await,
        }
    }
    loop {
        hear(stream, &script.log).await?;
    }
}

async fn send(stream: &mut TcpStream, first: u8, payload: &[u8]) -> io::Result<()> {
    let mut frame = vec![first];
    match u16::try_from(payload.len()) {
        Ok(len) if len < 126 => frame.push(len.to_be_bytes()[1]),
        Ok(len) => {
            frame.push(126);
            frame.extend_from_slice(&len.to_be_bytes());
        }
        Err(_) => {
            frame.push(127);
            frame.extend_from_slice(&(payload.len() as u64).to_be_bytes());
        }
    }
    frame.extend_from_slice(payload);
    stream.write_all(&frame).await
}

/// Reads the client's next message; clients send each in one frame.
async fn hear(stream: &mut TcpStream, log: &SocketLog) -> io::Result<ClientFrame> {
    let mut head = [0; 2];
    stream.read_exact(&mut head).await?;
    let len = match head[1] & 0x7F {
        126 => usize::from(stream.read_u16().await?),
        127 => usize::try_from(stream.read_u64().await?).map_err(io::Error::other)?,
        short => usize::from(short),
    };
    if head[1] & 0x80 == 0 {
        return Err(io::Error::other("a client must mask"));
    }
    let mut mask = [0; 4];
    stream.read_exact(&mut mask).await?;
    let mut payload = vec![0; len];
    stream.read_exact(&mut payload).await?;
    payload.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, key)| *byte ^= key);
    let frame = match (head[0] & 0x0F, payload.as_slice()) {
        (0x8, [high, low, reason @ ..]) => ClientFrame::Close {
            code: u16::from_be_bytes([*high, *low]),
            reason: String::from_utf8_lossy(reason).into_owned(),
        },
        (0xA, payload) => ClientFrame::Pong(payload.to_vec()),
        (_, payload) => ClientFrame::Text(serde_json::from_slice(payload).unwrap_or(Value::Null)),
    };
    log.add(frame.clone());
    Ok(frame)
}
