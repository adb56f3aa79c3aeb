//! From the bytes of a terminal to inputs, including keys in the older format of xterm's modifyOtherKeys, which the parser does not know.

use termina::Parser;

use super::input::{TerminalInput, from_event};

/// Maximum length of a control sequence that is looked at, in bytes.
const MAX_SEQUENCE: usize = 24;

const PASTE_END: &[u8] = b"\x1b[201~";

/// Ctrl+C, in each format. In a pasted text, it does not arrive alone.
const INTERRUPTS: [&[u8]; 3] = [b"\x03", b"\x1b[99;5u", b"\x1b[27;5;99~"];

/// Returns the inputs in what a terminal sends.
pub(crate) fn parse_input(bytes: &str) -> Vec<TerminalInput> {
    InputDecoder::default().decode(bytes.as_bytes(), false)
}

/// Decodes what a terminal sends, in pieces of any size.
#[derive(Debug, Default)]
pub(super) struct InputDecoder {
    parser: Parser,
    /// The beginning of a control sequence.
    held: Vec<u8>,
    /// Whether a pasted text is arriving.
    pastes: bool,
}

impl InputDecoder {
    /// Adds bytes and returns the inputs that are complete. `maybe_more`: whether more bytes are waiting, so that an escape at the end need
    /// not be the key.
    pub(super) fn decode(&mut self, bytes: &[u8], maybe_more: bool) -> Vec<TerminalInput> {
        let mut ready = Vec::with_capacity(bytes.len());
        if self.pastes && INTERRUPTS.contains(&bytes) {
            // The end of the paste was lost, or will never come. Otherwise every key would become part of it.
            self.pastes = false;
            ready.append(&mut self.held);
            ready.extend_from_slice(PASTE_END);
        }
        for byte in bytes {
            self.add(*byte, &mut ready);
        }
        if self.held == b"\x1b" && !maybe_more {
            ready.append(&mut self.held);
        }
        if !ready.is_empty() {
            self.parser.parse(&ready, maybe_more || !self.held.is_empty());
        }
        std::iter::from_fn(|| self.parser.pop()).filter_map(from_event).collect()
    }

    /// Adds a byte, and moves what is complete to `ready`.
    fn add(&mut self, byte: u8, ready: &mut Vec<u8>) {
        if byte == 0x1b {
            ready.append(&mut self.held);
            self.held.push(byte);
            return;
        }
        if self.held.is_empty() {
            return ready.push(byte);
        }
        self.held.push(byte);
        let continues = match self.held.len() {
            2 => byte == b'[',
            n => n < MAX_SEQUENCE && (byte.is_ascii_digit() || byte == b';'),
        };
        if continues {
            return;
        }
        match &self.held[..] {
            b"\x1b[200~" => self.pastes = true,
            PASTE_END => self.pastes = false,
            sequence if !self.pastes => {
                if let Some((modifiers, key)) = modified_key(sequence) {
                    self.held.clear();
                    // The newer format.
                    ready.extend(format!("\x1b[{key};{modifiers}u").as_bytes());
                }
            }
            _ => {}
        }
        ready.append(&mut self.held);
    }
}

