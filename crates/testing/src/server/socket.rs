//! WebSockets, step by step.

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

/// What the server does with one WebSocket: one step after another. After the last one it listens until the client goes away.
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

/// What clients said over WebSockets. Clones are the same log.
#[derive(Clone, Debug, Default)]
pub struct SocketLog(Arc<(Mutex<Vec<ClientFrame>>, Notify)>);

/// Something that a client said.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientFrame {
    /// The connection became a WebSocket.
    Opened,
    /// A text: its JSON, null when it is none.
    Text(Value),
    /// The answer to a ping.
    Pong(Vec<u8>),
    /// The client closes the connection.
    Close {
        /// Why, as a number.
        code: u16,
        /// Why, in words.
        reason: String,
    },
}

impl SocketLog {
    /// All that was said so far, by all clients.
    pub fn frames(&self) -> Vec<ClientFrame> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The texts so far.
    pub fn texts(&self) -> Vec<Value> {
        let text = |frame: ClientFrame| match frame {
            ClientFrame::Text(text) => Some(text),
            _ => None,
        };
        self.frames().into_iter().filter_map(text).collect()
    }

    /// How many WebSockets were opened.
    pub fn n_opened(&self) -> usize {
        self.frames().iter().filter(|frame| **frame == ClientFrame::Opened).count()
    }

    /// Waits until something was said.
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
    /// A server that only listens.
    pub fn new(log: &SocketLog) -> Self {
        Self { steps: Vec::new(), log: log.clone() }
    }

    /// Waits for a text.
    #[must_use]
    pub fn hear(self) -> Self {
        self.step(SocketStep::Hear)
    }

    /// Sends events, each in a text of its own.
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

    /// Says that it closes the connection, and closes it. Any number will do, also those that must not be sent.
    #[must_use]
    pub fn close(self, code: u16, reason: &str) -> Self {
        self.step(SocketStep::Close { code, reason: reason.to_owned() })
    }

    /// Closes the connection without a word.
    #[must_use]
    pub fn drop(self) -> Self {
        self.step(SocketStep::Drop)
    }

    fn step(mut self, step: SocketStep) -> Self {
        self.steps.push(step);
        self
    }
}

/// Makes a connection a WebSocket and plays the script to its end.
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

/// The next message of the client; clients write each in one frame.
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
