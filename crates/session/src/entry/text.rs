//! JSON lines as JavaScript writes them, and lenient parsing of lines that only JavaScript accepts.

use pinch_stdx::json::{lossy, write};
use serde::Serialize;
use serde_json::{Map, Value};

/// Serializes a value like `JSON.stringify`.
pub(crate) fn to_line<T: Serialize + ?Sized>(value: &T) -> String {
    // Serialization cannot fail here: all map keys in this crate are strings.
    write::to_string(value).unwrap_or_default()
}

/// Parses an object. Lone surrogates and invalid UTF-8 in strings become U+FFFD.
pub(crate) fn parse_object(line: &[u8]) -> Option<Map<String, Value>> {
    serde_json::from_slice(line).or_else(|_| lossy::from_slice(line)).ok()
}
