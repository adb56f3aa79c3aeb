//! Lines as JavaScript writes them, and reading of lines that only JavaScript would read.

use pinch_stdx::json::{lossy, write};
use serde::Serialize;
use serde_json::{Map, Value};

/// Writes a value as `JSON.stringify` does.
pub(crate) fn to_line<T: Serialize + ?Sized>(value: &T) -> String {
    // Writing fails for no value of this crate: the keys of its maps are all strings.
    write::to_string(value).unwrap_or_default()
}

/// Reads an object. Lone surrogates and invalid UTF-8 in its strings become U+FFFD.
pub(crate) fn parse_object(line: &[u8]) -> Option<Map<String, Value>> {
    serde_json::from_slice(line).or_else(|_| lossy::from_slice(line)).ok()
}
