//! The state of the interface. Keys, session events and answers of extensions change it, and frames are drawn from it. It accesses neither
//! the terminal nor the session, so that all of it can be tested without them.

mod look;
mod extension_look;
mod tmux_keys;
mod scope;
mod queue;
mod news;
mod history;
mod dialogs;
mod events;
mod expand;
mod scroll;
mod images;
mod search;
mod mouse;
mod shortcuts;
mod input;
mod view;
mod components;

pub(crate) use news::ChangelogNews;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pinch_agent_core::queue::QueueKind;
use pinch_coding_agent::extension::ui::WidgetPlace;
use pinch_coding_agent::runtime::SessionRuntime;
use pinch_coding_agent::services::Services;
use pinch_coding_agent::session::stats::UsageTotals;
use pinch_coding_agent::session::{AgentSession, ScopedModel, SessionControl};
use pinch_coding_agent::settings::values::Interface;
use pinch_llm::ids::ProviderId;
use pinch_llm::model::Model;
use pinch_llm::thinking::ThinkingLevel;
use pinch_stdx::host::{Env, Host};
use tokio::sync::oneshot;

use self::components::Components;
use self::expand::OutputView;
use self::extension_look::{ToldScreen, WorkingLook};
use self::look::ThemeFiles;
use self::shortcuts::ExtensionKey;
use super::branch::{self, Head};
use super::footer::Footer;
use crate::Row;
use crate::attention::Attention;
use crate::dialog::DialogView;
use crate::editor::Editor;
use crate::editor::complete::{Autocomplete, CompletionSources};
use crate::editor_line::LineEditor;
use crate::effect::{DialogAnswer, SubmittedMessage};
use crate::figures::short_path;
use crate::hyperlink::Hyperlinks;
use crate::image::ImageProtocol;
use crate::key::Key;
use crate::keymap::Keymap;
use crate::terminal::{ProgramStatus, TerminalCapabilities};
use crate::text::one_line;
use crate::theme::{ColorDepth, ColorRole, Palette};
use crate::tmux::TmuxKeys;
use crate::transcript::{NoticeKind, Scroll, TranscriptView, prompts_in};
use crate::widget::Loader;

/// Time limit for a terminal to report its colours, in milliseconds; over ssh it may take longer.
const COLORS_MS: i64 = 150;

/// Activity of the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionActivity {
    Idle,
    /// A run is in progress.
    Working,
    /// A failed answer is about to be retried.
    Retrying,
    Compacting,
    /// An abandoned branch is being summarised.
    Summarising,
}

/// An activity, its start, and its description.
#[derive(Clone, Debug)]
struct Ongoing {
    activity: SessionActivity,
    since_ms: i64,
    text: String,
    /// When a wait ends.
    until_ms: Option<i64>,
}

/// An open dialog, and the channel waiting for its answer.
struct OpenDialog {
    dialog: Box<dyn DialogView + Send>,
    reply: Option<oneshot::Sender<DialogAnswer>>,
}

/// Lines of an extension above or below the editor.
struct Widget {
    key: String,
    lines: Vec<String>,
    place: WidgetPlace,
}

/// Input for creating the state.
#[derive(Clone, Debug)]
pub(crate) struct AppOptions {
    pub(crate) host: Host,
    pub(crate) version: String,
    pub(crate) agent_dir: PathBuf,
    pub(crate) cwd: PathBuf,
    /// Theme and mode from the command line; they override the settings.
    pub(crate) theme: Option<String>,
    pub(crate) tui_mode: Option<String>,
    /// Opens a web page, if possible.
    pub(crate) browser: Option<fn(&str, &Env) -> bool>,
    /// Whether to show loaded resources regardless of the settings.
    pub(crate) verbose: bool,
    pub(crate) changelog: &'static str,
    pub(crate) offline: bool,
}

