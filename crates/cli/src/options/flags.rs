//! The table of flags.

use std::path::PathBuf;
use std::time::Duration;

use pinch_embed::llm::thinking::ThinkingLevel;

use super::{Mode, Options, list};

/// One flag.
#[derive(Debug)]
pub struct Flag {
    /// The name with its two dashes.
    pub long: &'static str,
    /// Other names.
    pub others: &'static [&'static str],
    /// Its value.
    pub takes: Takes,
    /// The heading of the help it is listed under.
    pub group: Group,
    /// What it does: imperative, without a final period.
    pub about: &'static str,
}

/// The value of a flag.
#[derive(Clone, Copy, Debug)]
pub enum Takes {
    /// Nothing.
    Nothing(fn(&mut Options)),
    /// A value.
    Value {
        /// Its name in the help.
        name: &'static str,
        /// Stores it.
        set: fn(&mut Options, String),
    },
    /// A value, if the next argument looks like one.
    Maybe {
        /// Its name in the help.
        name: &'static str,
        /// Stores it.
        set: fn(&mut Options, Option<String>),
        /// Whether an argument is one.
        is_value: fn(&str) -> bool,
    },
}

/// Headings of the help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
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

impl Group {
    /// All of them, in order.
    pub const ALL: [Self; 6] = [Self::Output, Self::Model, Self::Session, Self::Tools, Self::Resources, Self::Other];

    /// The heading.
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

impl Flag {
    /// The flag of a name.
    pub fn find(name: &str) -> Option<&'static Self> {
        FLAGS.iter().find(|flag| flag.names().any(|known| known == name))
    }

    /// All its names.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.long).chain(self.others.iter().copied())
    }

    /// What its value is called.
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
    group: Group,
    set: fn(&mut Options),
    about: &'static str,
) -> Flag {
    Flag { long, others, takes: Takes::Nothing(set), group, about }
}

const fn value(
    long: &'static str,
    others: &'static [&'static str],
    group: Group,
    name: &'static str,
    set: fn(&mut Options, String),
    about: &'static str,
) -> Flag {
    Flag { long, others, takes: Takes::Value { name, set }, group, about }
}

/// Whether an argument is a message behind `--print`.
fn is_message(arg: &str) -> bool {
    !arg.starts_with('@') && (!arg.starts_with('-') || arg.starts_with("---"))
}

