//! A server on this machine that receives the browser's redirect after the sign-in.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::paste::{self, Pasted};

/// Maximum bytes of a request that are read.
const MAX_REQUEST: usize = 16 * 1024;
/// Time limit of a request.
const REQUEST_TIME: Duration = Duration::from_secs(10);
/// Maximum number of concurrent connections.
const MAX_CONNECTIONS: usize = 16;

/// A server that waits for one browser. Dropping it closes it.
#[derive(Debug)]
pub(super) struct Callback {
    listener: TcpListener,
    port: u16,
    path: &'static str,
    state: String,
}

/// Result of a redirect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Returned {
    /// With a code.
    Code(String),
    /// The user or the server refused, for this reason.
    Refused(String),
}

impl Callback {
    /// Starts listening.
    ///
    /// # Errors
    /// Returns an error if the port is in use, or the host is not this machine.
    pub(super) async fn listen(host: &str, port: u16, path: &'static str, state: &str) -> io::Result<Self> {
        let listener = TcpListener::bind((host, port)).await?;
        let port = listener.local_addr()?.port();
        Ok(Self { listener, port, path, state: state.to_owned() })
    }

    /// Returns the port that it listens on.
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Waits for the browser. Requests with another state or path are rejected, and the wait continues.
    pub(super) async fn wait(&self) -> Returned {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept(), if connections.len() < MAX_CONNECTIONS => {
                    let Ok((stream, _)) = accepted else {
                        // Out of sockets for the moment; open connections end soon.
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        continue;
                    };
                    let (path, state) = (self.path, self.state.clone());
                    connections.spawn(async move {
                        tokio::time::timeout(REQUEST_TIME, serve(stream, path, &state)).await.ok().flatten()
                    });
                }
                Some(done) = connections.join_next() => {
                    if let Ok(Some(returned)) = done {
                        return returned;
                    }
                }
            }
        }
    }
}

/// Serves one request.
async fn serve(mut stream: TcpStream, path: &str, state: &str) -> Option<Returned> {
    let target = read_target(&mut stream).await?;
    let (asked, query) = target.split_once('?').unwrap_or((&target, ""));
    let (status, title, text, returned) =
        if asked == path { judge(paste::from_query(query), state) } else { not_found() };
    let page = page(title, &text);
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\ncache-control: no-store\r\n\
         connection: close\r\n\r\n",
        page.len()
    );
    // The browser may be gone; its result is valid anyway.
    let _result = stream.write_all((head + &page).as_bytes()).await;
    let _result = stream.shutdown().await;
    returned
}

type CallbackReply = (&'static str, &'static str, String, Option<Returned>);

fn not_found() -> CallbackReply {
    ("404 Not Found", "Not found", "There is nothing here.".into(), None)
}

fn judge(pasted: Pasted, state: &str) -> CallbackReply {
    let failed = |text: String, returned| ("400 Bad Request", "Sign-in failed", text, returned);
    if pasted.state.as_deref() != Some(state) {
        return failed("The state does not match. Start the sign-in again.".into(), None);
    }
    match (pasted.code, pasted.error) {
        (_, Some(error)) => failed(format!("The server says: {error}"), Some(Returned::Refused(error))),
        (Some(code), None) => {
            ("200 OK", "Signed in", "You are signed in and can close this window.".into(), Some(Returned::Code(code)))
        }
        (None, None) => failed("The code is missing. Start the sign-in again.".into(), None),
    }
}

/// Returns the target of a GET request, or `None` if it is not one or too long.
async fn read_target(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 2048];
    while !bytes.windows(4).any(|four| four == b"\r\n\r\n") {
        let n = stream.read(&mut buffer).await.ok().filter(|n| *n > 0)?;
        bytes.extend_from_slice(&buffer[..n]);
        if bytes.len() > MAX_REQUEST {
            return None;
        }
    }
    let line = bytes.split(|byte| *byte == b'\r').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    (words.next() == Some("GET")).then(|| words.next().map(str::to_owned))?
}

fn page(title: &str, text: &str) -> String {
    let (title, text) = (escaped(title), escaped(text));
    format!(
        "<!doctype html><html><head><meta charset=\"utf-8\"><title>{title}</title></head>\
         <body><h1>{title}</h1><p>{text}</p></body></html>"
    )
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn get(port: u16, request: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        // A connection that is closed with unread bytes may be reset.
        let _result = stream.read_to_string(&mut answer).await;
        answer
    }

    #[tokio::test]
    async fn only_the_right_browser_ends_the_wait() {
        let server = Callback::listen("127.0.0.1", 0, "/cb", "S").await.unwrap();
        let port = server.port();
        let visits = async {
            let target = |target: &str| format!("GET {target} HTTP/1.1\r\nhost: x\r\n\r\n");
            assert!(get(port, &target("/other?code=a&state=S")).await.starts_with("HTTP/1.1 404"));
            assert!(get(port, &target("/cb?code=a&state=T")).await.starts_with("HTTP/1.1 400"));
            assert!(get(port, &target("/cb?state=S")).await.starts_with("HTTP/1.1 400"));
            assert_eq!(get(port, "POST /cb?code=a&state=S HTTP/1.1\r\n\r\n").await, "");
            assert_eq!(get(port, &format!("GET /{} HTTP/1.1", "x".repeat(40_000))).await, "");
            assert!(get(port, &target("/cb?code=a%20b&state=S")).await.contains("You are signed in"));
        };
        let (returned, ()) = tokio::join!(server.wait(), visits);
        assert_eq!(returned, Returned::Code("a b".into()));
        assert!(Callback::listen("127.0.0.1", port, "/cb", "S").await.is_err(), "the port is in use");
        drop(server);
        assert!(TcpStream::connect(("127.0.0.1", port)).await.is_err(), "it is closed");
    }

    #[tokio::test]
    async fn server_messages_are_escaped() {
        let server = Callback::listen("127.0.0.1", 0, "/cb", "S").await.unwrap();
        let request = "GET /cb?state=S&error=%3Cscript%3E HTTP/1.1\r\n\r\n";
        let (returned, page) = tokio::join!(server.wait(), get(server.port(), request));
        assert_eq!(returned, Returned::Refused("<script>".into()));
        assert!(page.contains("&lt;script&gt;") && !page.contains("<script>"), "{page}");
    }
}
