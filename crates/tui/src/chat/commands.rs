//! Slash commands of the chat.

use pinch_coding_agent::extension::Completion;
use pinch_llm::thinking::ThinkingLevel;

use super::backend::{ElevatedMode, GroupActivation, PermissionLimit, QueueMode, ReasoningMode, UsageMode, Verbosity};
use crate::editor::complete::CommandSuggestion;
use crate::keymap::{KeyAction, KeyContext, Keymap};
use crate::slash::{self, InterfaceCommand, command};

/// All commands, in the order in which completion lists them.
pub(crate) const COMMANDS: &[InterfaceCommand] = &[
    command("help", "", "Show commands and keys"),
    command("status", "", "Show the state of the engine and of the session"),
    command("context", "", "Show what takes up the context window"),
    command("auth", "[provider]", "Show the agent's auth profiles and their cooldowns"),
    command("login", "[provider]", "Log in to a provider"),
    command("agent", "[id]", "Switch to another agent"),
    command("session", "[key]", "Switch to another session of the agent"),
    command("model", "[model|default]", "Choose the model of the session"),
    command("think", "<level|default>", "Choose the thinking level"),
    command("verbose", "<on|full|off>", "Choose how much tool activity is shown"),
    command("reasoning", "<on|off|stream>", "Choose how the model's thinking is shown"),
    command("usage", "[off|tokens|full]", "Choose how token usage is shown"),
    command("queue", "<steer|followup|collect|interrupt|default>", "Choose what happens to messages during a run"),
    command("elevated", "<on|off|ask|full>", "Choose whether commands leave the sandbox"),
    command("permissions", "<read-only|guarded|workspace|full|default>", "Limit what the agent may do in the session"),
    command("activation", "<mention|always>", "Choose which messages of a group the agent answers"),
    command("deliver", "<on|off>", "Choose whether replies are also delivered to the session's channel"),
    command("compact", "[instructions]", "Summarize the conversation to free up the context window"),
    command("new", "[message]", "Start a new session of the agent"),
    command("reset", "", "Reset this session"),
    command("abort", "", "Stop the active run"),
    command("settings", "", "Change what the chat shows"),
    command("quit", "", "Exit"),
];

/// Aliases of commands.
const ALIASES: [(&str, &str); 8] = [
    ("commands", "help"),
    ("agents", "agent"),
    ("sessions", "session"),
    ("models", "model"),
    ("thinking", "think"),
    ("elev", "elevated"),
    ("stop", "abort"),
    ("exit", "quit"),
];

/// Keys of the interactive mode with the same effect in the chat.
pub(crate) const APP_KEYS: [KeyAction; 10] = [
    KeyAction::Interrupt,
    KeyAction::Clear,
    KeyAction::Exit,
    KeyAction::Suspend,
    KeyAction::ThinkingToggle,
    KeyAction::ToolsExpand,
    KeyAction::ToolsExpandOne,
    KeyAction::MessageDequeue,
    KeyAction::PasteExpand,
    KeyAction::Redraw,
];

/// Keyword that clears a choice.
pub(crate) const DEFAULT: &str = "default";

/// A parsed command.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ChatCommand {
    Help,
    Status,
    Context,
    Auth(Option<String>),
    /// Without a provider, the user chooses.
    Login(Option<String>),
    Agent(Option<String>),
    Session(Option<String>),
    /// Without a text, the user chooses; `default` clears the choice.
    Model(Option<String>),
    Think(Option<ThinkingLevel>),
    Verbose(Verbosity),
    Reasoning(ReasoningMode),
    /// Without a mode, switches to the next one.
    Usage(Option<UsageMode>),
    Queue(Option<QueueMode>),
    Elevated(ElevatedMode),
    Permissions(Option<PermissionLimit>),
    Activation(GroupActivation),
    Deliver(bool),
    Compact(Option<String>),
    /// With the first message of the new session.
    New(Option<String>),
    Reset,
    Abort,
    Settings,
    Quit,
    /// It cannot be run as typed.
    Problem(String),
}

