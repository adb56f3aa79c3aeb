//! Parsing JSON written by JavaScript: byte order marks and lone surrogates.
//!
//! A JavaScript string may contain a lone surrogate, which `JSON.stringify` writes as `\ud83d`. Rust strings cannot contain it, and
//! serde_json rejects it. Here the strict parser comes first; only if it fails is the text parsed again with lone surrogates replaced. The
//! bytes on disk are never changed.

use std::borrow::Cow;

use serde::de::DeserializeOwned;

/// Treatment of lone surrogates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoneSurrogate {
    /// Replace them with U+FFFD.
    Replace,
    /// Drop them.
    Drop,
}

/// Parses JSON text. A leading byte order mark is ignored, and lone surrogates become U+FFFD.
///
/// # Errors
/// Returns the strict parser's error if the text is invalid in another way.
pub fn from_str<T: DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
    from_str_with(text, LoneSurrogate::Replace)
}

/// Parses JSON text with the given treatment of lone surrogates.
///
/// # Errors
/// See [`from_str`].
pub fn from_str_with<T: DeserializeOwned>(text: &str, lone: LoneSurrogate) -> Result<T, serde_json::Error> {
    let text = without_bom(text);
    serde_json::from_str(text).or_else(|error| match heal_surrogates(text, lone) {
        Cow::Borrowed(_) => Err(error),
        Cow::Owned(healed) => serde_json::from_str(&healed),
    })
}

/// Parses JSON bytes like [`from_str`]; invalid UTF-8 becomes U+FFFD.
///
/// # Errors
/// See [`from_str`].
pub fn from_slice<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, serde_json::Error> {
    from_str(&String::from_utf8_lossy(bytes))
}

/// Returns the text without a leading byte order mark.
pub fn without_bom(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Replaces or drops lone `\udXXX` escapes; borrows if there are none.
///
/// With [`LoneSurrogate::Replace`] the text keeps its length, so positions in error messages stay correct.
pub fn heal_surrogates(text: &str, lone: LoneSurrogate) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut healed = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', &bytes[at..]) {
        at += found;
        let Some(unit) = escaped_unit(&bytes[at..]) else {
            at = (at + 2).min(bytes.len());
            continue;
        };
        let is_high = (0xD800..0xDC00).contains(&unit);
        let next = if is_high { escaped_unit(&bytes[at + 6..]) } else { None };
        if next.is_some_and(|unit| (0xDC00..0xE000).contains(&unit)) {
            at += 12;
            continue;
        }
        if (0xD800..0xE000).contains(&unit) {
            healed.push_str(&text[copied..at]);
            if lone == LoneSurrogate::Replace {
                healed.push_str("\\ufffd");
            }
            copied = at + 6;
        }
        at += 6;
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    healed.push_str(&text[copied..]);
    Cow::Owned(healed)
}

/// Returns the code unit of a `\uXXXX` escape at the start of `bytes`.
pub fn escaped_unit(bytes: &[u8]) -> Option<u32> {
    let hex = bytes.strip_prefix(b"\\u")?.get(..4)?;
    hex.iter().try_fold(0, |unit, digit| Some(unit * 16 + char::from(*digit).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[track_caller]
    fn check(text: &str, replaced: &Value, dropped: &Value) {
        assert_eq!(&from_str::<Value>(text).unwrap(), replaced);
        assert_eq!(&from_str_with::<Value>(text, LoneSurrogate::Drop).unwrap(), dropped);
    }

    #[test]
    fn unpaired_surrogates_are_replaced() {
        check(r#"["a\ud83db"]"#, &json!(["a\u{fffd}b"]), &json!(["ab"]));
        check(r#"["\ud83d\ude00"]"#, &json!(["😀"]), &json!(["😀"]));
        check(r#"["\ud83d\ud83d\ude00"]"#, &json!(["\u{fffd}😀"]), &json!(["😀"]));
        check(r#"["\uDE00\ud83d"]"#, &json!(["\u{fffd}\u{fffd}"]), &json!([""]));
        check(r#"{"\ud83d":"\\ud83d \udfffé"}"#, &json!({"\u{fffd}": "\\ud83d \u{fffd}é"}), &json!({"": "\\ud83d é"}));
    }

    #[test]
    fn a_byte_order_mark_is_skipped_and_invalid_text_stays_invalid() {
        check("\u{feff}{}", &json!({}), &json!({}));
        assert!(from_str::<Value>("{\"a\":\"\\ud83d\"").is_err());
        assert!(from_str::<Value>("\"\\").is_err());
        assert!(from_str::<Value>("\"\\ud83").is_err());
        assert_eq!(from_slice::<Value>(b"\"\xff\"").unwrap(), json!("\u{fffd}"));
    }
}
