//! The state of the chat. Keys, events and answers of the backend change it; a frame is made from it. It touches neither the terminal nor the
//! backend.

mod commands;
mod dialogs;
mod events;
mod input;
mod view;

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::time::Duration;

use pinch_llm::thinking::ThinkingLevel;
use pinch_stdx::host::Host;

use super::backend::{AgentQuestions, ChatAgent, ChatSessionInfo, OutgoingMessage, Verbosity};
use super::commands as chat_commands;
use super::effect::{ChatChoice, ChatEffect};
use crate::Row;
use crate::dialog::DialogView;
use crate::editor::Editor;
use crate::editor::complete::{Autocomplete, CompletionSources};
use crate::hyperlink::Hyperlinks;
use crate::key::Key;
use crate::keymap::{KeyAction, Keymap};
use crate::terminal::TerminalCapabilities;
use crate::text::{SanitizeMode, sanitize};
use crate::theme::{ColorDepth, ColorRole, Palette};
use crate::transcript::{NoticeKind, TranscriptView};
use crate::widget::Loader;

/// How long a terminal may take to name its colours, in milliseconds.
const COLORS_MS: i64 = 150;
/// Columns of an image at most.
const IMAGE_COLUMNS: u64 = 60;
/// Runs that have ended and are remembered, so that late events of them are not shown.
const MAX_ENDED: usize = 200;

/// What the state is made with.
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
    /// As the user named it; `None`: the main session of the agent.
    pub(crate) session: Option<String>,
    /// In place of what the session says, until the user chooses.
    pub(crate) thinking: Option<ThinkingLevel>,
    pub(crate) verbose: Option<Verbosity>,
    pub(crate) timeout: Option<Duration>,
    /// Sent as soon as the history is there.
    pub(crate) message: Option<String>,
    /// There is a shell for the user's commands.
    pub(crate) has_shell: bool,
}

/// What an active run does.
#[derive(Clone, Debug, PartialEq, Eq)]
enum RunActivity {
    /// The message is on its way.
    Sending,
    /// The model is waited for.
    Waiting,
    /// An answer arrives.
    Streaming,
    /// A tool runs.
    Running { tool: String },
    /// Something else, until a time in Unix milliseconds if that is known.
    Busy { activity: String, until_ms: Option<i64> },
}

/// The active run of a session.
#[derive(Clone, Debug)]
struct ActiveChatRun {
    /// Known from its first event on.
    id: Option<String>,
    /// The message that it is started with, if that is known: it is shown already.
    message: Option<String>,
    since_ms: i64,
    activity: RunActivity,
    is_aborting: bool,
    /// Whether a message of this chat started it.
    is_own: bool,
    /// The texts of its answers, as they were shown.
    answers: Vec<String>,
    /// The last one of them goes on.
    is_answering: bool,
    /// Tools were shown.
    has_tools: bool,
}

/// A dialog that is open; the last one is shown.
struct OpenChatDialog {
    dialog: Box<dyn DialogView<ChatChoice> + Send>,
    /// The id of the question that somebody waits for.
    question: Option<String>,
    /// What an agent asks in it.
    asked: Option<AgentQuestions>,
}

/// Whether the user's commands may be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ShellPermission {
    /// The user was not asked.
    Unknown,
    Allowed,
    Declined,
}

