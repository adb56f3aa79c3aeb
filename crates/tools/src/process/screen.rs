//! Conversion of terminal output to readable text.

/// Maximum bytes of a sequence to remember; longer ones are dropped as well.
const MAX_SEQUENCE: usize = 16;

/// Removes terminal sequences from a stream of characters, and counts cursor position requests, whose replies programs wait for.
///
/// Cursor movement starts a new line, so that text from different positions does not run together.
#[derive(Debug, Default)]
pub(super) struct TerminalText {
    state: ScreenState,
    sequence: String,
    /// Number of unanswered requests.
    n_requests: usize,
    ends_line: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ScreenState {
    #[default]
    Text,
    /// After the character that starts a sequence.
    Escape,
    /// The sequence has one more character.
    Charset,
    /// Parameters, up to a letter.
    Control,
    /// A text for the terminal itself, up to its terminator.
    Command,
    /// Within such a text, after the possible start of its terminator.
    CommandEscape,
}

impl TerminalText {
    /// Appends the readable text of a piece of output.
    pub(super) fn push(&mut self, piece: &str, out: &mut String) {
        for c in piece.chars() {
            match self.state {
                ScreenState::Text if c == '\u{1b}' => self.state = ScreenState::Escape,
                ScreenState::Text if c == '\u{9b}' => self.begin(ScreenState::Control),
                ScreenState::Text => {
                    out.push(c);
                    self.ends_line = matches!(c, '\n' | '\r');
                }
                ScreenState::Escape => match c {
                    '[' => self.begin(ScreenState::Control),
                    ']' | 'P' | 'X' | '^' | '_' => self.begin(ScreenState::Command),
                    '(' | ')' | '*' | '+' | '-' | '.' | '/' | '#' | '%' | ' ' => self.state = ScreenState::Charset,
                    _ => self.state = ScreenState::Text,
                },
                ScreenState::Charset => self.state = ScreenState::Text,
                ScreenState::Control if ('\u{40}'..='\u{7e}').contains(&c) => {
                    self.state = ScreenState::Text;
                    self.end(c, out);
                }
                ScreenState::Control if c == '\u{1b}' => self.state = ScreenState::Escape,
                ScreenState::Control => {
                    if self.sequence.len() < MAX_SEQUENCE {
                        self.sequence.push(c);
                    }
                }
                ScreenState::Command if c == '\u{7}' || c == '\u{9c}' => self.state = ScreenState::Text,
                ScreenState::Command if c == '\u{1b}' => self.state = ScreenState::CommandEscape,
                ScreenState::Command => {}
                ScreenState::CommandEscape => {
                    self.state = if c == '\\' { ScreenState::Text } else { ScreenState::Command }
                }
            }
        }
    }

    /// Returns the number of cursor position requests since the last call.
    pub(super) fn take_requests(&mut self) -> usize {
        std::mem::take(&mut self.n_requests)
    }

    fn begin(&mut self, state: ScreenState) {
        self.sequence.clear();
        self.state = state;
    }

    fn end(&mut self, last: char, out: &mut String) {
        match last {
            'n' if matches!(self.sequence.as_str(), "6" | "?6") => self.n_requests += 1,
            'H' | 'f' | 'd' | 'E' | 'F' if !self.ends_line => {
                out.push('\n');
                self.ends_line = true;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_are_removed_however_they_are_split() {
        let output = "\u{1b}[?1049h\u{1b}[1;31mred\u{1b}[0m \u{1b}]0;title\u{7}a\u{1b}(Bb\u{1b}[6nc\u{1b}[2;1Hline\u{1b}[3;1H\u{1b}[4;1Hnext\u{1b}]8;;x\u{1b}\\é\u{1b}[?6n\u{1b}M!";
        let expect = "red abc\nline\nnexté!";
        for at in output.char_indices().map(|(at, _)| at) {
            let (mut screen, mut text) = (TerminalText::default(), String::new());
            screen.push(&output[..at], &mut text);
            let early = screen.take_requests();
            screen.push(&output[at..], &mut text);
            assert_eq!((text.as_str(), early + screen.take_requests()), (expect, 2), "cut at {at}");
        }
    }
}
