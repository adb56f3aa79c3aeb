//! Documents that users write: read leniently, reported precisely.

use std::fmt;
use std::path::{Path, PathBuf};

use pinch_stdx::json::{jsonc, lossy};
use serde_json::{Map, Value};

mod change;

pub use change::{ChangeError, change_object};

/// Something wrong in a user's document. It is reported, and the rest of the document still counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The document.
    pub file: PathBuf,
    /// Where in it: `line:column`, or the path of a member.
    pub at: Option<String>,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub remedy: Option<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(at) = &self.at {
            write!(f, ":{at}")?;
        }
        write!(f, ": {}", self.what)?;
        match &self.remedy {
            Some(remedy) => write!(f, ". {remedy}"),
            None => Ok(()),
        }
    }
}

impl Problem {
    /// A problem with a whole document.
    pub fn new(file: &Path, what: impl Into<String>) -> Self {
        Self { file: file.to_owned(), at: None, what: what.into(), remedy: None }
    }

    /// Says where.
    #[must_use]
    pub fn at(mut self, at: impl Into<String>) -> Self {
        self.at = Some(at.into());
        self
    }

    /// Says what to do.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}

/// Bytes of a document that is read at all.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// Reads a JSON document of a user: an object, with comments and trailing commas if need be. A missing file is an empty object.
///
/// # Errors
/// What is wrong with the document as a whole; it must not be written then.
pub fn read_object(path: &Path) -> Result<Map<String, Value>, Problem> {
    let text = match std::fs::metadata(path) {
        Ok(meta) if meta.len() > MAX_BYTES => return Err(Problem::new(path, "the file is larger than 64 MiB")),
        _ => match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Map::new()),
            Err(error) => {
                return Err(
                    Problem::new(path, format!("cannot be read: {error}")).remedy("Check the file's permissions")
                );
            }
        },
    };
    let text =
        String::from_utf8(text).map_err(|_| Problem::new(path, "is not UTF-8 text").remedy("Save it as UTF-8"))?;
    if lossy::without_bom(&text).trim().is_empty() {
        return Ok(Map::new());
    }
    match lossy::from_str::<Value>(&jsonc::to_json(lossy::without_bom(&text))) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(Problem::new(path, "must be a JSON object").remedy("Put everything between { and }")),
        Err(error) => Err(Problem::new(path, format!("is not valid JSON: {}", without_place(&error)))
            .at(format!("{}:{}", error.line(), error.column()))
            .remedy("Correct it there; the file is left as it is")),
    }
}

/// The parser's words without the place, which stands in front already.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(what, _)| what.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.json");
        std::io::Write::write_all(&mut std::fs::File::create(&path).unwrap(), text.as_bytes()).unwrap();
        let got = match read_object(&path) {
            Ok(object) => Value::Object(object).to_string(),
            Err(problem) => problem.to_string().replace(&dir.path().display().to_string(), ""),
        };
        assert_eq!(got, expected);
    }

    #[test]
    fn documents() {
        check("\u{feff}{\"a\": 1, // c\n}", r#"{"a":1}"#);
        check(" \n", "{}");
        check("[1]", "/m.json: must be a JSON object. Put everything between { and }");
        check(
            "{\n \"a\": x\n}",
            "/m.json:2:7: is not valid JSON: expected value. Correct it there; the file is left as it is",
        );
    }
}
