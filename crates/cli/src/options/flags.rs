//! The table of flags.

use std::path::PathBuf;
use std::time::Duration;

use pinch_embed::llm::thinking::ThinkingLevel;

use super::{CliOptions, Mode, SandboxChoice, list};

/// A flag.
#[derive(Debug)]
pub struct CliFlag {
    /// The name with two leading dashes.
    pub long: &'static str,
    /// Other names.
    pub others: &'static [&'static str],
    /// Its value.
    pub takes: Takes,
    /// Its heading in the help.
    pub group: FlagGroup,
    /// Its description: imperative, without a final period.
    pub about: &'static str,
}

/// The value of a flag.
#[derive(Clone, Copy, Debug)]
pub enum Takes {
    /// No value.
    Nothing(fn(&mut CliOptions)),
    /// A value.
    Value {
        /// Its name in the help.
        name: &'static str,
        /// Stores it.
        set: fn(&mut CliOptions, String),
    },
    /// An optional value, if the next argument looks like one.
    Maybe {
        /// Its name in the help.
        name: &'static str,
        /// Stores it.
        set: fn(&mut CliOptions, Option<String>),
        /// Returns whether an argument is a value.
        is_value: fn(&str) -> bool,
    },
}

/// Headings of the help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlagGroup {
    /// Input and output.
    Output,
    /// Models.
    Model,
    /// Sessions.
    Session,
    /// Tools.
    Tools,
    /// Prompts and resources.
    Resources,
    /// Everything else.
    Other,
}

impl FlagGroup {
    /// All groups, in order.
    pub const ALL: [Self; 6] = [Self::Output, Self::Model, Self::Session, Self::Tools, Self::Resources, Self::Other];

    /// Returns the heading.
    pub fn title(self) -> &'static str {
        match self {
            Self::Output => "Input and output",
            Self::Model => "Models",
            Self::Session => "Sessions",
            Self::Tools => "Tools",
            Self::Resources => "Prompts and resources",
            Self::Other => "Other",
        }
    }
}

impl CliFlag {
    /// Returns the flag with a name.
    pub fn find(name: &str) -> Option<&'static Self> {
        FLAGS.iter().find(|flag| flag.names().any(|known| known == name))
    }

    /// Returns all its names.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.long).chain(self.others.iter().copied())
    }

    /// Returns the name of its value.
    pub fn value_name(&self) -> Option<&'static str> {
        match self.takes {
            Takes::Nothing(_) => None,
            Takes::Value { name, .. } | Takes::Maybe { name, .. } => Some(name),
        }
    }
}

const fn switch(
    long: &'static str,
    others: &'static [&'static str],
    group: FlagGroup,
    set: fn(&mut CliOptions),
    about: &'static str,
) -> CliFlag {
    CliFlag { long, others, takes: Takes::Nothing(set), group, about }
}

const fn value(
    long: &'static str,
    others: &'static [&'static str],
    group: FlagGroup,
    name: &'static str,
    set: fn(&mut CliOptions, String),
    about: &'static str,
) -> CliFlag {
    CliFlag { long, others, takes: Takes::Value { name, set }, group, about }
}

/// Returns whether an argument is a message for `--print`.
fn is_message(arg: &str) -> bool {
    !arg.starts_with('@') && (!arg.starts_with('-') || arg.starts_with("---"))
}

