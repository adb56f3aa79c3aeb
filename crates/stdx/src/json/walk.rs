//! Walks over JSON without building values, to find the positions of parts in texts of which only little is needed.
//!
//! Hand-written because serde_json parses a line of a session into a value at a third of the speed (1 000 MB/s against 3 300 MB/s), and
//! when it only skips, at the same speed, it does not report positions.
//!
//! The structure is checked token by token. The content of strings is not, except for line ends: an invalid escape is detected when the
//! part is parsed.

use std::borrow::Cow;

use memchr::{memchr, memchr2};

/// Maximum nesting, as in `serde_json`.
const MAX_DEPTH: u32 = 127;

/// A one in each byte of a word.
const LOW: u64 = 0x0101_0101_0101_0101;

/// Number of eight-byte steps after which a string counts as long.
const N_NEAR: usize = 3;

/// Maximum length of a number that is certainly within the usual range.
const SHORT_NUMBER: usize = 16;

/// A position in a JSON text. Every method returns `None` if the text is not valid JSON, which ends the walk.
#[derive(Clone, Debug)]
pub struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Whether the text ends with its first line.
    is_line: bool,
}

impl<'a> Walk<'a> {
    /// Starts at the beginning of a text.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, is_line: false }
    }

    /// Starts at the beginning of a text that ends with its first line, so that the caller need not find the end of the line.
    pub fn of_line(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, is_line: true }
    }

    /// Returns the number of bytes that were walked over.
    pub fn n_walked(&self) -> usize {
        self.at
    }

    /// Returns whether only white space follows.
    pub fn is_at_end(&mut self) -> bool {
        self.skip_space();
        match self.bytes.get(self.at) {
            None => true,
            Some(byte) => self.is_line && *byte == b'\n',
        }
    }

    /// Returns the first byte of the next token.
    pub fn peek(&mut self) -> Option<u8> {
        self.skip_space();
        self.bytes.get(self.at).copied()
    }

    #[inline]
    fn skip_space(&mut self) {
        // Programs write no white space, people and editors one space after a colon, and more at the start of a line.
        match self.bytes.get(self.at..self.at + 2) {
            Some([b'!'..=0xff, _]) => {}
            Some([b' ', b'!'..=0xff]) => self.at += 1,
            _ => self.skip_much_space(),
        }
    }

    #[inline(never)]
    fn skip_much_space(&mut self) {
        let mut rest = self.bytes.get(self.at..).unwrap_or_default();
        loop {
            while let Some(eight) = rest.first_chunk() {
                let n_spaces = n_leading(u64::from_le_bytes(*eight), b' ');
                rest = &rest[n_spaces..];
                if n_spaces < 8 {
                    break;
                }
            }
            match rest {
                [b'\n', ..] if self.is_line => break,
                [b' ' | b'\t' | b'\r' | b'\n', behind @ ..] => rest = behind,
                _ => break,
            }
        }
        self.at = self.bytes.len() - rest.len();
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    /// Returns the inside of the string that starts here, still escaped.
    pub fn string(&mut self) -> Option<&'a [u8]> {
        self.take(b'"')?;
        let start = self.at;
        // Search for quotes instead of escapes: code has an escaped line end every few words, but quotes are rare.
        loop {
            let found = self.at + quote(self.bytes.get(self.at..)?)?;
            self.at = found + 1;
            if self.bytes[found - 1] != b'\\' {
                return Some(&self.bytes[start..found]);
            }
            let n_backslashes = self.bytes[start..found].iter().rev().take_while(|byte| **byte == b'\\').count();
            if n_backslashes % 2 == 0 {
                return Some(&self.bytes[start..found]);
            }
        }
    }

    /// Returns the unescaped string that starts here; walks over other values.
    pub fn string_or_skip(&mut self, depth: u32) -> Option<Option<Cow<'a, str>>> {
        if self.peek()? != b'"' {
            self.value(depth)?;
            return Some(None);
        }
        self.string().and_then(resolve).map(Some)
    }

    /// Walks over the object that starts here at nesting `depth`. `member` is called with each escaped name and must walk over the value.
    pub fn object(&mut self, depth: u32, mut member: impl FnMut(&mut Self, &'a [u8]) -> Option<()>) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        self.take(b'{')?;
        if self.peek()? == b'}' {
            self.at += 1;
            return Some(());
        }
        loop {
            let name = self.name()?;
            member(self, name)?;
            match self.peek()? {
                b',' => self.at += 1,
                b'}' => {
                    self.at += 1;
                    return Some(());
                }
                _ => return None,
            }
        }
    }

    /// Walks over one value inside a container at nesting `depth`.
    pub fn value(&mut self, depth: u32) -> Option<()> {
        // The open arrays and objects, one bit each: whether it is an object.
        let (mut open, mut n_open) = (0_u128, 0);
        loop {
            match self.peek()? {
                b'"' => drop(self.string()?),
                bracket @ (b'{' | b'[') => {
                    let is_object = bracket == b'{';
                    if depth + n_open >= MAX_DEPTH {
                        return None;
                    }
                    self.at += 1;
                    if self.peek()? != if is_object { b'}' } else { b']' } {
                        (open, n_open) = (open << 1 | u128::from(is_object), n_open + 1);
                        if is_object {
                            self.name()?;
                        }
                        continue;
                    }
                    self.at += 1;
                }
                _ => self.literal()?,
            }
            // A value has ended, and with it possibly its container.
            loop {
                if n_open == 0 {
                    return Some(());
                }
                let is_object = open & 1 == 1;
                match (self.peek()?, is_object) {
                    (b',', _) => {
                        self.at += 1;
                        if is_object {
                            self.name()?;
                        }
                        break;
                    }
                    (b'}', true) | (b']', false) => {
                        self.at += 1;
                        (open, n_open) = (open >> 1, n_open - 1);
                    }
                    _ => return None,
                }
            }
        }
    }

    /// Walks over the name of a member and the colon after it.
    fn name(&mut self) -> Option<&'a [u8]> {
        let name = self.string()?;
        self.take(b':')?;
        Some(name)
    }

    /// Walks over one value at nesting `depth` and returns its range.
    pub fn place_of_value(&mut self, depth: u32) -> Option<std::ops::Range<usize>> {
        self.skip_space();
        let start = self.at;
        self.value(depth)?;
        Some(start..self.at)
    }

    fn literal(&mut self) -> Option<()> {
        let start = self.at;
        while let Some(b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'+' | b'-' | b'.') = self.bytes.get(self.at) {
            self.at += 1;
        }
        match &self.bytes[start..self.at] {
            b"true" | b"false" | b"null" => Some(()),
            [] => None,
            number if is_plain(number) => Some(()),
            number => serde_json::from_slice::<serde_json::Number>(number).ok().map(drop),
        }
    }
}

