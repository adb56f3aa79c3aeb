//! Lookups that do not need the session, and dialogs made from their results.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use pinch_coding_agent::extension::component::{ComponentChange, ComponentView, ComponentWatcher};
use pinch_coding_agent::extension::{Completion, FoundCommand};
use pinch_coding_agent::releases::{LatestRelease, later_release};
use pinch_coding_agent::session::stats::UsageTotals;
use pinch_coding_agent::session::{SessionControl, SessionView};
use pinch_coding_agent::session_log::SessionLog;
use pinch_coding_agent::store::{ListScope, SessionRef, SessionSummary};
use pinch_stdx::cancel::Cancel;
use pinch_stdx::text::with_causes;

use super::{Console, MadeDialog};
use crate::app::branch::{self, Head};
use crate::app::theme_file::{self, ExaminedTheme};
use crate::dialog::{
    DialogNews, DoctorDialog, ForkDialog, ModelDialog, QueueDialog, ScopedModelDialog, SessionDialog, TerminalReport,
    TreeDialog,
};
use crate::editor::complete::{CompletionQuery, CompletionRequest, PathIndex};
use crate::effect::{DialogName, Effect};
use crate::image::ImageSource;
use crate::tmux::{self, NoticePlace, TmuxKeys};
use crate::transcript::DrawingTicket;

/// How long an extension may take to draw a part of the conversation.
const DRAWING_LIMIT: Duration = Duration::from_secs(1);
/// How long the sum of a session's costs waits.
const SUM_DELAY: Duration = Duration::from_millis(100);
/// Time limit for an extension to complete the arguments of its command.
const ARGUMENTS_LIMIT: Duration = Duration::from_secs(3);
/// Interval at which the branch of the working directory is read. Watching files fails on network mounts.
const HEAD_INTERVAL: Duration = Duration::from_secs(2);

/// The result of a lookup.
pub(super) enum LookupResult {
    Sessions(Result<Vec<SessionSummary>, String>),
    AllSessions(Result<Vec<SessionSummary>, String>),
    Done(Result<String, String>),
    Completions(Box<(CompletionRequest, Vec<Completion>)>),
    Files(Option<Arc<PathIndex>>),
    Image(Result<PathBuf, String>),
    /// An image, and its conversion to PNG.
    Converted(Box<(ImageSource, Option<ImageSource>)>),
    /// A later version of the program.
    Version(Option<LatestRelease>),
    /// What the working directory has checked out.
    Head(Option<Head>),
    /// How tmux passes keys on, and whether a problem of this server is shown for the first time.
    Tmux(TmuxKeys, bool),
    /// A component has changed, or ended.
    Component(u64, ComponentWatcher, Option<ComponentChange>),
    /// The file of the theme in use.
    Theme(ExaminedTheme),
    /// What an extension has drawn of the conversation, or why it has not.
    Drawn(DrawingTicket, Result<Option<Vec<String>>, String>),
    /// The cost of the session, and the number of the sum.
    UsageTotals(u64, UsageTotals),
}

impl Console {
    /// Looks up completions for the editor.
    pub(super) fn complete(&mut self) {
        let Some(request) = self.app.take_completion() else { return };
        let sources = self.app.completion_sources();
        if let CompletionQuery::Argument { command, typed } = &request.query
            && !sources.completes_arguments(command)
            && let Some(found) = self.extension_command(command)
        {
            let typed = typed.clone();
            let work = async move {
                let cancel = request.cancel.clone();
                let answer = tokio::time::timeout(ARGUMENTS_LIMIT, found.command.complete(&typed));
                let completions = tokio::select! {
                    answer = answer => answer.unwrap_or_default(),
                    _ = cancel.cancelled() => Vec::new(),
                };
                LookupResult::Completions(Box::new((request, completions)))
            };
            return self.lookups.push(work.boxed());
        }
        let is_stale = sources.files.as_ref().is_none_or(|files| !files.is_current());
        if matches!(request.query, CompletionQuery::Mention { .. }) && is_stale && !self.indexing {
            self.indexing = true;
            let root = sources.root.clone();
            let build = tokio::task::spawn_blocking(move || PathIndex::build(&root, &Cancel::new()).ok().map(Arc::new));
            self.lookups.push(async move { LookupResult::Files(build.await.ok().flatten()) }.boxed());
        }
        let work = async move { LookupResult::Completions(Box::new(request.look_up(sources).await)) };
        self.lookups.push(work.boxed());
    }

    /// Returns the command of an extension.
    fn extension_command(&self, name: &str) -> Option<FoundCommand> {
        let extensions = self.session.as_ref()?.control.extensions();
        extensions.commands().into_iter().find(|found| found.name == name)
    }

    /// Reads the branch of the working directory after a while; each answer starts the next reading.
    pub(in crate::app) fn follow_head(&mut self) {
        if self.app.is_plain() {
            return;
        }
        let cwd = self.app.cwd().to_owned();
        let work = async move {
            tokio::time::sleep(HEAD_INTERVAL).await;
            let head = tokio::task::spawn_blocking(move || branch::head(&cwd));
            LookupResult::Head(head.await.unwrap_or_default())
        };
        self.lookups.push(work.boxed());
    }