/// The state.
pub(crate) struct App {
    options: AppOptions,
    theme: Palette,
    theme_files: ThemeFiles,
    /// URLs of the links on the screen, and whether the terminal is known to support links.
    links: (Hyperlinks, bool),
    depth: ColorDepth,
    /// How the terminal shows images, if it can.
    image_protocol: Option<ImageProtocol>,
    light_background: Option<bool>,
    /// Deadline for the terminal to report its colours, in Unix milliseconds; `None`: they are known.
    colors_due_ms: Option<i64>,
    keymap: Keymap,
    extension_keys: Vec<ExtensionKey>,
    /// How tmux passes keys on, if that is a problem.
    tmux_keys: Option<TmuxKeys>,
    interface: Option<Interface>,
    transcript: TranscriptView,
    editor: Editor,
    completion: Autocomplete,
    sources: CompletionSources,
    /// Keys of an incomplete binding.
    pending_keys: Vec<Key>,
    dialogs: Vec<OpenDialog>,
    components: Components,
    /// Search text for the transcript, as it is typed.
    search: Option<LineEditor>,
    output_view: OutputView,
    ongoing: Ongoing,
    loader: Loader,
    working: WorkingLook,
    /// What extensions know of the screen.
    told: ToldScreen,
    footer: Footer,
    /// How often the cost of a session had to be summed up again.
    n_sums: u64,
    queue: (Vec<String>, Vec<String>),
    /// Messages submitted during a compaction.
    waiting: Vec<(QueueKind, SubmittedMessage)>,
    widgets: Vec<Widget>,
    title: Option<String>,
    model: Option<Arc<Model>>,
    thinking: ThinkingLevel,
    scope: Vec<ScopedModel>,
    session_path: Option<PathBuf>,
    /// Names of commands from extensions, templates and skills.
    commands: Vec<String>,
    /// When Ctrl+C or Escape was last pressed.
    clear_at: Option<i64>,
    escape_at: Option<i64>,
    /// An unknown command that was submitted once; submitting it again sends it.
    unconfirmed: Option<String>,
    /// Position of the last click, its time in Unix milliseconds, and the number of consecutive clicks.
    clicks: (Option<(u16, u16)>, i64, usize),
    /// A temporary note, and when it expires, in Unix milliseconds.
    note: Option<(String, i64)>,
    /// Whether the session is being aborted.
    is_aborting: bool,
    attention: Attention,
    /// How the last run ended, until the user does something.
    outcome: ProgramStatus,
}

impl App {
    pub(crate) fn new(options: AppOptions, capabilities: &TerminalCapabilities) -> Self {
        let home = options.host.home().map(Path::to_owned);
        let footer = Footer {
            cwd: short_path(&options.cwd, home.as_deref()),
            head: branch::head(&options.cwd),
            ..Footer::default()
        };
        let mut sources = CompletionSources::new(options.cwd.clone());
        sources.home = home;
        let theme = options.theme.clone().filter(|name| name != look::SYSTEM_THEME);
        let name = theme.unwrap_or_else(|| Palette::name_for(capabilities.light_background).to_owned());
        let still = options.host.env().is_on("PINCH_REDUCED_MOTION");
        let mut app = Self {
            theme: Palette::builtin(&name, capabilities.depth),
            theme_files: ThemeFiles::default(),
            links: (Hyperlinks::default(), capabilities.hyperlinks),
            depth: capabilities.depth,
            image_protocol: capabilities.images,
            light_background: capabilities.light_background,
            colors_due_ms: (!capabilities.plain).then(|| options.host.now_ms() + COLORS_MS),
            keymap: Keymap::default(),
            extension_keys: Vec::new(),
            tmux_keys: None,
            interface: None,
            transcript: TranscriptView::default(),
            editor: Editor::new().with_placeholder("Type a message, / for commands"),
            completion: Autocomplete::default(),
            sources,
            pending_keys: Vec::new(),
            dialogs: Vec::new(),
            components: Components::default(),
            search: None,
            output_view: OutputView::Closed,
            ongoing: Ongoing { activity: SessionActivity::Idle, since_ms: 0, text: String::new(), until_ms: None },
            loader: if still { Loader::still() } else { Loader::default() },
            working: WorkingLook::default(),
            told: ToldScreen::default(),
            footer,
            n_sums: 0,
            queue: Default::default(),
            waiting: Vec::new(),
            widgets: Vec::new(),
            title: None,
            model: None,
            thinking: ThinkingLevel::Off,
            scope: Vec::new(),
            session_path: None,
            commands: Vec::new(),
            clear_at: None,
            escape_at: None,
            unconfirmed: None,
            clicks: (None, 0, 0),
            note: None,
            is_aborting: false,
            attention: Attention::default(),
            outcome: ProgramStatus::Idle,
            options,
        };
        app.transcript.images().enable_conversion();
        if capabilities.remote {
            app.transcript.images().set_remote();
        }
        app.transcript.options.plain = capabilities.plain;
        app.transcript.options.home = app.options.host.home().map(Path::to_owned);
        app.transcript.options.link_base = (!capabilities.remote).then(|| app.options.cwd.clone());
        app.use_palette(app.theme.clone());
        app.read_keys();
        app
    }

    /// Reads `keybindings.json`.
    fn read_keys(&mut self) {
        let (keymap, problems) = Keymap::load(&self.options.agent_dir);
        self.keymap = keymap;
        self.describe_keys();
        for problem in problems {
            self.warning(&problem.to_string());
        }
    }

