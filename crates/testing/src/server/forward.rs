//! Forwarding: another server answers a request, and its response is passed on as it arrives.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::record::{self, Recorded};

/// Headers of one connection. The request goes over another one, without compression, so that the recorded response can be read.
const NOT_FORWARDED: [&str; 5] = ["accept-encoding", "connection", "content-length", "host", "transfer-encoding"];

/// A server that requests are forwarded to, and a log of them. Clones share the log.
#[derive(Clone, Debug)]
pub struct Upstream {
    /// Host and port.
    authority: String,
    log: Arc<Mutex<Vec<LoggedExchange>>>,
}

/// A forwarded request and its response.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// The request, as forwarded.
    pub request: Recorded,
    /// Status of the response; 0 if it did not arrive.
    pub status: u16,
    /// Body of the response as far as it arrived, without chunk framing.
    pub body: Vec<u8>,
}

#[derive(Clone, Debug)]
struct LoggedExchange {
    request: Recorded,
    /// The response, byte by byte as it arrived.
    response: Vec<u8>,
}

impl Upstream {
    /// Creates an upstream without requests. `url` is the address of a plain HTTP server without a path, such as `http://127.0.0.1:8080`.
    pub fn new(url: &str) -> Self {
        let authority = url.strip_prefix("http://").unwrap_or(url).trim_end_matches('/').to_owned();
        Self { authority, log: Arc::default() }
    }

    /// Returns the forwarded requests so far, in order of arrival, with what has arrived of their responses, without the first `n`.
    pub fn exchanges_since(&self, n: usize) -> Vec<Exchange> {
        self.lock().iter().skip(n).map(LoggedExchange::parsed).collect()
    }

    /// Returns the number of forwarded requests so far.
    pub fn n_exchanges(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<LoggedExchange>> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forwards a request, and passes the response on until it ends or the client has gone.
    pub(super) async fn forward(&self, client: &mut TcpStream, request: &Recorded) -> io::Result<()> {
        let nth = {
            let mut log = self.lock();
            log.push(LoggedExchange { request: request.clone(), response: Vec::new() });
            log.len() - 1
        };
        let mut server = TcpStream::connect(&self.authority).await?;
        server.write_all(&self.bytes_of(request)).await?;
        let mut piece = vec![0; 16 * 1024];
        let mut sink = [0; 64];
        loop {
            tokio::select! {
                n = server.read(&mut piece) => match n? {
                    0 => return client.shutdown().await,
                    n => {
                        // Logged first: the client may act as soon as it has the piece.
                        self.lock()[nth].response.extend_from_slice(&piece[..n]);
                        client.write_all(&piece[..n]).await?;
                    }
                },
                // A client that cancels closes its connection; dropping ours lets the server notice.
                n = client.read(&mut sink) => if n? == 0 {
                    return Ok(());
                },
            }
        }
    }

    fn bytes_of(&self, request: &Recorded) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\nhost: {}\r\n", request.method, request.path, self.authority);
        for (name, value) in request.headers.iter().filter(|(name, _)| !NOT_FORWARDED.contains(&name.as_str())) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        // The end of the connection then marks the end of the response.
        head.push_str(&format!("content-length: {}\r\nconnection: close\r\n\r\n", request.body.len()));
        [head.as_bytes(), &request.body].concat()
    }
}

impl LoggedExchange {
    fn parsed(&self) -> Exchange {
        let (status, body) = record::parse_response(&self.response).unwrap_or_default();
        Exchange { request: self.request.clone(), status, body }
    }
}

#[cfg(test)]
mod tests {
    use crate::server::{Gate, Recorded, Server, ServerReply};

    use super::*;

    /// Starts a proxy in front of a server, and sends a request to it.
    async fn ask(server: &Server) -> (Server, Upstream, TcpStream) {
        let upstream = Upstream::new(&server.url());
        let proxy = Server::start().await.unwrap();
        proxy.answer_with({
            let upstream = upstream.clone();
            move |request: &Recorded| {
                let mut changed = request.clone();
                changed.body.extend_from_slice(b", changed");
                Some(ServerReply::forward(&upstream, changed))
            }
        });
        let mut client = TcpStream::connect(("127.0.0.1", proxy.port())).await.unwrap();
        client.write_all(b"POST /x HTTP/1.1\r\nhost: x\r\nx-a: b\r\ncontent-length: 4\r\n\r\nbody").await.unwrap();
        (proxy, upstream, client)
    }

    async fn read_until(client: &mut TcpStream, end: &str) -> String {
        let mut seen = Vec::new();
        while !String::from_utf8_lossy(&seen).contains(end) {
            assert_ne!(client.read_buf(&mut seen).await.unwrap(), 0, "{}", String::from_utf8_lossy(&seen));
        }
        String::from_utf8(seen).unwrap()
    }

    #[tokio::test]
    async fn pieces_are_passed_on_as_they_arrive() {
        let server = Server::start().await.unwrap();
        let gate = Gate::new();
        server.reply(ServerReply::sse("data: 1\n\n").gate(&gate).send("data: 2\n\n"));
        let (_proxy, upstream, mut client) = ask(&server).await;
        let first = read_until(&mut client, "data: 1").await;
        assert!(first.starts_with("HTTP/1.1 200") && !first.contains("data: 2"), "{first}");
        gate.open();
        read_until(&mut client, "\r\n0\r\n\r\n").await;

        let received = &server.requests()[0];
        assert_eq!((received.path.as_str(), received.header("x-a")), ("/x", Some("b")));
        assert_eq!(String::from_utf8_lossy(&received.body), "body, changed");
        let exchanges = upstream.exchanges_since(0);
        assert_eq!(exchanges.len(), 1);
        assert_eq!(exchanges[0].status, 200);
        assert_eq!(String::from_utf8_lossy(&exchanges[0].body), "data: 1\n\ndata: 2\n\n");
        assert_eq!(exchanges[0].request.body, received.body);
    }

    #[tokio::test]
    async fn a_response_that_breaks_off_is_logged_as_far_as_it_arrived() {
        let server = Server::start().await.unwrap();
        server.reply(ServerReply::sse("data: 1\n\n").then(crate::server::Fault::Close));
        let (_proxy, upstream, mut client) = ask(&server).await;
        let mut seen = Vec::new();
        client.read_to_end(&mut seen).await.unwrap();
        assert!(String::from_utf8_lossy(&seen).contains("data: 1"), "{seen:?}");
        let exchange = &upstream.exchanges_since(0)[0];
        assert_eq!((exchange.status, exchange.body.as_slice()), (200, b"data: 1\n\n".as_slice()));
    }
}
