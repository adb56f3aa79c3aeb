//! Documents written by users: parsed leniently, with precise problem reports.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use pinch_stdx::fs::{read_long, read_regular};
use pinch_stdx::json::{jsonc, lossy};
use serde_json::{Map, Value};

mod change;

pub use change::{ChangeError, Folder, LockedDocument, change, change_object};

/// A problem in a user's document. It is reported, and the rest of the document still applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Path of the document.
    pub file: PathBuf,
    /// Position in the document: `line:column`, or the path of a member.
    pub at: Option<String>,
    /// What is wrong.
    pub what: String,
    /// How to fix it.
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
    /// Creates a problem with a whole document.
    pub fn new(file: &Path, what: impl Into<String>) -> Self {
        Self { file: file.to_owned(), at: None, what: what.into(), remedy: None }
    }

    /// Sets the position.
    #[must_use]
    pub fn at(mut self, at: impl Into<String>) -> Self {
        self.at = Some(at.into());
        self
    }

    /// Sets the remedy.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}

/// Maximum bytes of a document to read.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// Reads a user's JSON document: an object, optionally with comments and trailing commas. A missing file is an empty object.
///
/// # Errors
/// Returns the problem with the document as a whole; it must not be written then.
pub fn read_object(path: &Path) -> Result<Map<String, Value>, Problem> {
    read_value(path)?.map_or_else(|| Ok(Map::new()), |value| as_object(path, value))
}

/// Reads a JSON document in order to write it again. Anything that writing would lose is an error, such as comments.
///
/// # Errors
/// Returns the problem with the document; it must not be written then.
pub fn read_to_write(path: &Path) -> Result<Map<String, Value>, Problem> {
    let Some(text) = read_text(path)? else { return Ok(Map::new()) };
    parse(path, lossy::without_bom(&text)).and_then(|value| as_object(path, value)).map_err(
        |problem| match read_object(path) {
            Ok(_) => {
                Problem::new(path, "has comments or trailing commas, which would be lost").remedy("Change it by hand")
            }
            Err(_) => problem,
        },
    )
}

/// Returns the text of a document, or `None` if it is missing or blank.
///
/// # Errors
/// Fails if it cannot be read.
pub(crate) fn read_text(path: &Path) -> Result<Option<String>, Problem> {
    let Some(bytes) = checked(path, read_regular(path, MAX_BYTES))? else { return Ok(None) };
    let text = String::from_utf8(bytes).map_err(|_| no_text(path))?;
    Ok((!is_blank(&text)).then_some(text))
}

/// Like [`read_text`], for long documents kept in parts that share the memory of the whole. The text is UTF-8.
///
/// # Errors
/// Fails if it cannot be read.
pub(crate) fn read_long_text(path: &Path) -> Result<Option<Bytes>, Problem> {
    let Some(bytes) = checked(path, read_long(path, MAX_BYTES))? else { return Ok(None) };
    let text = std::str::from_utf8(&bytes).map_err(|_| no_text(path))?;
    Ok((!is_blank(text)).then_some(bytes))
}

fn checked<T>(path: &Path, read: io::Result<T>) -> Result<Option<T>, Problem> {
    match read {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
            Err(Problem::new(path, "the file is larger than 64 MiB"))
        }
        Err(error) => {
            let what = format!("cannot be read: {error}");
            Err(Problem::new(path, what).remedy("Check the file's permissions"))
        }
    }
}

fn no_text(path: &Path) -> Problem {
    Problem::new(path, "is not UTF-8 text").remedy("Save it as UTF-8")
}

fn is_blank(text: &str) -> bool {
    lossy::without_bom(text).trim().is_empty()
}

fn as_object(path: &Path, value: Value) -> Result<Map<String, Value>, Problem> {
    match value {
        Value::Object(object) => Ok(object),
        _ => Err(Problem::new(path, "must be a JSON object").remedy("Put everything between { and }")),
    }
}

/// Reads a JSON document with any value, like [`read_object`]. Returns `None` if it is missing or blank.
///
/// # Errors
/// Returns the problem with the document as a whole.
pub(crate) fn read_value(path: &Path) -> Result<Option<Value>, Problem> {
    read_text(path)?.map(|text| value_of(path, &text)).transpose()
}

/// Parses the text of a document, ignoring comments and trailing commas.
///
/// # Errors
/// Returns the problem with the document as a whole.
pub fn value_of(path: &Path, text: &str) -> Result<Value, Problem> {
    let text = lossy::without_bom(text);
    // Most documents have no comments, and looking for them takes as long as parsing.
    parse(path, text).or_else(|_| parse(path, &jsonc::to_json(text)))
}

fn parse(path: &Path, text: &str) -> Result<Value, Problem> {
    lossy::from_str(text).map_err(|error| {
        Problem::new(path, format!("is not valid JSON: {}", without_place(&error)))
            .at(format!("{}:{}", error.line(), error.column()))
            .remedy("Fix it there; the file is left unchanged")
    })
}

/// Returns the parser's message without the position, which is reported separately.
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
    fn documents_are_read_leniently() {
        check("\u{feff}{\"a\": 1, // c\n}", r#"{"a":1}"#);
        check(" \n", "{}");
        check("[1]", "/m.json: must be a JSON object. Put everything between { and }");
        check(
            "{\n \"a\": x\n}",
            "/m.json:2:7: is not valid JSON: expected value. Fix it there; the file is left unchanged",
        );
    }
}
