//! The loop of the interactive mode: it owns the session, lends it to runs, and between runs does what needs exclusive access to it.

mod resuming;
mod start;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use pinch_agent_core::queue::QueueKind;
use pinch_coding_agent::compaction::CompactError;
use pinch_coding_agent::entry::EntryId;
use pinch_coding_agent::event::SessionEvent;
use pinch_coding_agent::export::{html, page_theme};
use pinch_coding_agent::extension::InputSource;
use pinch_coding_agent::runtime::SessionRuntime;
use pinch_coding_agent::session::{
    AgentSession, CompactRequest, ForkAt, HostRequest, NavigateError, Navigation, Prompt, SessionError, SessionRun,
};
use pinch_coding_agent::session::{CycleDirection, ForkError};
use pinch_llm::thinking::ThinkingLevel;
use pinch_stdx::cancel::Cancel;
use pinch_stdx::text::with_causes;
use tokio::sync::mpsc;

use super::console::{Console, EndedBash, SessionHandles};
use super::shared_page;
use super::state::SessionActivity;
use crate::dialog::DialogNews;
use crate::effect::{DialogName, Effect, SubmittedMessage};

/// Maximum number of queued events of a compaction or a summary.
const MAX_EVENTS: usize = 256;

/// The session and the console.
pub(super) struct Driver {
    pub(super) console: Console,
    runtime: SessionRuntime,
    /// Submissions made before the session was open. Each waits until the preceding command has ended.
    early: VecDeque<Effect>,
    /// Cancels everything.
    stop: Cancel,
}

impl Driver {
    pub(super) fn new(mut console: Console, runtime: SessionRuntime, stop: Cancel) -> Self {
        console.session = Some(handles(&runtime));
        console.app.session_opened(&runtime);
        console.sum_up(runtime.session().log().snapshot());
        console.remove_old_pastes();
        console.follow_head();
        let early = std::mem::take(&mut console.postponed);
        Self { console, runtime, early, stop }
    }

