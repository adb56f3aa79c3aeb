//! The state of the chat. Keys, events and answers of the backend change it, and frames are drawn from it. It accesses neither the terminal
//! nor the backend.

mod commands;
mod dialogs;
mod events;
mod input;
mod view;

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pinch_llm::thinking::ThinkingLevel;
use pinch_stdx::host::Host;

use super::backend::{AgentQuestions, ChatAgent, ChatSessionInfo, OutgoingMessage, Verbosity};
use super::commands as chat_commands;
use super::effect::{ChatChoice, ChatEffect};
use crate::Row;
use crate::attention::Attention;
use crate::dialog::DialogView;
use crate::editor::Editor;
use crate::editor::complete::{Autocomplete, CompletionSources};
use crate::hyperlink::Hyperlinks;
use crate::key::Key;
use crate::keymap::{KeyAction, Keymap};
use crate::terminal::{ProgramStatus, TerminalCapabilities};
use crate::text::one_line;
use crate::theme::{ColorDepth, ColorRole, Palette};
use crate::tmux::TmuxKeys;
use crate::transcript::{NoticeKind, TranscriptView};
use crate::widget::Loader;

/// Time limit for a terminal to report its colours, in milliseconds.
const COLORS_MS: i64 = 150;
/// Maximum width of an image, in columns.
const IMAGE_COLUMNS: u64 = 60;
/// Number of ended runs that are remembered, so that their late events are ignored.
const MAX_ENDED: usize = 200;

/// Input for creating the state.
#[derive(Clone, Debug)]
pub(crate) struct ChatSetup {
    pub(crate) host: Host,
    pub(crate) version: String,
    /// The directory of `keybindings.json`.
    pub(crate) agent_dir: PathBuf,
    pub(crate) cwd: PathBuf,
    /// Where the agents run.
    pub(crate) target: String,
    pub(crate) agents: Vec<ChatAgent>,
    pub(crate) agent: String,
    /// Session named by the user; `None`: the main session of the agent.
    pub(crate) session: Option<String>,
    /// Thinking level, overriding the session's until the user chooses one.
    pub(crate) thinking: Option<ThinkingLevel>,
    pub(crate) verbose: Option<Verbosity>,
    pub(crate) timeout: Option<Duration>,
    /// Sent once the history is loaded.
    pub(crate) message: Option<String>,
    /// Whether there is a shell for the user's commands.
    pub(crate) has_shell: bool,
    /// How the user is notified: the setting `terminal.notify`.
    pub(crate) notify: String,
    /// Whether progress is reported to the terminal.
    pub(crate) shows_progress: bool,
}

/// Activity of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
enum RunActivity {
    /// The message is being sent.
    Sending,
    /// Waiting for the model.
    Waiting,
    /// An answer is arriving.
    Streaming,
    /// A tool is running.
    Running { tool: String },
    /// Something else, until a time in Unix milliseconds if known.
    Busy { activity: String, until_ms: Option<i64> },
}

/// The active run of a session.
#[derive(Clone, Debug)]
struct ActiveChatRun {
    /// Known from its first event.
    id: Option<String>,
    /// Message that started it, if known; it is already shown.
    message: Option<String>,
    since_ms: i64,
    activity: RunActivity,
    is_aborting: bool,
    /// Whether a message of this chat started it.
    is_own: bool,
    /// Texts of its answers, as shown.
    answers: Vec<String>,
    /// Whether the last of them is still growing.
    is_answering: bool,
    /// Whether tools were shown.
    has_tools: bool,
}

/// An open dialog; only the last one is shown.
struct OpenChatDialog {
    dialog: Box<dyn DialogView<ChatChoice> + Send>,
    /// Id of the awaited question.
    question: Option<String>,
    /// Questions of an agent in it.
    asked: Option<AgentQuestions>,
}

/// Whether the user has allowed shell commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ShellPermission {
    /// The user was not asked yet.
    Unknown,
    Allowed,
    Declined,
}

