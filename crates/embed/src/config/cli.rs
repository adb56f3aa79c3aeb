//! `agents.defaults.cliBackends`: command-line agents that answer instead of a model, by provider name.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pinch_coding_agent::document::Problem;

use super::node::Node;

/// Backends by name: the built-in `claude-cli` and `codex-cli`, and the configured ones.
#[derive(Clone, Debug, PartialEq)]
pub struct CliBackends(Arc<BTreeMap<String, CliBackend>>);

/// A command-line agent.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CliBackend {
    /// Program (`command`): a path, or a name on the `PATH`.
    pub command: String,
    /// Its arguments (`args`).
    pub args: Vec<String>,
    /// Arguments to resume a conversation, with `{sessionId}` (`resumeArgs`). If empty, it cannot resume.
    pub resume_args: Vec<String>,
    /// Output format (`output`).
    pub output: CliOutput,
    /// Output format when resuming, if different (`resumeOutput`).
    pub resume_output: Option<CliOutput>,
    /// Whether the prompt is passed on stdin (`input: "stdin"`) rather than as an argument.
    pub prompt_on_stdin: bool,
    /// Prompts with more characters are always passed on stdin (`maxPromptArgChars`).
    pub max_prompt_arg_chars: Option<usize>,
    /// Option for the model (`modelArg`).
    pub model_arg: Option<String>,
    /// Its names for models (`modelAliases`).
    pub model_aliases: BTreeMap<String, String>,
    /// Option for the session id (`sessionArg`).
    pub session_arg: Option<String>,
    /// Arguments for the session id, with `{sessionId}`, instead of `session_arg` (`sessionArgs`).
    pub session_args: Vec<String>,
    /// When the session id is passed (`sessionMode`).
    pub session_mode: CliSessionMode,
    /// Members of its output that contain the session id (`sessionIdFields`).
    pub session_id_fields: Vec<String>,
    /// Option for the system prompt (`systemPromptArg`).
    pub system_prompt_arg: Option<String>,
    /// When the system prompt is passed (`systemPromptWhen`).
    pub system_prompt_when: SystemPromptWhen,
    /// Option for the path of an image (`imageArg`); without it the paths follow the prompt.
    pub image_arg: Option<String>,
    /// Whether one option takes all images, separated by commas (`imageMode: "list"`).
    pub images_as_list: bool,
    /// Environment variables (`env`).
    pub env: BTreeMap<String, String>,
    /// Environment variables that it does not inherit (`clearEnv`).
    pub clear_env: Vec<String>,
    /// Environment variables with credentials of providers that it inherits although other programs do not (`passEnv`).
    pub pass_env: Vec<String>,
    /// Whether it answers only one prompt at a time (`serialize`).
    pub serialize: bool,
    /// Output timeout (`reliability.watchdog.fresh.noOutputTimeoutMs`); `None`: four fifths of the run's time limit, between three and ten
    /// minutes.
    pub silence: Option<Duration>,
    /// Output timeout when resuming (`reliability.watchdog.resume.noOutputTimeoutMs`); `None`: three tenths of the run's time limit,
    /// between one and three minutes.
    pub resume_silence: Option<Duration>,
}

/// Output format of a command-line agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CliOutput {
    /// One JSON document.
    #[default]
    Json,
    /// One JSON document per line.
    JsonLines,
    /// The plain answer.
    Text,
}

/// When a command-line agent is passed a session id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CliSessionMode {
    /// Always; a new conversation gets a new id.
    #[default]
    Always,
    /// If the agent has reported an id before.
    Existing,
    /// Never.
    None,
}

/// When a command-line agent is passed the system prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SystemPromptWhen {
    /// At the start of a conversation.
    #[default]
    First,
    /// Whenever it does not resume.
    Always,
    /// Never.
    Never,
}

impl CliOutput {
    /// Parses the name used in configurations.
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "json" => Self::Json,
            "jsonl" => Self::JsonLines,
            "text" => Self::Text,
            _ => return None,
        })
    }
}

fn texts<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}

