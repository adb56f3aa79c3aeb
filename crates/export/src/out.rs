//! The only way to write to the page: markup is fixed at compile time, and everything else is escaped.

use std::io::{self, Write};

/// Writes a page.
pub(super) struct PageWriter<'a> {
    to: &'a mut dyn Write,
    /// Maximum bytes of a piece of code to highlight; longer ones stay plain.
    pub(super) max_coloured: usize,
}

impl<'a> PageWriter<'a> {
    pub(super) fn new(to: &'a mut dyn Write, max_coloured: usize) -> Self {
        Self { to, max_coloured }
    }

    /// Writes fixed markup. Session text is never `'static`, so it cannot get here.
    pub(super) fn html(&mut self, markup: &'static str) -> io::Result<()> {
        self.to.write_all(markup.as_bytes())
    }

    /// Writes a number.
    pub(super) fn number(&mut self, number: usize) -> io::Result<()> {
        write!(self.to, "{number}")
    }

    /// Writes text, as element content or in a double-quoted attribute.
    pub(super) fn text(&mut self, text: &str) -> io::Result<()> {
        let mut rest = text;
        while let Some((at, found)) = rest.char_indices().find(|(_, c)| is_special(*c)) {
            self.to.write_all(&rest.as_bytes()[..at])?;
            rest = &rest[at + found.len_utf8()..];
            match found {
                '&' => self.to.write_all(b"&amp;")?,
                '<' => self.to.write_all(b"&lt;")?,
                '>' => self.to.write_all(b"&gt;")?,
                '"' => self.to.write_all(b"&quot;")?,
                '\'' => self.to.write_all(b"&#39;")?,
                // Normalize line endings.
                '\r' if rest.starts_with('\n') => {}
                '\r' => self.to.write_all(b"\n")?,
                // Show the symbol of a control character, which has no effect.
                '\0'..='\x1f' => write!(self.to, "{}", picture(found as u32))?,
                '\x7f' => self.to.write_all("\u{2421}".as_bytes())?,
                _ => self.to.write_all("\u{fffd}".as_bytes())?,
            }
        }
        self.to.write_all(rest.as_bytes())
    }

    /// Writes trusted text verbatim. Only for text that cannot contain markup, such as base64 and colors.
    pub(super) fn checked(&mut self, text: &str) -> io::Result<()> {
        debug_assert!(!text.contains(['<', '>', '"', '&']), "{text}");
        self.to.write_all(text.as_bytes())
    }

    /// Writes our own style or script, whose hash is in the page's policy.
    pub(super) fn own(&mut self, content: &Own) -> io::Result<()> {
        self.to.write_all(content.0.as_bytes())
    }
}

/// Content of a style or script element, built from fixed text and colors.
pub(super) struct Own(String);

impl Own {
    pub(super) fn new(content: String) -> Self {
        debug_assert!(!content.contains("</"), "the element would end early");
        Self(content)
    }

    /// Returns the hash for the page's policy.
    pub(super) fn hash(&self) -> String {
        use base64::Engine as _;
        use sha2::Digest as _;
        let digest = sha2::Sha256::digest(self.0.as_bytes());
        format!("sha256-{}", base64::engine::general_purpose::STANDARD.encode(digest))
    }
}

fn picture(code: u32) -> char {
    char::from_u32(0x2400 + code).unwrap_or('\u{fffd}')
}

/// Returns whether a character must be escaped: markup, control characters, and bidirectional overrides, which can make a line look like
/// another one.
fn is_special(c: char) -> bool {
    match c {
        '&' | '<' | '>' | '"' | '\'' => true,
        '\t' | '\n' => false,
        '\0'..='\x1f' | '\x7f'..='\u{9f}' => true,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        _ => false,
    }
}

#[cfg(test)]
pub(super) fn written(write: impl FnOnce(&mut PageWriter<'_>) -> io::Result<()>) -> String {
    let mut page = Vec::new();
    write(&mut PageWriter::new(&mut page, 1000)).unwrap();
    String::from_utf8(page).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text() {
        for (text, expected) in [
            ("a <b> & \"c\" 'd'", "a &lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;"),
            ("a\r\nb\rc\td", "a\nb\nc\td"),
            ("\x1b[31m\0\x7f\u{85}", "\u{241b}[31m\u{2400}\u{2421}\u{fffd}"),
            ("x\u{202e}y\u{2066}z é😀", "x\u{fffd}y\u{fffd}z é😀"),
            ("", ""),
        ] {
            assert_eq!(written(|out| out.text(text)), expected);
        }
    }
}
