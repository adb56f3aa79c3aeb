//! JSON text as JavaScript writes it, and reading of text that only JavaScript would read.

use std::borrow::Cow;
use std::io;

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter};
use serde_json::{Map, Value};

/// Writes a value as `JSON.stringify` does.
pub(crate) fn to_line<T: Serialize + ?Sized>(value: &T) -> String {
    let mut out = Vec::with_capacity(256);
    let mut to = serde_json::Serializer::with_formatter(&mut out, JavaScript(CompactFormatter));
    // Writing into memory fails for no value of this crate: their keys are all strings.
    if value.serialize(&mut to).is_err() {
        return String::new();
    }
    String::from_utf8(out).unwrap_or_default()
}

/// Reads an object, also when its strings hold halves of surrogate pairs or bytes that are no UTF-8: those become U+FFFD.
pub(crate) fn parse_object(line: &[u8]) -> Option<Map<String, Value>> {
    if let Ok(map) = serde_json::from_slice(line) {
        return Some(map);
    }
    serde_json::from_str(&mended(line)?).ok()
}

/// The text with everything replaced that a strict reader refuses inside of strings; `None` when there is nothing to replace.
pub(crate) fn mended(line: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(line);
    match mend_surrogates(&text) {
        Cow::Owned(mended) => Some(mended),
        Cow::Borrowed(_) => match text {
            Cow::Owned(text) => Some(text),
            Cow::Borrowed(_) => None,
        },
    }
}

fn mend_surrogates(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let unit = |at: usize| -> Option<u32> {
        let digits = (bytes.get(at) == Some(&b'\\') && bytes.get(at + 1) == Some(&b'u'))
            .then(|| text.get(at + 2..at + 6))
            .flatten()?;
        u32::from_str_radix(digits, 16).ok()
    };
    let mut out = String::new();
    let mut done = 0;
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', &bytes[at..]) {
        let here = at + found;
        at = here + 2;
        match unit(here) {
            Some(0xd800..=0xdbff) if matches!(unit(here + 6), Some(0xdc00..=0xdfff)) => at = here + 12,
            Some(0xd800..=0xdfff) => {
                out.push_str(&text[done..here]);
                out.push_str("\\ufffd");
                at = here + 6;
                done = at;
            }
            _ => {}
        }
        if at >= bytes.len() {
            break;
        }
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[done..]);
    Cow::Owned(out)
}

struct JavaScript(CompactFormatter);

impl Formatter for JavaScript {
    fn write_f64<W: ?Sized + io::Write>(&mut self, to: &mut W, value: f64) -> io::Result<()> {
        let size = value.abs();
        if size == 0.0 {
            to.write_all(b"0")
        } else if (1e-6..1e21).contains(&size) {
            write!(to, "{value}")
        } else {
            let text = format!("{value:e}");
            to.write_all(if size >= 1e21 { text.replace('e', "e+") } else { text }.as_bytes())
        }
    }

    fn write_null<W: ?Sized + io::Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.write_null(to)
    }
}
