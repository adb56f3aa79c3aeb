//! YAML front matter of Markdown files.

use std::fs::File;
use std::io::{self, Read as _};

use pinch_stdx::text::to_line_feeds;
use serde_json::{Map, Value};

use super::collect::ListedFile;

/// Front matter and the text after it.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct FrontMatter {
    /// Members of the front matter; empty if there is none.
    pub head: Map<String, Value>,
    /// The text after it, trimmed; the complete unchanged text if there is none.
    pub body: String,
}

/// Splits a file, normalizing line breaks. Front matter begins with `---` on the first line and ends with the next such line; if it is not
/// closed, it is text.
///
/// # Errors
/// Describes the YAML error.
pub fn parse(text: &str) -> Result<FrontMatter, String> {
    let text = to_line_feeds(text.trim_start_matches('\u{FEFF}'));
    let Some((yaml, body)) = split(&text) else { return Ok(FrontMatter { head: Map::new(), body: text.into_owned() }) };
    let body = body.trim().to_owned();
    if yaml.trim().is_empty() {
        return Ok(FrontMatter { head: Map::new(), body });
    }
    match serde_saphyr::from_str::<Value>(yaml) {
        Ok(Value::Object(head)) => Ok(FrontMatter { head, body }),
        Ok(Value::Null) => Ok(FrontMatter { head: Map::new(), body }),
        Ok(_) => Err("the front matter is not a map of keys to values".to_owned()),
        // The first line has the message; the others show the position.
        Err(error) => Err(error.to_string().lines().next().unwrap_or_default().to_owned()),
    }
}

/// Bytes read at a time until the front matter is closed.
const CHUNK: usize = 4 * 1024;

/// Reads a file up to the end of its front matter, so that long texts cost nothing; nothing of the body is returned. Without front matter,
/// only the start is read.
///
/// # Errors
/// The I/O error; front matter without an end within `max_bytes` is also an error.
pub(super) fn read_head(file: &ListedFile, max_bytes: u64) -> io::Result<String> {
    let mut file = file.open()?;
    let mut bytes = Vec::new();
    loop {
        // One system call per chunk: there may be very many files.
        let n_before = bytes.len();
        bytes.resize(n_before + CHUNK, 0);
        let n_read = read_some(&mut file, &mut bytes[n_before..])?;
        bytes.truncate(n_before + n_read);
        let start = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&bytes);
        let n_before_start = bytes.len() - start.len();
        let head = start.strip_prefix(b"---");
        // Either may close it, whichever comes first.
        let ends = head.map(|head| [b"\n---", b"\r---"].map(|end| memchr::memmem::find(head, end)));
        let end = ends.and_then(|ends| ends.into_iter().flatten().min());
        let is_read = n_read == 0 || head.is_none() || end.is_some();
        if let Some(end) = end {
            bytes.truncate(n_before_start + 3 + end + 4);
        }
        if is_read {
            return Ok(String::from_utf8_lossy(&bytes).into_owned());
        }
        if bytes.len() as u64 > max_bytes {
            return Err(io::Error::other(format!("is larger than {max_bytes} bytes")));
        }
    }
}

fn read_some(file: &mut File, into: &mut [u8]) -> io::Result<usize> {
    loop {
        match file.read(into) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// Splits front matter from the text after it.
fn split(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix("---")?;
    let end = rest.find("\n---")?;
    Some((&rest[..end], &rest[end + 4..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn front_matter_and_bodies_are_split() {
        let read = parse("---\r\nname: a\r\nflag: true\r\n---\r\n\r\nBody\r\nmore\r\n").unwrap();
        assert_eq!((Value::Object(read.head), read.body.as_str()), (json!({"name": "a", "flag": true}), "Body\nmore"));
        assert_eq!(parse("\n\ntext\n").unwrap().body, "\n\ntext\n");
        assert_eq!(parse("---\nname: a\ntext").unwrap().body, "---\nname: a\ntext", "an open head is text");
        assert_eq!(parse("---\n---\nx").unwrap().body, "x");
        assert!(parse("---\n- a\n---\nx").is_err());
        assert!(parse("---\na: [1\n---\nx").is_err());
    }

    #[test]
    fn little_more_than_the_front_matter_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let file = ListedFile::named(dir.path().join("a.md"));
        let text = format!("---\ndescription: {}\n---\n{}", "d".repeat(20_000), "b\n".repeat(50_000));
        std::fs::write(&file.path, &text).unwrap();
        let read = read_head(&file, 1 << 20).unwrap();
        assert!(read.len() < 20_000 + 2 * CHUNK, "{}", read.len());
        assert_eq!(parse(&read).unwrap().head["description"], "d".repeat(20_000));
        assert!(read_head(&file, 10_000).is_err());
        assert!(read_head(&ListedFile::named(dir.path().join("none")), 10).is_err());
    }
}
