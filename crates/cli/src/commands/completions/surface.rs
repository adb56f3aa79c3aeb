//! The whole command line as data, including commands that are parsed by hand.

use pinch_cli::options::flags::{FLAGS, Takes};
use pinch_cli::options::help;
use pinch_embed::llm::thinking::ThinkingLevel;

use crate::commands::packages;

/// Values that can be completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Values {
    /// Any text.
    Text,
    /// The path of a file or directory.
    Files,
    /// The path of a directory.
    Folders,
    /// One of these.
    Words(Vec<String>),
}

/// An option of a command.
#[derive(Clone, Debug)]
pub(super) struct OptionSurface {
    /// Its names with dashes, the long one last.
    pub(super) names: Vec<String>,
    /// The name of its value, and the possible values.
    pub(super) value: Option<(String, Values)>,
    /// Whether the value is optional.
    pub(super) is_optional: bool,
    pub(super) about: String,
    /// Its heading in the help.
    pub(super) group: &'static str,
}

impl OptionSurface {
    /// Returns all names with the value, as in help texts.
    pub(super) fn shown(&self) -> String {
        let value = match (&self.value, self.is_optional) {
            (Some((name, _)), false) => format!(" <{name}>"),
            (Some((name, _)), true) => format!(" [{name}]"),
            (None, _) => String::new(),
        };
        format!("{}{value}", self.names.join(", "))
    }
}

/// The positional arguments of a command.
#[derive(Clone, Debug)]
pub(super) struct Argument {
    pub(super) name: String,
    /// How a usage line writes it: `NAME`, `[NAME]` if it is optional, with `...` if it can be repeated.
    pub(super) usage: String,
    pub(super) values: Values,
    pub(super) about: String,
}

/// A command; the first entry is the conversation, which has no command word.
#[derive(Clone, Debug)]
pub(super) struct CommandEntry {
    /// The words to type: the program, the command, and possibly a subcommand.
    pub(super) words: Vec<String>,
    pub(super) about: String,
    pub(super) options: Vec<OptionSurface>,
    pub(super) arguments: Vec<Argument>,
    /// Subcommands.
    pub(super) commands: Vec<(String, String)>,
}

impl CommandEntry {
    /// Returns the words as one text.
    pub(super) fn line(&self) -> String {
        self.words.join(" ")
    }
}

/// The whole command line.
#[derive(Clone, Debug)]
pub(super) struct Surface {
    pub(super) entries: Vec<CommandEntry>,
}

impl Surface {
    pub(super) fn new(root: &clap::Command) -> Self {
        let mut conversation = CommandEntry {
            words: vec!["pinch".to_owned()],
            about: "An AI agent in your terminal and in your scripts.".to_owned(),
            options: flags(),
            arguments: Vec::new(),
            commands: Vec::new(),
        };
        let mut below = Vec::new();
        for command in root.get_subcommands() {
            walk(&conversation.words, command, &mut below);
        }
        below.extend(packages::surface().into_iter().map(of_packages));
        // In the order of the help.
        let place = |entry: &CommandEntry| help::COMMANDS.iter().position(|(name, _)| entry.words[1] == *name);
        below.sort_by_key(place);
        let direct = below.iter().filter(|entry| entry.words.len() == 2);
        conversation.commands = direct.map(|entry| (entry.words[1].clone(), entry.about.clone())).collect();
        let entries = std::iter::once(conversation).chain(below).collect();
        Self { entries }
    }

    /// Returns the lines of all commands except the conversation.
    pub(super) fn commands(&self) -> impl Iterator<Item = String> {
        self.entries.iter().skip(1).map(CommandEntry::line)
    }
}

/// Returns the options of a conversation.
fn flags() -> Vec<OptionSurface> {
    let opt = |flag: &'static pinch_cli::options::flags::CliFlag| {
        let mut names: Vec<String> = flag.names().map(str::to_owned).collect();
        names.sort_by_key(|name| name.starts_with("--"));
        OptionSurface {
            value: flag.value_name().map(|name| (name.to_owned(), values(flag.long, name))),
            is_optional: matches!(flag.takes, Takes::Maybe { .. }),
            names,
            about: flag.about.to_owned(),
            group: flag.group.title(),
        }
    };
    FLAGS.iter().map(opt).collect()
}

