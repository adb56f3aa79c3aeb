//! A model server that streams fifty deltas a second to every client for as long as it listens; depending on the prompt it sends short
//! answers, or many that end at once. It is a separate process so that its processor time is not counted for the runs.

use std::io::{BufRead as _, BufReader, ErrorKind, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use pinch_testing::wires::anthropic::AnthropicResponse;
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Deltas per second for each client.
pub(super) const RATE: usize = 50;

/// Number of groups in which clients are served in turn, so that deltas do not come in bursts.
const GROUPS: usize = 20;

pub(super) const PIECE: &str = "eighteen letters, ";

/// Path of a base URL whose answers use chunked transfer coding, as most servers do; others last until the connection closes.
pub(super) const CHUNKED: &str = "/chunked";

/// Number of deltas after which a short answer ends.
const SHORT: usize = 3;

/// Text in a prompt that requests a short answer.
pub(super) const SHORT_PROMPT: &str = "short answer";

/// Text in a prompt that requests an answer which ends together with [`TOGETHER`] others.
pub(super) const TOGETHER_PROMPT: &str = "answer together";

/// How many answers end at once.
pub(super) const TOGETHER: usize = 100;

/// The number of last frames of an answer: the last delta and the three that end it.
const N_LAST_FRAMES: usize = 4;

/// A server process, which ends when this value is dropped.
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
        // It may have exited already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The server process: prints its address and serves until it is killed.
pub(in crate::bench) fn serve() -> anyhow::Result<()> {
    raise_file_limit();
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        println!("http://{}", listener.local_addr()?);
        std::io::stdout().flush()?;
        let listeners: Arc<Mutex<Vec<Listener>>> = Arc::default();
        let held: Arc<Mutex<Vec<HeldAnswer>>> = Arc::default();
        let mut tasks = JoinSet::new();
        tasks.spawn(tick(Arc::clone(&listeners)));
        loop {
            let (stream, _) = listener.accept().await?;
            let (listeners, held) = (Arc::clone(&listeners), Arc::clone(&held));
            tasks.spawn(async move {
                match begin(stream).await {
                    Some(UnfinishedAnswer::Endless(listener)) => {
                        listeners.lock().unwrap_or_else(PoisonError::into_inner).push(listener);
                    }
                    Some(UnfinishedAnswer::Held(answer)) => {
                        let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
                        held.push(answer);
                        if held.len() == TOGETHER {
                            held.drain(..).for_each(HeldAnswer::end);
                        }
                    }
                    None => {}
                }
            });
            while tasks.try_join_next().is_some() {}
        }
    })
}

/// An answer that has not ended.
enum UnfinishedAnswer {
    Endless(Listener),
    Held(HeldAnswer),
}

/// A client of an answer without an end.
struct Listener {
    stream: TcpStream,
    is_chunked: bool,
}

/// An answer whose end has not been sent yet.
struct HeldAnswer {
    stream: TcpStream,
    end: String,
}

impl HeldAnswer {
    /// Sends the end, for which the socket has room.
    fn end(self) {
        if let Err(error) = self.stream.try_write(self.end.as_bytes()) {
            eprintln!("an answer does not end: {error}");
        }
    }
}

/// Reads a request and begins the answer; `None` if the answer is already complete.
async fn begin(mut stream: TcpStream) -> Option<UnfinishedAnswer> {
    let mut request = Vec::new();
    while !is_whole(&request) {
        if stream.read_buf(&mut request).await.ok()? == 0 {
            return None;
        }
    }
    // The request also contains earlier prompts of the session.
    let last = |prompt: &str| memchr::memmem::rfind(&request, prompt.as_bytes());
    let (short, together) = (last(SHORT_PROMPT), last(TOGETHER_PROMPT));
    let is_chunked = request.starts_with(format!("POST {CHUNKED}/").as_bytes());
    let coding = if is_chunked { "transfer-encoding: chunked\r\n" } else { "" };
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n{coding}connection: close\r\n\r\n");
    let (mut answer, is_endless) = if short.is_some() || together.is_some() {
        (AnthropicResponse::new("msg_1").with_chunks(SHORT).text(&PIECE.repeat(SHORT)).stop("end_turn"), false)
    } else {
        let mut frames = AnthropicResponse::new("msg_1").with_chunks(1).text(PIECE).frames();
        // The block is left open: its end would follow the first chunk.
        frames.pop();
        (frames, true)
    };
    let end = (together > short).then(|| answer.split_off(answer.len().saturating_sub(N_LAST_FRAMES)).concat());
    stream.set_nodelay(true).ok()?;
    let answer = answer.concat();
    let answer = if is_chunked { chunk(&answer) } else { answer };
    tokio::io::AsyncWriteExt::write_all(&mut stream, (head + &answer).as_bytes()).await.ok()?;
    match end {
        Some(end) => Some(UnfinishedAnswer::Held(HeldAnswer { stream, end })),
        None => is_endless.then_some(UnfinishedAnswer::Endless(Listener { stream, is_chunked })),
    }
}

fn is_whole(request: &[u8]) -> bool {
    let Some(end) = memchr::memmem::find(request, b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&request[..end]).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
    request.len() >= end + 4 + length.unwrap_or(0)
}

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

async fn tick(listeners: Arc<Mutex<Vec<Listener>>>) {
    let delta = serde_json::json!({"type": "text_delta", "text": PIECE});
    let frame = pinch_testing::wires::anthropic::frame(
        &serde_json::json!({"type": "content_block_delta", "index": 0, "delta": delta}),
    );
    let frames = [frame.clone(), chunk(&frame)];
    let mut every = tokio::time::interval(Duration::from_secs(1) / (RATE * GROUPS) as u32);
    every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Burst);
    for turn in (0..GROUPS).cycle() {
        every.tick().await;
        let mut listeners = listeners.lock().unwrap_or_else(PoisonError::into_inner);
        let mut gone = Vec::new();
        for (at, listener) in listeners.iter().enumerate().skip(turn).step_by(GROUPS) {
            match listener.stream.try_write(frames[usize::from(listener.is_chunked)].as_bytes()) {
                // A client that does not keep up misses whole deltas; socket buffers have room for many.
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

/// Every run needs two files and a connection.
pub(super) fn raise_file_limit() {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let raised = rustix::process::Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(error) = rustix::process::setrlimit(rustix::process::Resource::Nofile, raised) {
        eprintln!("the limit of open files stays: {error}");
    }
}
