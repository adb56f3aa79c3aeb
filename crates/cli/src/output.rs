//! Standard output and error. Files and pipes get the exact bytes; control sequences do not reach a terminal.
//!
//! Text from models, servers and file names may contain control sequences that set titles, fill the clipboard, or move the cursor over
//! earlier output, and marks that change the direction of text. A terminal shows visible symbols instead.

use std::io::{self, IsTerminal, Write};

/// Returns standard output.
pub(crate) fn stdout() -> OutputStream<io::Stdout> {
    OutputStream::of(io::stdout())
}

/// Returns standard error.
pub(crate) fn stderr() -> OutputStream<io::Stderr> {
    OutputStream::of(io::stderr())
}

/// Standard output or error.
#[derive(Debug)]
pub(crate) struct OutputStream<W> {
    to: W,
    /// Present if it is a terminal.
    filter: Option<Filter>,
}

impl<W: IsTerminal> OutputStream<W> {
    fn of(to: W) -> Self {
        let filter = to.is_terminal().then(Filter::default);
        Self { to, filter }
    }
}

impl<W: Write> Write for OutputStream<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(filter) = &mut self.filter else { return self.to.write(bytes) };
        self.to.write_all(filter.push(bytes).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if let Some(filter) = &mut self.filter {
            self.to.write_all(filter.finish_line().as_bytes())?;
        }
        self.to.flush()
    }
}

/// Replaces control characters in text, however it is chunked.
#[derive(Debug, Default)]
struct Filter {
    /// The start of a character.
    cut: Vec<u8>,
    /// A carriage return that may be part of a line end.
    has_return: bool,
}

impl Filter {
    fn push(&mut self, bytes: &[u8]) -> String {
        let joined;
        let mut rest = if self.cut.is_empty() {
            bytes
        } else {
            joined = [&std::mem::take(&mut self.cut), bytes].concat();
            &joined[..]
        };
        let mut shown = String::with_capacity(rest.len());
        loop {
            match std::str::from_utf8(rest) {
                Ok(text) => {
                    self.show(text, &mut shown);
                    return shown;
                }
                Err(error) => {
                    let (text, after) = rest.split_at(error.valid_up_to());
                    self.show(&String::from_utf8_lossy(text), &mut shown);
                    let Some(n) = error.error_len() else {
                        self.cut = after.to_vec();
                        return shown;
                    };
                    self.show("\u{fffd}", &mut shown);
                    rest = &after[n..];
                }
            }
        }
    }

    fn show(&mut self, text: &str, shown: &mut String) {
        for c in text.chars() {
            if std::mem::take(&mut self.has_return) {
                shown.push(if c == '\n' { '\r' } else { '\u{240d}' });
            }
            match c {
                '\n' | '\t' => shown.push(c),
                '\r' => self.has_return = true,
                // Control characters have their own symbols.
                '\0'..='\u{1f}' => shown.extend(char::from_u32(0x2400 + u32::from(c))),
                '\u{7f}' => shown.push('\u{2421}'),
                _ if is_obeyed(c) => shown.push_str(&format!("<U+{:04X}>", u32::from(c))),
                _ => shown.push(c),
            }
        }
    }

    /// Flushes a pending carriage return.
    fn finish_line(&mut self) -> &'static str {
        if std::mem::take(&mut self.has_return) { "\u{240d}" } else { "" }
    }
}

/// Returns whether a character is an 8-bit control character or changes the direction of text.
fn is_obeyed(c: char) -> bool {
    matches!(
        c,
        '\u{80}'..='\u{9f}' | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_symbols_for_control_characters() {
        let text = "a\u{1b}]52;c;eA==\u{7}b\u{9b}31m\u{202e}\u{2066}c\u{7f}\td\r\ne\rf\u{8}g äöü 日本 🦀\n";
        let shown = "a␛]52;c;eA==␇b<U+009B>31m<U+202E><U+2066>c␡\td\r\ne␍f␈g äöü 日本 🦀\n";
        assert_eq!(Filter::default().push(text.as_bytes()), shown);
        for at in 0..text.len() {
            let mut filter = Filter::default();
            let (a, b) = text.as_bytes().split_at(at);
            assert_eq!([filter.push(a), filter.push(b)].concat(), shown, "cut at {at}");
        }
        assert_eq!(Filter::default().push(b"x\x9b31m\xffy"), "x\u{fffd}31m\u{fffd}y");
        let mut filter = Filter::default();
        assert_eq!((filter.push(b"x\r"), filter.finish_line()), ("x".to_owned(), "\u{240d}"));
    }
}