/// All flags, in the order of the help.
pub const FLAGS: &[Flag] = &[
    Flag {
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
        group: Group::Output,
        about: "Print the answer to the messages and exit",
    },
    value(
        "--mode",
        &[],
        Group::Output,
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
        Group::Output,
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
        Group::Model,
        "NAME",
        |to, name| to.provider = Some(name),
        "Provider of the model; requires --model",
    ),
    value(
        "--model",
        &[],
        Group::Model,
        "PATTERN",
        |to, pattern| to.model = Some(pattern),
        "Model to use: an id, part of an id, or provider/id, optionally with :LEVEL for the thinking level",
    ),
    value(
        "--api-key",
        &[],
        Group::Model,
        "KEY",
        |to, key| to.api_key = Some(key),
        "API key for the model's provider, for this run only",
    ),
    value(
        "--models",
        &[],
        Group::Model,
        "LIST",
        |to, patterns| to.models = Some(list(&patterns)),
        "Models to cycle through: comma-separated patterns with *, optionally with :LEVEL",
    ),
    value(
        "--thinking",
        &[],
        Group::Model,
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
    Flag {
        long: "--list-models",
        others: &[],
        takes: Takes::Maybe {
            name: "SEARCH",
            set: |to, search| to.list_models = Some(search),
            is_value: |arg| !arg.starts_with('-') && !arg.starts_with('@'),
        },
        group: Group::Model,
        about: "List available models, optionally only those that match SEARCH",
    },
    switch(
        "--continue",
        &["-c"],
        Group::Session,
        |to| to.continue_last = true,
        "Continue the most recent session in this directory",
    ),
    switch("--resume", &["-r"], Group::Session, |to| to.resume = true, "Choose a session to resume"),
    value(
        "--session",
        &[],
        Group::Session,
        "PATH|ID",
        |to, named| to.session = Some(named),
        "Resume this session: a file, or a prefix of its id",
    ),
    value(
        "--session-id",
        &[],
        Group::Session,
        "ID",
        |to, id| to.session_id = Some(id),
        "Resume the session in this directory with exactly this id, or create it",
    ),
    value(
        "--fork",
        &[],
        Group::Session,
        "PATH|ID",
        |to, named| to.fork = Some(named),
        "Copy a session with all its branches into a new one in this directory",
    ),
    value("--name", &["-n"], Group::Session, "NAME", |to, name| to.name = Some(name), "Name the session"),
    value(
        "--session-dir",
        &[],
        Group::Session,
        "DIR",
        |to, dir| to.session_dir = Some(PathBuf::from(dir)),
        "Directory to store sessions in and look them up",
    ),
    switch("--no-session", &[], Group::Session, |to| to.no_session = true, "Do not save the session"),
    value(
        "--export",
        &[],
        Group::Session,
        "SESSION",
        |to, session| to.export = Some(session),
        "Export a session file to HTML and exit; the first message names the output file",
    ),
    value(
        "--tools",
        &["-t"],
        Group::Tools,
        "LIST",
        |to, names| to.tools = Some(list(&names)),
        "Tools to enable, comma-separated: names, * for all, or +NAME and -NAME to change the default (read, bash, edit, write)",
    ),
    value(
        "--exclude-tools",
        &["-xt"],
        Group::Tools,
        "LIST",
        |to, names| to.exclude_tools = Some(list(&names)),
        "Tools to disable, comma-separated",
    ),
    switch("--no-tools", &["-nt"], Group::Tools, |to| to.no_tools = true, "Disable all tools"),
    switch(
        "--no-builtin-tools",
        &["-nbt"],
        Group::Tools,
        |to| to.no_builtin_tools = true,
        "Disable the built-in tools",
    ),
    value(
        "--system-prompt",
        &[],
        Group::Resources,
        "TEXT|FILE",
        |to, text| to.system_prompt = Some(text),
        "Replace the default system prompt with a text or the contents of a file",
    ),
    value(
        "--append-system-prompt",
        &[],
        Group::Resources,
        "TEXT|FILE",
        |to, text| to.append_system_prompt.push(text),
        "Append a text or the contents of a file to the system prompt; repeatable",
    ),
    value(
        "--extension",
        &["-e"],
        Group::Resources,
        "PATH",
        |to, path| to.extensions.push(path),
        "Load an extension: an executable, a .js or .ts file, a directory or a package; repeatable",
    ),
    switch(
        "--no-extensions",
        &["-ne"],
        Group::Resources,
        |to| to.no_extensions = true,
        "Disable extensions except those of --extension",
    ),
    switch(
        "--no-mcp",
        &[],
        Group::Resources,
        |to| to.no_mcp = true,
        "Do not warn about mcp.json files; MCP servers are not supported yet",
    ),
    value(
        "--skill",
        &[],
        Group::Resources,
        "PATH",
        |to, path| to.skills.push(path),
        "Load a skill from a file or directory; repeatable",
    ),
    value(
        "--skills",
        &[],
        Group::Resources,
        "LIST",
        |to, names| to.skill_names = Some(list(&names)),
        "Enable only these skills, comma-separated; * matches anything",
    ),
    switch(
        "--no-skills",
        &["-ns"],
        Group::Resources,
        |to| to.no_skills = true,
        "Disable skills except those of --skill",
    ),
    value(
        "--prompt-template",
        &[],
        Group::Resources,
        "PATH",
        |to, path| to.prompt_templates.push(path),
        "Load a prompt template from a file or directory; repeatable",
    ),
    switch(
        "--no-prompt-templates",
        &["-np"],
        Group::Resources,
        |to| to.no_prompt_templates = true,
        "Disable prompt templates except those of --prompt-template",
    ),
    value(
        "--theme",
        &[],
        Group::Resources,
        "PATH",
        |to, path| to.themes.push(path),
        "Load a theme for exported pages from a file or directory; repeatable",
    ),
    switch("--no-themes", &[], Group::Resources, |to| to.no_themes = true, "Disable themes except those of --theme"),
    switch(
        "--no-context-files",
        &["-nc"],
        Group::Resources,
        |to| to.no_context_files = true,
        "Do not load AGENTS.md and CLAUDE.md files",
    ),
    switch(
        "--approve",
        &["-a", "--trust-project"],
        Group::Resources,
        |to| to.trust = Some(true),
        "Trust this project for this run: load its settings, extensions, skills, prompts, themes and SYSTEM.md",
    ),
    switch(
        "--no-approve",
        &["-na"],
        Group::Resources,
        |to| to.trust = Some(false),
        "Do not trust this project for this run",
    ),
    value(
        "--agent-dir",
        &[],
        Group::Other,
        "DIR",
        |to, dir| to.agent_dir = Some(PathBuf::from(dir)),
        "Directory of auth.json, models.json, settings.json and sessions/ (default: ~/.pinch/agent)",
    ),
    switch(
        "--offline",
        &[],
        Group::Other,
        |to| to.offline = true,
        "Use no network except for the model: install nothing, look nothing up",
    ),
    value(
        "--tui-mode",
        &[],
        Group::Other,
        "MODE",
        |to, word| {
            if !["regular", "fullscreen"].contains(&word.as_str()) {
                to.complain(true, format!("Invalid TUI mode \"{word}\". Valid values: regular, fullscreen"));
            }
        },
        "Accepted for compatibility: regular or fullscreen; has no effect without an interactive mode",
    ),
    value(
        "--use-theme",
        &[],
        Group::Other,
        "NAME",
        |to, name| {
            if name.is_empty() || name.starts_with('-') {
                to.complain(true, "--use-theme requires a theme name".to_owned());
            }
        },
        "Accepted for compatibility; has no effect without an interactive mode",
    ),
    switch("--verbose", &[], Group::Other, |to| to.verbose = true, "Log loaded resources to stderr"),
    switch("--help", &["-h"], Group::Other, |to| to.help = true, "Print help"),
    switch("--version", &["-v"], Group::Other, |to| to.version = true, "Print version"),
];
