//! The help text, generated from the table of flags.

use std::fmt::Write as _;

use super::flags::{CliFlag, FLAGS, FlagGroup};

/// The commands and their descriptions.
pub const COMMANDS: &[(&str, &str)] = &[
    ("agent", "Run an embedded agent once and print its replies"),
    ("chat", "Chat with an embedded agent in the terminal"),
    ("demo", "Show a whole run against a scripted local server; no key needed"),
    ("auth", "Log in and out, and check or print credentials"),
    ("export", "Export a session to HTML"),
    ("sessions", "Maintain session files"),
    ("skills", "List the skills of embedded agents, and install the programs they need"),
    ("policy", "Explain which tools an embedded agent may use, and which rule decides"),
    ("doctor", "Check directories, API keys, servers and sandbox support"),
    ("completions", "Print shell completions or the manual page"),
    ("install", "Install a package of extensions, skills, prompts and themes"),
    ("remove", "Remove a package"),
    ("update", "Update packages"),
    ("list", "List installed packages"),
    ("config", "Enable or disable resources of packages"),
];

/// Width of the name column.
const NAMES: usize = 34;

/// A flag of an extension, for the help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtensionFlag {
    /// The name without dashes.
    pub name: String,
    /// Whether it takes a value.
    pub takes_value: bool,
    /// Its description.
    pub about: String,
}

/// Returns the help text.
pub fn text(extension_flags: &[ExtensionFlag]) -> String {
    let mut out = String::from(
        "An AI agent in your terminal and in your scripts.\n\n\
         Usage: pinch [OPTIONS] [@FILE...] [MESSAGE...]\n       pinch COMMAND ...\n\nCommands:\n",
    );
    for (name, about) in COMMANDS {
        line(&mut out, name, about);
    }
    for group in FlagGroup::ALL {
        let _infallible = write!(out, "\n{}:\n", group.title());
        for flag in FLAGS.iter().filter(|flag| flag.group == group) {
            line(&mut out, &names(flag), flag.about);
        }
    }
    if !extension_flags.is_empty() {
        out.push_str("\nExtensions:\n");
        for flag in extension_flags {
            let value = if flag.takes_value { " <VALUE>" } else { "" };
            line(&mut out, &format!("--{}{value}", flag.name), &flag.about);
        }
    }
    out.push_str(
        "\nMessages are sent one after another. @FILE includes the contents of a file; -- ends the options.\n\
         Exit codes: 0 success, 1 usage, 2 configuration, 3 provider, 4 internal error.\n",
    );
    out
}

/// Returns a flag's names and its value.
pub fn names(flag: &CliFlag) -> String {
    let mut names: Vec<&str> = flag.names().collect();
    // The short name comes first, as usual.
    names.sort_by_key(|name| name.starts_with("--"));
    let value = flag.value_name().map(|name| format!(" <{name}>")).unwrap_or_default();
    format!("{}{value}", names.join(", "))
}

fn line(out: &mut String, names: &str, about: &str) {
    let _infallible = if names.len() < NAMES {
        writeln!(out, "  {names:<NAMES$}{about}")
    } else {
        writeln!(out, "  {names}\n  {:NAMES$}{about}", "")
    };
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_flag_is_in_the_help() {
        let text = super::text(&[]);
        for flag in super::FLAGS {
            assert!(text.contains(flag.long), "{}", flag.long);
        }
    }
}
