//! The commands of the interface: what is typed behind a slash.

use pinch_coding_agent::extension::Completion;
use pinch_coding_agent::services::Services;

use crate::editor::complete::CommandSuggestion;
use crate::effect::{DialogName, Effect};
use crate::keymap::{KeyContext, Keymap};
use crate::slash::{self, InterfaceCommand, command};

/// All commands, in the order in which they are offered.
pub(crate) const COMMANDS: &[InterfaceCommand] = &[
    command("settings", "", "Change settings"),
    command("model", "[model]", "Choose a model"),
    command("scoped-models", "", "Choose the models to cycle through"),
    command("thinking", "[level]", "Choose a thinking level"),
    command("theme", "[name]", "Choose a theme"),
    command("export", "[path]", "Export the session as HTML, or as JSONL to a path that ends in .jsonl"),
    command("import", "<path>", "Continue a copy of a session file"),
    command("copy", "", "Copy the last answer to the clipboard"),
    command("name", "[name]", "Name the session, or show its name"),
    command("session", "", "Show file, messages, tokens and cost of the session"),
    command("help", "", "Show commands and keys"),
    command("hotkeys", "", "Show all keys"),
    command("changelog", "", "Show what changed in which version"),
    command("fork", "", "Start a new session from an earlier message"),
    command("clone", "", "Continue in a copy of the session"),
    command("tree", "", "Go to another place in the session tree"),
    command("login", "[provider]", "Log in to a provider"),
    command("logout", "[provider]", "Remove the credentials of a provider"),
    command("new", "", "Start a new session"),
    command("compact", "[instructions]", "Summarize the conversation to free the model's window"),
    command("queue", "", "Edit or remove queued messages"),
    command("resume", "", "Continue another session"),
    command("trust", "", "Decide whether this project's settings, extensions, skills and prompts are used"),
    command("reload", "", "Load settings, keys, extensions, skills, prompts and themes again"),
    command("fullscreen", "", "Change between the regular and the fullscreen mode"),
    command("mouse", "<on|off>", "Let the mouse scroll and select in fullscreen mode, or leave it to the terminal"),
    command("redraw", "", "Draw the screen again"),
    command("quit", "", "Exit"),
];

/// Names that mean the same as another command.
const ALIASES: [(&str, &str); 3] = [("clear", "new"), ("exit", "quit"), ("think", "thinking")];

/// What a submitted text means to the interface.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ParsedCommand {
    /// Something to do.
    Effects(Vec<Effect>),
    /// A text to show.
    Show(ShownText),
    /// A command that cannot be run as it was typed.
    Problem(String),
}

/// Texts that the interface makes itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShownText {
    Hotkeys,
    Help,
    Changelog,
}

/// Reads a submitted text. `None`: it is not a command of the interface.
pub(crate) fn parse(text: &str) -> Option<ParsedCommand> {
    let (name, argument) = slash::typed(text)?;
    let name = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, name)| *name);
    let given = (!argument.is_empty()).then(|| argument.to_owned());
    COMMANDS.iter().find(|command| command.name == name)?;
    let effect = match name {
        "settings" => Effect::Open(DialogName::Settings),
        "model" => Effect::Open(DialogName::Models { search: argument.to_owned() }),
        "scoped-models" => Effect::Open(DialogName::ScopedModels),
        "thinking" => match argument {
            "" => Effect::Open(DialogName::Thinking),
            word => match pinch_llm::thinking::ThinkingLevel::parse(word) {
                Some(level) => Effect::SetThinking { level, save: false },
                None => {
                    let levels = "off, minimal, low, medium, high or xhigh";
                    return Some(ParsedCommand::Problem(format!("There is no thinking level {word:?}; use {levels}")));
                }
            },
        },
        "theme" => match given {
            Some(name) => Effect::Theme { name, save: true },
            None => Effect::Open(DialogName::Themes),
        },
        "export" => Effect::Export(given.map(unquoted)),
        "import" => match given {
            Some(path) => Effect::Import(unquoted(path)),
            None => return Some(ParsedCommand::Problem("Usage: /import <path.jsonl>".to_owned())),
        },
        "copy" => Effect::Copy,
        "name" => Effect::Name(given),
        "session" => Effect::ShowSession,
        "help" => return Some(ParsedCommand::Show(ShownText::Help)),
        "changelog" => return Some(ParsedCommand::Show(ShownText::Changelog)),
        "hotkeys" => return Some(ParsedCommand::Show(ShownText::Hotkeys)),
        "fork" => Effect::Open(DialogName::Fork),
        "clone" => Effect::Clone,
        "tree" => Effect::Open(DialogName::Tree),
        "login" => given.map_or(Effect::Open(DialogName::Login), Effect::Login),
        "logout" => given.map_or(Effect::Open(DialogName::Logout), Effect::Logout),
        "new" => Effect::NewSession,
        "compact" => Effect::Compact(given),
        "queue" => Effect::Open(DialogName::Queue),
        "resume" => Effect::Open(DialogName::Sessions),
        "reload" => Effect::Reload,
        "trust" => Effect::Open(DialogName::Trust),
        "fullscreen" => Effect::ToggleFullscreen,
        "mouse" => match argument {
            "on" => Effect::Mouse(true),
            "off" => Effect::Mouse(false),
            _ => return Some(ParsedCommand::Problem("Usage: /mouse on, or /mouse off".to_owned())),
        },
        "redraw" => Effect::Redraw,
        "quit" => Effect::Exit,
        _ => return None,
    };
    Some(ParsedCommand::Effects(vec![effect]))
}

