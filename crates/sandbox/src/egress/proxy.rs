//! An HTTP proxy that connects to listed servers only.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream, lookup_host};
use tokio::task::JoinSet;
use tokio::time::timeout;
use url::{Host, Url};

use crate::domains::{self, DomainList};

/// Maximum bytes of a request's head.
const MAX_HEAD: usize = 64 * 1024;
/// Maximum headers of a request.
const MAX_HEADERS: usize = 128;
/// Maximum simultaneous connections; others wait.
const MAX_CONNECTIONS: usize = 128;
/// How long a request's head, and each connection to an address, may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// Headers for the proxy, or replaced by it.
const REPLACED: [&str; 5] = ["host", "connection", "keep-alive", "proxy-connection", "proxy-authorization"];

/// Why a request is not forwarded.
#[derive(Debug)]
struct ProxyRefusal {
    status: &'static str,
    reason: String,
}

/// A request for a server.
struct ProxiedRequest {
    host: Host,
    port: u16,
    /// What the server receives first; `None` for a tunnel.
    head: Option<Vec<u8>>,
}

/// Serves the connections to a listener until it is dropped.
pub(super) async fn serve(listener: TcpListener, list: Arc<DomainList>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => match accepted {
                Ok((client, _)) => {
                    let list = Arc::clone(&list);
                    connections.spawn(async move {
                        if let Err(error) = forward(client, &list).await {
                            tracing::debug!(%error, "a connection of a sandboxed command");
                        }
                    });
                }
                // Like too many open files: wait until some are closed.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Answers one connection.
async fn forward(mut client: TcpStream, list: &DomainList) -> io::Result<()> {
    let mut received = Vec::new();
    let request = match timeout(PATIENCE, read_request(&mut client, &mut received)).await {
        Ok(request) => request?,
        Err(_) => Err(ProxyRefusal::new("408 Request Timeout", "no request arrived")),
    };
    let connected = match request {
        Ok(request) => connect(&request, list).await.map(|server| (request, server)),
        Err(refusal) => Err(refusal),
    };
    match connected {
        Ok((request, mut server)) => {
            match &request.head {
                Some(head) => server.write_all(head).await?,
                None => client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?,
            }
            server.write_all(&received).await?;
            copy_bidirectional(&mut client, &mut server).await?;
        }
        Err(refusal) => {
            tracing::info!(reason = %refusal.reason, "a sandboxed command was refused a connection");
            client.write_all(refusal.response().as_bytes()).await?;
            client.shutdown().await?;
        }
    }
    Ok(())
}

/// Reads the head of a request. What follows it stays in `received`.
async fn read_request(
    client: &mut TcpStream,
    received: &mut Vec<u8>,
) -> io::Result<Result<ProxiedRequest, ProxyRefusal>> {
    loop {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(received) {
            Ok(httparse::Status::Complete(len)) => {
                let parsed = parsed(&request);
                received.drain(..len);
                return Ok(parsed);
            }
            Ok(httparse::Status::Partial) if received.len() < MAX_HEAD => {}
            Ok(httparse::Status::Partial) => {
                return Ok(Err(ProxyRefusal::new("431 Request Header Fields Too Large", "the request is too long")));
            }
            Err(error) => return Ok(Err(ProxyRefusal::bad(&error.to_string()))),
        }
        if client.read_buf(received).await? == 0 {
            return Ok(Err(ProxyRefusal::bad("the request is incomplete")));
        }
    }
}

fn parsed(request: &httparse::Request<'_, '_>) -> Result<ProxiedRequest, ProxyRefusal> {
    let (method, target) = (request.method.unwrap_or_default(), request.path.unwrap_or_default());
    if method == "CONNECT" {
        let found = target.rsplit_once(':').and_then(|(name, port)| Some((domains::host(name)?, port.parse().ok()?)));
        let (host, port) = found.ok_or_else(|| ProxyRefusal::bad("the server is not given as name:port"))?;
        return Ok(ProxiedRequest { host, port, head: None });
    }
    let url = Url::parse(target).ok().filter(|url| url.scheme() == "http");
    let url = url.ok_or_else(|| ProxyRefusal::bad("this is a proxy for http URLs, and for https through CONNECT"))?;
    let host = url.host_str().and_then(domains::host).ok_or_else(|| ProxyRefusal::bad("the URL names no server"))?;
    let port = url.port_or_known_default().unwrap_or(80);
    let mut head = format!("{method} {}", url.path()).into_bytes();
    if let Some(query) = url.query() {
        head.extend_from_slice(format!("?{query}").as_bytes());
    }
    // The server must be the one that was checked, whatever the request's own header says.
    let authority = url.port().map_or_else(|| host.to_string(), |port| format!("{host}:{port}"));
    head.extend_from_slice(format!(" HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n").as_bytes());
    for header in request.headers.iter().filter(|header| !REPLACED.contains(&header.name.to_lowercase().as_str())) {
        head.extend_from_slice(header.name.as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(header.value);
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    Ok(ProxiedRequest { host, port, head: Some(head) })
}

/// Connects to the server of a request if it is listed. Its name is resolved once, so that the checked address is the one used.
async fn connect(request: &ProxiedRequest, list: &DomainList) -> Result<TcpStream, ProxyRefusal> {
    let (host, port) = (&request.host, request.port);
    list.check_host(host, port).map_err(|refusal| ProxyRefusal::new("403 Forbidden", &refusal.to_string()))?;
    let name = match host {
        Host::Domain(name) => name.clone(),
        Host::Ipv4(address) => address.to_string(),
        Host::Ipv6(address) => address.to_string(),
    };
    let unreachable =
        |why: &str| ProxyRefusal::new("502 Bad Gateway", &format!("{host}:{port} is not reachable: {why}"));
    let found = timeout(PATIENCE, lookup_host((name, port)))
        .await
        .map_err(|_| unreachable("its name was not resolved in time"))?;
    let mut last = unreachable("it has no address");
    for address in found.map_err(|error| unreachable(&error.to_string()))? {
        if let Err(refusal) = list.check_address(host, address.ip(), port) {
            last = ProxyRefusal::new("403 Forbidden", &refusal.to_string());
            continue;
        }
        match timeout(PATIENCE, TcpStream::connect(address)).await {
            Ok(Ok(server)) => return Ok(server),
            Ok(Err(error)) => last = unreachable(&error.to_string()),
            Err(_) => last = unreachable("the connection timed out"),
        }
    }
    Err(last)
}

impl ProxyRefusal {
    fn new(status: &'static str, reason: &str) -> Self {
        Self { status, reason: reason.to_owned() }
    }

    fn bad(reason: &str) -> Self {
        Self::new("400 Bad Request", reason)
    }

    fn response(&self) -> String {
        let body = format!("pinch sandbox: {}\n", self.reason);
        format!(
            "HTTP/1.1 {}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.status,
            body.len()
        )
    }
}

#[cfg(test)]
mod tests;
