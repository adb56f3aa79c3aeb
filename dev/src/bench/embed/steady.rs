//! A model server that streams fifty deltas a second to everyone who asks, for as long as they listen. It is a process of its own, so that
//! its time does not count as the runs'.

use std::io::{BufRead as _, BufReader, ErrorKind, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use pinch_testing::wires::anthropic::AnthropicResponse;
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Deltas a second that each listener gets.
pub(super) const RATE: usize = 50;

/// Listeners are served in so many groups, one after another, so that deltas do not come in bursts.
const GROUPS: usize = 20;

const PIECE: &str = "eighteen letters, ";

/// Deltas after which an answer that is requested as a short one ends.
const SHORT: usize = 3;

/// What a prompt holds that wants a short answer.
pub(super) const SHORT_PROMPT: &str = "short answer";

/// A server process; it ends with this value.
pub(super) struct Steady {
    child: Child,
    pub(super) url: String,
}

impl Steady {
    pub(super) fn start() -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        let mut child = command.args(["bench", "--serve-steady"]).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("no output")?).read_line(&mut line)?;
        Ok(Self { child, url: line.trim().to_owned() })
    }
}

impl Drop for Steady {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The process: prints its address and serves until it is killed.
pub(in crate::bench) fn serve() -> anyhow::Result<()> {
    raise_file_limit();
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        println!("http://{}", listener.local_addr()?);
        std::io::stdout().flush()?;
        let listeners: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let mut tasks = JoinSet::new();
        tasks.spawn(tick(Arc::clone(&listeners)));
        loop {
            let (stream, _) = listener.accept().await?;
            let listeners = Arc::clone(&listeners);
            tasks.spawn(async move {
                if let Some(stream) = begin(stream).await {
                    listeners.lock().unwrap_or_else(PoisonError::into_inner).push(stream);
                }
            });
            while tasks.try_join_next().is_some() {}
        }
    })
}

/// Reads a request and begins the answer; `None` when it is over already.
async fn begin(mut stream: TcpStream) -> Option<TcpStream> {
    let mut request = Vec::new();
    while !is_whole(&request) {
        if stream.read_buf(&mut request).await.ok()? == 0 {
            return None;
        }
    }
    let is_short = memchr::memmem::find(&request, SHORT_PROMPT.as_bytes()).is_some();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let answer = if is_short {
        AnthropicResponse::new("msg_1").in_pieces(SHORT).text(&PIECE.repeat(SHORT)).stop("end_turn")
    } else {
        let mut frames = AnthropicResponse::new("msg_1").in_pieces(1).text(PIECE).frames();
        // The block is left open: its end would follow the first piece.
        frames.pop();
        frames
    };
    stream.set_nodelay(true).ok()?;
    tokio::io::AsyncWriteExt::write_all(&mut stream, (head.to_owned() + &answer.concat()).as_bytes()).await.ok()?;
    (!is_short).then_some(stream)
}

fn is_whole(request: &[u8]) -> bool {
    let Some(end) = memchr::memmem::find(request, b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&request[..end]).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
    request.len() >= end + 4 + length.unwrap_or(0)
}

async fn tick(listeners: Arc<Mutex<Vec<TcpStream>>>) {
    let delta = serde_json::json!({"type": "text_delta", "text": PIECE});
    let frame = pinch_testing::wires::anthropic::frame(
        &serde_json::json!({"type": "content_block_delta", "index": 0, "delta": delta}),
    );
    let mut every = tokio::time::interval(Duration::from_secs(1) / (RATE * GROUPS) as u32);
    every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Burst);
    for turn in (0..GROUPS).cycle() {
        every.tick().await;
        let mut listeners = listeners.lock().unwrap_or_else(PoisonError::into_inner);
        let mut gone = Vec::new();
        for (at, stream) in listeners.iter().enumerate().skip(turn).step_by(GROUPS) {
            match stream.try_write(frame.as_bytes()) {
                // A listener that does not keep up misses deltas; whole ones, as sockets have room for many.
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => gone.push(at),
            }
        }
        for at in gone.into_iter().rev() {
            listeners.swap_remove(at);
        }
    }
}

/// Every run has two files and a connection.
pub(super) fn raise_file_limit() {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let raised = rustix::process::Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(error) = rustix::process::setrlimit(rustix::process::Resource::Nofile, raised) {
        eprintln!("the limit of open files stays: {error}");
    }
}
