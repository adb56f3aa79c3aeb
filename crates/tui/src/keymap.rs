//! Key bindings: actions with their default keys, and the user's changes to them.
//!
//! ```
//! use pinch_tui::key::Key;
//! use pinch_tui::keymap::{KeyAction, KeyContext, Keymap};
//!
//! let (keymap, problems) = Keymap::parse("keybindings.json".as_ref(), r#"{"app.model.select": ["f2", "ctrl+x m"]}"#);
//! assert!(problems.is_empty());
//! let key: Key = "f2".parse()?;
//! assert_eq!(keymap.action(KeyContext::App, &key), Some(KeyAction::ModelSelect));
//! assert_eq!(keymap.hint(KeyAction::ModelSelect), "f2/ctrl+x m");
//! # Ok::<(), pinch_tui::key::ParseKeyError>(())
//! ```

mod action;

mod chord;

mod file;

#[cfg(test)]
mod tests;

use std::path::Path;

use pinch_coding_agent::document::Problem;

pub use action::{KeyAction, KeyContext};
pub use chord::KeyChord;

use crate::key::{Key, KeyCode};

/// The keys of all actions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keymap {
    /// In the order of [`KeyAction::ALL`].
    keys: Vec<Vec<KeyChord>>,
    /// Actions with keys chosen by the user; they take precedence.
    chosen: Vec<KeyAction>,
}

/// Meaning of a sequence of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyMatch {
    /// They are bound to this action.
    Action(KeyAction),
    /// They begin a longer binding: wait for the next key.
    Prefix,
    /// They are not bound.
    None,
}

impl Default for Keymap {
    fn default() -> Self {
        // A test parses all defaults.
        let keys = |action: &KeyAction| action.default_keys().iter().filter_map(|key| key.parse().ok()).collect();
        Self { keys: KeyAction::ALL.iter().map(keys).collect(), chosen: Vec::new() }
    }
}

impl Keymap {
    /// Parses a `keybindings.json` on top of the default keys, and returns everything in it that is wrong or ambiguous. A list of keys only
    /// replaces the defaults of its action; names of older versions are recognised. Problems name `file`.
    pub fn parse(file: &Path, text: &str) -> (Self, Vec<Problem>) {
        let (bindings, mut problems) = file::read(file, text);
        let mut keymap = Self::default();
        for (action, chords) in bindings {
            keymap.keys[action as usize] = chords;
            keymap.chosen.push(action);
        }
        problems.extend(keymap.conflicts(file));
        (keymap, problems)
    }

    /// Loads the `keybindings.json` in a directory with [`Keymap::parse`]; without one, the defaults apply.
    pub(crate) fn load(dir: &Path) -> (Self, Vec<Problem>) {
        let file = dir.join("keybindings.json");
        match std::fs::read_to_string(&file) {
            Ok(text) => Self::parse(&file, &text),
            // A missing file changes nothing.
            Err(_) => (Self::default(), Vec::new()),
        }
    }

    /// Returns keys that the user assigned to two actions of which only one can receive them.
    fn conflicts(&self, file: &Path) -> Vec<Problem> {
        let mut problems = Vec::new();
        for (at, first) in self.chosen.iter().enumerate() {
            let others = self.chosen[at + 1..].iter().filter(|other| first.context().overlaps(other.context()));
            for second in others {
                for key in self.keys(*first).iter().filter(|key| self.keys(*second).contains(key)) {
                    let what = format!("{key} is also bound to {}", first.id());
                    problems.push(Problem::new(file, what).at(second.id()).remedy("Give one of them another key"));
                }
            }
        }
        problems
    }

    /// Returns the action of a single key in a context.
    pub fn action(&self, context: KeyContext, key: &Key) -> Option<KeyAction> {
        match self.resolve(context, std::slice::from_ref(key)) {
            KeyMatch::Action(action) => Some(action),
            KeyMatch::Prefix | KeyMatch::None => None,
        }
    }

    /// Returns the meaning of a key sequence in a context. The user's bindings take precedence over defaults. Unless they are bound, Backspace
    /// and Delete mean the same with Shift.
    pub fn resolve(&self, context: KeyContext, pressed: &[Key]) -> KeyMatch {
        match (self.bound(context, pressed), pressed) {
            (KeyMatch::None, [key @ Key { shift: true, code: KeyCode::Backspace | KeyCode::Delete, .. }]) => {
                self.bound(context, &[Key { shift: false, ..*key }])
            }
            (found, _) => found,
        }
    }

    fn bound(&self, context: KeyContext, pressed: &[Key]) -> KeyMatch {
        let pressed: Vec<Key> = pressed.iter().copied().map(chord::canonical).collect();
        for context in context.chain() {
            let defaults = KeyAction::ALL.iter().filter(|action| !self.chosen.contains(action));
            for action in self.chosen.iter().chain(defaults).filter(|action| action.context() == *context) {
                for bound in self.keys(*action) {
                    if bound.keys() == pressed {
                        return KeyMatch::Action(*action);
                    }
                    if bound.keys().starts_with(&pressed) {
                        return KeyMatch::Prefix;
                    }
                }
            }
        }
        KeyMatch::None
    }

    /// Returns the keys of an action; none if it is unbound.
    pub fn keys(&self, action: KeyAction) -> &[KeyChord] {
        &self.keys[action as usize]
    }

    /// Formats the keys of an action for people: joined by `/`, or `none`.
    pub fn hint(&self, action: KeyAction) -> String {
        let keys: Vec<String> = self.keys(action).iter().map(ToString::to_string).collect();
        if keys.is_empty() { "none".to_owned() } else { keys.join("/") }
    }
}
