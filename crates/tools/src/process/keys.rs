//! Key sequences as sent by terminals.

/// Encoded keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EncodedKeys {
    /// The bytes to write.
    pub data: Vec<u8>,
    /// Warnings about unrecognized input.
    pub warnings: Vec<String>,
}

/// Keys by name.
const NAMED: [(&str, &str); 52] = [
    ("enter", "\r"),
    ("return", "\r"),
    ("tab", "\t"),
    ("escape", "\u{1b}"),
    ("esc", "\u{1b}"),
    ("space", " "),
    ("backspace", "\u{7f}"),
    ("bspace", "\u{7f}"),
    ("btab", "\u{1b}[Z"),
    ("f1", "\u{1b}OP"),
    ("f2", "\u{1b}OQ"),
    ("f3", "\u{1b}OR"),
    ("f4", "\u{1b}OS"),
    ("f5", "\u{1b}[15~"),
    ("f6", "\u{1b}[17~"),
    ("f7", "\u{1b}[18~"),
    ("f8", "\u{1b}[19~"),
    ("f9", "\u{1b}[20~"),
    ("f10", "\u{1b}[21~"),
    ("f11", "\u{1b}[23~"),
    ("f12", "\u{1b}[24~"),
    ("up", "\u{1b}[A"),
    ("down", "\u{1b}[B"),
    ("right", "\u{1b}[C"),
    ("left", "\u{1b}[D"),
    ("home", "\u{1b}[1~"),
    ("end", "\u{1b}[4~"),
    ("pageup", "\u{1b}[5~"),
    ("pgup", "\u{1b}[5~"),
    ("ppage", "\u{1b}[5~"),
    ("pagedown", "\u{1b}[6~"),
    ("pgdn", "\u{1b}[6~"),
    ("npage", "\u{1b}[6~"),
    ("insert", "\u{1b}[2~"),
    ("ic", "\u{1b}[2~"),
    ("delete", "\u{1b}[3~"),
    ("del", "\u{1b}[3~"),
    ("dc", "\u{1b}[3~"),
    ("kp/", "\u{1b}Oo"),
    ("kp*", "\u{1b}Oj"),
    ("kp-", "\u{1b}Om"),
    ("kp+", "\u{1b}Ok"),
    ("kp7", "\u{1b}Ow"),
    ("kp8", "\u{1b}Ox"),
    ("kp9", "\u{1b}Oy"),
    ("kp4", "\u{1b}Ot"),
    ("kp5", "\u{1b}Ou"),
    ("kp6", "\u{1b}Ov"),
    ("kp1", "\u{1b}Oq"),
    ("kp2", "\u{1b}Or"),
    ("kp3", "\u{1b}Os"),
    ("kp0", "\u{1b}Op"),
];
const NAMED_MORE: [(&str, &str); 2] = [("kp.", "\u{1b}On"), ("kpenter", "\u{1b}OM")];

/// Keys whose sequence can contain a modifier.
const MODIFIABLE: [&str; 17] = [
    "up", "down", "left", "right", "home", "end", "pageup", "pgup", "ppage", "pagedown", "pgdn", "npage", "insert",
    "ic", "delete", "del", "dc",
];

/// Modifiers of a key.
#[derive(Clone, Copy, Default)]
struct Modifiers {
    control: bool,
    alt: bool,
    shift: bool,
}

impl Modifiers {
    fn is_any(self) -> bool {
        self.control || self.alt || self.shift
    }

    /// Returns xterm's modifier number.
    fn number(self) -> u8 {
        1 + u8::from(self.shift) + 2 * u8::from(self.alt) + 4 * u8::from(self.control)
    }
}

/// Encodes a text, hexadecimal bytes, and keys, in this order.
pub fn encode_keys(literal: Option<&str>, hex: &[String], keys: &[String]) -> EncodedKeys {
    let mut encoded = EncodedKeys::default();
    encoded.data.extend_from_slice(literal.unwrap_or_default().as_bytes());
    for byte in hex {
        let digits = byte.trim().to_lowercase();
        let digits = digits.strip_prefix("0x").unwrap_or(&digits);
        let is_hex = matches!(digits.len(), 1 | 2) && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        match u8::from_str_radix(digits, 16).ok().filter(|_| is_hex) {
            Some(byte) => encoded.data.push(byte),
            None => encoded.warnings.push(format!("Invalid hex byte: {byte}")),
        }
    }
    for key in keys {
        encoded.add_key(key);
    }
    encoded
}

/// Ends a bracketed paste.
const PASTE_END: &str = "\u{1b}[201~";