    /// Shows a component of an extension until either side ends it.
    pub(super) fn show_component(&mut self, mut view: ComponentView) {
        let watcher = view.watcher();
        if let Some(id) = self.app.open_component(view) {
            self.watch_component(id, watcher);
        }
    }

    fn watch_component(&mut self, id: u64, mut watcher: ComponentWatcher) {
        let work = async move {
            let change = watcher.next().await;
            LookupResult::Component(id, watcher, change)
        };
        self.lookups.push(work.boxed());
    }

    /// Has extensions draw parts of the conversation.
    pub(super) fn draw_parts(&mut self) {
        for request in self.app.take_drawing_requests() {
            let work = async move {
                let drawing = request.renderer.render(&request.subject, request.room());
                let lines = match tokio::time::timeout(DRAWING_LIMIT, drawing).await {
                    Ok(lines) => lines.map_err(|error| with_causes(&error)),
                    Err(_) => Err(format!("it took longer than {} s", DRAWING_LIMIT.as_secs())),
                };
                LookupResult::Drawn(request.ticket, lines)
            };
            self.lookups.push(work.boxed());
        }
    }

    /// Asks tmux, if the program runs in it, how it passes keys on.
    pub(in crate::app) fn look_at_tmux(&mut self) {
        if self.app.is_plain() || self.host.env().non_empty("TMUX").is_none() {
            return;
        }
        let place = Some(NoticePlace::Conversation);
        let examination = tmux::examine(self.app.agent_dir().to_owned(), self.host.clone(), place);
        let work = async move {
            match examination.await {
                Some((keys, is_first)) => LookupResult::Tmux(keys, is_first),
                None => LookupResult::Done(Ok(String::new())),
            }
        };
        self.lookups.push(work.boxed());
    }

    /// Examines the file of the theme in use after a while; each answer starts the next examination. Does nothing if one is pending.
    pub(super) fn follow_theme(&mut self) {
        let Some(watched) = self.app.watched_theme().filter(|_| !self.following_theme) else { return };
        if self.app.is_plain() {
            return;
        }
        self.following_theme = true;
        let work = theme_file::examine(watched.clone());
        self.lookups.push(async move { LookupResult::Theme(work.await) }.boxed());
    }

    /// Sums up the cost of the opened session. This reads all its entries, so the first frame does not wait for it.
    pub(in crate::app) fn sum_up(&mut self, log: SessionLog) {
        let number = self.app.sum_number();
        let sum = async move {
            // The frame that shows the session comes first.
            tokio::time::sleep(SUM_DELAY).await;
            let sum = tokio::task::spawn_blocking(move || UsageTotals::of(&log));
            LookupResult::UsageTotals(number, sum.await.unwrap_or_default())
        };
        self.lookups.push(sum.boxed());
    }

    /// Checks for a later version, if the settings name a server to ask.
    pub(in crate::app) fn look_for_version(&mut self) {
        let Some(url) = self.app.version_check() else { return };
        let (host, now) = (self.host.clone(), self.app.version().to_owned());
        let work = async move { LookupResult::Version(later_release(&url, &now, &host).await) };
        self.lookups.push(work.boxed());
    }

    /// Stores a submission for later sessions of the project.
    pub(super) fn remember(&mut self, text: String) {
        let Some(history) = self.app.prompt_history() else { return };
        let now_ms = self.host.now_ms();
        // A separate task completes even if the program exits right away.
        let kept = tokio::task::spawn_blocking(move || history.append(&text, now_ms));
        let work = async move {
            let failure = kept.await.ok().and_then(Result::err);
            let told = failure.map(|error| format!("Cannot write the prompt history: {error}"));
            LookupResult::Done(told.map_or(Ok(String::new()), Err))
        };
        self.lookups.push(work.boxed());
    }

    pub(in crate::app) fn list_sessions(&mut self, all: bool) {
        let Some(session) = &self.session else { return };
        let store = Arc::clone(&session.store);
        let scope = match all {
            true => ListScope::All,
            false => ListScope::Cwd(session.services.cwd().to_string_lossy().into_owned()),
        };
        let work = async move {
            let listed = store.list(scope).await.map_err(|error| with_causes(&error));
            if all { LookupResult::AllSessions(listed) } else { LookupResult::Sessions(listed) }
        };
        self.lookups.push(work.boxed());
    }

    pub(super) fn delete_session(&mut self, path: PathBuf) {
        let Some(session) = &self.session else { return };
        let store = Arc::clone(&session.store);
        let work = async move {
            let at = SessionRef::Path(path);
            LookupResult::Done(store.remove(&at).await.map(|()| String::new()).map_err(|error| with_causes(&error)))
        };
        self.lookups.push(work.boxed());
    }