/// The commands, as completion offers them.
pub(crate) fn suggestions(services: &Services) -> Vec<CommandSuggestion> {
    let suggestion = |command: &InterfaceCommand| {
        let mut suggestion = CommandSuggestion::new(command.name, command.about);
        suggestion.argument_hint = Some(command.argument.to_owned()).filter(|hint| !hint.is_empty());
        suggestion.arguments = match command.name {
            "model" => (services.available_models().iter())
                .map(|model| {
                    let value = format!("{}/{}", model.provider, model.id);
                    Completion { description: Some(model.name.clone()), ..Completion::new(value) }
                })
                .collect(),
            "mouse" => ["on", "off"].map(Completion::new).to_vec(),
            "theme" => services.resources().themes.iter().map(|theme| Completion::new(theme.name.clone())).collect(),
            _ => Vec::new(),
        };
        suggestion
    };
    COMMANDS.iter().map(suggestion).collect()
}

/// A text that the interface makes, in Markdown. `known` are the commands of extensions, templates and skills.
pub(crate) fn text(shown: ShownText, keymap: &Keymap, known: &[String]) -> String {
    let mut text = String::new();
    if shown == ShownText::Help {
        text.push_str("**Commands**\n\n");
        text.push_str(&slash::list(COMMANDS));
        for name in known {
            text.push_str(&format!("- `/{name}`\n"));
        }
        text.push_str("- `!command` Run a command of the shell; `!!command` keeps it from the model\n\n");
    }
    let groups: [(&str, &[KeyContext]); 6] = [
        ("Editing", &[KeyContext::Editor, KeyContext::Input]),
        ("Application", &[KeyContext::App]),
        ("Lists", &[KeyContext::Select]),
        ("Sessions", &[KeyContext::SessionPicker]),
        ("Session tree", &[KeyContext::Tree]),
        ("Models to cycle through", &[KeyContext::ScopedModels]),
    ];
    for (title, contexts) in groups {
        text.push_str(&slash::keys(title, slash::actions_of(contexts), keymap));
    }
    text
}

/// A text without the quotes around it.
fn unquoted(text: String) -> String {
    let inner = ['"', '\''].into_iter().find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote));
    inner.map(str::to_owned).unwrap_or(text)
}

/// Whether a text looks like a command that nobody knows: the name of one that is meant, if there is one like it, and the typed name.
/// `known` are the names of templates, skills and commands of extensions.
pub(crate) fn unknown<'a>(text: &str, known: impl Iterator<Item = &'a str>) -> Option<(String, Option<String>)> {
    let ours = COMMANDS.iter().map(|command| command.name).chain(ALIASES.iter().map(|(alias, _)| *alias));
    slash::unknown(text, ours.chain(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_does_something() {
        for command in COMMANDS {
            assert!(parse(&format!("/{}", command.name)).is_some(), "{}", command.name);
        }
    }

    #[test]
    fn arguments_are_read_and_quotes_taken_off() {
        let effects = |text| match parse(text) {
            Some(ParsedCommand::Effects(effects)) => effects,
            other => panic!("{other:?}"),
        };
        assert_eq!(effects("/export \"my file.html\""), [Effect::Export(Some("my file.html".to_owned()))]);
        assert_eq!(effects("/exit"), [Effect::Exit]);
        assert_eq!(effects(" /name  New name "), [Effect::Name(Some("New name".to_owned()))]);
        assert!(matches!(parse("/import"), Some(ParsedCommand::Problem(_))));
        assert!(matches!(parse("/thinking hgih"), Some(ParsedCommand::Problem(_))));
        assert_eq!(parse("/etc/hosts is a file"), None);
        assert_eq!(parse("model"), None);
    }

    #[test]
    fn unknown_commands_are_told_from_paths_and_name_what_is_like_them() {
        let known = || ["review"].into_iter();
        assert_eq!(unknown("/modle x", known()), Some(("modle".to_owned(), Some("model".to_owned()))));
        assert_eq!(unknown("/reviw", known()), Some(("reviw".to_owned(), Some("review".to_owned()))));
        assert_eq!(unknown("/frobnicate", known()), Some(("frobnicate".to_owned(), None)));
        assert_eq!(unknown("/review", known()), None);
        assert_eq!(unknown("/etc/hosts", known()), None);
    }
}
