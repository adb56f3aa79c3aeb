//! Keys that extensions bind to their commands.

use pinch_coding_agent::extension::{Extensions, FoundCommand};

use super::App;
use crate::key::Key;
use crate::keymap::{KeyAction, KeyChord};
use crate::text::{SanitizeMode, sanitize};

/// Actions whose keys extensions cannot have, as in pi.
const RESERVED: [KeyAction; 17] = [
    KeyAction::Interrupt,
    KeyAction::Clear,
    KeyAction::Exit,
    KeyAction::Suspend,
    KeyAction::ThinkingCycle,
    KeyAction::ModelCycleForward,
    KeyAction::ModelCycleBackward,
    KeyAction::ModelSelect,
    KeyAction::ToolsExpand,
    KeyAction::ThinkingToggle,
    KeyAction::ExternalEditor,
    KeyAction::MessageCopy,
    KeyAction::MessageFollowUp,
    KeyAction::Submit,
    KeyAction::SelectConfirm,
    KeyAction::SelectCancel,
    KeyAction::DeleteToLineEnd,
];

/// A key of an extension.
pub(super) struct ExtensionKey {
    key: KeyChord,
    command: FoundCommand,
}

impl App {
    /// Binds the shortcuts of extensions. `warns`: whether to show what is wrong with them.
    pub(super) fn bind_shortcuts(&mut self, extensions: &Extensions, warns: bool) {
        let names = |actions: &[KeyAction]| -> Vec<String> {
            actions.iter().flat_map(|action| self.keymap.keys(*action)).map(ToString::to_string).collect()
        };
        let (reserved, used) = (names(&RESERVED), names(KeyAction::ALL));
        let reserved: Vec<&str> = reserved.iter().map(String::as_str).collect();
        let used: Vec<&str> = used.iter().map(String::as_str).collect();
        let (found, mut problems) = extensions.shortcuts(&reserved, &used);
        self.extension_keys.clear();
        for shortcut in found {
            match shortcut.key.parse::<KeyChord>() {
                Ok(key) if key.keys().len() == 1 => {
                    self.extension_keys.push(ExtensionKey { key, command: shortcut.command });
                }
                _ => {
                    let (key, extension) = (&shortcut.key, &shortcut.command.extension);
                    problems.push(format!("Extension shortcut \"{key}\" from {extension} is not a key; it is ignored"));
                }
            }
        }
        if warns {
            for problem in problems {
                self.warning(&problem);
            }
        }
    }

    /// Returns the command that an extension has bound to a key.
    pub(crate) fn shortcut(&self, key: Key) -> Option<&FoundCommand> {
        let key = KeyChord::from(key);
        self.extension_keys.iter().find(|bound| bound.key == key).map(|bound| &bound.command)
    }

    /// Formats the keys of extensions in Markdown.
    pub(super) fn extension_keys(&self) -> String {
        if self.extension_keys.is_empty() {
            return String::new();
        }
        let mut text = "**Extensions**\n\n".to_owned();
        for ExtensionKey { key, command } in &self.extension_keys {
            let about = command.command.description().unwrap_or(&command.extension);
            let about = sanitize(about, SanitizeMode::Output).split_whitespace().collect::<Vec<_>>().join(" ");
            text.push_str(&format!("- `{key}`: {about}\n"));
        }
        text.push('\n');
        text
    }
}
