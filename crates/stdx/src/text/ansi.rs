//! Removal of terminal escape sequences, even from text that arrives in chunks.

use std::borrow::Cow;

/// Removes escape sequences from a text; borrows if there are none.
pub fn strip_ansi(text: &str) -> Cow<'_, str> {
    if !text.contains(['\u{1b}', '\u{9b}']) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    AnsiFilter::default().push(text, &mut out);
    Cow::Owned(out)
}

/// Removes escape sequences from text that arrives in chunks, including sequences split between two chunks.
///
/// An unfinished sequence at the very end is dropped with the filter.
#[derive(Clone, Copy, Debug, Default)]
pub struct AnsiFilter(AnsiState);

#[derive(Clone, Copy, Debug, Default)]
enum AnsiState {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// After ESC and an intermediate character such as `(`.
    Intermediate,
    /// Inside a control sequence: parameters until a final character.
    Control,
    /// Inside an operating system command or another string, until BEL or ST.
    Command,
    /// Inside a string, after ESC.
    CommandEscape,
}

impl AnsiFilter {
    /// Filters a chunk of text into `out`.
    pub fn push(&mut self, text: &str, out: &mut String) {
        for c in text.chars() {
            self.0 = match (self.0, c) {
                (AnsiState::Text, '\u{1b}') => AnsiState::Escape,
                (AnsiState::Text, '\u{9b}') => AnsiState::Control,
                (AnsiState::Text, _) => {
                    out.push(c);
                    AnsiState::Text
                }
                (AnsiState::Escape, '[') => AnsiState::Control,
                (AnsiState::Escape, ']' | 'P' | 'X' | '^' | '_') => AnsiState::Command,
                (AnsiState::Escape | AnsiState::Intermediate, ' '..='/') => AnsiState::Intermediate,
                (AnsiState::Escape | AnsiState::Control | AnsiState::Intermediate, '\u{1b}') => AnsiState::Escape,
                (AnsiState::Escape | AnsiState::Intermediate, '0'..='~') | (AnsiState::Control, '@'..='~') => {
                    AnsiState::Text
                }
                (AnsiState::Control, ' '..='?') => AnsiState::Control,
                // Not a sequence after all: what follows is text again.
                (AnsiState::Escape | AnsiState::Intermediate | AnsiState::Control, _) => {
                    out.push(c);
                    AnsiState::Text
                }
                (AnsiState::Command | AnsiState::CommandEscape, '\u{7}' | '\u{9c}')
                | (AnsiState::CommandEscape, '\\') => AnsiState::Text,
                (AnsiState::Command, '\u{1b}') => AnsiState::CommandEscape,
                // A line end inside a string: it was never closed.
                (AnsiState::Command, '\n') => {
                    out.push(c);
                    AnsiState::Text
                }
                (AnsiState::Command, _) => AnsiState::Command,
                // ESC ends the string; another sequence starts.
                (AnsiState::CommandEscape, '[') => AnsiState::Control,
                (AnsiState::CommandEscape, ']' | 'P' | 'X' | '^' | '_') => AnsiState::Command,
                (AnsiState::CommandEscape, _) => AnsiState::Text,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &str) {
        assert_eq!(strip_ansi(text), expect);
        let (mut filter, mut out) = (AnsiFilter::default(), String::new());
        for c in text.chars() {
            filter.push(c.encode_utf8(&mut [0; 4]), &mut out);
        }
        assert_eq!(out, expect, "in pieces");
    }

    #[test]
    fn escape_sequences_are_removed_whole() {
        check("\u{1b}[1;31mred\u{1b}[0m", "red");
        check("a\u{1b}]0;title\u{7}b\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", "ablink");
        check("\u{1b}(Bx\u{1b}=y\u{9b}2Jz", "xyz");
        check("\u{1b}]never closed\nnext", "\nnext");
        check("50% [ok] é\u{1b}[", "50% [ok] é");
        check("\u{1b}[?25l\u{1b}[2K\rdone", "\rdone");
    }
}