/// Returns the position of the first quote, or `None` if the line ends before it.
#[inline]
fn quote(bytes: &[u8]) -> Option<usize> {
    // Most strings are names and words: calling a search function takes longer than checking eight bytes at once.
    let near = bytes.as_chunks::<8>().0.iter().take(N_NEAR).enumerate();
    let mut near = near.filter_map(|(n, eight)| Some(8 * n + first_of_two(u64::from_le_bytes(*eight), b'"', b'\n')?));
    let at = match near.next() {
        Some(at) => at,
        None => memchr2(b'"', b'\n', bytes)?,
    };
    (bytes[at] == b'"').then_some(at)
}

/// Returns how many of eight bytes, from the lowest of the word on, equal this one.
#[inline]
fn n_leading(word: u64, byte: u8) -> usize {
    (word ^ (LOW * u64::from(byte))).trailing_zeros() as usize / 8
}

/// Returns the index of the first of eight bytes, from the lowest, that equals one of two.
#[inline]
fn first_of_two(word: u64, one: u8, two: u8) -> Option<usize> {
    const HIGH: u64 = 0x8080_8080_8080_8080;
    // A zero byte borrows from its highest bit; bytes above it may be marked wrongly, but the lowest mark is right.
    let zeros = |word: u64| word.wrapping_sub(LOW) & !word & HIGH;
    let marks = zeros(word ^ (LOW * u64::from(one))) | zeros(word ^ (LOW * u64::from(two)));
    (marks != 0).then(|| marks.trailing_zeros() as usize / 8)
}

/// Returns whether this is a short number without sign and exponent. Others are left to the number parser.
fn is_plain(number: &[u8]) -> bool {
    let is_digit = |byte: &u8| byte.is_ascii_digit();
    let n_whole = number.iter().position(|byte| !is_digit(byte)).unwrap_or(number.len());
    let is_whole = n_whole == 1 || n_whole > 1 && number[0] != b'0';
    let is_rest = match &number[n_whole..] {
        [] => true,
        [b'.', first, rest @ ..] => is_digit(first) && rest.iter().all(is_digit),
        _ => false,
    };
    is_whole && is_rest && number.len() <= SHORT_NUMBER
}

