//! Keys as written in `keybindings.json`: `ctrl+x`, `shift+enter`, `alt+up`.

use std::fmt;
use std::str::FromStr;

/// A key without its modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KeyCode {
    /// A character key: letters are lower case, and a space is [`KeyCode::Space`].
    Char(char),
    /// A function key, `F1` to `F12`.
    F(u8),
    /// Escape.
    Escape,
    /// Enter or return.
    Enter,
    /// Tab.
    Tab,
    /// The space bar.
    Space,
    /// Backspace.
    Backspace,
    /// Delete.
    Delete,
    /// Insert.
    Insert,
    /// Clear, on keypads.
    Clear,
    /// Home.
    Home,
    /// End.
    End,
    /// Page up.
    PageUp,
    /// Page down.
    PageDown,
    /// Arrow up.
    Up,
    /// Arrow down.
    Down,
    /// Arrow left.
    Left,
    /// Arrow right.
    Right,
}

/// Keys with names.
const NAMES: [(KeyCode, &str); 16] = [
    (KeyCode::Escape, "escape"),
    (KeyCode::Enter, "enter"),
    (KeyCode::Tab, "tab"),
    (KeyCode::Space, "space"),
    (KeyCode::Backspace, "backspace"),
    (KeyCode::Delete, "delete"),
    (KeyCode::Insert, "insert"),
    (KeyCode::Clear, "clear"),
    (KeyCode::Home, "home"),
    (KeyCode::End, "end"),
    (KeyCode::PageUp, "pageUp"),
    (KeyCode::PageDown, "pageDown"),
    (KeyCode::Up, "up"),
    (KeyCode::Down, "down"),
    (KeyCode::Left, "left"),
    (KeyCode::Right, "right"),
];

/// A key with its modifiers, as used in bindings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// The key.
    pub code: KeyCode,
    /// Whether Ctrl is held.
    pub ctrl: bool,
    /// Whether Alt (Option, Meta) is held.
    pub alt: bool,
    /// Whether Shift is held; never set for a character produced by Shift, such as `A` or `?`.
    pub shift: bool,
    /// Whether Super (Command, the Windows key) is held.
    pub meta: bool,
}

impl Key {
    /// Creates a key without modifiers.
    pub const fn plain(code: KeyCode) -> Self {
        Self { code, ctrl: false, alt: false, shift: false, meta: false }
    }

    /// Creates a key with Ctrl.
    pub const fn ctrl(code: char) -> Self {
        Self { ctrl: true, ..Self::plain(KeyCode::Char(code)) }
    }

    /// Creates a key with Alt.
    pub const fn alt(code: KeyCode) -> Self {
        Self { alt: true, ..Self::plain(code) }
    }
}

impl From<KeyCode> for Key {
    fn from(code: KeyCode) -> Self {
        Self::plain(code)
    }
}

/// A key press as reported by the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyPress {
    /// The key to compare with bindings.
    pub key: Key,
    /// The character that it types, if any. Keys with Ctrl or Alt type nothing.
    pub text: Option<char>,
}

impl KeyPress {
    /// Creates a press of a key that types nothing.
    pub const fn of(key: Key) -> Self {
        Self { key, text: None }
    }

    /// Creates a press that types a character.
    pub fn typed(c: char) -> Self {
        let key = match c {
            ' ' => Key::plain(KeyCode::Space),
            _ if c.is_uppercase() && c.to_lowercase().count() == 1 => {
                let lower = c.to_lowercase().next().unwrap_or(c);
                Key { shift: true, ..Key::plain(KeyCode::Char(lower)) }
            }
            _ => Key::plain(KeyCode::Char(c)),
        };
        Self { key, text: Some(c) }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (is_held, name) in [(self.ctrl, "ctrl"), (self.shift, "shift"), (self.alt, "alt"), (self.meta, "super")] {
            if is_held {
                write!(f, "{name}+")?;
            }
        }
        match self.code {
            KeyCode::Char(c) => write!(f, "{c}"),
            KeyCode::F(n) => write!(f, "f{n}"),
            code => f.write_str(NAMES.iter().find(|(named, _)| *named == code).map_or("", |(_, name)| name)),
        }
    }
}

/// A text that is not the name of a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a key; write modifiers and a key such as `ctrl+x`, `alt+enter` or `f5`")]
pub struct ParseKeyError(String);

impl FromStr for Key {
    type Err = ParseKeyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseKeyError(text.to_owned());
        let lower = text.trim().to_lowercase();
        let mut key = Self::plain(KeyCode::Space);
        let mut rest = &*lower;
        // A plus sign can be the key itself: `ctrl++`.
        while let Some((modifier, tail)) =
            rest.split_once('+').filter(|(modifier, tail)| !modifier.is_empty() && !tail.is_empty())
        {
            match modifier {
                "ctrl" | "control" => key.ctrl = true,
                "alt" | "option" | "meta" => key.alt = true,
                "shift" => key.shift = true,
                "super" | "cmd" | "command" => key.meta = true,
                _ => return Err(error()),
            }
            rest = tail;
        }
        key.code = match rest {
            "esc" => KeyCode::Escape,
            "return" => KeyCode::Enter,
            "del" => KeyCode::Delete,
            "ins" => KeyCode::Insert,
            _ => {
                let named = NAMES.iter().find(|(_, name)| name.eq_ignore_ascii_case(rest)).map(|(code, _)| *code);
                let function = || {
                    let n = rest.strip_prefix('f')?.parse().ok()?;
                    (1..=12).contains(&n).then_some(KeyCode::F(n))
                };
                let mut chars = rest.chars();
                let character = || {
                    Some(KeyCode::Char(chars.next().filter(|c| !c.is_control())?)).filter(|_| chars.next().is_none())
                };
                named.or_else(function).or_else(character).ok_or_else(error)?
            }
        };
        Ok(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_round_trip_through_text() {
        for (text, written) in [
            ("ctrl+x", "ctrl+x"),
            ("Shift+Ctrl+P", "ctrl+shift+p"),
            ("esc", "escape"),
            ("return", "enter"),
            ("alt+pageup", "alt+pageUp"),
            ("ctrl++", "ctrl++"),
            ("+", "+"),
            ("f", "f"),
            ("f12", "f12"),
            ("super+k", "super+k"),
            ("ctrl+-", "ctrl+-"),
        ] {
            let key: Key = text.parse().unwrap();
            assert_eq!(key.to_string(), written);
            assert_eq!(written.parse(), Ok(key));
        }
        for text in ["", "hyper+x", "ctrl+", "f13", "word", "+x+"] {
            assert!(text.parse::<Key>().is_err(), "{text:?}");
        }
    }
}
