//! Recorded requests.

use std::io;

use serde_json::Value;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

const MAX_HEADERS: usize = 128;

/// A recorded request.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Lower-case names, and values, in order of arrival.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Recorded {
    /// Returns the value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Returns the body as JSON, or null if it is not.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }
}

/// The part of a request before the body.
struct RequestHead {
    request: Recorded,
    bytes: usize,
    body: BodyKind,
}

enum BodyKind {
    Length(usize),
    Chunked,
}

/// Reads the next request; returns `None` if the connection ended instead. Later bytes stay in `buffer`.
pub(super) async fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<Option<Recorded>> {
    let head = loop {
        if let Some(head) = parse_head(buffer)? {
            break head;
        }
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    };
    buffer.drain(..head.bytes);
    let mut request = head.request;
    loop {
        let whole = match head.body {
            BodyKind::Length(length) => (buffer.len() >= length).then(|| (buffer[..length].to_vec(), length)),
            BodyKind::Chunked => parse_chunks(buffer)?,
        };
        if let Some((body, taken)) = whole {
            buffer.drain(..taken);
            request.body = body;
            return Ok(Some(request));
        }
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
}

fn invalid(why: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.to_string())
}

fn parse_head(buffer: &[u8]) -> io::Result<Option<RequestHead>> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(bytes) = parsed.parse(buffer).map_err(invalid)? else { return Ok(None) };
    let headers = parsed.headers.iter();
    let headers: Vec<(String, String)> = headers
        .map(|header| (header.name.to_ascii_lowercase(), String::from_utf8_lossy(header.value).into_owned()))
        .collect();
    let request = Recorded {
        method: parsed.method.unwrap_or("").to_owned(),
        path: parsed.path.unwrap_or("").to_owned(),
        headers,
        body: Vec::new(),
    };
    let body = if request.header("transfer-encoding").is_some_and(|coding| coding.contains("chunked")) {
        BodyKind::Chunked
    } else {
        BodyKind::Length(request.header("content-length").map_or(Ok(0), |n| n.trim().parse().map_err(invalid))?)
    };
    Ok(Some(RequestHead { request, bytes, body }))
}

/// Parses a chunked body and returns it with its length; `None` if it is incomplete. Trailers are not supported.
fn parse_chunks(buffer: &[u8]) -> io::Result<Option<(Vec<u8>, usize)>> {
    let (body, length) = parse_arrived_chunks(buffer)?;
    Ok(length.map(|length| (body, length)))
}

/// Parses the chunks that have arrived; also returns the length of the whole body, if it is complete.
fn parse_arrived_chunks(buffer: &[u8]) -> io::Result<(Vec<u8>, Option<usize>)> {
    let mut body = Vec::new();
    let mut at = 0;
    loop {
        let httparse::Status::Complete((used, size)) =
            httparse::parse_chunk_size(&buffer[at..]).map_err(|_| invalid("bad chunk size"))?
        else {
            return Ok((body, None));
        };
        let size = usize::try_from(size).map_err(invalid)?;
        let (from, end) = (at + used, at + used + size + 2);
        if buffer.len() < end {
            return Ok((body, None));
        }
        body.extend_from_slice(&buffer[from..from + size]);
        at = end;
        if size == 0 {
            return Ok((body, Some(at)));
        }
    }
}

/// Parses status and body of a response, which may be incomplete; `None` before the end of its headers or if it is malformed.
pub(super) fn parse_response(bytes: &[u8]) -> Option<(u16, Vec<u8>)> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(head) = response.parse(bytes).ok()? else { return None };
    let is_chunked = (response.headers.iter())
        .any(|header| header.name.eq_ignore_ascii_case("transfer-encoding") && header.value.ends_with(b"chunked"));
    let body = match is_chunked {
        true => parse_arrived_chunks(&bytes[head..]).ok()?.0,
        false => bytes[head..].to_vec(),
    };
    Some((response.code?, body))
}