    /// Called when a session has been opened, whether the first one or another.
    pub(crate) fn session_opened(&mut self, runtime: &SessionRuntime) {
        let is_first = self.interface.is_none();
        let session = runtime.session();
        self.take_settings(runtime.services(), Some(&session.control()));
        self.queue = Default::default();
        self.waiting.clear();
        self.scope = runtime.scope().to_vec();
        self.footer.subscription = runtime.services().auth().is_using_oauth(&session.model().provider);
        self.take_session(session);
        self.transcript.clear();
        if is_first {
            self.show_header(runtime);
        } else {
            self.transcript.separate();
        }
        self.load(session);
        self.bind_shortcuts(session.control().extensions(), is_first);
    }

    /// Called when the session has moved within its tree.
    pub(crate) fn session_moved(&mut self, runtime: &SessionRuntime) {
        self.take_session(runtime.session());
        self.transcript.clear();
        self.transcript.separate();
        self.load(runtime.session());
    }

    /// Called when settings, extensions and resources have been reloaded.
    pub(crate) fn reloaded(&mut self, runtime: &SessionRuntime) {
        self.read_keys();
        self.themes_reloaded();
        self.take_settings(runtime.services(), Some(&runtime.session().control()));
        self.scope = runtime.scope().to_vec();
        self.take_session(runtime.session());
        self.bind_shortcuts(runtime.session().control().extensions(), true);
    }

    /// Shows the conversation, and fills the editor's history from it.
    fn load(&mut self, session: &AgentSession) {
        let messages = session.messages();
        self.transcript.load(messages);
        for text in prompts_in(messages) {
            self.editor.add_history(&text);
        }
        self.transcript.scroll(Scroll::End);
        self.close_search();
    }

    /// Updates the state from the session.
    fn take_session(&mut self, session: &AgentSession) {
        self.session_path = session.path();
        self.footer.session_name = session.log().name();
        self.footer.spent = UsageTotals::default();
        self.n_sums += 1;
        self.model_changed(&Arc::clone(session.model()), session.thinking());
        self.take_usage(session);
    }

    /// Returns the number of the sum of costs that the session needs now; the console computes it in the background.
    pub(crate) fn sum_number(&self) -> u64 {
        self.n_sums
    }

    /// Sets what the session had cost when summing up began; later costs are already counted.
    pub(crate) fn summed(&mut self, number: u64, before: &UsageTotals) {
        if number == self.n_sums {
            self.footer.spent.merge(before);
        }
    }

    fn take_usage(&mut self, session: &AgentSession) {
        let usage = session.context_usage();
        self.footer.context_window = usage.map_or(0, |usage| usage.context_window);
        self.footer.context_tokens = usage.and_then(|usage| usage.tokens);
        self.footer.auto_compaction = session.auto_compaction();
    }

    /// Updates the state from settings and resources.
    fn take_settings(&mut self, services: &Services, control: Option<&SessionControl>) {
        let settings = services.settings().settings();
        let interface = settings.interface.clone();
        self.count_providers(services);
        self.editor.set_padding(usize::try_from(interface.editor_padding).unwrap_or(0));
        let vi = services.settings().value("editorViKeys").and_then(|value| value.as_bool());
        self.editor.set_vi(vi == Some(true));
        self.completion.set_visible(usize::try_from(interface.autocomplete_max_visible).unwrap_or(5));
        self.transcript.options.hide_thinking = interface.hide_thinking;
        self.transcript.options.code_indent.clone_from(&interface.code_block_indent);
        self.choose_image_protocol(&interface.terminal);
        self.interface = Some(interface);
        self.use_palette(self.theme.clone());
        self.choose_theme(services);
        self.describe_themes(services);
        if let Some(control) = control {
            self.set_renderers(control.extensions().renderers());
            let known = super::commands::known(services, control.extensions());
            self.commands = known.iter().map(|command| command.name.clone()).collect();
            self.sources.commands = super::commands::suggestions(services).into_iter().chain(known).collect();
        }
    }

    pub(crate) fn settings_changed(&mut self, services: &Services, control: Option<&SessionControl>) {
        self.take_settings(services, control);
    }

    pub(crate) fn model(&self) -> Option<&Arc<Model>> {
        self.model.as_ref()
    }

    pub(crate) fn thinking(&self) -> ThinkingLevel {
        self.thinking
    }

    pub(crate) fn model_changed(&mut self, model: &Arc<Model>, level: ThinkingLevel) {
        self.footer.model = model.id.to_string();
        self.footer.provider = Some(model.provider.to_string());
        self.footer.thinking = model.reasoning.then(|| level.as_str().to_owned());
        self.footer.context_window = model.context_window;
        self.thinking = level;
        self.model = Some(Arc::clone(model));
    }

