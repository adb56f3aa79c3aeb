//! The user's side of the interactive mode: the terminal, the state of the interface, and work that does not need the session.
//! [`super::driver`] owns the session, and lends it to a run while the console continues.

mod handover;
mod lookups;
mod debug_log;
mod attachments;
mod queues;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use pinch_agent_core::queue::{QueueKind, QueueMode};
use pinch_agent_core::tool::ToolError;
use pinch_coding_agent::entry::EntryBody;
use pinch_coding_agent::extension::payloads::UserBashAction;
use pinch_coding_agent::extension::ui::{Dialog as Question, UiUpdate};
use pinch_coding_agent::services::Services;
use pinch_coding_agent::session::{Change, SessionControl, models};
use pinch_coding_agent::store::SessionStore;
use pinch_coding_agent::tools::bash::{BashTool, UserCommand};
use pinch_llm::model::thinking;
use pinch_stdx::cancel::{Cancel, CancelReason};
use pinch_stdx::host::Host;
use tokio::sync::{mpsc, oneshot};

use self::lookups::LookupResult;
use super::bridge::{SharedScreen, UiRequest};
use super::state::{App, SessionActivity};
use crate::dialog::{DialogNews, DialogView};
use crate::effect::{DialogAnswer, DialogName, Effect};
use crate::front::{Front, FrontEvent};
use crate::terminal::TerminalInput;

/// Maximum number of queued output chunks of user commands.
const MAX_OUTPUT: usize = 256;

/// A dialog created from the session.
type MadeDialog = Box<dyn DialogView + Send>;

/// A user command that has ended.
pub(super) struct EndedBash {
    pub(super) command: String,
    pub(super) exclude: bool,
    pub(super) end: Result<UserCommand, ToolError>,
}

/// An event for the console.
pub(super) enum ConsoleEvent {
    Front(FrontEvent),
    Ui(UiRequest),
    Output(String),
    Bash(Box<EndedBash>),
    LookupResult(FoundEvent),
    DialogView(MadeDialog),
}

/// The result of a lookup.
pub(super) struct FoundEvent(LookupResult);

/// Handles for reaching a session while it is borrowed.
#[derive(Clone)]
pub(super) struct SessionHandles {
    pub(super) services: Arc<Services>,
    pub(super) control: SessionControl,
    pub(super) store: Arc<dyn SessionStore>,
    pub(super) shell: Arc<BashTool>,
}

/// The user's side.
pub(super) struct Console {
    pub(super) front: Front,
    pub(super) app: App,
    pub(super) host: Host,
    requests: mpsc::Receiver<UiRequest>,
    screen: SharedScreen,
    pub(super) session: Option<SessionHandles>,
    bash: FuturesUnordered<BoxFuture<'static, EndedBash>>,
    bash_cancel: Cancel,
    output: (mpsc::Sender<String>, mpsc::Receiver<String>),
    lookups: FuturesUnordered<BoxFuture<'static, LookupResult>>,
    dialogs: (mpsc::Sender<MadeDialog>, mpsc::Receiver<MadeDialog>),
    /// Effects that wait until the session is idle.
    pub(super) postponed: VecDeque<Effect>,
    /// Commands that ended while the session could not be changed.
    pub(super) finished_bash: Vec<EndedBash>,
    /// Whether the next session list is the first thing the user sees.
    pub(super) choose_first: bool,
    /// Whether the files of the working directory are being listed.
    indexing: bool,
    /// Whether the file of the theme in use is being examined.
    following_theme: bool,
    /// Cancels the current work.
    pub(super) work: Option<Cancel>,
    /// Whether the program should exit.
    pub(super) exiting: bool,
    /// Whether the terminal is gone.
    pub(super) gone: bool,
}