/// All flags, in the order of the help.
pub const FLAGS: &[CliFlag] = &[
    CliFlag {
        long: "--print",
        others: &["-p"],
        takes: Takes::Maybe {
            name: "MESSAGE",
            set: |to, message| {
                to.print = true;
                to.messages.extend(message);
            },
            is_value: is_message,
        },
        group: FlagGroup::Output,
        about: "Print the answer to the messages and exit",
    },
    value(
        "--mode",
        &[],
        FlagGroup::Output,
        "MODE",
        |to, word| match word.as_str() {
            "text" => to.mode = Some(Mode::Text),
            "json" => to.mode = Some(Mode::Json),
            "rpc" => to.mode = Some(Mode::Rpc),
            _ => to.complain(true, format!("Invalid mode \"{word}\". Valid values: text, json, rpc")),
        },
        "Output mode: text, json (one event per line) or rpc (JSON lines over stdin and stdout)",
    ),
    value(
        "--timeout",
        &[],
        FlagGroup::Output,
        "SECONDS",
        |to, word| match word.parse().ok().filter(|secs| *secs > 0) {
            Some(secs) => to.timeout = Some(Duration::from_secs(secs)),
            None => to.complain(true, format!("Invalid timeout \"{word}\". Give a number of seconds above 0")),
        },
        "Stop the run after this time, including retries (default: runTimeoutMs in settings.json, else no limit)",
    ),
    value(
        "--provider",
        &[],
        FlagGroup::Model,
        "NAME",
        |to, name| to.provider = Some(name),
        "Provider of the model; requires --model",
    ),
    value(
        "--model",
        &[],
        FlagGroup::Model,
        "PATTERN",
        |to, pattern| to.model = Some(pattern),
        "Model to use: an id, part of an id, or provider/id, optionally with :LEVEL for the thinking level",
    ),
    value(
        "--api-key",
        &[],
        FlagGroup::Model,
        "KEY",
        |to, key| to.api_key = Some(key),
        "API key for the model's provider, for this run only; other users may see it in the list of processes",
    ),
    value(
        "--api-key-file",
        &[],
        FlagGroup::Model,
        "FILE",
        |to, path| to.api_key_file = Some(path.into()),
        "File that contains the API key for the model's provider, for this run only; may be a pipe",
    ),
    value(
        "--models",
        &[],
        FlagGroup::Model,
        "LIST",
        |to, patterns| to.models = Some(list(&patterns)),
        "Models to cycle through: comma-separated patterns with *, optionally with :LEVEL",
    ),
    value(
        "--thinking",
        &[],
        FlagGroup::Model,
        "LEVEL",
        |to, word| match ThinkingLevel::parse(&word) {
            Some(level) => to.thinking = Some(level),
            None => {
                let levels = ThinkingLevel::ALL.map(ThinkingLevel::as_str).join(", ");
                to.complain(false, format!("Invalid thinking level \"{word}\". Valid values: {levels}"));
            }
        },
        "Thinking level: off, minimal, low, medium, high, xhigh or max",
    ),
    CliFlag {
        long: "--list-models",
        others: &[],
        takes: Takes::Maybe {
            name: "SEARCH",
            set: |to, search| to.list_models = Some(search),
            is_value: |arg| !arg.starts_with('-') && !arg.starts_with('@'),
        },
        group: FlagGroup::Model,
        about: "List available models, optionally only those that match SEARCH",
    },
    switch(
        "--continue",
        &["-c"],
        FlagGroup::Session,
        |to| to.continue_last = true,
        "Continue the most recent session in this directory",
    ),
    switch("--resume", &["-r"], FlagGroup::Session, |to| to.resume = true, "Choose a session to resume"),
    value(
        "--session",
        &[],
        FlagGroup::Session,
        "PATH|ID",
        |to, named| to.session = Some(named),
        "Resume this session: a file, or a prefix of its id",
    ),
    value(
        "--session-id",
        &[],
        FlagGroup::Session,
        "ID",
        |to, id| to.session_id = Some(id),
        "Resume the session in this directory with exactly this id, or create it",
    ),
    value(
        "--fork",
        &[],
        FlagGroup::Session,
        "PATH|ID",
        |to, named| to.fork = Some(named),
        "Copy a session with all its branches into a new one in this directory",
    ),
    value("--name", &["-n"], FlagGroup::Session, "NAME", |to, name| to.name = Some(name), "Name the session"),
    value(
        "--session-dir",
        &[],
        FlagGroup::Session,
        "DIR",
        |to, dir| to.session_dir = Some(PathBuf::from(dir)),
        "Directory to store and look up sessions in",
    ),
    switch("--no-session", &[], FlagGroup::Session, |to| to.no_session = true, "Do not save the session"),
    value(
        "--export",
        &[],
        FlagGroup::Session,
        "SESSION",
        |to, session| to.export = Some(session),
        "Export a session file to HTML and exit; the first message names the output file",
    ),
    value(
        "--tools",
        &["-t"],
        FlagGroup::Tools,
        "LIST",
        |to, names| to.tools = Some(list(&names)),
        "Tools to enable, comma-separated: names, * for all, or +NAME and -NAME to change the default (read, bash, edit, write)",
    ),
    value(
        "--exclude-tools",
        &["-xt"],
        FlagGroup::Tools,
        "LIST",
        |to, names| to.exclude_tools = Some(list(&names)),
        "Tools to disable, comma-separated",
    ),
    switch("--no-tools", &["-nt"], FlagGroup::Tools, |to| to.no_tools = true, "Disable all tools"),
    switch(
        "--no-builtin-tools",
        &["-nbt"],
        FlagGroup::Tools,
        |to| to.no_builtin_tools = true,
        "Disable the built-in tools",
    ),
    CliFlag {
        long: "--sandbox",
        others: &[],
        takes: Takes::Maybe {
            name: "BACKEND",
            set: |to, word| {
                let word = word.as_deref().unwrap_or("auto");
                match SandboxChoice::parse(word) {
                    Some(choice) => to.sandbox = Some(choice),
                    None => {
                        let valid = SandboxChoice::words().collect::<Vec<_>>().join(", ");
                        to.complain(true, format!("Invalid sandbox \"{word}\". Valid values: {valid}"));
                    }
                }
            },
            // Any other following argument is a message.
            is_value: |arg| SandboxChoice::parse(arg).is_some(),
        },
        group: FlagGroup::Tools,
        about: "Confine tools and commands to this directory, without network: --sandbox=bubblewrap, landlock, docker, podman, runc, none or \
                auto (bubblewrap, else landlock). Takes precedence over the setting \"sandbox\"",
    },
    value(
        "--system-prompt",
        &[],
        FlagGroup::Resources,
        "TEXT|FILE",
        |to, text| to.system_prompt = Some(text),
        "Replace the default system prompt with a text or the contents of a file",
    ),
    value(
        "--append-system-prompt",
        &[],
        FlagGroup::Resources,
        "TEXT|FILE",
        |to, text| to.append_system_prompt.push(text),
        "Append a text or the contents of a file to the system prompt; repeatable",
    ),
    value(
        "--extension",
        &["-e"],
        FlagGroup::Resources,
        "PATH",
        |to, path| to.extensions.push(path),
        "Load an extension: an executable, a .js or .ts file, a directory or a package; repeatable",
    ),
    switch(
        "--no-extensions",
        &["-ne"],
        FlagGroup::Resources,
        |to| to.no_extensions = true,
        "Disable extensions except those of --extension",
    ),
    switch(
        "--no-mcp",
        &[],
        FlagGroup::Resources,
        |to| to.no_mcp = true,
        "Do not warn about mcp.json files; MCP servers are not supported yet",
    ),
    value(
        "--skill",
        &[],
        FlagGroup::Resources,
        "PATH",
        |to, path| to.skills.push(path),
        "Load a skill from a file or directory; repeatable",
    ),
    value(
        "--skills",
        &[],
        FlagGroup::Resources,
        "LIST",
        |to, names| to.skill_names = Some(list(&names)),
        "Enable only these skills, comma-separated; * matches anything",
    ),
    switch(
        "--no-skills",
        &["-ns"],
        FlagGroup::Resources,
        |to| to.no_skills = true,
        "Disable skills except those of --skill",
    ),
    value(
        "--prompt-template",
        &[],
        FlagGroup::Resources,
        "PATH",
        |to, path| to.prompt_templates.push(path),
        "Load a prompt template from a file or directory; repeatable",
    ),
    switch(
        "--no-prompt-templates",
        &["-np"],
        FlagGroup::Resources,
        |to| to.no_prompt_templates = true,
        "Disable prompt templates except those of --prompt-template",
    ),
    value(
        "--theme",
        &[],
        FlagGroup::Resources,
        "PATH",
        |to, path| to.themes.push(path),
        "Load a theme for exported pages from a file or directory; repeatable",
    ),
    switch(
        "--no-themes",
        &[],
        FlagGroup::Resources,
        |to| to.no_themes = true,
        "Disable themes except those of --theme",
    ),
    switch(
        "--no-context-files",
        &["-nc"],
        FlagGroup::Resources,
        |to| to.no_context_files = true,
        "Do not load AGENTS.md and CLAUDE.md files",
    ),
    switch(
        "--approve",
        &["-a", "--trust-project"],
        FlagGroup::Resources,
        |to| to.trust = Some(true),
        "Trust this project for this run: load its settings, extensions, skills, prompts, themes and SYSTEM.md",
    ),
    switch(
        "--no-approve",
        &["-na"],
        FlagGroup::Resources,
        |to| to.trust = Some(false),
        "Do not trust this project for this run",
    ),
    value(
        "--agent-dir",
        &[],
        FlagGroup::Other,
        "DIR",
        |to, dir| to.agent_dir = Some(PathBuf::from(dir)),
        "Directory of auth.json, models.json, settings.json and sessions/ (default: ~/.pinch/agent)",
    ),
    switch(
        "--offline",
        &[],
        FlagGroup::Other,
        |to| to.offline = true,
        "Use no network except for model calls: no installs, no lookups",
    ),
    switch(
        "--plain",
        &[],
        FlagGroup::Other,
        |to| to.plain = true,
        "Screen-reader mode: plain lines, read line by line",
    ),
    value(
        "--tui-mode",
        &[],
        FlagGroup::Other,
        "MODE",
        |to, word| {
            if !["regular", "fullscreen"].contains(&word.as_str()) {
                to.complain(true, format!("Invalid TUI mode \"{word}\". Valid values: regular, fullscreen"));
            }
            to.tui_mode = Some(word);
        },
        "Screen mode: regular keeps the terminal's scrollback, fullscreen uses the alternate screen",
    ),
    value(
        "--use-theme",
        &[],
        FlagGroup::Other,
        "NAME",
        |to, name| {
            if name.is_empty() || name.starts_with('-') {
                to.complain(true, "--use-theme requires a theme name".to_owned());
            }
            to.use_theme = Some(name);
        },
        "Theme of the interactive mode",
    ),
    switch("--verbose", &[], FlagGroup::Other, |to| to.verbose = true, "Log loaded resources to stderr"),
    switch("--help", &["-h"], FlagGroup::Other, |to| to.help = true, "Print help"),
    switch("--version", &["-v"], FlagGroup::Other, |to| to.version = true, "Print version"),
];
