//! Options of a conversation, parsed from left to right as in pi.
//!
//! The parser, the help text, completions and the manual are all generated from one table, [`flags::FLAGS`].

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use pinch_embed::llm::thinking::ThinkingLevel;
use pinch_sandbox::choose::SandboxBackend;

pub mod flags;
pub mod help;
pub mod misnamed;
pub mod facts;

use flags::{CliFlag, Takes};

/// The user's choice of a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SandboxChoice {
    /// Tools run with the program's permissions.
    Off,
    /// This backend confines them.
    Use(SandboxBackend),
}

impl SandboxChoice {
    /// Parses the name of a backend, or `none`.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "none" => Some(Self::Off),
            word => SandboxBackend::parse(word).map(Self::Use),
        }
    }

    /// Returns the words that [`SandboxChoice::parse`] accepts.
    pub fn words() -> impl Iterator<Item = &'static str> {
        SandboxBackend::ALL.into_iter().map(SandboxBackend::as_str).chain(["none"])
    }
}

/// A parsed command line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CliOptions {
    /// `--provider`.
    pub provider: Option<String>,
    /// `--model`.
    pub model: Option<String>,
    /// `--api-key`.
    pub api_key: Option<String>,
    /// `--api-key-file`.
    pub api_key_file: Option<PathBuf>,
    /// `--models`: patterns of the models to cycle through.
    pub models: Option<Vec<String>>,
    /// `--thinking`.
    pub thinking: Option<ThinkingLevel>,
    /// `--system-prompt`: a text, or a file that contains it.
    pub system_prompt: Option<String>,
    /// `--append-system-prompt`, repeatable.
    pub append_system_prompt: Vec<String>,
    /// `--mode`.
    pub mode: Option<Mode>,
    /// `--print`.
    pub print: bool,
    /// `--timeout`: time limit of the whole run.
    pub timeout: Option<Duration>,
    /// `--continue`.
    pub continue_last: bool,
    /// `--resume`.
    pub resume: bool,
    /// `--session`: a file, or an id prefix.
    pub session: Option<String>,
    /// `--session-id`.
    pub session_id: Option<String>,
    /// `--fork`: a file, or an id prefix.
    pub fork: Option<String>,
    /// `--session-dir`.
    pub session_dir: Option<PathBuf>,
    /// `--no-session`.
    pub no_session: bool,
    /// `--name`.
    pub name: Option<String>,
    /// `--tools`.
    pub tools: Option<Vec<String>>,
    /// `--exclude-tools`.
    pub exclude_tools: Option<Vec<String>>,
    /// `--no-tools`.
    pub no_tools: bool,
    /// `--no-builtin-tools`.
    pub no_builtin_tools: bool,
    /// `--sandbox`: sandbox for tools and commands.
    pub sandbox: Option<SandboxChoice>,
    /// `--extension`, repeatable.
    pub extensions: Vec<String>,
    /// `--no-extensions`.
    pub no_extensions: bool,
    /// `--skill`, repeatable.
    pub skills: Vec<String>,
    /// `--skills`: patterns of the enabled names.
    pub skill_names: Option<Vec<String>>,
    /// `--no-mcp`: do not warn about MCP servers.
    pub no_mcp: bool,
    /// `--no-skills`.
    pub no_skills: bool,
    /// `--prompt-template`, repeatable.
    pub prompt_templates: Vec<String>,
    /// `--no-prompt-templates`.
    pub no_prompt_templates: bool,
    /// `--theme`, repeatable.
    pub themes: Vec<String>,
    /// `--no-themes`.
    pub no_themes: bool,
    /// `--no-context-files`.
    pub no_context_files: bool,
    /// `--approve` or `--no-approve`: whether the project is trusted.
    pub trust: Option<bool>,
    /// `--agent-dir`.
    pub agent_dir: Option<PathBuf>,
    /// `--export`: the session to export.
    pub export: Option<String>,
    /// `--list-models`, with the search term.
    pub list_models: Option<Option<String>>,
    /// `--tui-mode`.
    pub tui_mode: Option<String>,
    /// `--use-theme`.
    pub use_theme: Option<String>,
    /// `--verbose`.
    pub verbose: bool,
    /// `--plain`.
    pub plain: bool,
    /// `--offline`.
    pub offline: bool,
    /// `--help`.
    pub help: bool,
    /// `--version`.
    pub version: bool,
    /// The first message, if it is neither the value of `--print` nor after `--` or a file.
    pub bare_message: Option<String>,
    /// Messages, in order.
    pub messages: Vec<String>,
    /// Files named with `@`, in order.
    pub files: Vec<String>,
    /// Unknown flags, which may belong to extensions, with their values.
    pub unknown: BTreeMap<String, Option<String>>,
    /// Problems with the arguments.
    pub complaints: Vec<UsageProblem>,
}