    /// Handles the result of a lookup. Returns whether the interface may have changed.
    pub(super) async fn found(&mut self, found: LookupResult) -> bool {
        match found {
            LookupResult::Head(head) => {
                self.follow_head();
                return self.app.set_head(head);
            }
            LookupResult::Component(id, watcher, Some(change)) => {
                self.watch_component(id, watcher);
                match change {
                    ComponentChange::Drawn => self.app.component_drawn(id),
                    ComponentChange::Action(action) => {
                        let effects = self.app.component_acted(id, action, self.front.size(), self.host.now_ms());
                        for effect in effects {
                            self.perform(effect).await;
                        }
                        self.complete();
                    }
                }
            }
            LookupResult::Component(id, _, None) => self.app.close_component(id),
            LookupResult::Tmux(TmuxKeys::Extended, _) => {
                let done = self.front.request_modified_keys();
                self.check(done);
            }
            LookupResult::Tmux(keys, is_first) => self.app.set_tmux_keys(keys, is_first),
            LookupResult::Drawn(ticket, lines) => self.app.drawn(&ticket, lines),
            LookupResult::Theme(examined) => {
                self.following_theme = false;
                let has_changed = self.app.theme_examined(examined);
                self.follow_theme();
                return has_changed;
            }
            LookupResult::Sessions(Ok(sessions)) => {
                let current = self.app.session_path();
                let dialog = SessionDialog::new(sessions, current);
                let is_first = std::mem::take(&mut self.choose_first);
                self.app.open(Box::new(if is_first { dialog.or_exit() } else { dialog }));
            }
            LookupResult::AllSessions(Ok(sessions)) => self.app.tell_dialog(DialogNews::Sessions(sessions)),
            LookupResult::Done(Ok(text)) => {
                if !text.is_empty() {
                    self.app.status(&text);
                }
            }
            LookupResult::Completions(answer) => self.app.offer(&answer.0, answer.1),
            LookupResult::Files(files) => {
                self.indexing = false;
                if let Some(files) = files {
                    self.app.set_files(files);
                    self.complete();
                }
            }
            LookupResult::Image(Ok(path)) => self.app.insert_image(&path),
            LookupResult::Image(Err(why)) => self.app.status(&why),
            LookupResult::Converted(converted) => self.app.converted(&converted.0, converted.1),
            LookupResult::Version(release) => {
                if let Some(release) = release {
                    self.app.later_version(&release);
                }
            }
            LookupResult::UsageTotals(number, spent) => self.app.summed(number, &spent),
            LookupResult::Sessions(Err(why)) | LookupResult::AllSessions(Err(why)) | LookupResult::Done(Err(why)) => {
                self.app.error(&why);
            }
        }
        true
    }

    pub(super) fn open(&mut self, name: DialogName) {
        let Some(session) = self.session.clone() else {
            return self.app.status("The session is still being loaded");
        };
        match name {
            DialogName::Models { search } => {
                let all = session.services.available_models();
                if let Some(model) = self.app.exact_model(&search, &all) {
                    return self.postponed.push_back(Effect::SetModel { model, save: false });
                }
                let problem = session.services.models().error();
                let Some(current) = self.app.model().cloned() else { return };
                self.app.open(Box::new(ModelDialog::new(all, self.app.scope(), current, &search, problem)));
            }
            DialogName::ScopedModels => {
                let all = session.services.available_models();
                let enabled = self.app.scope_names();
                self.app.open(Box::new(ScopedModelDialog::new(&all, enabled)));
            }
            DialogName::Sessions => self.list_sessions(false),
            DialogName::Settings => self.app.open_settings(&session.services),
            DialogName::Themes => self.app.open_themes(&session.services),
            DialogName::Thinking => self.app.open_thinking(),
            DialogName::Tree { at } => {
                let (filter, height, asks) = self.app.tree_options(self.front.size(), &session.services);
                let host = self.host.clone();
                self.with_view(&session.control, move |view| {
                    let dialog = TreeDialog::new(view.log, filter, height, asks, host);
                    Box::new(match at {
                        Some(entry) => dialog.at(&entry),
                        None => dialog,
                    })
                });
            }
            DialogName::Trust => self.app.open_trust(&session.services),
            DialogName::Queue => {
                let waiting = self.app.all_waiting(&session.control);
                if waiting.is_empty() {
                    return self.app.status("There are no queued messages");
                }
                self.app.open(Box::new(QueueDialog::new(waiting)));
            }
            DialogName::Doctor => {
                let mut terminal = self.front.capabilities().clone();
                terminal.keyboard = self.front.reports_modifiers();
                let report = TerminalReport::new(&terminal, self.host.env(), self.app.tmux_problem());
                self.app.open(Box::new(DoctorDialog::new(report)));
            }
            // The driver opens these.
            DialogName::Login | DialogName::Logout => {}
            DialogName::Fork => self.with_view(&session.control, |view| Box::new(ForkDialog::new(view.fork_points()))),
        }
    }

    /// Opens a dialog created from the session, as soon as the session is accessible.
    fn with_view(
        &mut self,
        control: &SessionControl,
        make: impl FnOnce(&SessionView<'_>) -> MadeDialog + Send + 'static,
    ) {
        let dialogs = self.dialogs.0.clone();
        control.observe(move |view| drop(dialogs.try_send(make(view))));
    }
}