    /// Runs until the user exits: first these prompts, then the user's input. Returns the session, which the caller must close.
    pub(super) fn run(mut self, prompts: Vec<Prompt>) -> BoxFuture<'static, (Console, SessionRuntime)> {
        Box::pin(async move {
            let mut prompts: VecDeque<Prompt> = prompts.into();
            while !self.console.exiting {
                self.catch_up().await;
                if let Some(prompt) = prompts.pop_front() {
                    self.prompt(prompt).await;
                    continue;
                }
                if let Some(effect) = self.next_effect() {
                    self.perform(effect).await;
                    self.console.front.mark();
                    continue;
                }
                let control = self.runtime.session().control();
                tokio::select! {
                    biased;
                    event = self.console.next() => self.console.handle(event).await,
                    () = control.has_requests() => self.run_requests().await,
                    _ = self.stop.cancelled() => self.console.exiting = true,
                }
                match control.take_host_request() {
                    Some(HostRequest::Shutdown) => self.console.exiting = true,
                    Some(HostRequest::Reload) => self.reload().await,
                    _ => {}
                }
            }
            self.console.settle().await;
            (self.console, self.runtime)
        })
    }

    fn session(&mut self) -> &mut AgentSession {
        self.runtime.session_mut()
    }

    /// Applies what happened while the session was busy.
    async fn catch_up(&mut self) {
        self.runtime.session().notify_observers();
        for finished in std::mem::take(&mut self.console.finished_bash) {
            self.record_bash(finished).await;
        }
        for note in self.runtime.take_notes() {
            self.console.app.warning(&note);
            self.console.front.mark();
        }
    }

    async fn record_bash(&mut self, finished: EndedBash) {
        let EndedBash { command, exclude, end } = finished;
        let Ok(done) = end else { return };
        let record = done.into_record(&command, exclude, self.console.host.now_ms());
        if let Err(error) = self.session().record_bash(record).await {
            self.console.app.error(&with_causes(&error));
        }
    }

    /// Sends a prompt and runs it to its end.
    async fn prompt(&mut self, mut prompt: Prompt) {
        let cancel = self.stop.child();
        prompt.cancel = cancel.clone();
        self.console.work = Some(cancel);
        let run = self.runtime.session_mut().prompt(prompt);
        pull(&mut self.console, run).await;
        self.after_run().await;
    }

    /// Carries out requests of extensions.
    async fn run_requests(&mut self) {
        let cancel = self.stop.child();
        self.console.work = Some(cancel.clone());
        let run = self.runtime.session_mut().run_requests(&cancel);
        pull(&mut self.console, run).await;
        self.after_run().await;
    }

    async fn after_run(&mut self) {
        self.console.work = None;
        self.console.app.run_ended(self.runtime.session());
        self.catch_up().await;
        self.console.front.mark();
    }

    /// Carries out an effect that needs the idle session.
    async fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Submit(message) | Effect::FollowUp(message) => self.submit(message).await,
            Effect::CycleModel(direction) => self.cycle_model(direction).await,
            Effect::SetModel { model, save } => {
                let set = self.runtime.session_mut().set_model(Arc::clone(&model));
                let set = self.console.during(set).await;
                match set {
                    Ok(()) => {
                        let level = self.runtime.session().thinking();
                        self.console.app.say_model(&model, None);
                        self.console.app.model_changed(&model, level);
                        if save && let Some(session) = self.console.session.clone() {
                            self.console.save_model(&session, &model).await;
                        }
                    }
                    Err(error) => self.console.app.error(&with_causes(&error)),
                }
            }
            Effect::CycleThinking => {
                let done = self.runtime.session_mut().cycle_thinking().await;
                self.level_changed(done);
            }
            Effect::SetThinking { level, save } => {
                let done = self.runtime.session_mut().set_thinking(level).await;
                self.level_changed(done.map(Some));
                if save {
                    let value = level.as_str().into();
                    self.console.perform(Effect::Set { key: "defaultThinkingLevel", value }).await;
                }
            }
            Effect::NewSession => {
                let done = self.runtime.new_session(None);
                let done = self.console.during(done).await;
                self.replaced(done.map(|()| None).map_err(ForkError::Session), "New session started");
            }
            Effect::SwitchSession(path) => self.switch(path).await,
            Effect::RenameSession { path, name } => self.rename(path, name).await,
            Effect::Fork(entry) => self.fork(&entry, ForkAt::Before, "Forked into a new session").await,
            Effect::Clone => match self.runtime.session().log().leaf_id().cloned() {
                Some(leaf) => self.fork(&leaf, ForkAt::Entry, "Continuing in a copy of the session").await,
                None => self.console.app.warning("There is nothing to copy yet"),
            },
            Effect::Navigate { target, summarise, focus } => self.navigate(target, summarise, focus).await,
            Effect::Label { target, label } => {
                match self.session().log_mut().append_label(&target, label.as_deref()).await {
                    Ok(_) => self.console.app.tell_dialog(DialogNews::Label { target, label }),
                    Err(error) => self.console.app.tell_dialog(DialogNews::Problem(with_causes(&error))),
                }
            }
            Effect::Compact(focus) => self.compact(focus).await,
            Effect::Reload => self.reload().await,
            Effect::Trust(trusted) => match self.runtime.remember_trust(trusted) {
                Ok(()) => self.reload().await,
                Err(error) => self.console.app.error(&with_causes(&error)),
            },
            Effect::Export(path) => self.export(path).await,
            Effect::ShareAsFile(path) => self.share_as_file(path).await,
            Effect::Import(path) => self.import(&path).await,
            Effect::Name(Some(name)) => match self.session().set_name(&name).await {
                Ok(()) => {
                    let name = self.session().log().name();
                    self.console.app.named(name);
                }
                Err(error) => self.console.app.error(&with_causes(&error)),
            },
            Effect::Name(None) => self.console.app.say_name(),
            Effect::ShowSession => {
                let stats = self.runtime.session().stats();
                let name = self.runtime.session().log().name();
                self.console.app.show_stats(&stats, name.as_deref());
            }
            Effect::Login(provider) => {
                let services = Arc::clone(self.runtime.services());
                // The dialog has shown the outcome.
                let _worked = super::login::log_in(&mut self.console, &services, &provider, &self.stop).await;
            }
            Effect::Logout(provider) => {
                let services = Arc::clone(self.runtime.services());
                super::login::log_out(&mut self.console, &services, &provider).await;
            }
            Effect::Open(name @ (DialogName::Login | DialogName::Logout)) => {
                let services = Arc::clone(self.runtime.services());
                super::login::choose(&mut self.console, &services, name == DialogName::Logout).await;
            }
            // Effects that the console handles alone.
            other => self.console.perform(other).await,
        }
    }

    async fn submit(&mut self, message: SubmittedMessage) {
        let images = self.console.read_images(&message.images).await;
        self.prompt(Prompt { text: message.text, images, source: InputSource::Interactive, ..Prompt::default() }).await;
    }

    async fn cycle_model(&mut self, direction: CycleDirection) {
        let scope = self.console.app.models_to_cycle(self.runtime.services());
        let done = self.runtime.session_mut().cycle_model(&scope, direction);
        match self.console.during(done).await {
            Ok(Some(next)) => {
                let level = self.runtime.session().thinking();
                self.console.app.say_model(&next.model, Some(level));
                self.console.app.model_changed(&next.model, level);
            }
            Ok(None) => self.console.app.status("Only one model is available"),
            Err(error) => self.console.app.error(&with_causes(&error)),
        }
    }

    fn level_changed(&mut self, done: Result<Option<ThinkingLevel>, SessionError>) {
        match done {
            Ok(Some(level)) => {
                let model = Arc::clone(self.runtime.session().model());
                self.console.app.model_changed(&model, level);
                self.console.app.status(&format!("Thinking level: {}", level.as_str()));
            }
            Ok(None) => self.console.app.status("The model has no thinking levels"),
            Err(error) => self.console.app.error(&with_causes(&error)),
        }
    }

    /// Updates the interface after the session may have been replaced.
    fn replaced(&mut self, done: Result<Option<String>, ForkError>, status: &str) {
        match done {
            Ok(text) => {
                self.console.session = Some(handles(&self.runtime));
                self.console.app.session_opened(&self.runtime);
                self.console.sum_up(self.runtime.session().log().snapshot());
                self.console.app.status(status);
                if let Some(text) = text.filter(|_| self.console.app.editor_text().is_empty()) {
                    self.console.app.set_editor_text(&text);
                }
            }
            Err(ForkError::Session(SessionError::SwitchCancelled)) => {
                self.console.app.status("An extension keeps this session open");
            }
            Err(error) => self.console.app.error(&with_causes(&error)),
        }
    }

    async fn fork(&mut self, entry: &EntryId, place: ForkAt, status: &str) {
        let done = self.runtime.fork(entry, place);
        let done = self.console.during(done).await;
        self.replaced(done, status);
    }

    async fn navigate(&mut self, target: EntryId, summarise: bool, focus: Option<String>) {
        let cancel = self.stop.child();
        let to = Navigation { summarise, focus, cancel: cancel.clone(), ..Navigation::to(target.clone()) };
        self.console.work = Some(cancel);
        if summarise {
            self.console.app.begin(SessionActivity::Summarising, self.console.host.now_ms());
        }
        let (events, mut incoming) = mpsc::channel(MAX_EVENTS);
        let emit = move |event| drop(events.try_send(event));
        let work = self.runtime.session_mut().navigate(to, &emit);
        let done = with_events(&mut self.console, &mut incoming, work).await;
        self.console.work = None;
        self.console.app.begin(SessionActivity::Idle, self.console.host.now_ms());
        match done {
            Ok(moved) if moved.aborted => {
                self.console.app.status("The summary was cancelled");
                self.console.perform(Effect::Open(DialogName::Tree { at: Some(target) })).await;
            }
            Ok(moved) if moved.cancelled => self.console.app.status("An extension keeps the session at this point"),
            Ok(moved) => {
                self.console.app.session_moved(&self.runtime);
                self.console.sum_up(self.runtime.session().log().snapshot());
                if let Some(text) = moved.editor_text.filter(|_| self.console.app.editor_text().is_empty()) {
                    self.console.app.set_editor_text(&text);
                }
                self.console.app.status("Moved to the chosen point");
            }
            Err(NavigateError::Session(error)) => self.console.app.error(&with_causes(&error)),
            Err(error) => self.console.app.error(&with_causes(&error)),
        }
    }

    async fn compact(&mut self, focus: Option<String>) {
        if self.runtime.session().messages().len() < 2 {
            return self.console.app.warning("There is nothing to compact yet");
        }
        let cancel = self.stop.child();
        let request = CompactRequest { cancel: cancel.clone(), ..CompactRequest::manual(focus) };
        self.console.work = Some(cancel);
        let (events, mut incoming) = mpsc::channel(MAX_EVENTS);
        let emit = move |event| drop(events.try_send(event));
        let work = self.runtime.session_mut().compact(request, &emit);
        let done = with_events(&mut self.console, &mut incoming, work).await;
        if let Err(CompactError::Cancelled) = &done {
            self.console.app.status("Compaction cancelled");
        }
        self.after_run().await;
        self.send_waiting().await;
    }

    /// Sends messages submitted during a compaction.
    async fn send_waiting(&mut self) {
        let waiting = self.console.app.take_waiting_messages();
        let control = self.runtime.session().control();
        let mut waiting = waiting.into_iter();
        let Some((_, first)) = waiting.next() else { return };
        for (kind, message) in waiting {
            let images = self.console.read_images(&message.images).await;
            match kind {
                QueueKind::Steering => control.steer(message.text, images),
                QueueKind::FollowUp => control.follow_up(message.text, images),
            }
        }
        self.console.postponed.push_front(Effect::Submit(first));
    }

    async fn reload(&mut self) {
        let done = self.runtime.reload();
        match self.console.during(done).await {
            Ok(()) => {
                self.console.session = Some(handles(&self.runtime));
                self.console.app.reloaded(&self.runtime);
                self.console.sum_up(self.runtime.session().log().snapshot());
                self.console.app.status("Reloaded settings, keys, extensions, skills, prompts and themes");
            }
            Err(error) => self.console.app.error(&with_causes(&error)),
        }
    }

    /// Resolves a typed path against the working directory.
    fn path_of(&self, typed: &str) -> PathBuf {
        let services = self.runtime.services();
        match (typed.strip_prefix("~/"), services.host().home()) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => services.cwd().join(typed),
        }
    }

    async fn export(&mut self, path: Option<String>) {
        let path = path.map(|path| self.path_of(&path));
        let services = Arc::clone(self.runtime.services());
        let theme = self.console.app.theme_in_use(&services);
        let log = self.runtime.session().log().snapshot();
        let is_jsonl = path.as_ref().is_some_and(|path| path.extension().is_some_and(|ext| ext == "jsonl"));
        let write = move || match path {
            Some(path) if is_jsonl => log.export_to(&path).map(|()| path).map_err(|error| with_causes(&error)),
            path => {
                let theme = theme.ok_or("there is no theme")?;
                html::export(&log, &page_theme(&theme), path.as_deref(), services.cwd())
                    .map_err(|error| with_causes(&error))
            }
        };
        let written = tokio::task::spawn_blocking(write);
        let exported = self.console.during(written).await.unwrap_or_else(|error| Err(error.to_string()));
        match exported {
            Ok(path) => self.console.app.status(&format!("Session exported to {}", path.display())),
            Err(why) => self.console.app.error(&format!("The session cannot be exported: {why}")),
        }
    }

    async fn share_as_file(&mut self, path: Option<String>) {
        let path = path.map(|path| self.path_of(&path));
        let services = Arc::clone(self.runtime.services());
        let theme = self.console.app.theme_in_use(&services);
        let log = self.runtime.session().log().snapshot();
        let write = move || {
            let theme = theme.ok_or("there is no theme")?;
            shared_page::write(&log, &page_theme(&theme), &services, path)
        };
        let written = tokio::task::spawn_blocking(write);
        match self.console.during(written).await.unwrap_or_else(|error| Err(error.to_string())) {
            Ok(path) => self.console.app.status(&format!(
                "Wrote {}. Known credentials and your home directory are hidden; review the rest before you share it",
                path.display()
            )),
            Err(why) => self.console.app.error(&format!("The page cannot be written: {why}")),
        }
    }
}