    /// Determines whether the footer names the provider, which is obvious if there is only one.
    fn count_providers(&mut self, services: &Services) {
        let models = services.available_models();
        let providers: HashSet<_> = models.iter().map(|model| &model.provider).collect();
        self.footer.n_providers = providers.len();
    }

    /// Sets what the working directory has checked out. Returns whether it has changed.
    pub(crate) fn set_head(&mut self, head: Option<Head>) -> bool {
        let is_new = self.footer.head != head;
        self.footer.head = head;
        is_new
    }

    /// Returns the working directory.
    pub(crate) fn cwd(&self) -> &Path {
        &self.options.cwd
    }

    /// Returns whether the output is plain lines.
    pub(crate) fn is_plain(&self) -> bool {
        self.transcript.options.plain
    }

    pub(crate) fn activity(&self) -> SessionActivity {
        self.ongoing.activity
    }

    /// Sets the activity of the session.
    pub(crate) fn begin(&mut self, activity: SessionActivity, now_ms: i64) {
        let text = match activity {
            SessionActivity::Idle => "",
            SessionActivity::Working => "Working",
            SessionActivity::Retrying => "Retrying",
            SessionActivity::Compacting => "Compacting context",
            SessionActivity::Summarising => "Summarizing branch",
        };
        self.ongoing = Ongoing { activity, since_ms: now_ms, text: text.to_owned(), until_ms: None };
        self.is_aborting = false;
    }

    pub(crate) fn aborting(&mut self) {
        self.is_aborting = true;
    }

    pub(crate) fn status(&mut self, text: &str) {
        self.transcript.notice(NoticeKind::Status, text);
    }

    pub(crate) fn warning(&mut self, text: &str) {
        self.transcript.notice(NoticeKind::Warning, text);
    }

    pub(crate) fn error(&mut self, text: &str) {
        self.transcript.notice(NoticeKind::Error, text);
    }

    pub(crate) fn session_path(&self) -> Option<PathBuf> {
        self.session_path.clone()
    }

    pub(crate) fn last_answer(&self) -> Option<String> {
        self.transcript.last_answer()
    }

    pub(crate) fn external_editor(&self) -> Option<String> {
        self.interface.as_ref().and_then(|interface| interface.external_editor.clone())
    }

    /// Returns the text of the editor, with pasted texts in place of their markers.
    pub(crate) fn editor_text(&self) -> String {
        self.editor.text()
    }

    pub(crate) fn set_editor_text(&mut self, text: &str) {
        self.editor.set_text(text);
        self.completion.close();
    }

    /// Opens a web page in the user's browser; if that fails, the user has to do it.
    pub(crate) fn open_page(&self, url: &str) {
        if let Some(open) = self.options.browser {
            open(url, self.options.host.env());
        }
    }

    /// Called when the credentials of a provider have changed.
    pub(crate) fn credentials_changed(&mut self, services: &Services, provider: &ProviderId) {
        self.count_providers(services);
        let model = self.model.as_ref().filter(|model| model.provider == *provider);
        self.footer.subscription = model.map_or(self.footer.subscription, |_| services.auth().is_using_oauth(provider));
        if model.is_none() {
            self.status("/model chooses one of its models");
        }
    }

    /// Returns whether the command line or the settings select fullscreen mode.
    pub(crate) fn wants_fullscreen(&self) -> bool {
        let set = || self.interface.as_ref().and_then(|interface| interface.tui_mode.as_deref());
        self.options.tui_mode.as_deref().or_else(set) == Some("fullscreen")
    }

    /// Called when the screen mode has changed.
    pub(crate) fn mode_changed(&mut self, is_fullscreen: bool) {
        self.transcript.mode_changed(is_fullscreen);
        match is_fullscreen && self.search.is_some() {
            true => self.transcript.search_begin(),
            false => self.close_search(),
        }
        self.output_view_changed(is_fullscreen);
    }

    /// Redraws everything after another program has used the terminal.
    pub(crate) fn repaint(&mut self) {
        self.footer.head = branch::head(&self.options.cwd);
        self.transcript.screen_lost();
    }

    /// Returns the rows left on the screen on exit: how to continue the session.
    pub(crate) fn exit_rows(&self, runtime: &SessionRuntime) -> Vec<Row> {
        let log = runtime.session().log();
        if !log.is_saved() {
            return Vec::new();
        }
        let name = log.name().map(|name| format!("{} · ", one_line(&name)));
        let text = format!("{}continue with: pinch --session {}", name.unwrap_or_default(), log.id());
        vec![Row::styled(text, self.theme.fg(ColorRole::Dim))]
    }

    pub(crate) fn named(&mut self, name: Option<String>) {
        self.footer.session_name = name;
        self.say_name();
    }
}

#[cfg(test)]
mod tests;