impl CliBackend {
    /// Creates a backend without options.
    fn new(command: &str) -> Self {
        Self {
            command: command.to_owned(),
            args: Vec::new(),
            resume_args: Vec::new(),
            output: CliOutput::default(),
            resume_output: None,
            prompt_on_stdin: false,
            max_prompt_arg_chars: None,
            model_arg: None,
            model_aliases: BTreeMap::new(),
            session_arg: None,
            session_args: Vec::new(),
            session_mode: CliSessionMode::default(),
            session_id_fields: texts(["session_id", "sessionId", "conversation_id", "conversationId"]),
            system_prompt_arg: None,
            system_prompt_when: SystemPromptWhen::default(),
            image_arg: None,
            images_as_list: false,
            env: BTreeMap::new(),
            clear_env: Vec::new(),
            pass_env: Vec::new(),
            serialize: true,
            silence: None,
            resume_silence: None,
        }
    }

    /// Returns the built-in backend for Claude Code.
    fn claude() -> Self {
        let args = texts(["-p", "--output-format", "json", "--dangerously-skip-permissions"]);
        let alias = |(name, model): (&str, &str)| (name.to_owned(), model.to_owned());
        let aliases = [
            ("opus-4.6", "opus"),
            ("opus-4.5", "opus"),
            ("opus-4", "opus"),
            ("claude-opus-4-6", "opus"),
            ("claude-opus-4-5", "opus"),
            ("claude-opus-4", "opus"),
            ("sonnet-4.5", "sonnet"),
            ("sonnet-4.1", "sonnet"),
            ("sonnet-4.0", "sonnet"),
            ("claude-sonnet-4-5", "sonnet"),
            ("claude-sonnet-4-1", "sonnet"),
            ("claude-sonnet-4-0", "sonnet"),
            ("haiku-3.5", "haiku"),
            ("claude-haiku-3-5", "haiku"),
            ("claude-haiku-4-5", "haiku"),
        ];
        Self {
            resume_args: args.iter().cloned().chain(texts(["--resume", "{sessionId}"])).collect(),
            args,
            model_arg: Some("--model".to_owned()),
            model_aliases: aliases.into_iter().map(alias).collect(),
            session_arg: Some("--session-id".to_owned()),
            system_prompt_arg: Some("--append-system-prompt".to_owned()),
            clear_env: texts(["ANTHROPIC_API_KEY", "ANTHROPIC_API_KEY_OLD"]),
            ..Self::new("claude")
        }
    }

    /// Returns the built-in backend for Codex.
    fn codex() -> Self {
        let options = texts(["--color", "never", "--sandbox", "read-only", "--skip-git-repo-check"]);
        let (new, resumed) = (texts(["exec", "--json"]), texts(["exec"]));
        Self {
            args: new.into_iter().chain(options.clone()).collect(),
            // `resume` itself accepts neither --color nor --sandbox (0.171).
            resume_args: resumed.into_iter().chain(options).chain(texts(["resume", "{sessionId}"])).collect(),
            output: CliOutput::JsonLines,
            resume_output: Some(CliOutput::Text),
            model_arg: Some("--model".to_owned()),
            session_mode: CliSessionMode::Existing,
            session_id_fields: texts(["thread_id"]),
            image_arg: Some("--image".to_owned()),
            pass_env: texts(["OPENAI_API_KEY"]),
            ..Self::new("codex")
        }
    }