/// Parses a submitted text; `None` if it is not a command of the chat. `levels`: those of the model.
pub(crate) fn parse(text: &str, levels: &[ThinkingLevel]) -> Option<ChatCommand> {
    let (typed, argument) = slash::typed(text)?;
    let name = ALIASES.iter().find(|(alias, _)| *alias == typed).map_or(typed, |(_, name)| *name);
    COMMANDS.iter().find(|command| command.name == name)?;
    let given = (!argument.is_empty()).then(|| argument.to_owned());
    let lower = argument.to_lowercase();
    let valid = |what: &str, words: &[&str]| {
        let words = words.join(", ");
        let text = match argument {
            "" => format!("Usage: /{typed} <{what}>. Valid values: {words}"),
            _ => format!("Invalid {what} {argument:?}. Valid values: {words}"),
        };
        ChatCommand::Problem(text)
    };
    Some(match name {
        "help" => ChatCommand::Help,
        "status" => ChatCommand::Status,
        "context" => ChatCommand::Context,
        "auth" => ChatCommand::Auth(given),
        "login" => ChatCommand::Login(given),
        "agent" => ChatCommand::Agent(given),
        "session" => ChatCommand::Session(given),
        "model" => ChatCommand::Model(given),
        "think" => match ThinkingLevel::parse(&lower).filter(|level| levels.is_empty() || levels.contains(level)) {
            Some(level) => ChatCommand::Think(Some(level)),
            None if lower == DEFAULT => ChatCommand::Think(None),
            None => {
                let levels = if levels.is_empty() { &ThinkingLevel::ALL[..] } else { levels };
                let words: Vec<&str> = levels.iter().map(|level| level.as_str()).chain([DEFAULT]).collect();
                valid("level", &words)
            }
        },
        "verbose" => match Verbosity::parse(&lower) {
            Some(level) => ChatCommand::Verbose(level),
            None => valid("level", &["on", "full", "off"]),
        },
        "reasoning" => match ReasoningMode::parse(&lower) {
            Some(mode) => ChatCommand::Reasoning(mode),
            None => valid("mode", &["on", "off", "stream"]),
        },
        "usage" if argument.is_empty() => ChatCommand::Usage(None),
        "usage" => match UsageMode::parse(&lower) {
            Some(mode) => ChatCommand::Usage(Some(mode)),
            None => valid("mode", &["off", "tokens", "full"]),
        },
        "queue" => match QueueMode::parse(&lower) {
            Some(mode) => ChatCommand::Queue(Some(mode)),
            None if lower == DEFAULT => ChatCommand::Queue(None),
            None => valid("mode", &["steer", "followup", "collect", "interrupt", DEFAULT]),
        },
        "elevated" => match ElevatedMode::parse(&lower) {
            Some(mode) => ChatCommand::Elevated(mode),
            None => valid("mode", &["on", "off", "ask", "full"]),
        },
        "permissions" => match PermissionLimit::parse(&lower) {
            Some(limit) => ChatCommand::Permissions(Some(limit)),
            None if lower == DEFAULT => ChatCommand::Permissions(None),
            None => valid("mode", &["read-only", "guarded", "workspace", "full", DEFAULT]),
        },
        "activation" => match GroupActivation::parse(&lower) {
            Some(activation) => ChatCommand::Activation(activation),
            None => valid("mode", &["mention", "always"]),
        },
        "deliver" => match lower.as_str() {
            "on" => ChatCommand::Deliver(true),
            "off" => ChatCommand::Deliver(false),
            _ => valid("value", &["on", "off"]),
        },
        "compact" => ChatCommand::Compact(given),
        "new" => ChatCommand::New(given),
        "reset" => ChatCommand::Reset,
        "abort" => ChatCommand::Abort,
        "settings" => ChatCommand::Settings,
        "quit" => ChatCommand::Quit,
        _ => return None,
    })
}

