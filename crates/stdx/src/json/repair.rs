//! Repairing JSON written by models: raw control characters in strings, and invalid escapes.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::lossy;
use super::partial::PartialJson;

/// Treatment of `\u` without four hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BrokenUnicode {
    /// Leave it, so the text stays invalid.
    Keep,
    /// Double its backslash, like that of any other invalid escape.
    Double,
}

/// Repairs the strings of a JSON text: raw control characters are escaped, and backslashes of invalid escapes are doubled. Borrows if there
/// is nothing to repair. `\u` without four hexadecimal digits is left unchanged.
pub fn repair(text: &str) -> Cow<'_, str> {
    mend(text, BrokenUnicode::Keep)
}

/// Parses JSON text, repairing it if it is invalid.
///
/// # Errors
/// Returns the parse error of the original text.
pub fn parse_with_repair(text: &str) -> Result<Value, serde_json::Error> {
    lossy::from_str(text).or_else(|error| match repair(text) {
        Cow::Borrowed(_) => Err(error),
        Cow::Owned(mended) => lossy::from_str(&mended).map_err(|_| error),
    })
}

/// Parses complete tool arguments. Blank text means no arguments; strings are repaired, including invalid `\u` escapes.
///
/// # Errors
/// Returns why the text is not a JSON object, as text for the model.
pub fn parse_object(text: &str) -> Result<Map<String, Value>, String> {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    let value = parse_with_repair(text).or_else(|error| {
        let mended = mend(text, BrokenUnicode::Double);
        lossy::from_str(&mended).map_err(|_| error)
    });
    match value {
        Ok(Value::Object(object)) => Ok(object),
        Ok(other) => Err(format!("expected a JSON object, got {}", name_of(&other))),
        Err(error) => Err(format!("invalid JSON: {error}")),
    }
}

/// Parses possibly truncated JSON text: the object as far as it has arrived, `{}` for anything else. Gives the same value as
/// [`PartialJson`] for any chunking of the text.
pub fn parse_streaming(text: &str) -> Map<String, Value> {
    let mut json = PartialJson::new();
    json.push(text);
    json.object()
}

fn name_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn mend(text: &str, broken: BrokenUnicode) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut mended = String::new();
    let mut copied = 0;
    let mut in_string = false;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => in_string = !in_string,
            0..0x20 if in_string => {
                mended.push_str(&text[copied..at]);
                push_control(&mut mended, byte);
                copied = at + 1;
            }
            b'\\' if in_string => {
                let is_escape = match bytes.get(at + 1) {
                    Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => true,
                    Some(b'u') => broken == BrokenUnicode::Keep || has_hex4(&bytes[at + 2..]),
                    _ => false,
                };
                if is_escape {
                    at += 1;
                } else {
                    mended.push_str(&text[copied..=at]);
                    mended.push('\\');
                    copied = at + 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    mended.push_str(&text[copied..]);
    Cow::Owned(mended)
}

fn has_hex4(bytes: &[u8]) -> bool {
    bytes.get(..4).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit))
}

fn push_control(out: &mut String, byte: u8) {
    match byte {
        0x08 => out.push_str("\\b"),
        0x0C => out.push_str("\\f"),
        b'\n' => out.push_str("\\n"),
        b'\r' => out.push_str("\\r"),
        b'\t' => out.push_str("\\t"),
        other => {
            // Writing to a string cannot fail.
            let _infallible = write!(out, "\\u{other:04x}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_strings_are_repaired() {
        for (text, mended) in [
            ("{\"a\":\"x\ny\"}", r#"{"a":"x\ny"}"#),
            ("{\n\"a\":\"\u{1}\t\"}", "{\n\"a\":\"\\u0001\\t\"}"),
            (r#""C:\dir\new""#, r#""C:\\dir\new""#),
            (r#""\uZZ""#, r#""\uZZ""#),
            (r#""a\"#, r#""a\\"#),
            (r#""a\\""#, r#""a\\""#),
            ("\"\\\n\"", "\"\\\\\\n\""),
        ] {
            assert_eq!(repair(text), mended);
        }
    }

    #[test]
    fn invalid_unicode_escapes_fail_while_streaming_and_are_repaired_at_the_end() {
        let text = r#"{"a":"\uZZ","b":1}"#;
        assert!(parse_with_repair(text).is_err());
        assert_eq!(Value::Object(parse_object(text).unwrap()), json!({"a": "\\uZZ", "b": 1}));
    }

    #[test]
    fn complete_arguments_are_an_object_or_an_error() {
        assert_eq!(parse_object(" \n"), Ok(Map::new()));
        assert_eq!(parse_object("[1]"), Err("expected a JSON object, got an array".into()));
        assert!(parse_object("{\"a\":").unwrap_err().starts_with("invalid JSON: EOF"));
        assert_eq!(Value::Object(parse_object("{\"a\":\"x\ny\\ud83d\"}").unwrap()), json!({"a": "x\ny\u{fffd}"}));
    }
}
