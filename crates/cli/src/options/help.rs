//! The help text, made from the table of flags.

use std::fmt::Write as _;

use super::flags::{FLAGS, Flag, Group};

/// What can stand before everything else, and what it does.
pub const COMMANDS: &[(&str, &str)] = &[
    ("agent", "Runs an embedded agent once: profiles, failover, block replies; prints payloads."),
    ("demo", "Shows a whole run on a scripted local server; no key needed."),
    ("auth", "Checks credentials, prints or removes them."),
    ("export", "Writes a session as an HTML page."),
    ("doctor", "Looks at folders, keys, servers and the sandbox, and says what is missing."),
    ("completions", "Prints completions for a shell, or the manual page."),
    ("install", "Installs a package of extensions, skills, prompts and themes."),
    ("remove", "Removes a package."),
    ("update", "Brings packages up to date."),
    ("list", "Lists installed packages."),
    ("config", "Switches resources of packages on and off."),
];

/// Width of the column of names.
const NAMES: usize = 34;

/// A flag of an extension, for the help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtensionFlag {
    /// The name without dashes.
    pub name: String,
    /// It takes a value.
    pub takes_value: bool,
    /// What it does.
    pub about: String,
}

/// The help text.
pub fn text(extension_flags: &[ExtensionFlag]) -> String {
    let mut out = String::from(
        "An AI agent in your terminal and in your scripts.\n\n\
         Usage: pinch [OPTIONS] [@FILE...] [MESSAGE...]\n       pinch COMMAND ...\n\nCommands:\n",
    );
    for (name, about) in COMMANDS {
        line(&mut out, name, about);
    }
    for group in Group::ALL {
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
        "\nMessages are sent one after another; @FILE stands for a file's content, and -- ends the options.\n\
         Exit codes: 1 your mistake, 2 configuration, 3 the provider, 4 this program or the machine.\n",
    );
    out
}

/// A flag's names and its value.
pub fn names(flag: &Flag) -> String {
    let mut names: Vec<&str> = flag.names().collect();
    // The short name comes first, as everywhere.
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
    fn every_flag_stands_in_the_help() {
        let text = super::text(&[]);
        for flag in super::FLAGS {
            assert!(text.contains(flag.long), "{}", flag.long);
        }
    }
}
