//! Slash commands: what all modes share.

use strsim::damerau_levenshtein;

use crate::keymap::{KeyAction, KeyContext, Keymap};

/// A command.
pub(crate) struct InterfaceCommand {
    pub(crate) name: &'static str,
    /// Its arguments; empty: none.
    pub(crate) argument: &'static str,
    pub(crate) about: &'static str,
}

/// Creates a command as a constant.
pub(crate) const fn command(name: &'static str, argument: &'static str, about: &'static str) -> InterfaceCommand {
    InterfaceCommand { name, argument, about }
}

/// Splits a typed command into its name and its trimmed arguments.
pub(crate) fn typed(text: &str) -> Option<(&str, &str)> {
    let rest = text.trim().strip_prefix('/')?;
    let (name, argument) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    Some((name, argument.trim()))
}

/// Formats the commands in Markdown, one item each.
pub(crate) fn list(commands: &[InterfaceCommand]) -> String {
    let mut text = String::new();
    for command in commands {
        let argument = if command.argument.is_empty() { String::new() } else { format!(" {}", command.argument) };
        text.push_str(&format!("- `/{}{argument}`: {}\n", command.name, command.about));
    }
    text
}

/// Formats keys in Markdown, below a title.
pub(crate) fn keys(title: &str, actions: impl Iterator<Item = KeyAction>, keymap: &Keymap) -> String {
    let mut text = format!("**{title}**\n\n");
    for action in actions.filter(|action| !keymap.keys(*action).is_empty()) {
        text.push_str(&format!("- `{}`: {}\n", keymap.hint(action), action.description()));
    }
    text.push('\n');
    text
}

/// Returns the actions of some contexts.
pub(crate) fn actions_of(contexts: &[KeyContext]) -> impl Iterator<Item = KeyAction> {
    KeyAction::ALL.iter().copied().filter(|action| contexts.contains(&action.context()))
}

/// Returns the typed name, and the most similar known one if any, if a text looks like an unknown command.
pub(crate) fn unknown<'a>(text: &str, known: impl Iterator<Item = &'a str>) -> Option<(String, Option<String>)> {
    let name = text.strip_prefix('/')?.split(char::is_whitespace).next()?;
    let is_like_a_name = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':' | '.'));
    if !is_like_a_name {
        return None;
    }
    let names: Vec<&str> = known.collect();
    if names.contains(&name) {
        return None;
    }
    // The beginning of a command is as similar as a typing error.
    let distance = |known: &str| match known.strip_prefix(name) {
        Some(rest) if rest.starts_with('-') => 1,
        _ => damerau_levenshtein(known, name),
    };
    let near = names.into_iter().map(|known| (distance(known), known)).min_by_key(|(d, _)| *d);
    let near = near.filter(|(distance, _)| *distance <= 2).map(|(_, known)| known.to_owned());
    Some((name.to_owned(), near))
}

/// Returns the warning about an unknown command that was submitted once.
pub(crate) fn unknown_warning((name, near): &(String, Option<String>)) -> String {
    let near = near.as_ref().map_or_else(|| ".".to_owned(), |near| format!(", did you mean /{near}?"));
    format!("Unknown command /{name}{near} Press enter again to send it as a message")
}
