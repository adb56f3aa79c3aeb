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
    /// What stands behind it.
    pub takes: Takes,
    /// Under which heading the help shows it.
    pub group: Group,
    /// What it does, in a sentence.
    pub about: &'static str,
}

/// What stands behind a flag.
#[derive(Clone, Copy, Debug)]
pub enum Takes {
    /// Nothing.
    Nothing(fn(&mut Options)),
    /// A value.
    Value {
        /// What it is called in the help.
        name: &'static str,
        /// Keeps it.
        set: fn(&mut Options, String),
    },
    /// A value, if the next argument looks like one.
    Maybe {
        /// What it is called in the help.
        name: &'static str,
        /// Keeps it.
        set: fn(&mut Options, Option<String>),
        /// Whether an argument is one.
        is_value: fn(&str) -> bool,
    },
}

/// Headings of the help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// What is asked, and how it is shown.
    Output,
    /// Who answers.
    Model,
    /// Which conversation.
    Session,
    /// What the model may do.
    Tools,
    /// What the model is told.
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
            Self::Output => "Asking",
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
        about: "Prints the answer to the messages and ends.",
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
        "How the session is shown: text, json (every event as a line) or rpc (lines of JSON in both directions).",
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
        "Stop the run after this time, with all its retries and prompts (default: runTimeoutMs in settings.json, else never).",
    ),
    value(
        "--provider",
        &[],
        Group::Model,
        "NAME",
        |to, name| to.provider = Some(name),
        "Provider of the model; needs --model.",
    ),
    value(
        "--model",
        &[],
        Group::Model,
        "PATTERN",
        |to, pattern| to.model = Some(pattern),
        "An id, a part of it, or provider/id; a thinking level may follow after a colon.",
    ),
    value(
        "--api-key",
        &[],
        Group::Model,
        "KEY",
        |to, key| to.api_key = Some(key),
        "Key for the model's provider, for this run only.",
    ),
    value(
        "--models",
        &[],
        Group::Model,
        "LIST",
        |to, patterns| to.models = Some(list(&patterns)),
        "Models to go through, separated by commas: patterns, with * and a thinking level after a colon.",
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
        "How hard the model thinks: off, minimal, low, medium, high, xhigh, max.",
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
        about: "Lists the models that can be used, or those that a text is found in.",
    },
    switch(
        "--continue",
        &["-c"],
        Group::Session,
        |to| to.continue_last = true,
        "Takes the newest session of this folder up.",
    ),
    switch(
        "--resume",
        &["-r"],
        Group::Session,
        |to| to.resume = true,
        "Lets you choose among the sessions of this folder.",
    ),
    value(
        "--session",
        &[],
        Group::Session,
        "PATH|ID",
        |to, named| to.session = Some(named),
        "Takes this session up: a file, or the beginning of an id.",
    ),
    value(
        "--session-id",
        &[],
        Group::Session,
        "ID",
        |to, id| to.session_id = Some(id),
        "Takes the session of this folder with exactly this id up, or begins one with it.",
    ),
    value(
        "--fork",
        &[],
        Group::Session,
        "PATH|ID",
        |to, named| to.fork = Some(named),
        "Copies a session, with all its branches, into a new one of this folder.",
    ),
    value("--name", &["-n"], Group::Session, "NAME", |to, name| to.name = Some(name), "Gives the session a name."),
    value(
        "--session-dir",
        &[],
        Group::Session,
        "DIR",
        |to, dir| to.session_dir = Some(PathBuf::from(dir)),
        "Keeps sessions in this folder, and looks for them there.",
    ),
    switch("--no-session", &[], Group::Session, |to| to.no_session = true, "Keeps the session in memory only."),
    value(
        "--export",
        &[],
        Group::Session,
        "SESSION",
        |to, session| to.export = Some(session),
        "Writes a session file as an HTML page, into the file that the first message names, and ends.",
    ),
    value(
        "--tools",
        &["-t"],
        Group::Tools,
        "LIST",
        |to, names| to.tools = Some(list(&names)),
        "Tools the model may use, separated by commas; * for all; +NAME and -NAME change the usual ones (read, bash, edit, write).",
    ),
    value(
        "--exclude-tools",
        &["-xt"],
        Group::Tools,
        "LIST",
        |to, names| to.exclude_tools = Some(list(&names)),
        "Tools the model may not use, separated by commas.",
    ),
    switch("--no-tools", &["-nt"], Group::Tools, |to| to.no_tools = true, "No tools at all."),
    switch(
        "--no-builtin-tools",
        &["-nbt"],
        Group::Tools,
        |to| to.no_builtin_tools = true,
        "No tools but those of extensions.",
    ),
    value(
        "--system-prompt",
        &[],
        Group::Resources,
        "TEXT|FILE",
        |to, text| to.system_prompt = Some(text),
        "System prompt in place of the default one: a text, or a file that holds it.",
    ),
    value(
        "--append-system-prompt",
        &[],
        Group::Resources,
        "TEXT|FILE",
        |to, text| to.append_system_prompt.push(text),
        "Text behind the system prompt, or a file that holds it; may be given several times.",
    ),
    value(
        "--extension",
        &["-e"],
        Group::Resources,
        "PATH",
        |to, path| to.extensions.push(path),
        "Loads an extension: an executable, a .js or .ts file, a folder or a package; may be given several times.",
    ),
    switch(
        "--no-extensions",
        &["-ne"],
        Group::Resources,
        |to| to.no_extensions = true,
        "No extensions but those of --extension.",
    ),
    switch(
        "--no-mcp",
        &[],
        Group::Resources,
        |to| to.no_mcp = true,
        "Do not warn about mcp.json files; MCP servers are not part of this version.",
    ),
    value(
        "--skill",
        &[],
        Group::Resources,
        "PATH",
        |to, path| to.skills.push(path),
        "Loads a skill: a file or a folder; may be given several times.",
    ),
    value(
        "--skills",
        &[],
        Group::Resources,
        "LIST",
        |to, names| to.skill_names = Some(list(&names)),
        "Only skills with these names, separated by commas; * stands for anything.",
    ),
    switch("--no-skills", &["-ns"], Group::Resources, |to| to.no_skills = true, "No skills but those of --skill."),
    value(
        "--prompt-template",
        &[],
        Group::Resources,
        "PATH",
        |to, path| to.prompt_templates.push(path),
        "Loads a prompt template: a file or a folder; may be given several times.",
    ),
    switch(
        "--no-prompt-templates",
        &["-np"],
        Group::Resources,
        |to| to.no_prompt_templates = true,
        "No prompt templates but those of --prompt-template.",
    ),
    value(
        "--theme",
        &[],
        Group::Resources,
        "PATH",
        |to, path| to.themes.push(path),
        "Loads a theme for exported pages: a file or a folder; may be given several times.",
    ),
    switch("--no-themes", &[], Group::Resources, |to| to.no_themes = true, "No themes but those of --theme."),
    switch(
        "--no-context-files",
        &["-nc"],
        Group::Resources,
        |to| to.no_context_files = true,
        "Leaves AGENTS.md and CLAUDE.md files alone.",
    ),
    switch(
        "--approve",
        &["-a", "--trust-project"],
        Group::Resources,
        |to| to.trust = Some(true),
        "Trusts this project for this run: its settings, extensions, skills, prompts, themes and SYSTEM.md count.",
    ),
    switch(
        "--no-approve",
        &["-na"],
        Group::Resources,
        |to| to.trust = Some(false),
        "Does not trust this project for this run.",
    ),
    value(
        "--agent-dir",
        &[],
        Group::Other,
        "DIR",
        |to, dir| to.agent_dir = Some(PathBuf::from(dir)),
        "Folder of auth.json, models.json, settings.json and sessions/ (default: ~/.pinch/agent).",
    ),
    switch(
        "--offline",
        &[],
        Group::Other,
        |to| to.offline = true,
        "No network but the model's: nothing is installed or looked up.",
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
        "Accepted for scripts: regular or fullscreen; without an interactive mode it changes nothing.",
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
        "Accepted for scripts; without an interactive mode it changes nothing.",
    ),
    switch("--verbose", &[], Group::Other, |to| to.verbose = true, "Tells on standard error what was loaded."),
    switch("--help", &["-h"], Group::Other, |to| to.help = true, "Prints this help."),
    switch("--version", &["-v"], Group::Other, |to| to.version = true, "Prints the version."),
];
