//! The YAML block at the head of a Markdown file.

use serde_json::{Map, Value};

/// A file's head and the text behind it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// The members of the head; none when there is no head.
    pub head: Map<String, Value>,
    /// The text behind it, trimmed; without a head all of it as it is.
    pub body: String,
}

/// Takes a file apart. Line ends become line feeds. A head begins with `---` on the first line and ends with the next such line; one that is
/// not closed is text.
///
/// # Errors
/// What is wrong with the YAML, in words.
pub fn parse(text: &str) -> Result<Document, String> {
    let text = text.trim_start_matches('\u{FEFF}').replace("\r\n", "\n").replace('\r', "\n");
    let Some((yaml, body)) = split(&text) else { return Ok(Document { head: Map::new(), body: text }) };
    let body = body.trim().to_owned();
    if yaml.trim().is_empty() {
        return Ok(Document { head: Map::new(), body });
    }
    match serde_saphyr::from_str::<Value>(yaml) {
        Ok(Value::Object(head)) => Ok(Document { head, body }),
        Ok(Value::Null) => Ok(Document { head: Map::new(), body }),
        Ok(_) => Err("the head is no mapping of names to values".to_owned()),
        // The first line says it; the others show the place.
        Err(error) => Err(error.to_string().lines().next().unwrap_or_default().to_owned()),
    }
}

/// The head and what follows it.
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
    fn heads_and_bodies() {
        let read = parse("---\r\nname: a\r\nflag: true\r\n---\r\n\r\nBody\r\nmore\r\n").unwrap();
        assert_eq!((Value::Object(read.head), read.body.as_str()), (json!({"name": "a", "flag": true}), "Body\nmore"));
        assert_eq!(parse("\n\ntext\n").unwrap().body, "\n\ntext\n");
        assert_eq!(parse("---\nname: a\ntext").unwrap().body, "---\nname: a\ntext", "an open head is text");
        assert_eq!(parse("---\n---\nx").unwrap().body, "x");
        assert!(parse("---\n- a\n---\nx").is_err());
        assert!(parse("---\na: [1\n---\nx").is_err());
    }
}
