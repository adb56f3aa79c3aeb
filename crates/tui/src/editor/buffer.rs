//! The lines of a text, and the single operation that changes them.

/// A position in a text, between two characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TextPosition {
    /// Line number, starting at 0.
    pub line: usize,
    /// Byte offset in the line.
    pub byte: usize,
}

/// A change of a text: replaces everything between two positions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TextChange {
    pub(super) start: TextPosition,
    pub(super) end: TextPosition,
    pub(super) text: String,
}

/// A text as lines, of which there is at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TextBuffer {
    lines: Vec<String>,
}

impl Default for TextBuffer {
    fn default() -> Self {
        Self { lines: vec![String::new()] }
    }
}

impl TextBuffer {
    /// Returns all lines.
    pub(super) fn lines(&self) -> &[String] {
        &self.lines
    }

    /// Returns a line; an empty one beyond the end.
    pub(super) fn line(&self, line: usize) -> &str {
        self.lines.get(line).map_or("", String::as_str)
    }

    /// Returns the index of the last line.
    pub(super) fn last_line(&self) -> usize {
        self.lines.len() - 1
    }

    /// Returns the end of a line.
    pub(super) fn line_end(&self, line: usize) -> TextPosition {
        TextPosition { line, byte: self.line(line).len() }
    }

    /// Returns the end of the text.
    pub(super) fn end(&self) -> TextPosition {
        self.line_end(self.last_line())
    }

    /// Returns whether there is no text.
    pub(super) fn is_empty(&self) -> bool {
        self.end() == TextPosition::default()
    }

    /// Returns the whole text.
    pub(super) fn text(&self) -> String {
        self.lines.join("\n")
    }

    /// Returns the text between two positions.
    pub(super) fn slice(&self, start: TextPosition, end: TextPosition) -> String {
        if start.line == end.line {
            return self.lines[start.line][start.byte..end.byte].to_owned();
        }
        let mut text = self.lines[start.line][start.byte..].to_owned();
        for line in &self.lines[start.line + 1..end.line] {
            text.push('\n');
            text.push_str(line);
        }
        text.push('\n');
        text.push_str(&self.lines[end.line][..end.byte]);
        text
    }

    /// Makes a change, and returns the change that undoes it. The cost is proportional to both texts and the lines that move.
    pub(super) fn replace(&mut self, change: &TextChange) -> TextChange {
        let TextChange { start, end, text } = change;
        let removed = self.slice(*start, *end);
        let end_of_new = if start.line == end.line && !text.contains('\n') {
            self.lines[start.line].replace_range(start.byte..end.byte, text);
            TextPosition { line: start.line, byte: start.byte + text.len() }
        } else {
            let tail = self.lines[end.line].split_off(end.byte);
            let mut pieces = text.split('\n');
            let mut first = std::mem::take(&mut self.lines[start.line]);
            first.truncate(start.byte);
            first.push_str(pieces.next().unwrap_or_default());
            let mut lines = vec![first];
            lines.extend(pieces.map(str::to_owned));
            let end_of_new =
                TextPosition { line: start.line + lines.len() - 1, byte: lines.last().map_or(0, String::len) };
            if let Some(last) = lines.last_mut() {
                last.push_str(&tail);
            }
            self.lines.splice(start.line..=end.line, lines);
            end_of_new
        };
        TextChange { start: *start, end: end_of_new, text: removed }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str, chars: usize) -> TextPosition {
        let head: String = text.chars().take(chars).collect();
        TextPosition { line: head.matches('\n').count(), byte: head.rsplit('\n').next().unwrap_or("").len() }
    }

    proptest! {
        #[test]
        fn a_change_equals_a_string_edit_and_its_inverse_undoes_it(
            text in "[aé\n]{0,12}", new in "[bü\n]{0,6}", a in 0usize..13, b in 0usize..13,
        ) {
            let n = text.chars().count();
            let (a, b) = (a.min(b).min(n), a.max(b).min(n));
            let mut buffer = TextBuffer::default();
            buffer.replace(&TextChange { start: buffer.end(), end: buffer.end(), text: text.clone() });
            prop_assert_eq!(buffer.text(), text.clone());
            let before = buffer.clone();
            let inverse = buffer.replace(&TextChange { start: at(&text, a), end: at(&text, b), text: new.clone() });
            let expected: String =
                text.chars().take(a).chain(new.chars()).chain(text.chars().skip(b)).collect();
            prop_assert_eq!(buffer.text(), expected);
            buffer.replace(&inverse);
            prop_assert_eq!(buffer, before);
        }
    }
}