/// The state.
pub(crate) struct ChatApp {
    setup: ChatSetup,
    theme: Palette,
    /// URLs of the links on the screen, and whether the terminal is known to support links.
    links: (Hyperlinks, bool),
    depth: ColorDepth,
    light_background: Option<bool>,
    /// Deadline for the terminal to report its colours; `None`: they are known.
    colors_due_ms: Option<i64>,
    keymap: Keymap,
    /// How tmux passes keys on, if that is a problem.
    tmux_keys: Option<TmuxKeys>,
    transcript: TranscriptView,
    editor: Editor,
    completion: Autocomplete,
    sources: CompletionSources,
    /// Keys of an incomplete binding.
    pending_keys: Vec<Key>,
    dialogs: Vec<OpenChatDialog>,
    loader: Loader,
    agents: Vec<ChatAgent>,
    agent: String,
    session: String,
    facts: ChatSessionInfo,
    thinking: Option<ThinkingLevel>,
    verbose: Option<Verbosity>,
    /// Whether thinking is shown, overriding the session's setting.
    shows_thinking: Option<bool>,
    /// Whether replies are also delivered to the channel of the session, if it has one.
    delivers: bool,
    /// Active runs, by session.
    runs: BTreeMap<String, ActiveChatRun>,
    /// Whether the history of the session is being loaded; events are shown after it.
    is_loading: bool,
    /// Messages of all sessions that no run has read.
    queued: Vec<OutgoingMessage>,
    ended_runs: VecDeque<String>,
    /// When the user started compacting the session, if in progress.
    compacting: Option<i64>,
    first_message: Option<String>,
    shell: ShellPermission,
    /// Whether the backend is gone.
    is_disconnected: bool,
    n_sent: u64,
    id_prefix: String,
    attention: Attention,
    /// How the last run ended, until the user does something.
    outcome: ProgramStatus,
    clear_at: Option<i64>,
    /// An unknown command that was submitted once; submitting it again sends it.
    unconfirmed: Option<String>,
}

impl ChatApp {
    /// Returns the URLs of the links on the screen.
    pub(crate) fn links(&self) -> Hyperlinks {
        self.links.0.clone()
    }

    /// Creates the initial state, and the first effects.
    pub(crate) fn new(setup: ChatSetup, capabilities: &TerminalCapabilities) -> (Self, Vec<ChatEffect>) {
        let home = setup.host.home().map(PathBuf::from);
        let mut sources = CompletionSources::new(setup.cwd.clone());
        sources.home.clone_from(&home);
        let theme = Palette::name_for(capabilities.light_background);
        let still = setup.host.env().is_on("PINCH_REDUCED_MOTION");
        let links = Hyperlinks::default();
        let mut state = Self {
            theme: Palette::builtin(theme, capabilities.depth)
                .with_links(capabilities.hyperlinks.then(|| links.clone())),
            links: (links, capabilities.hyperlinks),
            depth: capabilities.depth,
            light_background: capabilities.light_background,
            colors_due_ms: (!capabilities.plain).then(|| setup.host.now_ms() + COLORS_MS),
            keymap: Keymap::default(),
            tmux_keys: None,
            transcript: TranscriptView::default(),
            editor: Editor::new().with_placeholder("Type a message, / for commands"),
            completion: Autocomplete::default(),
            sources,
            pending_keys: Vec::new(),
            dialogs: Vec::new(),
            loader: if still { Loader::still() } else { Loader::default() },
            agents: setup.agents.clone(),
            agent: setup.agent.clone(),
            session: String::new(),
            facts: ChatSessionInfo::default(),
            thinking: setup.thinking,
            verbose: setup.verbose,
            shows_thinking: None,
            delivers: false,
            runs: BTreeMap::new(),
            is_loading: false,
            queued: Vec::new(),
            ended_runs: VecDeque::new(),
            compacting: None,
            first_message: setup.message.clone(),
            shell: ShellPermission::Unknown,
            is_disconnected: false,
            n_sent: 0,
            id_prefix: setup.host.ids().uuid_v4(),
            attention: Attention::default(),
            outcome: ProgramStatus::Idle,
            clear_at: None,
            unconfirmed: None,
            setup,
        };
        state.transcript.options.plain = capabilities.plain;
        state.transcript.options.home = home;
        state.transcript.images().configure(capabilities.images, IMAGE_COLUMNS);
        if capabilities.remote {
            state.transcript.images().set_remote();
        }
        state.read_keys();
        state.take_agents(state.agents.clone());
        let named = state.setup.session.clone().unwrap_or_default();
        let effects = state.open_session(&state.session_key(&named));
        (state, effects)
    }

    /// Returns the agent directory.
    pub(crate) fn agent_dir(&self) -> &Path {
        &self.setup.agent_dir
    }

    /// Sets how tmux passes keys on. `warns`: whether to show a problem now; `/help` shows it in any case.
    pub(crate) fn set_tmux_keys(&mut self, keys: TmuxKeys, warns: bool) {
        self.tmux_keys = Some(keys);
        if let Some(problem) = keys.problem(&self.keymap).filter(|_| warns) {
            self.warning(&problem);
        }
    }

    /// Returns whether the output is plain lines.
    pub(crate) fn is_plain(&self) -> bool {
        self.transcript.options.plain
    }

    /// Reads `keybindings.json`.
    fn read_keys(&mut self) {
        let (keymap, problems) = Keymap::load(&self.setup.agent_dir);
        self.keymap = keymap;
        for problem in problems {
            self.warning(&problem.to_string());
        }
    }