/// A problem with a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageProblem {
    /// Whether the program exits.
    pub is_error: bool,
    /// The message.
    pub text: String,
}

/// Output mode of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The text of the last answer.
    Text,
    /// Every event as a JSON line.
    Json,
    /// JSON lines over stdin and stdout, for programs.
    Rpc,
}

impl Mode {
    /// Returns the name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
            Self::Rpc => "rpc",
        }
    }
}

impl CliOptions {
    /// Parses the arguments after the program's name. Problems are in [`CliOptions::complaints`].
    pub fn parse(args: impl IntoIterator<Item = String>) -> Self {
        let mut options = Self::default();
        let mut args = args.into_iter().peekable();
        while let Some(arg) = args.next() {
            if arg == "--" {
                options.messages.extend(args);
                break;
            }
            if let Some(file) = arg.strip_prefix('@') {
                options.files.push(file.to_owned());
            } else if !arg.starts_with('-') {
                if options.messages.is_empty() && options.files.is_empty() {
                    options.bare_message = Some(arg.clone());
                }
                options.messages.push(arg);
            } else {
                options.flag(&arg, &mut args);
            }
        }
        options
    }

    /// Returns the errors.
    pub fn errors(&self) -> impl Iterator<Item = String> {
        let complaints = self.complaints.iter().filter(|complaint| complaint.is_error);
        // A known name is among the unknown ones if its value is missing.
        let valueless = self.unknown.keys().filter(|name| CliFlag::find(&format!("--{name}")).is_some());
        complaints
            .map(|complaint| complaint.text.clone())
            .chain(valueless.map(|name| format!("--{name} requires a value")))
    }

    fn flag(&mut self, arg: &str, rest: &mut std::iter::Peekable<impl Iterator<Item = String>>) {
        if let Some(flag) = CliFlag::find(arg) {
            match flag.takes {
                Takes::Nothing(set) => return set(self),
                Takes::Value { set, .. } => {
                    match (rest.next(), arg.strip_prefix("--")) {
                        (Some(value), _) => set(self, value),
                        (None, None) => self.complain(true, format!("{arg} requires a value")),
                        // As in pi, where an extension could have a flag with the same name.
                        (None, Some(name)) => drop(self.unknown.insert(name.to_owned(), None)),
                    }
                    return;
                }
                Takes::Maybe { set, is_value, .. } => {
                    return set(self, rest.next_if(|next| is_value(next)));
                }
            }
        }
        let with_value = arg.split_once('=');
        if let Some((name, value)) = with_value
            && let Some(flag) = CliFlag::find(name)
        {
            match flag.takes {
                Takes::Nothing(_) => self.complain(true, format!("{name} takes no value")),
                Takes::Value { set, .. } => set(self, value.to_owned()),
                Takes::Maybe { set, .. } => set(self, Some(value.to_owned())),
            }
            return;
        }
        match (arg.strip_prefix("--"), with_value) {
            (None, _) => self.complain(true, format!("Unknown option: {arg}")),
            (Some(_), Some((name, value))) => {
                self.unknown.insert(name[2..].to_owned(), Some(value.to_owned()));
            }
            (Some(name), None) => {
                let value = rest.next_if(|next| !next.starts_with('-') && !next.starts_with('@'));
                self.unknown.insert(name.to_owned(), value);
            }
        }
    }

