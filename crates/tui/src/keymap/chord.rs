//! Key sequences as one binding: `ctrl+x ctrl+e`.

use std::fmt;
use std::str::FromStr;

use crate::key::{Key, KeyCode, ParseKeyError};

/// A key, or a sequence of keys pressed one after another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeyChord(Vec<Key>);

impl KeyChord {
    /// Returns the keys, of which there is at least one.
    pub fn keys(&self) -> &[Key] {
        &self.0
    }
}

impl From<Key> for KeyChord {
    fn from(key: Key) -> Self {
        Self(vec![canonical(key)])
    }
}

impl fmt::Display for KeyChord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, key) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str(" ")?;
            }
            write!(f, "{key}")?;
        }
        Ok(())
    }
}

impl FromStr for KeyChord {
    type Err = ParseKeyError;

    /// Parses keys separated by blanks.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let keys: Vec<Key> = text.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
        if keys.is_empty() {
            return text.parse::<Key>().map(Self::from);
        }
        Ok(Self(keys.into_iter().map(canonical).collect()))
    }
}

/// Unifies keys that older terminals send as the same byte: 0x1F for `ctrl+-`, 0x00 for `ctrl+space`.
pub(super) fn canonical(key: Key) -> Key {
    let code = match key.code {
        KeyCode::Char('_' | '7') => KeyCode::Char('-'),
        KeyCode::Char('@') => KeyCode::Space,
        other => other,
    };
    if key.ctrl && !key.alt && !key.meta { Key { code, ..key } } else { key }
}