/// Returns the commands for completion.
pub(crate) fn suggestions(agents: &[String]) -> Vec<CommandSuggestion> {
    let words = |words: &[&str]| words.iter().map(|word| Completion::new(*word)).collect();
    let suggestion = |command: &InterfaceCommand| {
        let mut suggestion = CommandSuggestion::new(command.name, command.about);
        suggestion.argument_hint = Some(command.argument.to_owned()).filter(|hint| !hint.is_empty());
        suggestion.arguments = match command.name {
            "agent" => agents.iter().map(Completion::new).collect(),
            "think" => {
                let levels = ThinkingLevel::ALL.into_iter().map(ThinkingLevel::as_str);
                words(&levels.chain([DEFAULT]).collect::<Vec<_>>())
            }
            "verbose" => words(&["on", "full", "off"]),
            "reasoning" => words(&["on", "off", "stream"]),
            "usage" => words(&["off", "tokens", "full"]),
            "queue" => words(&["steer", "followup", "collect", "interrupt", DEFAULT]),
            "elevated" => words(&["on", "off", "ask", "full"]),
            "permissions" => words(&["read-only", "guarded", "workspace", "full", DEFAULT]),
            "activation" => words(&["mention", "always"]),
            "deliver" => words(&["on", "off"]),
            _ => Vec::new(),
        };
        suggestion
    };
    COMMANDS.iter().map(suggestion).collect()
}

/// Lists commands and keys, in Markdown.
pub(crate) fn help(keymap: &Keymap) -> String {
    let shell = "- `!command` Run a shell command; the agent does not see it";
    let mut text = format!("**Commands**\n\n{}{shell}\n\n", slash::list(COMMANDS));
    text.push_str(&slash::keys("Chat", slash::actions_of(&[KeyContext::Chat]).chain(APP_KEYS), keymap));
    for (title, contexts) in
        [("Editing", &[KeyContext::Editor, KeyContext::Input][..]), ("Lists", &[KeyContext::Select])]
    {
        text.push_str(&slash::keys(title, slash::actions_of(contexts), keymap));
    }
    text
}

/// Returns the typed name, and the most similar known one if any, if a text looks like an unknown command.
pub(crate) fn unknown(text: &str) -> Option<(String, Option<String>)> {
    let names = COMMANDS.iter().map(|command| command.name);
    slash::unknown(text, names.chain(ALIASES.iter().map(|(alias, _)| *alias)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEVELS: [ThinkingLevel; 3] = [ThinkingLevel::Off, ThinkingLevel::Low, ThinkingLevel::High];

    fn problem(text: &str) -> String {
        match parse(text, &LEVELS) {
            Some(ChatCommand::Problem(text)) => text,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn every_command_and_alias_does_something() {
        let aliases = ALIASES.iter().map(|(alias, _)| *alias);
        for name in COMMANDS.iter().map(|command| command.name).chain(aliases) {
            assert!(parse(&format!("/{name}"), &[]).is_some(), "{name}");
            assert_eq!(unknown(&format!("/{name} x")), None);
        }
    }

    #[test]
    fn invalid_arguments_are_answered_with_the_valid_ones() {
        assert_eq!(problem("/think xhigh"), "Invalid level \"xhigh\". Valid values: off, low, high, default");
        assert_eq!(problem("/think"), "Usage: /think <level>. Valid values: off, low, high, default");
        assert_eq!(problem("/verbose loud"), "Invalid level \"loud\". Valid values: on, full, off");
        assert_eq!(problem("/reasoning"), "Usage: /reasoning <mode>. Valid values: on, off, stream");
        assert_eq!(problem("/usage much"), "Invalid mode \"much\". Valid values: off, tokens, full");
        assert_eq!(problem("/elevated"), "Usage: /elevated <mode>. Valid values: on, off, ask, full");
        assert_eq!(
            problem("/queue later"),
            "Invalid mode \"later\". Valid values: steer, followup, collect, interrupt, default"
        );
    }

    #[test]
    fn arguments_are_case_insensitive() {
        assert_eq!(parse("/think HIGH", &LEVELS), Some(ChatCommand::Think(Some(ThinkingLevel::High))));
        assert_eq!(parse("/think default", &LEVELS), Some(ChatCommand::Think(None)));
        assert_eq!(parse("/usage", &LEVELS), Some(ChatCommand::Usage(None)));
        assert_eq!(parse(" /compact  keep names ", &LEVELS), Some(ChatCommand::Compact(Some("keep names".to_owned()))));
        assert_eq!(parse("/etc/hosts", &LEVELS), None);
    }
}