/// Unescapes the inside of a string; returns `None` if an escape is invalid. Lone surrogates become U+FFFD.
pub fn resolve(inside: &[u8]) -> Option<Cow<'_, str>> {
    if memchr(b'\\', inside).is_none() {
        return Some(std::str::from_utf8(inside).map_or_else(|_| String::from_utf8_lossy(inside), Cow::Borrowed));
    }
    let quoted = [b"\"", inside, b"\""].concat();
    super::lossy::from_slice(&quoted).ok().map(|text: String| Cow::Owned(text))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is_json(text: &[u8]) -> bool {
        let mut walk = Walk::new(text);
        walk.value(0).is_some() && walk.is_at_end()
    }

    #[test]
    fn values_are_found_with_their_positions() {
        let text = br#" {"a": [1, {"b":"\"]"}] , "long name of a member, with \u0041": -1.5e3,"c":{}} "#;
        let (mut walk, mut found) = (Walk::new(text), Vec::new());
        let walked = walk.object(0, |walk, name| {
            let place = walk.place_of_value(0)?;
            found.push((resolve(name)?.into_owned(), std::str::from_utf8(&text[place]).unwrap()));
            Some(())
        });
        assert!(walked.is_some() && walk.is_at_end());
        let long = "long name of a member, with A";
        let expected = [("a", r#"[1, {"b":"\"]"}]"#), (long, "-1.5e3"), ("c", "{}")];
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value)));
    }

    #[test]
    fn invalid_json_ends_the_walk() {
        for text in [
            "",
            "{",
            "[1,]",
            "[1 2]",
            "{\"a\"}",
            "{\"a\":1,}",
            "{a:1}",
            "01",
            "1.",
            "-",
            "+1",
            "nul",
            "\"",
            "\"\\\"",
            "1e999",
        ] {
            assert!(!is_json(text.as_bytes()), "{text}");
        }
        assert!(!is_json(format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)).as_bytes()));
        for text in
            ["0", "-0", "123456789012345678901234567890", "1E+2", "0.5", "10.25", "\"\\\\\"", "[[],{}]", "\r\n\ttrue "]
        {
            assert!(is_json(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn the_first_of_two_bytes_is_found_at_any_position() {
        for at in 0..8 {
            for other in [0, 1, 9, 11, 0x21, 0x23, 0x7f, 0x80, 0xa2, 0xff] {
                let mut bytes = [other; 8];
                assert_eq!(first_of_two(u64::from_le_bytes(bytes), b'"', b'\n'), None);
                bytes[at] = b'\n';
                bytes[7] = if at == 7 { b'\n' } else { b'"' };
                assert_eq!(first_of_two(u64::from_le_bytes(bytes), b'"', b'\n'), Some(at));
            }
        }
    }

    #[test]
    fn white_space_is_skipped_whatever_its_length() {
        for n in 0..40 {
            for other in ["", "\n", "\t \r\n"] {
                let text = format!("{}{other}{}1", " ".repeat(n), " ".repeat(n / 2));
                let mut walk = Walk::new(text.as_bytes());
                assert_eq!(walk.peek(), Some(b'1'));
                assert!(walk.value(0).is_some() && walk.is_at_end() && walk.n_walked() == text.len());
            }
        }
    }

    #[test]
    fn a_line_ends_the_walk() {
        let text = b"{\"a\": 1} \t\r\n{\"b\"";
        let mut walk = Walk::of_line(text);
        assert!(walk.value(0).is_some() && walk.n_walked() == 8 && walk.is_at_end());
        assert_eq!(text[walk.n_walked()], b'\n');
        for text in ["{\n}", "{\"a\":\n1}", "\"a\nb\"", "\"a, longer than eight\nb\"", "{\"a\"\n:1}", "[1\n,2]", "\n1"]
        {
            assert!(Walk::of_line(text.as_bytes()).value(0).is_none(), "{text}");
        }
    }

    #[test]
    fn strings_end_at_any_length() {
        for n in 0..100 {
            for text in ["x".repeat(n), "\\\\".repeat(n), format!("{}\\\"", "x".repeat(n))] {
                let text = format!("\"{text}\"");
                assert_eq!(Walk::new(text.as_bytes()).string(), Some(&text.as_bytes()[1..text.len() - 1]));
                assert_eq!(Walk::new(&text.as_bytes()[..text.len() - 1]).string(), None);
            }
        }
    }

    proptest! {
        #[test]
        fn the_walk_agrees_with_serde_json(text in r#"[\[\]{}",:0-9a\\ e.+-]{0,12}"#) {
            let reads = serde_json::from_str::<serde_json::Value>(&text).is_ok();
            // Escapes are left to the parser.
            prop_assert!(is_json(text.as_bytes()) == reads || text.contains('\\'));
        }
    }
}
