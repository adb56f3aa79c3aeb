//! Detects words that are commands rather than messages for a model, which would cost money.

use super::help::COMMANDS;

/// Commands of pi, and of habit, that are not in the list of commands, with what to type instead.
const OF_PI: &[(&str, &str)] = &[
    ("mcp", "MCP servers are not supported yet"),
    ("login", "Use: pinch login [PROVIDER]"),
    ("logout", "Use: pinch auth logout PROVIDER"),
    ("uninstall", "Use: pinch remove SOURCE"),
    ("help", "Use: pinch --help"),
    ("version", "Use: pinch --version"),
];

/// Returns the error for a first message that is, or resembles, a command; `None` for a message.
pub fn complaint(word: &str) -> Option<String> {
    if word.is_empty() || word.contains(char::is_whitespace) {
        return None;
    }
    let how = format!("hint: to send it to the model, use: pinch -- {word}");
    if COMMANDS.iter().any(|(name, _)| *name == word) {
        return Some(format!("\"{word}\" is a command and comes before all options: pinch {word}\n{how}"));
    }
    if let Some((_, instead)) = OF_PI.iter().find(|(name, _)| *name == word) {
        return Some(format!("Unknown command \"{word}\". {instead}\n{how}"));
    }
    let n_letters = word.chars().count();
    let names = COMMANDS.iter().chain(OF_PI).map(|(name, _)| *name);
    let (meant, _) = names
        // A long message is not compared letter by letter.
        .filter(|name| n_letters <= name.len() + 2)
        .map(|name| (name, strsim::osa_distance(word, name)))
        // In a short name, two letters are half of it.
        .filter(|(name, distance)| *distance <= if name.len() > 4 { 2 } else { 1 })
        .min_by_key(|(_, distance)| *distance)?;
    Some(match OF_PI.iter().find(|(name, _)| *name == meant) {
        Some((_, instead)) => format!("Unknown command \"{word}\". {instead}\n{how}"),
        None => format!("Unknown command \"{word}\". Did you mean \"pinch {meant}\"?\n{how}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_typos_of_commands_are_not_messages() {
        for (word, part) in [
            ("mcp", "MCP servers are not supported"),
            ("lgoin", "Unknown command \"lgoin\". Use: pinch login [PROVIDER]"),
            ("hepl", "Unknown command \"hepl\". Use: pinch --help"),
            ("updaet", "Did you mean \"pinch update\""),
            ("lst", "Did you mean \"pinch list\""),
            ("config", "comes before all options"),
            ("help", "pinch --help"),
        ] {
            let text = complaint(word).unwrap_or_default();
            assert!(text.contains(part) && text.ends_with(&format!("pinch -- {word}")), "{word}: {text}");
        }
        for message in ["x", "hi", "hello", "test", "explain", "list files", "why?", "größe", ""] {
            assert_eq!(complaint(message), None, "{message}");
        }
    }

    #[test]
    fn only_commands_that_exist_are_suggested() {
        for (name, _) in COMMANDS.iter().chain(OF_PI) {
            let text = complaint(&format!("{name}x")).unwrap_or_default();
            let suggested = text.split("Did you mean \"pinch ").nth(1).and_then(|rest| rest.split('"').next());
            assert!(suggested.is_none_or(|suggested| COMMANDS.iter().any(|(name, _)| *name == suggested)), "{text}");
            assert!(text.contains("Unknown command"), "{text}");
        }
    }
}
