//! The same answer through the clients of other crates.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use pinch_testing::wires::Wire;
use serde_json::Value;

use super::super::Figure;
use super::super::decoding::CHUNK;
use super::{AnthropicServer, CompletionsServer, GoogleServer, N_DELTAS, ResponsesServer, speed};
use crate::cargo;
use crate::transcript::{self, PIECE};

const ROUNDS: usize = 5;
/// The clients, ours first.
const CLIENTS: [&str; 3] = ["pinch", "genai", "rig"];
/// The formats that all clients support.
const FORMATS: [&dyn Wire; 4] =
    [&AnthropicServer, &CompletionsServer, &ResponsesServer::OpenAi, &GoogleServer::Generative];

/// Builds the clients. `None`, with a message, if that is not possible, for example without a registry.
pub(super) fn build() -> anyhow::Result<Option<PathBuf>> {
    let target = cargo::target_dir()?.join("peers");
    let target_text = target.to_str().context("the target folder is no text")?;
    let built =
        cargo::run(&["build", "--release", "--manifest-path", "dev/peers/Cargo.toml", "--target-dir", target_text])?;
    if !built {
        println!("==> the peers cannot be built: going on without them");
        return Ok(None);
    }
    Ok(Some(target.join("release/pinch-peers")))
}

/// The best seconds of one client.
#[derive(Clone, Copy)]
struct Best {
    clock: f64,
    processor: f64,
}

/// Measures every client with every format, and how far ours is ahead.
pub(super) fn measure(program: &Path) -> anyhow::Result<Vec<Figure>> {
    println!("\n{N_DELTAS} deltas of text from loopback: M delta/s by the clock, and by the client's processor time");
    println!("{:<26} {:<8} {:>9} {:>10}", "format", "client", "clock", "processor");
    let mut figures = Vec::new();
    for wire in FORMATS {
        let body = match wire.api() {
            "google-generative-ai" => transcript::google(N_DELTAS),
            _ => transcript::answer(wire, N_DELTAS),
        };
        let best = with_server(&body, |url| Ok(ask_all(program, wire.api(), url)))?;
        for (client, best) in CLIENTS.iter().zip(&best) {
            match best {
                Ok(best) => println!(
                    "{:<26} {client:<8} {:>9.2} {:>10.2}",
                    wire.api(),
                    speed(best.clock),
                    speed(best.processor)
                ),
                Err(why) => println!("{:<26} {client:<8} left out: {why}", wire.api()),
            }
        }
        let [ours, theirs @ ..] = &best[..] else { continue };
        let ours = ours.as_ref().map_err(|why| anyhow::anyhow!("our own client failed: {why}"))?;
        for (client, best) in CLIENTS[1..].iter().zip(theirs) {
            if let Ok(best) = best {
                let what = |by: &str| format!("{}, ahead of {client} by {by}", wire.api());
                figures.push(Figure::at_least(what("the clock"), best.clock / ours.clock, 1.0, "times"));
                figures.push(Figure::at_least(what("processor time"), best.processor / ours.processor, 1.0, "times"));
            }
        }
    }
    Ok(figures)
}

/// The best result of each client, or why it has none. The clients take turns so that disturbances affect all of them.
fn ask_all(program: &Path, api: &str, url: &str) -> Vec<Result<Best, String>> {
    let mut best = vec![Ok(Best { clock: f64::INFINITY, processor: f64::INFINITY }); CLIENTS.len()];
    for _ in 0..ROUNDS {
        for (client, best) in CLIENTS.iter().zip(&mut best) {
            let Ok(so_far) = best else { continue };
            match ask(program, client, api, url) {
                Ok(now) => {
                    so_far.clock = so_far.clock.min(now.clock);
                    so_far.processor = so_far.processor.min(now.processor);
                }
                Err(error) => *best = Err(format!("{error:#}")),
            }
        }
    }
    best
}

/// One answer through one client.
fn ask(program: &Path, client: &str, api: &str, url: &str) -> anyhow::Result<Best> {
    let output = Command::new(program).args([client, api, url]).env_clear().output().context("cannot start it")?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let told: Value = serde_json::from_slice(&output.stdout)?;
    let number = |name: &str| told[name].as_f64().with_context(|| format!("no {name}"));
    let (n_deltas, n_bytes) = (number("deltas")?, number("bytes")?);
    ensure!(n_bytes == (N_DELTAS * PIECE) as f64, "{n_bytes} bytes of text arrived");
    ensure!(n_deltas == N_DELTAS as f64, "{n_deltas} deltas arrived");
    Ok(Best { clock: number("seconds")?, processor: number("cpuSeconds")? })
}

/// Runs `work` while a server answers every request with this body.
fn with_server<T>(body: &[u8], work: impl FnOnce(&str) -> anyhow::Result<T>) -> anyhow::Result<T> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let (response, done) = (response(body), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for stream in listener.incoming() {
                if done.load(Ordering::Relaxed) {
                    break;
                }
                // A client that disconnected has counted nothing, and reports that itself.
                if let Err(error) = stream.and_then(|stream| serve(stream, &response)) {
                    println!("the server: {error}");
                }
            }
        });
        let result = work(&format!("http://{address}"));
        done.store(true, Ordering::Relaxed);
        // Wakes up the server so that it notices the end.
        drop(TcpStream::connect(address));
        result
    })
}

/// A complete response with a chunked body.
fn response(body: &[u8]) -> Vec<u8> {
    let mut response = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n".to_vec();
    for chunk in body.chunks(CHUNK) {
        response.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        response.extend_from_slice(chunk);
        response.extend_from_slice(b"\r\n");
    }
    response.extend_from_slice(b"0\r\n\r\n");
    response
}

/// Reads one complete request and answers it.
fn serve(mut stream: TcpStream, response: &[u8]) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let (mut request, mut buffer) = (Vec::new(), [0; 4096]);
    while !is_whole(&request) {
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            n => request.extend_from_slice(&buffer[..n]),
        }
    }
    stream.write_all(response)
}

/// Whether a request has arrived with its whole body.
fn is_whole(request: &[u8]) -> bool {
    let Some(end) = memchr::memmem::find(request, b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&request[..end]).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
    request.len() >= end + 4 + length.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_whole_with_its_body() {
        let request = b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}";
        let whole: Vec<usize> = (0..=request.len()).filter(|&n| is_whole(&request[..n])).collect();
        assert_eq!(whole, [request.len()]);
        assert!(is_whole(b"GET / HTTP/1.1\r\n\r\n"));
    }

    #[test]
    fn the_server_answers_with_the_body_in_chunks() {
        let body = vec![b'x'; CHUNK + 1];
        let answer = with_server(&body, |url| {
            let mut stream = TcpStream::connect(url.trim_start_matches("http://"))?;
            stream.write_all(b"GET / HTTP/1.1\r\n\r\n")?;
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer)?;
            Ok(answer)
        });
        let answer = String::from_utf8(answer.unwrap()).unwrap();
        let (_, chunks) = answer.split_once("\r\n\r\n").unwrap();
        assert_eq!(chunks, format!("4000\r\n{}\r\n1\r\nx\r\n0\r\n\r\n", "x".repeat(CHUNK)));
    }
}
