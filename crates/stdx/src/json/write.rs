//! Writes JSON like `JSON.stringify`.
//!
//! serde_json's order of members, escapes and layout already match JavaScript's; its numbers do not ([`super::number`]). Integers keep all
//! their digits, even those beyond 2^53 that JavaScript would round.

use std::io;

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter, Serializer};

/// Serializes a value like `JSON.stringify(value)`.
///
/// # Errors
/// Returns an error if the value's `Serialize` fails, or a map has keys that are not strings.
pub fn to_string<T: Serialize + ?Sized>(value: &T) -> Result<String, serde_json::Error> {
    to_vec(value).and_then(into_text)
}

/// Serializes a value like `JSON.stringify(value)`, as bytes.
///
/// # Errors
/// See [`to_string`].
pub fn to_vec<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, serde_json::Error> {
    let mut bytes = Vec::with_capacity(128);
    append(&mut bytes, value)?;
    Ok(bytes)
}

/// Serializes a value like `JSON.stringify(value)` and appends it to `bytes`.
///
/// # Errors
/// See [`to_string`]; `bytes` may end with a partial value then.
pub fn append<T: Serialize + ?Sized>(bytes: &mut Vec<u8>, value: &T) -> Result<(), serde_json::Error> {
    value.serialize(&mut Serializer::with_formatter(bytes, JsNumbers(CompactFormatter)))
}

/// Serializes a value like `JSON.stringify(value, null, 2)`.
///
/// # Errors
/// See [`to_string`].
pub fn to_pretty<T: Serialize + ?Sized>(value: &T) -> Result<String, serde_json::Error> {
    let mut bytes = Vec::with_capacity(128);
    write_pretty(&mut bytes, value)?;
    into_text(bytes)
}

/// Serializes a value like `JSON.stringify(value, null, 2)` to a writer, which should be buffered.
///
/// # Errors
/// See [`to_string`]; also fails if the writer does.
pub fn write_pretty<T: Serialize + ?Sized>(writer: impl io::Write, value: &T) -> Result<(), serde_json::Error> {
    value.serialize(&mut Serializer::with_formatter(writer, JsNumbers(PrettyFormatter::new())))
}

fn into_text(bytes: Vec<u8>) -> Result<String, serde_json::Error> {
    String::from_utf8(bytes).map_err(serde::ser::Error::custom)
}

/// A serde_json layout with JavaScript's numbers.
struct JsNumbers<F>(F);

impl<F: Formatter> Formatter for JsNumbers<F> {
    fn write_f32<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f32) -> io::Result<()> {
        self.write_f64(writer, f64::from(value))
    }

    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        writer.write_all(ryu_js::Buffer::new().format(value).as_bytes())
    }

    fn begin_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_array(writer)
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array(writer)
    }

    fn begin_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(writer, first)
    }

    fn end_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array_value(writer)
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object(writer)
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object(writer)
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(writer, first)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object_value(writer)
    }

    fn end_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object_value(writer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[track_caller]
    fn check(value: &Value, compact: &str, pretty: &str) {
        assert_eq!(to_string(value).unwrap(), compact);
        assert_eq!(to_pretty(value).unwrap(), pretty);
    }

    #[test]
    fn numbers_escapes_and_layout_are_javascripts() {
        check(
            &json!({"n": 1.0, "c": 0.000_003, "e": {}, "a": [], "l": [1, "é\u{7f}\u{1}\n\"/"], "z": -0.0}),
            "{\"n\":1,\"c\":0.000003,\"e\":{},\"a\":[],\"l\":[1,\"é\u{7f}\\u0001\\n\\\"/\"],\"z\":0}",
            "{\n  \"n\": 1,\n  \"c\": 0.000003,\n  \"e\": {},\n  \"a\": [],\n  \"l\": [\n    1,\n    \"é\u{7f}\\u0001\\n\\\"/\"\n  ],\n  \"z\": 0\n}",
        );
        check(&json!(9_007_199_254_740_993_u64), "9007199254740993", "9007199254740993");
        check(&json!("x"), "\"x\"", "\"x\"");
    }

    #[test]
    fn numbers_that_json_cannot_represent_are_null() {
        assert_eq!(to_string(&[f64::NAN, f64::INFINITY]).unwrap(), "[null,null]");
    }
}