/// Encodes a text as a terminal sends a paste, so that programs do not mistake it for typed keys.
pub fn encode_paste(text: &str, bracketed: bool) -> Vec<u8> {
    if !bracketed {
        return text.as_bytes().to_vec();
    }
    // A text must not contain the end marker, not even one formed by removing another.
    let mut text = text.to_owned();
    while text.contains(PASTE_END) {
        text = text.replace(PASTE_END, "");
    }
    format!("\u{1b}[200~{text}{PASTE_END}").into_bytes()
}

impl EncodedKeys {
    fn add_key(&mut self, token: &str) {
        let token = token.trim();
        let mut chars = token.chars();
        if let (Some('^'), Some(c), None) = (chars.next(), chars.next(), chars.next())
            && let Some(byte) = control(c)
        {
            self.data.push(byte);
            return;
        }
        let (modifiers, key) = modifiers(token);
        let lower = key.to_lowercase();
        if lower == "tab" && modifiers.shift {
            self.data.extend(modifiers.alt.then_some(0x1b));
            self.data.extend_from_slice(b"\x1b[Z");
            return;
        }
        let named = NAMED.iter().chain(&NAMED_MORE).find(|(name, _)| *name == lower).map(|(_, sequence)| *sequence);
        match (named, single(key)) {
            (Some(sequence), _) if modifiers.is_any() && MODIFIABLE.contains(&lower.as_str()) => {
                self.data.extend_from_slice(modified(sequence, modifiers.number()).as_bytes());
            }
            (Some(sequence), _) => {
                self.data.extend(modifiers.alt.then_some(0x1b));
                self.data.extend_from_slice(sequence.as_bytes());
            }
            (None, Some(c)) => self.add_char(c, modifiers),
            (None, None) => {
                if modifiers.is_any() {
                    self.warnings.push(format!("Unknown key \"{key}\" for modifiers; sending literal."));
                }
                self.data.extend_from_slice(key.as_bytes());
            }
        }
    }

    fn add_char(&mut self, c: char, modifiers: Modifiers) {
        self.data.extend(modifiers.alt.then_some(0x1b));
        if let Some(byte) = control(c).filter(|_| modifiers.control) {
            self.data.push(byte);
            return;
        }
        let c = if modifiers.shift { c.to_uppercase().next().unwrap_or(c) } else { c };
        self.data.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    }
}

fn single(key: &str) -> Option<char> {
    let mut chars = key.chars();
    chars.next().filter(|_| chars.next().is_none())
}

/// Splits off the modifiers in front of a key: `C-`, `M-`, `S-`.
fn modifiers(token: &str) -> (Modifiers, &str) {
    let mut modifiers = Modifiers::default();
    let mut rest = token;
    while let Some((letter, key)) = rest.split_once('-').filter(|(_, key)| !key.is_empty()) {
        match letter {
            "C" | "c" => modifiers.control = true,
            "M" | "m" => modifiers.alt = true,
            "S" | "s" => modifiers.shift = true,
            _ => break,
        }
        rest = key;
    }
    (modifiers, rest)
}

/// Adds a modifier to a sequence: `ESC[A` becomes `ESC[1;5A`, `ESC[3~` becomes `ESC[3;5~`.
fn modified(sequence: &str, number: u8) -> String {
    match sequence.strip_suffix('~') {
        Some(start) => format!("{start};{number}~"),
        None => {
            let (start, last) = sequence.split_at(sequence.len().saturating_sub(1));
            format!("{start}1;{number}{last}")
        }
    }
}

/// Returns the control character of a letter.
fn control(c: char) -> Option<u8> {
    match c.to_ascii_uppercase() {
        c @ '@'..='_' => Some(u8::try_from(u32::from(c)).ok()? & 0x1f),
        '?' => Some(0x7f),
        ' ' => Some(0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_encoded_as_by_xterm() {
        for (key, expect) in [
            ("C-c", "\u{3}"),
            ("^D", "\u{4}"),
            ("^?", "\u{7f}"),
            ("M-C-x", "\u{1b}\u{18}"),
            ("S-a", "A"),
            ("-", "-"),
            ("C--", "-"),
            ("M-Enter", "\u{1b}\r"),
            ("PgUp", "\u{1b}[5~"),
            ("S-F5", "\u{1b}[15~"),
            ("word", "word"),
            ("é", "é"),
            ("KPEnter", "\u{1b}OM"),
            ("^", "^"),
            ("^ab", "^ab"),
        ] {
            let found = encode_keys(None, &[], &[key.to_owned()]);
            assert_eq!(String::from_utf8(found.data).unwrap(), expect, "{key}");
            assert_eq!(found.warnings, [""; 0], "{key}");
        }
        assert_eq!(encode_paste("a\u{1b}[201~b", true), b"\x1b[200~ab\x1b[201~");
        let nested = encode_paste("a\u{1b}[2\u{1b}[201~01~b", true);
        assert_eq!(nested, b"\x1b[200~ab\x1b[201~");
        assert_eq!(encode_paste("a", false), b"a");
    }
}
