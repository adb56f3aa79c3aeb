//! JSON with comments and trailing commas, as in hand-written settings.
//!
//! Not JSON5, which accepts much more: unquoted names, single quotes, hexadecimal numbers, `NaN` as `null`. A file accepted here would then
//! be rejected by the programs it is shared with. The `json5` crate also rejects lone surrogates, which JavaScript writes.

use std::borrow::Cow;

/// Blanks out `//` and `/* */` comments and commas before a closing bracket. All other characters keep their position, so that line and
/// column of a parse error match the file.
pub fn to_json(text: &str) -> Cow<'_, str> {
    if !text.contains("//") && !text.contains("/*") && !has_trailing_comma(text) {
        return Cow::Borrowed(text);
    }
    let mut out = text.as_bytes().to_vec();
    let bytes = text.as_bytes();
    let mut at = 0;
    let mut last_comma = None;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                at = end_of_string(bytes, at);
                last_comma = None;
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                let end = memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |n| at + n);
                blank(&mut out[at..end]);
                at = end;
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                let end = memchr::memmem::find(&bytes[at + 2..], b"*/").map_or(bytes.len(), |n| at + n + 4);
                blank(&mut out[at..end]);
                at = end;
                continue;
            }
            b',' => last_comma = Some(at),
            b'}' | b']' => {
                if let Some(comma) = last_comma.take() {
                    out[comma] = b' ';
                }
            }
            byte if byte.is_ascii_whitespace() => {}
            _ => last_comma = None,
        }
        at += 1;
    }
    // Only ASCII characters were replaced with spaces, so the text is still valid.
    String::from_utf8(out).map_or(Cow::Borrowed(text), Cow::Owned)
}

fn has_trailing_comma(text: &str) -> bool {
    let bytes = text.as_bytes();
    memchr::memchr2_iter(b'}', b']', bytes)
        .any(|at| bytes[..at].iter().rev().find(|byte| !byte.is_ascii_whitespace()) == Some(&b','))
}

fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Blanks out a comment, which may contain any character, except for its line ends.
fn blank(bytes: &mut [u8]) {
    bytes.iter_mut().filter(|byte| **byte != b'\n' && **byte != b'\r').for_each(|byte| *byte = b' ');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(to_json(text), expected);
        assert_eq!(to_json(text).len(), text.len(), "places are kept");
    }

    #[test]
    fn comments_and_commas_become_spaces() {
        check("{\"a\": 1, // é\n\"b\": [1, 2, ], }", "{\"a\": 1,      \n\"b\": [1, 2  ]  }");
        check("{/* x\n */\"a\": \"// no, }\"}", "{    \n   \"a\": \"// no, }\"}");
        check("[1,/*,*/]", "[1      ]");
        check("{\"a\\\"//\": 1}", "{\"a\\\"//\": 1}");
    }
}
