//! Detects code, both fences and inline spans, one character at a time.
//!
//! Tags, directives and block breaks have no meaning inside code. The scanner never looks back, so it can run over text as it arrives,
//! however it is split.

/// An open fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeFence {
    /// Character of its marker: a backtick or a tilde.
    pub marker: char,
    /// Number of marker characters.
    pub len: usize,
    /// Number of spaces before the marker.
    pub indent: usize,
}

impl CodeFence {
    /// Returns a line that closes the fence.
    pub(super) fn closing(&self) -> String {
        format!("{}{}", " ".repeat(self.indent), self.marker.to_string().repeat(self.len))
    }
}

/// State of the current line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LineState {
    /// At most three spaces so far.
    #[default]
    Start,
    /// A run of marker characters after the indentation.
    Marker,
    /// Anything after that.
    Rest,
}

/// Tracks code in a text.
#[derive(Clone, Debug, Default)]
pub struct CodeState {
    fence: Option<CodeFence>,
    /// Fence opened by this line.
    opening: Option<CodeFence>,
    line: LineState,
    indent: usize,
    marker: Option<char>,
    n_marker: usize,
    /// Whether the line is blank so far.
    blank: bool,
    has_chars: bool,
    /// Whether only white space follows the marker.
    bare: bool,
    /// Number of backticks that opened the inline span.
    inline: Option<usize>,
    /// Number of consecutive backticks just seen.
    n_ticks: usize,
}

impl CodeState {
    /// Consumes the next character and returns whether it is code. A run of backticks counts as code if it is inside a span, but not if it
    /// opens one.
    pub fn push(&mut self, c: char) -> bool {
        if c == '\n' {
            return self.end_line();
        }
        if !self.has_chars {
            (self.has_chars, self.blank, self.bare) = (true, true, true);
        }
        self.blank &= c.is_whitespace();
        match self.line {
            LineState::Start if c == ' ' && self.indent < 3 => self.indent += 1,
            LineState::Start if c == '`' || c == '~' => {
                (self.line, self.marker, self.n_marker) = (LineState::Marker, Some(c), 1);
            }
            LineState::Marker if self.marker == Some(c) => {
                self.n_marker += 1;
                if self.n_marker >= 3 && self.fence.is_none() {
                    self.opening = Some(CodeFence { marker: c, len: self.n_marker, indent: self.indent });
                    (self.inline, self.n_ticks) = (None, 0);
                }
            }
            LineState::Start | LineState::Marker => {
                self.line = LineState::Rest;
                self.bare &= c.is_whitespace();
            }
            LineState::Rest => self.bare &= c.is_whitespace(),
        }
        if self.in_fence() {
            return true;
        }
        if c == '`' {
            self.n_ticks += 1;
            return self.inline.is_some();
        }
        self.settle_ticks();
        self.inline.is_some()
    }

    /// Consumes a whole text that cannot begin or end code, and returns whether it is code. `None`: nothing was consumed, and the
    /// characters have to be pushed one by one.
    pub fn push_plain(&mut self, text: &str) -> Option<bool> {
        if self.line != LineState::Rest || text.is_empty() || text.bytes().any(|byte| byte == b'\n' || byte == b'`') {
            return None;
        }
        if self.blank || self.bare {
            let is_blank = text.chars().all(char::is_whitespace);
            self.blank &= is_blank;
            self.bare &= is_blank;
        }
        if self.in_fence() {
            return Some(true);
        }
        self.settle_ticks();
        Some(self.inline.is_some())
    }

    fn end_line(&mut self) -> bool {
        let was_code = self.in_fence();
        self.settle_ticks();
        if self.line_closes() {
            self.fence = None;
        } else if let Some(fence) = self.opening {
            self.fence = Some(fence);
        } else if self.blank || !self.has_chars {
            // An inline span never crosses a blank line, so that a stray backtick does not hide the rest.
            self.inline = None;
        }
        let (fence, inline) = (self.fence, self.inline);
        *self = Self { fence, inline, ..Self::default() };
        was_code || self.inline.is_some()
    }

    fn settle_ticks(&mut self) {
        let n_ticks = std::mem::take(&mut self.n_ticks);
        if n_ticks == 0 {
            return;
        }
        match self.inline {
            None => self.inline = Some(n_ticks),
            Some(n) if n == n_ticks => self.inline = None,
            Some(_) => {}
        }
    }

    /// Returns whether the current line belongs to a fence: opening line, content or closing line.
    pub fn in_fence(&self) -> bool {
        self.fence.is_some() || self.opening.is_some()
    }

    /// Returns the open fence, including one opened by the current line.
    pub fn fence(&self) -> Option<CodeFence> {
        self.fence.or(self.opening)
    }

    /// Returns whether an inline span is open.
    pub fn in_inline(&self) -> bool {
        match (self.inline, self.n_ticks) {
            (inline, 0) => inline.is_some(),
            (None, _) => true,
            (Some(n), ticks) => n != ticks,
        }
    }

    /// Returns whether the current line, if it ends here, closes the open fence.
    pub fn line_closes(&self) -> bool {
        self.fence.is_some_and(|fence| {
            self.marker == Some(fence.marker)
                && self.n_marker >= fence.len
                && self.bare
                && self.line != LineState::Start
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn plain_text_in_bulk_equals_text_by_characters(
            words in prop::collection::vec(
                prop::sample::select(vec!["a b", " ", "  ", "\n", "`", "``", "```", "~~~", "x", "é\u{a0}", "\n\n", "   ```"]), 0..30),
        ) {
            let (mut by_words, mut by_chars) = (CodeState::default(), CodeState::default());
            for word in words {
                let each: Vec<bool> = word.chars().map(|c| by_chars.push(c)).collect();
                match by_words.push_plain(word) {
                    Some(in_code) => prop_assert!(each.iter().all(|one| *one == in_code), "{:?}", word),
                    None => word.chars().for_each(|c| _ = by_words.push(c)),
                }
                prop_assert_eq!(format!("{by_words:?}"), format!("{by_chars:?}"));
            }
        }
    }

    /// Returns the text with code in upper case.
    fn shown(text: &str) -> String {
        let mut state = CodeState::default();
        text.chars().map(|c| if state.push(c) { c.to_ascii_uppercase() } else { c }).collect()
    }

    #[test]
    fn code_spans_and_fences_are_detected() {
        for (text, expect) in [
            ("a `b` c", "a `B` c"),
            ("a ``b`c`` d", "a ``B`C`` d"),
            ("stray ` here\n\nnext", "stray ` HERE\n\nnext"),
            ("x\n```js\nlet a\n```\nafter", "x\n```JS\nLET A\n```\nafter"),
            ("```\n~~~\nin\n``` no\nin\n```\nout", "```\n~~~\nIN\n``` NO\nIN\n```\nout"),
            ("    ```\n\nplain", "    ```\n\nplain"),
            ("```\nin\n```x\nin\n```\nout", "```\nIN\n```X\nIN\n```\nout"),
            ("    ```\nplain", "    ```\nPLAIN"),
            ("  ````\na\n```\nb\n  ````\nc", "  ````\nA\n```\nB\n  ````\nc"),
        ] {
            assert_eq!(shown(text), expect, "{text:?}");
        }
    }
}