/// The state.
pub(crate) struct ChatApp {
    setup: ChatSetup,
    theme: Palette,
    /// Addresses of the links on the screen, and whether the terminal is known to have links.
    links: (Hyperlinks, bool),
    depth: ColorDepth,
    light_background: Option<bool>,
    /// When the colours of the terminal are not waited for any longer; `None`: they are known.
    colors_due_ms: Option<i64>,
    keymap: Keymap,
    transcript: TranscriptView,
    editor: Editor,
    completion: Autocomplete,
    sources: CompletionSources,
    /// Keys of a binding that is not complete.
    pending_keys: Vec<Key>,
    dialogs: Vec<OpenChatDialog>,
    loader: Loader,
    agents: Vec<ChatAgent>,
    agent: String,
    session: String,
    facts: ChatSessionInfo,
    thinking: Option<ThinkingLevel>,
    verbose: Option<Verbosity>,
    /// Whether thoughts are shown, whatever the session says.
    shows_thinking: Option<bool>,
    /// The active runs, by session.
    runs: BTreeMap<String, ActiveChatRun>,
    /// The history of the session is on its way; what happens meanwhile is shown afterwards.
    is_loading: bool,
    /// Messages that no run has read, of all sessions.
    queued: Vec<OutgoingMessage>,
    ended_runs: VecDeque<String>,
    /// Since when the session is being compacted because the user asked for it.
    compacting: Option<i64>,
    first_message: Option<String>,
    shell: ShellPermission,
    /// The backend is gone.
    is_disconnected: bool,
    n_sent: u64,
    id_prefix: String,
    clear_at: Option<i64>,
    /// An unknown command that was submitted once; the same again is sent.
    unconfirmed: Option<String>,
}

impl ChatApp {
    /// The addresses of the links on the screen.
    pub(crate) fn links(&self) -> Hyperlinks {
        self.links.0.clone()
    }

    /// The state at the start, and what is to be done first.
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

    /// Whether everything is plain lines.
    fn is_plain(&self) -> bool {
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

    /// The key of a session as the user names it, in the current agent.
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

    /// A session without the agent in its key.
    fn short_session(&self) -> &str {
        short_key(&self.session)
    }

    /// Changes over to a session. What is under way in the other one goes on.
    fn open_session(&mut self, key: &str) -> Vec<ChatEffect> {
        if let Some(agent) = key.strip_prefix("agent:").and_then(|rest| rest.split(':').next()) {
            self.agent = agent.to_owned();
        }
        self.session = key.to_owned();
        self.is_loading = true;
        self.facts = ChatSessionInfo::default();
        self.greet();
        let session = self.session.clone();
        vec![
            ChatEffect::Facts { session: session.clone() },
            ChatEffect::History { session: session.clone() },
            ChatEffect::RememberSession { agent: self.agent.clone(), session },
        ]
    }

    /// The header.
    fn greet(&mut self) {
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

    /// How much is shown of tools.
    fn verbosity(&self) -> Verbosity {
        self.verbose.unwrap_or(self.facts.verbose)
    }

    /// The active run of the session.
    fn run(&self) -> Option<&ActiveChatRun> {
        self.runs.get(&self.session)
    }

    /// The messages of the session that no run has read.
    fn waiting(&self) -> impl Iterator<Item = &OutgoingMessage> {
        self.queued.iter().filter(|message| message.session_key == self.session)
    }

    /// Whether a run of the session is active or about to begin.
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

    /// What is left on the screen when the program ends: how to come back to the session.
    pub(crate) fn farewell(&self) -> Vec<Row> {
        let key = sanitize(&self.session, SanitizeMode::Output).replace('\n', " ");
        let is_plain = key.chars().all(|c| c.is_alphanumeric() || matches!(c, ':' | '-' | '_' | '.' | '@' | '+'));
        let key = if is_plain { key } else { format!("'{}'", key.replace('\'', "'\\''")) };
        let text = format!("continue with: pinch chat --session {key}");
        vec![Row::styled(text, self.theme.fg(ColorRole::Dim))]
    }

    /// A command of the user has printed something.
    pub(crate) fn shell_output(&mut self, text: &str) {
        self.transcript.bash_output(text);
    }

    /// A command of the user has ended.
    pub(crate) fn shell_ended(
        &mut self,
        end: &Result<pinch_coding_agent::tools::bash::UserCommand, pinch_agent_core::tool::ToolError>,
    ) {
        self.transcript.bash_finished(end);
    }
}

/// A key without the agent in it.
fn short_key(key: &str) -> &str {
    key.strip_prefix("agent:").and_then(|rest| rest.split_once(':')).map_or(key, |(_, rest)| rest)
}