    fn take_agents(&mut self, agents: Vec<ChatAgent>) {
        let ids: Vec<String> = agents.iter().map(|agent| agent.id.clone()).collect();
        self.sources.commands = chat_commands::suggestions(&ids);
        self.agents = agents;
    }

    /// Returns the key of a session named by the user, in the current agent.
    fn session_key(&self, named: &str) -> String {
        let named = named.trim().to_lowercase();
        match named.as_str() {
            "" => {
                let agent = self.agents.iter().find(|agent| agent.id == self.agent);
                agent.map_or_else(|| format!("agent:{}:main", self.agent), |agent| agent.main_session.clone())
            }
            "global" | "unknown" => named,
            _ if named.starts_with("agent:") => named,
            _ => format!("agent:{}:{named}", self.agent),
        }
    }

    /// Returns the session key without the agent.
    fn short_session(&self) -> &str {
        short_key(&self.session)
    }

    /// Switches to a session. Activity in the other one continues.
    fn open_session(&mut self, key: &str) -> Vec<ChatEffect> {
        if let Some(agent) = key.strip_prefix("agent:").and_then(|rest| rest.split(':').next()) {
            self.agent = agent.to_owned();
        }
        self.session = key.to_owned();
        self.is_loading = true;
        self.facts = ChatSessionInfo::default();
        self.show_header();
        let session = self.session.clone();
        vec![
            ChatEffect::Facts { session: session.clone() },
            ChatEffect::History { session: session.clone() },
            ChatEffect::RememberSession { agent: self.agent.clone(), session },
        ]
    }

    /// Shows the header.
    fn show_header(&mut self) {
        let is_first = self.transcript.is_empty();
        self.transcript.answer_ended();
        self.transcript.run_ended();
        let name = format!(
            "pinch v{} - {} - agent {} - session {}",
            self.setup.version,
            self.setup.target,
            self.agent,
            self.short_session()
        );
        if !is_first {
            self.transcript.separate();
        }
        let hint = |action| self.keymap.hint(action);
        let hints = format!(
            "{} stop · {} clear, twice to exit · / commands · {} agents · {} sessions · {} models · /help for all keys",
            hint(KeyAction::Interrupt),
            hint(KeyAction::Clear),
            hint(KeyAction::ChatAgents),
            hint(KeyAction::ChatSessions),
            hint(KeyAction::ChatModels),
        );
        self.transcript.header(&name, if is_first { &hints } else { "" });
    }

    /// Returns how much tool activity is shown.
    fn verbosity(&self) -> Verbosity {
        self.verbose.unwrap_or(self.facts.verbose)
    }

    /// Returns the active run of the session.
    fn run(&self) -> Option<&ActiveChatRun> {
        self.runs.get(&self.session)
    }

    /// Returns the session's messages that no run has read.
    fn waiting(&self) -> impl Iterator<Item = &OutgoingMessage> {
        self.queued.iter().filter(|message| message.session_key == self.session)
    }

    /// Returns whether a run of the session is active or about to start.
    fn is_busy(&self) -> bool {
        self.run().is_some() || self.waiting().next().is_some()
    }

    fn status(&mut self, text: &str) {
        self.transcript.notice(NoticeKind::Status, text);
    }

    pub(crate) fn warning(&mut self, text: &str) {
        self.transcript.notice(NoticeKind::Warning, text);
    }

    fn error(&mut self, text: &str) {
        self.transcript.notice(NoticeKind::Error, text);
    }

    /// Returns the rows left on the screen on exit: how to return to the session.
    pub(crate) fn exit_rows(&self) -> Vec<Row> {
        let key = one_line(&self.session);
        let is_plain = key.chars().all(|c| c.is_alphanumeric() || matches!(c, ':' | '-' | '_' | '.' | '@' | '+'));
        let key = if is_plain { key } else { format!("'{}'", key.replace('\'', "'\\''")) };
        let text = format!("continue with: pinch chat --session {key}");
        vec![Row::styled(text, self.theme.fg(ColorRole::Dim))]
    }

    /// Handles output of a user command.
    pub(crate) fn shell_output(&mut self, text: &str) {
        self.transcript.bash_output(text);
    }

    /// Handles the end of a user command.
    pub(crate) fn shell_ended(
        &mut self,
        end: &Result<pinch_coding_agent::tools::bash::UserCommand, pinch_agent_core::tool::ToolError>,
    ) {
        self.transcript.bash_finished(end);
    }
}

/// Strips the agent from a key.
fn short_key(key: &str) -> &str {
    key.strip_prefix("agent:").and_then(|rest| rest.split_once(':')).map_or(key, |(_, rest)| rest)
}
