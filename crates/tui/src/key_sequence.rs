//! What a terminal sends for a key, for programs that read escape sequences: as of xterm, or else `CSI u`.

use crate::key::{Key, KeyCode, KeyPress};

/// Returns the characters or the sequence of a key.
pub(crate) fn key_sequence(press: &KeyPress) -> String {
    if let Some(c) = press.text {
        return c.to_string();
    }
    let Key { code, ctrl, alt, shift, meta } = press.key;
    let modifiers = 1 + u8::from(shift) + 2 * u8::from(alt) + 4 * u8::from(ctrl) + 8 * u8::from(meta);
    // A final letter, or a number and a tilde.
    let letter = |letter: char| match modifiers {
        1 => format!("\x1b[{letter}"),
        _ => format!("\x1b[1;{modifiers}{letter}"),
    };
    let number = |number: u8| match modifiers {
        1 => format!("\x1b[{number}~"),
        _ => format!("\x1b[{number};{modifiers}~"),
    };
    // A character, with Alt as a prefix.
    let character = |c: char| match modifiers {
        1 => c.to_string(),
        3 => format!("\x1b{c}"),
        _ => format!("\x1b[{};{modifiers}u", u32::from(c)),
    };
    match code {
        KeyCode::Char(c) if ctrl && !shift && !meta && c.is_ascii_lowercase() => {
            // Ctrl with a letter is one of the control characters 1 to 26.
            let control = char::from(c as u8 - b'a' + 1);
            if alt { format!("\x1b{control}") } else { control.to_string() }
        }
        KeyCode::Char(c) => character(c),
        KeyCode::Space if ctrl && modifiers == 5 => "\0".to_owned(),
        KeyCode::Space => character(' '),
        KeyCode::Enter => character('\r'),
        KeyCode::Escape => character('\u{1b}'),
        KeyCode::Backspace => character('\u{7f}'),
        KeyCode::Tab if modifiers == 2 => "\x1b[Z".to_owned(),
        KeyCode::Tab => character('\t'),
        KeyCode::Up => letter('A'),
        KeyCode::Down => letter('B'),
        KeyCode::Right => letter('C'),
        KeyCode::Left => letter('D'),
        KeyCode::Clear => letter('E'),
        KeyCode::End => letter('F'),
        KeyCode::Home => letter('H'),
        KeyCode::Insert => number(2),
        KeyCode::Delete => number(3),
        KeyCode::PageUp => number(5),
        KeyCode::PageDown => number(6),
        KeyCode::F(n @ 1..=4) if modifiers == 1 => format!("\x1bO{}", char::from(b'P' + n - 1)),
        KeyCode::F(n @ 1..=4) => letter(char::from(b'P' + n - 1)),
        KeyCode::F(n @ 5..=12) => number([15, 17, 18, 19, 20, 21, 23, 24][usize::from(n - 5)]),
        KeyCode::F(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_sent_as_xterm_sends_them() {
        for (key, sequence) in [
            ("enter", "\r"),
            ("shift+enter", "\u{1b}[13;2u"),
            ("alt+enter", "\u{1b}\r"),
            ("escape", "\u{1b}"),
            ("tab", "\t"),
            ("shift+tab", "\u{1b}[Z"),
            ("backspace", "\u{7f}"),
            ("up", "\u{1b}[A"),
            ("ctrl+left", "\u{1b}[1;5D"),
            ("delete", "\u{1b}[3~"),
            ("shift+pageUp", "\u{1b}[5;2~"),
            ("f1", "\u{1b}OP"),
            ("f5", "\u{1b}[15~"),
            ("ctrl+c", "\u{3}"),
            ("alt+x", "\u{1b}x"),
            ("ctrl+shift+p", "\u{1b}[112;6u"),
            ("ctrl+space", "\0"),
        ] {
            assert_eq!(key_sequence(&KeyPress::of(key.parse().unwrap())), sequence, "{key}");
        }
        assert_eq!(key_sequence(&KeyPress::typed('A')), "A");
        assert_eq!(key_sequence(&KeyPress::typed(' ')), " ");
    }
}