/// Returns the possible values, by option and value name.
fn values(option: &str, name: &str) -> Values {
    match (option, name) {
        ("--mode", _) => Values::Words(["text", "json", "rpc"].map(str::to_owned).to_vec()),
        ("--thinking", _) => Values::Words(ThinkingLevel::ALL.map(|level| level.as_str().to_owned()).to_vec()),
        ("--verbose", _) => Values::Words(["on", "full", "off"].map(str::to_owned).to_vec()),
        (_, "DIR") => Values::Folders,
        (_, "FILE" | "PATH" | "PATH|ID" | "TEXT|FILE" | "SESSION" | "SOURCE" | "SRC") => Values::Files,
        _ => Values::Text,
    }
}

fn walk(above: &[String], command: &clap::Command, into: &mut Vec<CommandEntry>) {
    if command.is_hide_set() {
        return;
    }
    let words: Vec<String> = above.iter().cloned().chain([command.get_name().to_owned()]).collect();
    // clap removes the final period.
    let about = |text: Option<&clap::builder::StyledStr>| text.map(|text| format!("{text}.")).unwrap_or_default();
    let (mut options, mut arguments) = (Vec::new(), Vec::new());
    for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
        let name =
            arg.get_value_names().and_then(|names| names.first()).map_or(arg.get_id().as_str(), |name| name.as_str());
        let words: Vec<String> = arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
        let long = arg.get_long().map(|long| format!("--{long}")).unwrap_or_default();
        let takes_value = arg.get_action().takes_values();
        let values = if takes_value && !words.is_empty() { Values::Words(words) } else { values(&long, name) };
        if arg.is_positional() {
            let repeated = if matches!(arg.get_action(), clap::ArgAction::Append) { "..." } else { "" };
            let usage = if arg.is_required_set() { format!("{name}{repeated}") } else { format!("[{name}{repeated}]") };
            arguments.push(Argument { name: name.to_owned(), usage, values, about: about(arg.get_help()) });
            continue;
        }
        let names = arg.get_short().map(|short| format!("-{short}")).into_iter().chain([long]);
        options.push(OptionSurface {
            names: names.filter(|name| !name.is_empty()).collect(),
            value: takes_value.then(|| (name.to_owned(), values)),
            is_optional: false,
            about: about(arg.get_help()),
            group: "",
        });
    }
    let below = || command.get_subcommands().filter(|command| !command.is_hide_set());
    options.push(help_option());
    into.push(CommandEntry {
        about: about(command.get_about()),
        options,
        arguments,
        commands: below().map(|one| (one.get_name().to_owned(), about(one.get_about()))).collect(),
        words: words.clone(),
    });
    below().for_each(|command| walk(&words, command, into));
}

fn help_option() -> OptionSurface {
    OptionSurface {
        names: vec!["-h".to_owned(), "--help".to_owned()],
        value: None,
        is_optional: false,
        about: "Print help.".to_owned(),
        group: "",
    }
}

fn of_packages(command: packages::CommandSurface) -> CommandEntry {
    let option = |(names, value, about): &(&str, Option<&str>, &str)| OptionSurface {
        names: names.split(", ").map(str::to_owned).collect(),
        value: value.map(|name| (name.to_owned(), values("", name))),
        is_optional: false,
        about: format!("{about}."),
        group: "",
    };
    let of_help = help::COMMANDS.iter().find(|(name, _)| *name == command.name);
    CommandEntry {
        words: vec!["pinch".to_owned(), command.name.to_owned()],
        about: of_help.map(|(_, about)| (*about).to_owned()).unwrap_or_default(),
        options: command.options.iter().map(option).chain([help_option()]).collect(),
        arguments: command
            .argument
            .map(|name| Argument {
                name: name.to_owned(),
                usage: if command.is_argument_optional { format!("[{name}]") } else { name.to_owned() },
                values: values("", &name.to_uppercase()),
                about: "Source of the package: npm:NAME, git:HOST/PATH, a URL, or a directory".to_owned(),
            })
            .into_iter()
            .collect(),
        commands: Vec::new(),
    }
}