/// Returns handles for reaching the session of a runtime while it is borrowed.
fn handles(runtime: &SessionRuntime) -> SessionHandles {
    SessionHandles {
        services: Arc::clone(runtime.services()),
        control: runtime.session().control(),
        store: Arc::clone(runtime.store()),
        shell: Arc::clone(runtime.shell()),
    }
}

/// Drives a run to its end while handling the user's input.
async fn pull(console: &mut Console, mut run: SessionRun<'_>) {
    loop {
        tokio::select! {
            item = run.next() => match item {
                Some(Ok(event)) => {
                    console.app.session_event(&event, console.host.now_ms());
                    console.front.mark();
                }
                Some(Err(error)) => {
                    console.app.error(&with_causes(&error));
                    console.front.mark();
                }
                None => return,
            },
            event = console.next() => console.handle(event).await,
        }
        for finished in std::mem::take(&mut console.finished_bash) {
            let Some(session) = &console.session else { continue };
            if let Ok(done) = finished.end {
                let record = done.into_record(&finished.command, finished.exclude, console.host.now_ms());
                session.control.change(pinch_coding_agent::session::Change::Bash(record));
            }
        }
    }
}

/// Waits for work that reports events while handling the user's input.
async fn with_events<T>(
    console: &mut Console,
    events: &mut mpsc::Receiver<SessionEvent>,
    work: impl Future<Output = T>,
) -> T {
    let mut work = std::pin::pin!(work);
    let done = loop {
        tokio::select! {
            biased;
            Some(event) = events.recv() => {
                console.app.session_event(&event, console.host.now_ms());
                console.front.mark();
            }
            done = &mut work => break done,
            event = console.next() => console.handle(event).await,
        }
    };
    while let Ok(event) = events.try_recv() {
        console.app.session_event(&event, console.host.now_ms());
    }
    done
}

impl std::fmt::Debug for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Driver").finish_non_exhaustive()
    }
}
