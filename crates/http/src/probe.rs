//! Diagnoses an address that does not respond as expected, with one more request without credentials.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Uri;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Time limit for the whole diagnosis.
const LIMIT: Duration = Duration::from_secs(2);
/// Maximum bytes of a response that are read.
const MAX_BYTES: usize = 2 * 1024;
/// Maximum characters of a line that are shown.
const MAX_SHOWN: usize = 160;

/// Returns a server's response to a plain request: its first line, and the first line of its body if it speaks HTTP.
pub(super) async fn server(url: &str) -> Option<String> {
    let uri: Uri = url.parse().ok()?;
    let (host, port) = place(&uri)?;
    let request = format!("GET / HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n");
    ask(&host, port, &request).await
}

/// Returns a proxy's response to a request for a tunnel to the server of a URL.
pub(super) async fn proxy(proxy: &str, url: &str) -> Option<String> {
    let with_scheme = if proxy.contains("://") { proxy.to_owned() } else { format!("http://{proxy}") };
    let proxy: Uri = with_scheme.parse().ok()?;
    if proxy.scheme_str() != Some("http") {
        return None;
    }
    let target: Uri = url.parse().ok()?;
    let (target, target_port) = place(&target)?;
    let user_info = proxy.authority()?.as_str().rsplit_once('@').map(|(user_info, _)| user_info);
    let authorisation = user_info
        .map(|user_info| format!("Proxy-Authorization: Basic {}\r\n", STANDARD.encode(user_info)))
        .unwrap_or_default();
    let request =
        format!("CONNECT {target}:{target_port} HTTP/1.1\r\nHost: {target}:{target_port}\r\n{authorisation}\r\n");
    let (host, port) = place(&proxy)?;
    ask(&host, port, &request).await
}

fn place(uri: &Uri) -> Option<(String, u16)> {
    let usual = if uri.scheme_str() == Some("https") { 443 } else { 80 };
    Some((uri.host()?.to_owned(), uri.port_u16().unwrap_or(usual)))
}

async fn ask(host: &str, port: u16, request: &str) -> Option<String> {
    let asking = async {
        let mut stream = TcpStream::connect((host.trim_matches(['[', ']']), port)).await.ok()?;
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut answer = Vec::new();
        // Some servers keep waiting for more input: what they have sent so far is enough.
        let reading = async {
            let mut piece = [0; 512];
            while answer.len() < MAX_BYTES && !is_enough(&answer) {
                match stream.read(&mut piece).await {
                    Ok(n) if n > 0 => answer.extend_from_slice(&piece[..n]),
                    _ => break,
                }
            }
        };
        let _is_late = tokio::time::timeout(LIMIT / 2, reading).await;
        in_words(&answer)
    };
    tokio::time::timeout(LIMIT, asking).await.ok().flatten()
}

/// Returns whether the lines to be shown have arrived.
fn is_enough(answer: &[u8]) -> bool {
    let (head, body) = split(answer);
    if answer.starts_with(b"HTTP/") { body.contains(&b'\n') } else { head.contains(&b'\n') }
}

fn split(answer: &[u8]) -> (&[u8], &[u8]) {
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n");
    end.map_or((answer, &[]), |end| (&answer[..end], &answer[end + 4..]))
}

fn in_words(answer: &[u8]) -> Option<String> {
    let (head, body) = split(answer);
    let first = |bytes: &[u8]| {
        let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        let shown: String = line.chars().filter(|c| !c.is_control()).take(MAX_SHOWN).collect();
        Some(shown.trim().to_owned()).filter(|line| !line.is_empty())
    };
    let status = first(head)?;
    let said = if answer.starts_with(b"HTTP/") { first(body) } else { None };
    Some(said.map_or_else(|| format!("\"{status}\""), |said| format!("\"{status}\": \"{said}\"")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_and_first_body_line_are_shown() {
        for (answer, words) in [
            ("", None),
            ("SSH-2.0-OpenSSH_9.6\r\nmore", Some("\"SSH-2.0-OpenSSH_9.6\"")),
            ("HTTP/1.1 407 Auth\r\na: b\r\n\r\nno entry\nmore", Some("\"HTTP/1.1 407 Auth\": \"no entry\"")),
            ("HTTP/1.1 502 Bad\r\n\r\n", Some("\"HTTP/1.1 502 Bad\"")),
            ("\u{1b}]0;title\u{7}x", Some("\"]0;titlex\"")),
        ] {
            assert_eq!(in_words(answer.as_bytes()).as_deref(), words, "{answer:?}");
        }
    }
}
