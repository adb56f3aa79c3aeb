//! The inside of a JSON string, parsed chunk by chunk.

/// A string being parsed: its content so far.
#[derive(Debug, Default)]
pub(super) struct StringState {
    /// The text so far, without a partial escape.
    pub(super) text: String,
    escape: Escape,
    /// A high surrogate whose low surrogate may follow.
    high: Option<u16>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Escape {
    #[default]
    None,
    /// After a backslash.
    Backslash,
    /// After `\u` and some digits.
    Hex { unit: u16, n_digits: u8 },
    /// After `\u` without valid digits: the string cannot be parsed any more, but its end is still searched for.
    Broken { after_backslash: bool },
}

/// State of a string after a chunk.
pub(super) enum StringPiece {
    /// Its end has not arrived.
    Open,
    /// The closing quote was found.
    Closed,
    /// The closing quote was found, but the string is invalid.
    Broken,
}

impl StringState {
    /// Parses from the start of `text` up to the closing quote, and returns the rest.
    pub(super) fn read<'a>(&mut self, text: &'a str) -> (StringPiece, &'a str) {
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            match self.escape {
                Escape::None => {
                    let n_plain = memchr::memchr2(b'"', b'\\', rest.as_bytes()).unwrap_or(rest.len());
                    if n_plain > 0 {
                        self.flush();
                        self.text.push_str(&rest[..n_plain]);
                    }
                    let Some(stop) = rest.as_bytes().get(n_plain) else { return (StringPiece::Open, "") };
                    rest = &rest[n_plain + 1..];
                    if *stop == b'"' {
                        self.flush();
                        return (StringPiece::Closed, rest);
                    }
                    self.escape = Escape::Backslash;
                    continue;
                }
                Escape::Backslash => {
                    self.escape = Escape::None;
                    match first {
                        'u' => self.escape = Escape::Hex { unit: 0, n_digits: 0 },
                        '"' | '\\' | '/' => self.push(first),
                        'b' => self.push('\u{8}'),
                        'f' => self.push('\u{c}'),
                        'n' => self.push('\n'),
                        'r' => self.push('\r'),
                        't' => self.push('\t'),
                        _ => {
                            // Not a valid escape: the backslash is literal, and the following text is parsed normally.
                            self.push('\\');
                            continue;
                        }
                    }
                }
                Escape::Hex { unit, n_digits } => match first.to_digit(16).and_then(|d| u16::try_from(d).ok()) {
                    Some(digit) if n_digits == 3 => {
                        self.escape = Escape::None;
                        self.push_unit(unit << 4 | digit);
                    }
                    Some(digit) => self.escape = Escape::Hex { unit: unit << 4 | digit, n_digits: n_digits + 1 },
                    None => {
                        self.escape = Escape::Broken { after_backslash: false };
                        continue;
                    }
                },
                Escape::Broken { after_backslash } => {
                    self.escape = Escape::Broken { after_backslash: !after_backslash && first == '\\' };
                    if first == '"' && !after_backslash {
                        return (StringPiece::Broken, &rest[1..]);
                    }
                }
            }
            rest = &rest[first.len_utf8()..];
        }
        (StringPiece::Open, "")
    }

    fn push(&mut self, c: char) {
        self.flush();
        self.text.push(c);
    }

    /// Appends a UTF-16 code unit of a `\u` escape.
    fn push_unit(&mut self, unit: u16) {
        match unit {
            0xD800..0xDC00 => {
                self.flush();
                self.high = Some(unit);
            }
            0xDC00..0xE000 => {
                let pair = self.high.take().and_then(|high| char::decode_utf16([high, unit]).next()?.ok());
                self.text.push(pair.unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            _ => self.push(char::from_u32(u32::from(unit)).unwrap_or(char::REPLACEMENT_CHARACTER)),
        }
    }

    /// Replaces a lone high surrogate with U+FFFD.
    fn flush(&mut self) {
        if self.high.take().is_some() {
            self.text.push(char::REPLACEMENT_CHARACTER);
        }
    }
}
