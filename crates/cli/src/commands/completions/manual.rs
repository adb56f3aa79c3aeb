//! The manual: for `man`, and as Markdown.

use std::fmt::Write as _;

use pinch_cli::options::facts::{ENVIRONMENT, EXIT_CODES, FILES, Variable};
use pinch_cli::options::flags::FlagGroup;

use super::surface::{CommandEntry, OptionSurface, Surface};

const USAGE: [&str; 2] = ["pinch [OPTIONS] [@FILE...] [MESSAGE...]", "pinch COMMAND ..."];
const MESSAGES: &str = "Messages are sent one after another. @FILE includes the contents of a text or image file. -- ends the options. \
     Piped input is prepended to the first message.";

/// Returns the headings of a conversation's options, with the options under each.
fn groups(conversation: &CommandEntry) -> impl Iterator<Item = (&'static str, Vec<&OptionSurface>)> {
    FlagGroup::ALL.into_iter().map(|group| {
        let of_group = conversation.options.iter().filter(move |option| option.group == group.title());
        (group.title(), of_group.collect())
    })
}

/// Returns the usage line of a command.
fn usage(entry: &CommandEntry) -> String {
    let mut usage = entry.line();
    if !entry.commands.is_empty() {
        usage.push_str(" COMMAND");
    }
    usage.push_str(" [OPTIONS]");
    for argument in &entry.arguments {
        let _written = write!(usage, " {}", argument.usage);
    }
    usage
}

fn variable_names(variable: &Variable) -> String {
    variable.other.map_or_else(|| variable.name.to_owned(), |other| format!("{} ({other})", variable.name))
}

/// Generates the page for `man`.
pub(super) fn roff(surface: &Surface) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let Some((conversation, commands)) = surface.entries.split_first() else { return String::new() };
    let mut out = format!(".TH PINCH 1 \"\" \"pinch {version}\" \"User Commands\"\n");
    section(&mut out, "Name");
    let _written = writeln!(out, "pinch \\- {}", escaped("an AI agent in your terminal and in your scripts"));
    section(&mut out, "Synopsis");
    let _written = writeln!(out, "{}\n.br\n{}", escaped(USAGE[0]), escaped(USAGE[1]));
    section(&mut out, "Description");
    let _written = writeln!(out, "{}", escaped(MESSAGES));
    section(&mut out, "Options");
    for (title, options) in groups(conversation) {
        let _written = writeln!(out, ".SS {}", escaped(title));
        options.iter().for_each(|option| item(&mut out, &option.shown(), &option.about));
    }
    section(&mut out, "Commands");
    for entry in commands {
        let _written = writeln!(out, ".SS {}\n{}", escaped(&usage(entry)), escaped(&entry.about));
        entry.arguments.iter().for_each(|argument| item(&mut out, &argument.name, &argument.about));
        entry.options.iter().for_each(|option| item(&mut out, &option.shown(), &option.about));
    }
    section(&mut out, "Exit status");
    EXIT_CODES.iter().for_each(|(code, about)| item(&mut out, code, &about.replace('`', "")));
    section(&mut out, "Environment");
    ENVIRONMENT.iter().for_each(|variable| item(&mut out, &variable_names(variable), variable.about));
    section(&mut out, "Files");
    FILES.iter().for_each(|(file, about)| item(&mut out, file, about));
    out
}

fn section(out: &mut String, title: &str) {
    let _written = writeln!(out, ".SH {}", title.to_uppercase());
}

fn item(out: &mut String, term: &str, about: &str) {
    let _written = writeln!(out, ".TP\n\\fB{}\\fR\n{}", escaped(term), escaped(about));
}

/// Escapes a text for roff.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-").replace('…', "...");
    // A line that starts like this would be a request.
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}

/// Generates the manual as Markdown.
pub(super) fn markdown(surface: &Surface) -> String {
    let Some((conversation, commands)) = surface.entries.split_first() else { return String::new() };
    let mut out = format!(
        "# The command line\n\n<!-- Made by `cargo xtask codegen` from the program itself: change it there. -->\n\n\
         ```\n{}\n{}\n```\n\n{MESSAGES}\n\nAs a manual page: `pinch completions man`.\n\n## Options\n",
        USAGE[0], USAGE[1]
    );
    for (title, options) in groups(conversation) {
        let _written = write!(out, "\n### {title}\n\n");
        options_table(&mut out, &options);
    }
    out.push_str("\n## Commands\n");
    for entry in commands {
        let _written = write!(out, "\n### `{}`\n\n{}\n\n```\n{}\n```\n\n", entry.line(), entry.about, usage(entry));
        table(&mut out, "argument", entry.arguments.iter().map(|one| (one.name.clone(), one.about.clone())));
        if !entry.arguments.is_empty() {
            out.push('\n');
        }
        options_table(&mut out, &entry.options.iter().collect::<Vec<_>>());
    }
    out.push_str("\n## Exit codes\n\n");
    table(&mut out, "code", EXIT_CODES.iter().map(|(code, about)| ((*code).to_owned(), (*about).to_owned())));
    out.push_str(
        "\n## Environment\n\nNames in brackets belong to other programs; they are used if pinch's own variable is not set.\n\n",
    );
    table(&mut out, "variable", ENVIRONMENT.iter().map(|one| (variable_names(one), one.about.to_owned())));
    out.push_str("\n## Files\n\n");
    table(&mut out, "file", FILES.iter().map(|(file, about)| ((*file).to_owned(), (*about).to_owned())));
    out
}

fn options_table(out: &mut String, options: &[&OptionSurface]) {
    table(out, "option", options.iter().map(|option| (option.shown(), option.about.clone())));
}

fn table(out: &mut String, title: &str, rows: impl Iterator<Item = (String, String)>) {
    for (at, (name, about)) in rows.enumerate() {
        if at == 0 {
            let _written = write!(out, "| {title} | |\n|---|---|\n");
        }
        let _written = writeln!(out, "| `{}` | {} |", name.replace('|', "\\|"), about.replace('|', "\\|"));
    }
}