/// Applies a setting to the open session, if it concerns the session.
fn apply_to_session(control: &SessionControl, key: &str, value: &serde_json::Value) {
    let mode = || if value == "all" { QueueMode::All } else { QueueMode::OneAtATime };
    match key {
        "compaction.enabled" => control.set_auto_compaction(value.as_bool().unwrap_or(true)),
        "steeringMode" => control.set_queue_mode(QueueKind::Steering, mode()),
        "followUpMode" => control.set_queue_mode(QueueKind::FollowUp, mode()),
        _ => {}
    }
}

impl Console {
    pub(super) fn new(
        front: Front,
        app: App,
        host: Host,
        (requests, screen): (mpsc::Receiver<UiRequest>, SharedScreen),
    ) -> Self {
        Self {
            front,
            app,
            host,
            requests,
            screen,
            session: None,
            bash: FuturesUnordered::new(),
            bash_cancel: Cancel::new(),
            output: mpsc::channel(MAX_OUTPUT),
            lookups: FuturesUnordered::new(),
            dialogs: mpsc::channel(4),
            postponed: VecDeque::new(),
            finished_bash: Vec::new(),
            choose_first: false,
            indexing: false,
            following_theme: false,
            work: None,
            exiting: false,
            gone: false,
        }
    }

    /// Waits for the next event. Cancel-safe: dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> ConsoleEvent {
        let animates = self.app.animation(self.host.now_ms());
        tokio::select! {
            event = self.front.next(animates) => ConsoleEvent::Front(event),
            Some(request) = self.requests.recv() => ConsoleEvent::Ui(request),
            Some(text) = self.output.1.recv() => ConsoleEvent::Output(text),
            Some(finished) = self.bash.next(), if !self.bash.is_empty() => ConsoleEvent::Bash(Box::new(finished)),
            Some(found) = self.lookups.next(), if !self.lookups.is_empty() => ConsoleEvent::LookupResult(FoundEvent(found)),
            Some(dialog) = self.dialogs.1.recv() => ConsoleEvent::DialogView(dialog),
        }
    }

    /// Handles an event. Resulting effects that need the session are added to `postponed`.
    pub(super) fn handle(&mut self, event: ConsoleEvent) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            match event {
                ConsoleEvent::Front(FrontEvent::ScreenFrame) => return self.draw(),
                ConsoleEvent::Front(FrontEvent::TerminalInput(input)) => {
                    let inputs = self.front.burst(input);
                    self.inputs(inputs).await;
                }
                ConsoleEvent::Ui(UiRequest::Ask { question, reply }) => {
                    self.app.ask(&question, reply, self.host.now_ms());
                }
                ConsoleEvent::Ui(UiRequest::Show(UiUpdate::Theme(name))) => self.set_theme(name, true).await,
                ConsoleEvent::Ui(UiRequest::Show(update)) => self.app.show(update),
                ConsoleEvent::Ui(UiRequest::Component(view)) => self.show_component(view),
                ConsoleEvent::Output(text) => self.app.bash_output(&text),
                ConsoleEvent::Bash(finished) => {
                    self.drain_output();
                    self.app.bash_finished(&finished.end);
                    self.finished_bash.push(*finished);
                }
                ConsoleEvent::LookupResult(FoundEvent(found)) => {
                    if !self.found(found).await {
                        return;
                    }
                }
                ConsoleEvent::DialogView(dialog) => self.app.open(dialog),
            }
            self.tell_screen();
            self.front.mark();
        })
    }

    /// Makes what is on the screen known to extensions.
    fn tell_screen(&mut self) {
        if let Some(snapshot) = self.app.take_snapshot() {
            self.screen.set(snapshot);
        }
    }

    fn drain_output(&mut self) {
        while let Ok(text) = self.output.1.try_recv() {
            self.app.bash_output(&text);
        }
    }

    /// Draws a frame now.
    pub(super) fn draw(&mut self) {
        if self.front.is_blocked() || self.gone {
            return;
        }
        self.tell_screen();
        self.app.close_stale_questions();
        let (size, is_fullscreen) = (self.front.size(), self.front.is_fullscreen());
        self.app.set_screen(size, self.front.cell_size());
        let frame = self.app.view(size, is_fullscreen, self.host.now_ms());
        let mut drawn = self.front.draw(&frame, self.host.now_ms());
        self.convert_images();
        self.draw_parts();
        self.follow_theme();
        if let Some(bytes) = self.app.take_notification(self.front.capabilities().notification) {
            drawn = drawn.and_then(|()| self.front.write(&bytes));
        }
        self.check(drawn);
    }

    /// Switches between regular and fullscreen mode.
    pub(super) fn set_fullscreen(&mut self, on: bool) {
        if self.app.is_plain() {
            return;
        }
        let done = self.front.set_fullscreen(on);
        self.app.mode_changed(on);
        self.check(done);
    }

    /// Treats a terminal that cannot be written to as gone.
    pub(super) fn check(&mut self, done: io::Result<()>) {
        if done.is_err() {
            self.hang_up();
        }
    }

    fn hang_up(&mut self) {
        self.gone = true;
        self.exiting = true;
        self.stop(CancelReason::Shutdown);
        self.bash_cancel.cancel(CancelReason::Shutdown);
    }

    fn stop(&self, why: CancelReason) {
        if let Some(work) = &self.work {
            work.cancel(why);
        }
    }

    async fn inputs(&mut self, inputs: Vec<TerminalInput>) {
        for input in inputs {
            if input == TerminalInput::Closed {
                return self.hang_up();
            }
            if let TerminalInput::Report(report) = &input {
                self.app.learn(report, self.front.capabilities());
                continue;
            }
            let effects = self.app.input(&input, self.front.size(), self.host.now_ms());
            self.tell_screen();
            for effect in effects {
                self.perform(effect).await;
            }
            self.complete();
        }
    }

    /// Returns whether a user command is running.
    pub(super) fn runs_bash(&self) -> bool {
        !self.bash.is_empty()
    }

    /// Returns whether the session is busy.
    fn is_busy(&self) -> bool {
        self.work.is_some()
    }

    /// Carries out an effect if the handles of the session suffice; otherwise postpones it.
    pub(super) async fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Exit => {
                self.exiting = true;
                self.stop(CancelReason::User);
                self.bash_cancel.cancel(CancelReason::User);
            }
            Effect::Suspend => self.suspend(),
            Effect::Redraw => self.front.invalidate(),
            Effect::ExternalEditor => self.edit_externally(),
            Effect::ToggleFullscreen => {
                let on = !self.front.is_fullscreen();
                self.set_fullscreen(on);
            }
            Effect::ShowTranscript if self.front.is_fullscreen() => {
                self.app.status("The whole conversation is above; page up scrolls");
            }
            Effect::ShowTranscript => self.set_fullscreen(true),
            Effect::WriteDebugLog => self.write_debug_log(),
            Effect::Abort => self.abort(),
            Effect::Dequeue => self.dequeue(),
            Effect::Unqueue { message, edit } => self.unqueue(&message, edit),
            Effect::Shortcut(key) => self.run_shortcut(key),
            Effect::Remember(text) => self.remember(text),
            Effect::DialogAnswer(answer) => self.app.answer(answer),
            Effect::Bash { .. } if self.session.is_none() => self.postponed.push_back(effect),
            Effect::Bash { command, exclude } => self.run_bash(command, exclude),
            Effect::Copy => self.copy().await,
            Effect::CopyText(text) => self.copy_selected(&text).await,
            Effect::Mouse(on) => self.set_mouse(on),
            Effect::PasteImage => self.paste_image(),
            Effect::InsertImage { path, pasted } => self.insert_file(path, &pasted).await,
            Effect::Set { key, value } => self.set(key, value).await,
            Effect::Theme { name, save } => self.set_theme(name, save).await,
            Effect::SetScope { models, save } => self.set_scope(models, save).await,
            Effect::ListAllSessions => self.list_sessions(true),
            Effect::DeleteSession(path) => self.delete_session(path),
            Effect::Login(_) if self.session.is_none() => self.postponed.push_back(effect),
            Effect::Open(name) if !matches!(name, DialogName::Login | DialogName::Logout) => self.open(name),
            effect if self.is_busy() => self.perform_busy(effect).await,
            effect => self.postponed.push_back(effect),
        }
    }

    /// Carries out an effect while the session is busy, as far as possible.
    async fn perform_busy(&mut self, effect: Effect) {
        let Some(session) = self.session.clone() else { return self.postponed.push_back(effect) };
        let control = &session.control;
        match effect {
            Effect::Submit(message) => self.queue(control, QueueKind::Steering, message).await,
            Effect::FollowUp(message) => self.queue(control, QueueKind::FollowUp, message).await,
            Effect::SetModel { model, save } => {
                self.app.say_model(&model, None);
                if save {
                    self.save_model(&session, &model).await;
                }
                control.change(Change::Model(model));
            }
            Effect::SetThinking { level, save } => {
                control.change(Change::Thinking(level));
                if save {
                    self.set("defaultThinkingLevel", level.as_str().into()).await;
                }
            }
            Effect::CycleThinking => {
                let changed = control.clone();
                control.observe(move |view| {
                    if let Some(level) = models::next_level(view.model, view.thinking) {
                        changed.change(Change::Thinking(level));
                    }
                });
            }
            Effect::CycleModel(direction) => {
                let scope = self.app.models_to_cycle(&session.services);
                let Some(next) = self.app.model().and_then(|model| models::next_of(&scope, model, direction)) else {
                    return self.app.status("Only one model is available");
                };
                control.change(Change::Model(Arc::clone(&next.model)));
                if let Some(level) = next.thinking {
                    control.change(Change::Thinking(level));
                }
                let level = thinking::clamp(&next.model, next.thinking.unwrap_or(self.app.thinking()));
                self.app.say_model(&next.model, Some(level));
            }
            Effect::Name(Some(name)) => control.change(Change::Name(name)),
            Effect::Name(None) => self.app.say_name(),
            Effect::Label { target, label } => {
                control.change(Change::Entry(EntryBody::Label { target_id: target.clone(), label: label.clone() }));
                self.app.tell_dialog(DialogNews::Label { target, label });
            }
            Effect::Reload | Effect::Trust(_) => {
                self.app.warning("Wait for the answer to finish before reloading");
            }
            // These end the current work.
            effect @ (Effect::NewSession
            | Effect::SwitchSession(_)
            | Effect::Fork(_)
            | Effect::Clone
            | Effect::Navigate { .. }
            | Effect::Import(_)
            | Effect::Compact(_)) => {
                self.stop(CancelReason::Superseded);
                self.postponed.push_back(effect);
            }
            effect => self.postponed.push_back(effect),
        }
    }

    fn abort(&mut self) {
        match self.app.activity() {
            SessionActivity::Retrying => {
                if let Some(session) = &self.session {
                    session.control.cancel_retry();
                }
            }
            SessionActivity::Working => {
                let waits = self.session.as_ref().is_some_and(|session| session.control.n_waiting() > 0);
                if waits {
                    self.dequeue();
                }
                self.stop(CancelReason::User);
                self.app.aborting();
            }
            SessionActivity::Compacting | SessionActivity::Summarising => self.stop(CancelReason::User),
            SessionActivity::Idle => {
                self.bash_cancel.cancel(CancelReason::User);
                self.bash_cancel = Cancel::new();
            }
        }
    }

    fn run_bash(&mut self, command: String, exclude: bool) {
        let Some(session) = &self.session else { return };
        if !self.bash.is_empty() {
            self.app.warning("A command is running; wait for it to finish, or cancel it");
            self.app.restore(vec![format!("{}{command}", if exclude { "!!" } else { "!" })]);
            return;
        }
        self.app.bash_started(&command, exclude);
        let (control, shell) = (session.control.clone(), Arc::clone(&session.shell));
        let (output, cancel) = (self.output.0.clone(), self.bash_cancel.clone());
        let work = async move {
            // The screen shows the end of the output, so chunks that arrive too fast may be dropped.
            let mut show = |text: &str| drop(output.try_send(text.to_owned()));
            let end = match control.before_bash(&command, exclude).await {
                UserBashAction::Run => shell.run_for_user(&command, &mut show, &cancel).await,
                UserBashAction::RunOn(machine) => shell.on(machine).run_for_user(&command, &mut show, &cancel).await,
                UserBashAction::Instead(ran) => Ok(ran),
                UserBashAction::Block { reason } => Err(ToolError::new(reason)),
                _ => Err(ToolError::new("an extension made an unsupported request")),
            };
            EndedBash { command, exclude, end }
        };
        self.bash.push(work.boxed());
    }

    async fn set(&mut self, key: &str, value: serde_json::Value) {
        let Some(session) = self.session.clone() else { return };
        let settings = session.services.settings();
        apply_to_session(&session.control, key, &value);
        if let Err(error) = settings.set(key, value) {
            return self.app.tell_dialog(DialogNews::Problem(error.to_string()));
        }
        if let Err(why) = session.services.write_settings().await {
            self.app.tell_dialog(DialogNews::Problem(format!("set for this run only: {why}")));
        }
        self.app.settings_changed(&session.services, Some(&session.control));
        if key == "tuiMode" {
            let on = self.app.wants_fullscreen();
            self.set_fullscreen(on);
        }
    }

    async fn set_theme(&mut self, name: String, save: bool) {
        let Some(session) = self.session.clone() else { return };
        if !self.app.use_theme(&name, &session.services) {
            return self.app.warning(&format!("There is no theme {name:?}; /theme lists them"));
        }
        if save {
            self.set("theme", name.into()).await;
        }
    }

    async fn set_scope(&mut self, patterns: Vec<String>, save: bool) {
        let Some(session) = self.session.clone() else { return };
        self.app.set_scope(&patterns, &session.services);
        if save {
            let value = if patterns.is_empty() { serde_json::Value::Null } else { patterns.into() };
            self.set("enabledModels", value).await;
        }
    }

    pub(super) async fn save_model(&mut self, session: &SessionHandles, model: &pinch_llm::model::Model) {
        let settings = session.services.settings();
        let set = settings
            .set("defaultProvider", model.provider.as_str().into())
            .and_then(|()| settings.set("defaultModel", model.id.as_str().into()));
        let saved = match set {
            Ok(()) => session.services.write_settings().await,
            Err(error) => Err(error.to_string()),
        };
        if let Err(why) = saved {
            self.app.error(&format!("The default model cannot be saved: {why}"));
        }
    }

    /// Waits for a future while handling the user's input. Effects that need the session are postponed.
    pub(super) async fn during<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                event = self.next() => self.handle(event).await,
            }
        }
    }

    /// Asks a question while handling events; `None`: dismissed, or the program should exit.
    pub(super) async fn ask(&mut self, question: &Question, stop: &Cancel) -> Option<String> {
        let (reply, mut answer) = oneshot::channel();
        self.app.ask(question, reply, self.host.now_ms());
        self.front.mark();
        while !self.exiting {
            tokio::select! {
                biased;
                answer = &mut answer => match answer {
                    Ok(DialogAnswer::Text(text)) => return Some(text),
                    _ => return None,
                },
                event = self.next() => self.handle(event).await,
                _ = stop.cancelled() => self.exiting = true,
            }
        }
        None
    }

    /// Waits until the user's commands, already stopped, have ended.
    pub(super) async fn settle(&mut self) {
        let ended = async { while self.bash.next().await.is_some() {} };
        // Dropping the futures kills the processes.
        drop(tokio::time::timeout(Duration::from_secs(3), ended).await);
    }
}