/// Parses a key in the format `CSI 27 ; modifiers ; key ~`.
fn modified_key(sequence: &[u8]) -> Option<(u8, u32)> {
    let parameters = sequence.strip_prefix(b"\x1b[27;")?.strip_suffix(b"~")?;
    let (modifiers, key) = std::str::from_utf8(parameters).ok()?.split_once(';')?;
    Some((modifiers.parse().ok()?, key.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names the inputs: keys, and pasted texts in quotes.
    fn names(inputs: &[TerminalInput]) -> Vec<String> {
        let name = |input: &TerminalInput| match input {
            TerminalInput::Key(press) => match press.text {
                Some(text) => format!("{} types {text}", press.key),
                None => press.key.to_string(),
            },
            TerminalInput::Paste(text) => format!("{text:?}"),
            other => format!("{other:?}"),
        };
        inputs.iter().map(name).collect()
    }

    fn decode(bytes: &str) -> Vec<String> {
        names(&parse_input(bytes))
    }

    #[test]
    fn keys_in_both_formats_are_the_same() {
        // Escape, tab, enter, space, backspace; letters, digits and signs; letters beyond ASCII, and of other scripts.
        let keys = [27, 9, 13, 32, 127, 97, 112, 65, 49, 45, 95, 47, 64, 233, 1089, 0x1_f600];
        for key in keys {
            for modifiers in 1..=16 {
                let (older, newer) = (format!("\x1b[27;{modifiers};{key}~"), format!("\x1b[{key};{modifiers}u"));
                let decoded = decode(&older);
                assert_eq!(decoded, decode(&newer), "key {key} with modifiers {modifiers}");
                assert_eq!(decoded.len(), 1, "key {key} with modifiers {modifiers}: {decoded:?}");
            }
        }
    }

    #[test]
    fn all_modifiers_of_the_older_format_are_read() {
        for (bytes, expected) in [
            ("\x1b[27;2;13~", "shift+enter"),
            ("\x1b[27;3;13~", "alt+enter"),
            ("\x1b[27;5;13~", "ctrl+enter"),
            ("\x1b[27;6;13~", "ctrl+shift+enter"),
            ("\x1b[27;7;13~", "ctrl+alt+enter"),
            ("\x1b[27;4;97~", "shift+alt+a"),
            ("\x1b[27;8;97~", "ctrl+shift+alt+a"),
            ("\x1b[27;5;99~", "ctrl+c"),
            ("\x1b[27;5;1089~", "ctrl+c"),
            ("\x1b[27;6;80~", "ctrl+shift+p"),
            ("\x1b[27;2;65~", "shift+a types A"),
            ("\x1b[27;2;33~", "! types !"),
            ("\x1b[27;2;9~", "shift+tab"),
            ("\x1b[27;5;9~", "ctrl+tab"),
            ("\x1b[27;2;32~", "space types  "),
            ("\x1b[27;5;127~", "ctrl+backspace"),
            ("\x1b[27;3;27~", "alt+escape"),
        ] {
            assert_eq!(decode(bytes), [expected], "{bytes:?}");
        }
        assert_eq!(decode("\x1b[27;9;97~"), decode("\x1b[97;9u"), "meta");
    }

    #[test]
    fn a_paste_without_an_end_is_ended_by_an_interrupt() {
        for interrupt in ["\x03", "\x1b[99;5u", "\x1b[27;5;99~"] {
            let mut decoder = InputDecoder::default();
            assert_eq!(names(&decoder.decode(b"\x1b[200~pasted", false)), [""; 0]);
            assert_eq!(names(&decoder.decode(b"a", false)), [""; 0]);
            let ended = names(&decoder.decode(interrupt.as_bytes(), false));
            assert_eq!(ended, ["\"pasteda\"", "ctrl+c"], "{interrupt:?}");
            assert_eq!(names(&decoder.decode(b"b", false)), ["b types b"]);
        }
    }

    #[test]
    fn sequences_that_are_no_keys_are_left_to_the_parser() {
        for bytes in ["\x1b[27;5~", "\x1b[27;5;~", "\x1b[27;;99~", "\x1b[27;999;99~", "\x1b[27;5;99999999999~"] {
            assert_eq!(decode(bytes), [""; 0], "{bytes:?}");
        }
        let long = format!("\x1b[27;5;{}~a", "9".repeat(100));
        assert_eq!(decode(&long), ["a types a"], "a sequence of any length ends");
    }

    #[test]
    fn pasted_text_is_not_decoded() {
        let pasted = decode("\x1b[200~a\x1b[27;5;99~b\x1b[201~\x1b[27;5;99~");
        assert_eq!(pasted, ["\"a\\u{1b}[27;5;99~b\"", "ctrl+c"]);
    }

    #[test]
    fn an_escape_is_a_key_if_nothing_follows() {
        assert_eq!(decode("\x1b"), ["escape"]);
        assert_eq!(decode("a\x1b"), ["a types a", "escape"]);
        let mut decoder = InputDecoder::default();
        assert_eq!(names(&decoder.decode(b"\x1b", true)), [""; 0]);
        assert_eq!(names(&decoder.decode(b"b", false)), ["alt+b"]);
    }

    #[test]
    fn where_reads_end_does_not_matter() {
        let bytes = "x\x1b[27;2;13~\x1b[A\x1b[200~p\x1b[20\x1b[27;5;99~\x1b[201~\x1b[99;5u\x1b[27;5;106~é";
        let whole = decode(bytes);
        assert_eq!(whole[1..3], ["shift+enter", "up"]);
        for at in 0..=bytes.len() {
            let mut decoder = InputDecoder::default();
            let (first, second) = bytes.as_bytes().split_at(at);
            // As a reader does whose buffer is full.
            let inputs = [decoder.decode(first, true), decoder.decode(second, false)].concat();
            assert_eq!(names(&inputs), whole, "split at {at}");
        }
    }
}
