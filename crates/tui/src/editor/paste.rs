//! Pasted text: sanitises it, and distinguishes it from keys if the terminal does not report pastes.

use std::borrow::Cow;
use std::path::PathBuf;

use crate::key::{KeyCode, KeyPress};
use crate::text::{SanitizeMode, sanitize};

/// Number of keys in one batch of input from which they count as pasted.
const MAX_TYPED: usize = 32;

/// Returns a text in the form that editors accept: line feeds between lines, four spaces for a tab, and no control or bidirectional
/// characters.
pub(super) fn clean(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| matches!(byte, b'\n' | 0x20..0x7f)) {
        return Cow::Borrowed(text);
    }
    let decoded = decode_keys(text);
    let text = sanitize(&decoded, SanitizeMode::Prose);
    Cow::Owned(text.replace('\t', "    "))
}

/// Decodes control characters in pasted text that terminal multiplexers write as keys: `CSI 106;5u` for a line feed.
fn decode_keys(text: &str) -> Cow<'_, str> {
    if !text.contains("\u{1b}[") {
        return Cow::Borrowed(text);
    }
    let mut pieces = text.split("\u{1b}[");
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let key = || {
            let (code, rest) = piece.split_once(";5u")?;
            let letter = code.parse().ok().filter(u8::is_ascii_alphabetic)?;
            Some((letter, rest))
        };
        match key() {
            Some((letter, rest)) => {
                out.push(char::from(letter & 0x1f));
                out.push_str(rest);
            }
            None => {
                out.push_str("\u{1b}[");
                out.push_str(piece);
            }
        }
    }
    Cow::Owned(out)
}

/// Returns the text of keys that arrived in one batch, if there are so many that they must have been pasted into a terminal that does not
/// report pastes. Line ends in it do not submit.
pub fn pasted_text(presses: &[KeyPress]) -> Option<String> {
    if presses.len() <= MAX_TYPED {
        return None;
    }
    let text = presses.iter().map(|press| match (press.text, press.key.code) {
        (Some(c), _) => Some(c),
        (None, KeyCode::Enter) => Some('\n'),
        (None, KeyCode::Tab) => Some('\t'),
        (None, _) => None,
    });
    text.collect()
}

/// Returns the image file if a text is its path, as written by terminals when a file is dropped on them: quoted, with backslashes, or
/// verbatim. The file need not exist.
pub fn image_path(text: &str) -> Option<PathBuf> {
    let text = text.trim();
    let quoted = ['\'', '"'].iter().find_map(|quote| text.strip_prefix(*quote)?.strip_suffix(*quote));
    let path = match quoted {
        Some(path) => path.to_owned(),
        // On Windows a backslash is a separator.
        None if cfg!(windows) => text.to_owned(),
        None => unescaped(text)?,
    };
    let path = PathBuf::from(path);
    let ending = path.extension()?.to_str()?.to_ascii_lowercase();
    let is_image = ["png", "jpg", "jpeg", "gif", "webp"].contains(&&*ending) && path.is_absolute();
    (is_image && !text.contains('\n')).then_some(path)
}

/// Returns a shell word without its backslashes; `None` for more than one word.
fn unescaped(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.push(chars.next()?),
            c if c.is_whitespace() => return None,
            c => out.push(c),
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pasted_text_is_sanitised() {
        for (text, expected) in [
            ("plain\n", "plain\n"),
            ("a\r\nb\rc", "a\nb\nc"),
            ("a\tb", "a    b"),
            ("a\u{1b}[106;5ub\u{1b}[109;5uc\u{1b}[105;5ud", "a\nb\nc    d"),
            ("a\u{1b}[109;5u\u{1b}[106;5ub", "a\nb"),
            ("a\u{1b}[99;5ub", "ab"),
            ("a\u{1b}[31mb\u{7}\u{0}", "ab"),
            ("a\u{9b}31mb\u{85}c", "abc"),
            ("a\u{202e}b\u{2066}c", "abc"),
            ("\u{1b}[201~x", "x"),
            ("日本\u{200d}", "日本\u{200d}"),
        ] {
            assert_eq!(clean(text), expected, "{text:?}");
        }
    }

    #[test]
    fn many_keys_in_one_batch_are_a_paste() {
        let press = |c: char| match c {
            '\n' => KeyPress::of(KeyCode::Enter.into()),
            c => KeyPress::typed(c),
        };
        let text = "fn main() {\n    run();\n}\nfn run() {}\n";
        let presses: Vec<KeyPress> = text.chars().map(press).collect();
        assert_eq!(pasted_text(&presses).as_deref(), Some(text));
        assert_eq!(pasted_text(&presses[..32]), None);
        let mut presses = presses;
        presses.push(KeyPress::of(KeyCode::Up.into()));
        assert_eq!(pasted_text(&presses), None, "an arrow was pressed");
    }

    #[test]
    #[cfg(unix)]
    fn dropped_images_are_recognized() {
        for (text, path) in [
            ("/a/b.png", Some("/a/b.png")),
            ("'/a b/c.JPG' ", Some("/a b/c.JPG")),
            ("\"/a b/c.webp\"", Some("/a b/c.webp")),
            ("/a\\ b/c.gif", Some("/a b/c.gif")),
            ("/a b.png", None),
            ("a.png", None),
            ("/a/b.txt", None),
            ("'/a\n.png'", None),
        ] {
            assert_eq!(image_path(text), path.map(PathBuf::from), "{text:?}");
        }
    }
}