    /// Reads an entry; values of a known backend fill in what it does not set. An entry without a command is rejected, unless its backend
    /// is known.
    fn read(node: &Node<'_>, known: Option<Self>, problems: &mut Vec<Problem>) -> Option<Self> {
        node.object(problems)?;
        let command = node.get("command").text(problems).filter(|command| !command.trim().is_empty());
        let Some(base) = known.or_else(|| command.as_deref().map(Self::new)) else {
            problems.push(node.get("command").problem("is missing").remedy("Name the program to run"));
            return None;
        };
        let mut output = |name: &str| node.get(name).word(problems, &["json", "jsonl", "text"], CliOutput::parse);
        let (own_output, resume_output) = (output("output"), output("resumeOutput"));
        let is_stdin = node.get("input").word(problems, &["arg", "stdin"], |word| match word {
            "arg" => Some(false),
            "stdin" => Some(true),
            _ => None,
        });
        let mode = node.get("sessionMode").word(problems, &["always", "existing", "none"], |word| match word {
            "always" => Some(CliSessionMode::Always),
            "existing" => Some(CliSessionMode::Existing),
            "none" => Some(CliSessionMode::None),
            _ => None,
        });
        let when = node.get("systemPromptWhen").word(problems, &["first", "always", "never"], |word| match word {
            "first" => Some(SystemPromptWhen::First),
            "always" => Some(SystemPromptWhen::Always),
            "never" => Some(SystemPromptWhen::Never),
            _ => None,
        });
        let as_list = node.get("imageMode").word(problems, &["repeat", "list"], |word| match word {
            "repeat" => Some(false),
            "list" => Some(true),
            _ => None,
        });
        let mut map = |name: &str, mut base: BTreeMap<String, String>| {
            for (key, value) in node.get(name).members(problems) {
                base.extend(value.text(problems).map(|value| (key.to_owned(), value)));
            }
            base
        };
        let (env, model_aliases) = (map("env", base.env), map("modelAliases", base.model_aliases));
        let mut clear_env = base.clear_env;
        clear_env.extend(node.get("clearEnv").texts(problems).unwrap_or_default());
        let watchdog = node.get("reliability").get("watchdog");
        let mut silence = |name: &str| {
            watchdog.get(name).get("noOutputTimeoutMs").count(problems).map(|ms| Duration::from_millis(ms.max(1_000)))
        };
        let (silence, resume_silence) = (silence("fresh").or(base.silence), silence("resume").or(base.resume_silence));
        let mut list = |name: &str, base: Vec<String>| node.get(name).texts(problems).unwrap_or(base);
        let (args, resume_args) = (list("args", base.args), list("resumeArgs", base.resume_args));
        let session_args = list("sessionArgs", base.session_args);
        let pass_env = list("passEnv", base.pass_env);
        let session_id_fields = list("sessionIdFields", base.session_id_fields);
        let mut text = |name: &str, base: Option<String>| node.get(name).text(problems).or(base);
        let (model_arg, session_arg) = (text("modelArg", base.model_arg), text("sessionArg", base.session_arg));
        let system_prompt_arg = text("systemPromptArg", base.system_prompt_arg);
        let image_arg = text("imageArg", base.image_arg);
        let chars = node.get("maxPromptArgChars").count(problems).and_then(|n| usize::try_from(n).ok());
        Some(Self {
            command: command.unwrap_or(base.command),
            args,
            resume_args,
            output: own_output.unwrap_or(base.output),
            resume_output: resume_output.or(base.resume_output),
            prompt_on_stdin: is_stdin.unwrap_or(base.prompt_on_stdin),
            max_prompt_arg_chars: chars.or(base.max_prompt_arg_chars),
            model_arg,
            model_aliases,
            session_arg,
            session_args,
            session_mode: mode.unwrap_or(base.session_mode),
            session_id_fields,
            system_prompt_arg,
            system_prompt_when: when.unwrap_or(base.system_prompt_when),
            image_arg,
            images_as_list: as_list.unwrap_or(base.images_as_list),
            env,
            clear_env,
            pass_env,
            serialize: node.get("serialize").flag(problems).unwrap_or(base.serialize),
            silence,
            resume_silence,
        })
    }
}

impl CliBackends {
    pub(super) fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Self {
        let mut all = builtin();
        for (name, entry) in node.members(problems) {
            let name = name.trim().to_lowercase();
            let known = all.get(&name).cloned();
            all.extend(CliBackend::read(&entry, known, problems).map(|backend| (name, backend)));
        }
        Self(Arc::new(all))
    }

    /// Returns the backend of a provider.
    pub fn get(&self, provider: &str) -> Option<&CliBackend> {
        self.0.get(provider)
    }
}

impl Default for CliBackends {
    fn default() -> Self {
        Self(Arc::new(builtin()))
    }
}

/// Returns the built-in backends.
fn builtin() -> BTreeMap<String, CliBackend> {
    BTreeMap::from([("claude-cli".to_owned(), CliBackend::claude()), ("codex-cli".to_owned(), CliBackend::codex())])
}