    fn complain(&mut self, is_error: bool, text: String) {
        self.complaints.push(UsageProblem { is_error, text });
    }
}

/// Splits a comma-separated list and trims its parts.
fn list(value: &str) -> Vec<String> {
    value.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> CliOptions {
        CliOptions::parse(line.split(' ').filter(|arg| !arg.is_empty()).map(str::to_owned))
    }

    #[test]
    fn two_letter_flags_and_values_after_equals_signs_are_parsed() {
        let options = parse("-nt -xt write,edit -p x --mode=json @a.txt -- -y @z");
        assert!(options.no_tools && options.print);
        assert_eq!(options.exclude_tools, Some(vec!["write".to_owned(), "edit".to_owned()]));
        assert_eq!(options.mode, Some(Mode::Json));
        assert_eq!(options.messages, ["x", "-y", "@z"]);
        assert_eq!(options.files, ["a.txt"]);
        assert_eq!(options.complaints, []);
    }

    #[test]
    fn a_sandbox_is_named_after_an_equals_sign_or_as_the_next_word() {
        let options = parse("--sandbox -p x");
        let auto = SandboxChoice::Use(SandboxBackend::Auto);
        assert_eq!((options.sandbox, options.messages), (Some(auto), vec!["x".to_owned()]));
        let options = parse("-p --sandbox=landlock landlock");
        let landlock = SandboxChoice::Use(SandboxBackend::Landlock);
        assert_eq!((options.sandbox, options.messages), (Some(landlock), vec!["landlock".to_owned()]));
        assert_eq!(parse("--sandbox --sandbox=none").sandbox, Some(SandboxChoice::Off));
        let options = parse("--sandbox bubblewrap x");
        let bubblewrap = SandboxChoice::Use(SandboxBackend::Bubblewrap);
        assert_eq!((options.sandbox, options.messages), (Some(bubblewrap), vec!["x".to_owned()]));
        let wrong = parse("--sandbox=jail").complaints;
        assert_eq!(
            wrong[0].text,
            "Invalid sandbox \"jail\". Valid values: auto, bubblewrap, landlock, docker, podman, runc, none"
        );
    }

    #[test]
    fn the_setting_and_the_flag_accept_the_same_words() {
        let key = pinch_embed::coding_agent::settings::keys::all().find(|key| key.path == "sandbox.backend").unwrap();
        assert_eq!(key.value_type.description(), SandboxChoice::words().collect::<Vec<_>>().join(", "));
    }

    #[test]
    fn every_flag_is_found_by_all_its_names_and_is_unique() {
        let mut names: Vec<&str> = flags::FLAGS.iter().flat_map(CliFlag::names).collect();
        names.sort_unstable();
        let n = names.len();
        names.dedup();
        assert_eq!(names.len(), n, "{names:?}");
    }

    #[test]
    fn problems_are_reported() {
        let texts = |line: &str| parse(line).complaints.into_iter().map(|c| (c.is_error, c.text)).collect::<Vec<_>>();
        assert_eq!(texts("-z"), [(true, "Unknown option: -z".to_owned())]);
        for name in ["--model", "--thinking", "--mode", "--export", "--use-theme", "-t"] {
            let errors: Vec<String> = parse(&format!("-p x {name}")).errors().collect();
            assert_eq!(errors, [format!("{name} requires a value")]);
        }
        assert_eq!(texts("--no-tools=x"), [(true, "--no-tools takes no value".to_owned())]);
        assert_eq!(texts("--mode x")[0].1, "Invalid mode \"x\". Valid values: text, json, rpc");
        assert_eq!(parse("--plan=b --x").unknown["plan"].as_deref(), Some("b"));
    }
}
