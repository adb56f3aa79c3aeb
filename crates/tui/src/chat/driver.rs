//! The loop of the chat: it owns the terminal and the backend, and carries out the effects of the state.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{AbortHandle, Abortable, BoxFuture};
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use pinch_agent_core::tool::ToolError;
use pinch_coding_agent::extension::Completion;
use pinch_coding_agent::tools::bash::{BashTool, UserCommand};
use pinch_stdx::cancel::{Cancel, CancelReason};
use pinch_stdx::host::Host;
use pinch_stdx::text::with_causes;
use tokio::sync::mpsc;

use super::ChatEnd;
use super::backend::{ChatBackend, ChatError, ChatEvent};
use super::effect::{ChatEffect, ChatNews, carry_out};
use super::last_session::LastSessions;
use super::state::ChatApp;
use crate::editor::complete::{CompletionQuery, CompletionRequest, PathIndex};
use crate::external;
use crate::front::{Front, FrontEvent};
use crate::terminal::TerminalInput;
use crate::tmux::{self, NoticePlace, TmuxKeys};

/// Maximum number of queued output chunks of user commands.
const MAX_OUTPUT: usize = 256;
/// How long runs and commands may take to end on exit.
const LEAVING: Duration = Duration::from_secs(3);

/// The result of a completion lookup.
type Completed = (CompletionRequest, Vec<Completion>);
/// Work that can be cancelled.
type Work<T> = FuturesUnordered<BoxFuture<'static, T>>;

/// A message whose run may be active.
struct OpenMessage {
    session: String,
    handle: AbortHandle,
}

enum ChatInput {
    Front(FrontEvent),
    Event(Option<ChatEvent>),
    /// `None`: it was cancelled.
    News(Option<ChatNews>),
    Output(String),
    Shell(Result<UserCommand, ToolError>),
    Completed(Completed),
    /// `None`: they could not be listed.
    Listed(Option<Arc<PathIndex>>),
    /// How tmux passes keys on, and whether to show a problem now; `None`: it does not answer.
    Tmux(Option<(TmuxKeys, bool)>),
    Stopped,
}

/// The loop.
pub(super) struct ChatDriver {
    front: Front,
    state: ChatApp,
    backend: Arc<dyn ChatBackend>,
    host: Host,
    shell: Option<Arc<BashTool>>,
    history_limit: usize,
    last: LastSessions,
    work: Work<Option<ChatNews>>,
    messages: HashMap<String, OpenMessage>,
    compaction: Option<AbortHandle>,
    commands: Work<Result<UserCommand, ToolError>>,
    command_cancel: Cancel,
    output: (mpsc::Sender<String>, mpsc::Receiver<String>),
    completions: Work<Completed>,
    /// Listings of the working directory's files in progress.
    listings: Work<Option<Arc<PathIndex>>>,
    /// The question to tmux, if it was not answered.
    tmux: Work<Option<(TmuxKeys, bool)>>,
    /// A login that waits for the terminal: the agent, and the provider if named.
    login: Option<(String, Option<String>)>,
    has_events: bool,
    exiting: bool,
    gone: bool,
}

impl ChatDriver {
    pub(super) fn new(
        front: Front,
        state: ChatApp,
        backend: Arc<dyn ChatBackend>,
        host: Host,
        shell: Option<Arc<BashTool>>,
        history_limit: usize,
        last: LastSessions,
    ) -> Self {
        Self {
            front,
            state,
            backend,
            host,
            shell,
            history_limit,
            last,
            work: FuturesUnordered::new(),
            messages: HashMap::new(),
            compaction: None,
            commands: FuturesUnordered::new(),
            command_cancel: Cancel::new(),
            output: mpsc::channel(MAX_OUTPUT),
            completions: FuturesUnordered::new(),
            listings: FuturesUnordered::new(),
            tmux: FuturesUnordered::new(),
            login: None,
            has_events: true,
            exiting: false,
            gone: false,
        }
    }

    /// Runs until the user exits.
    pub(super) async fn run(mut self, effects: Vec<ChatEffect>, stop: &Cancel) -> ChatEnd {
        self.perform(effects);
        self.look_at_tmux();
        self.draw();
        while !self.exiting {
            let input = self.next(stop).await;
            self.take(input);
            if let Some((agent, provider)) = self.login.take() {
                self.log_in(&agent, provider.as_deref(), stop).await;
            }
        }
        self.settle().await;
        self.leave();
        if self.gone { ChatEnd::HungUp } else { ChatEnd::Exited }
    }

    /// Asks tmux, if the program runs in it, how it passes keys on.
    fn look_at_tmux(&mut self) {
        if !self.state.is_plain() {
            let place = Some(NoticePlace::Conversation);
            let examination = tmux::examine(self.state.agent_dir().to_owned(), self.host.clone(), place);
            self.tmux.push(examination.boxed());
        }
    }

    /// Waits for the next input. Cancel-safe: dropping the future loses nothing.
    async fn next(&mut self, stop: &Cancel) -> ChatInput {
        let animates = self.state.animation(self.host.now_ms());
        tokio::select! {
            event = self.front.next(animates) => ChatInput::Front(event),
            event = self.backend.next_event(), if self.has_events => ChatInput::Event(event),
            Some(news) = self.work.next(), if !self.work.is_empty() => ChatInput::News(news),
            Some(text) = self.output.1.recv() => ChatInput::Output(text),
            Some(end) = self.commands.next(), if !self.commands.is_empty() => ChatInput::Shell(end),
            Some(found) = self.completions.next(), if !self.completions.is_empty() => ChatInput::Completed(found),
            Some(files) = self.listings.next(), if !self.listings.is_empty() => ChatInput::Listed(files),
            Some(answer) = self.tmux.next(), if !self.tmux.is_empty() => ChatInput::Tmux(answer),
            _ = stop.cancelled() => ChatInput::Stopped,
        }
    }

    fn take(&mut self, input: ChatInput) {
        match input {
            ChatInput::Front(FrontEvent::ScreenFrame) => return self.draw(),
            ChatInput::Front(FrontEvent::TerminalInput(input)) => {
                let inputs = self.front.burst(input);
                self.inputs(inputs);
            }
            ChatInput::Event(event) => self.event(event),
            ChatInput::News(news) => {
                // Earlier events come first.
                while self.has_events
                    && let Some(event) = self.backend.next_event().now_or_never()
                {
                    self.event(event);
                }
                if let Some(news) = news {
                    self.news(news);
                }
            }
            ChatInput::Output(text) => self.state.shell_output(&text),
            ChatInput::Shell(end) => {
                while let Ok(text) = self.output.1.try_recv() {
                    self.state.shell_output(&text);
                }
                self.state.shell_ended(&end);
            }
            ChatInput::Completed((request, found)) => self.state.offer(&request, found),
            ChatInput::Listed(files) => {
                if let Some(files) = files {
                    self.state.set_files(files);
                    self.complete();
                }
            }
            ChatInput::Tmux(Some((TmuxKeys::Extended, _))) => {
                let done = self.front.request_modified_keys();
                self.check(done);
            }
            ChatInput::Tmux(Some((keys, is_first))) => self.state.set_tmux_keys(keys, is_first),
            ChatInput::Tmux(None) => return,
            ChatInput::Stopped => self.exiting = true,
        }
        self.front.mark();
    }

    fn event(&mut self, event: Option<ChatEvent>) {
        match event {
            Some(event) => {
                let effects = self.state.event(event, self.host.now_ms());
                self.perform(effects);
            }
            None => {
                self.has_events = false;
                self.state.disconnected();
            }
        }
    }

    fn news(&mut self, news: ChatNews) {
        match &news {
            ChatNews::Sent { id, .. } => drop(self.messages.remove(id)),
            ChatNews::Compacted { .. } => self.compaction = None,
            _ => {}
        }
        let effects = self.state.news(news, self.host.now_ms());
        self.perform(effects);
    }

    fn inputs(&mut self, inputs: Vec<TerminalInput>) {
        for input in inputs {
            match &input {
                TerminalInput::Closed => return self.hang_up(),
                TerminalInput::Report(report) => self.state.learn(report, self.front.capabilities()),
                _ => {
                    let effects = self.state.input(&input, self.front.size(), self.host.now_ms());
                    self.perform(effects);
                    self.complete();
                }
            }
        }
    }

    /// Looks up completions for the editor.
    fn complete(&mut self) {
        let Some(request) = self.state.take_completion() else { return };
        let sources = self.state.completion_sources().clone();
        if !request.query.touches_files() {
            let found = sources.complete(&request.query, &request.cancel);
            return self.state.offer(&request, found);
        }
        let is_stale = sources.files.as_ref().is_none_or(|files| !files.is_current());
        if matches!(request.query, CompletionQuery::Mention { .. }) && is_stale && self.listings.is_empty() {
            let root = sources.root.clone();
            let build = tokio::task::spawn_blocking(move || PathIndex::build(&root, &Cancel::new()).ok().map(Arc::new));
            self.listings.push(async move { build.await.ok().flatten() }.boxed());
        }
        self.completions.push(request.look_up(sources).boxed());
    }

    fn perform(&mut self, effects: Vec<ChatEffect>) {
        for effect in effects {
            match effect {
                ChatEffect::Withdraw(ids) => {
                    for message in ids.iter().filter_map(|id| self.messages.remove(id)) {
                        message.handle.abort();
                    }
                }
                ChatEffect::StopCompaction => {
                    if let Some(compaction) = self.compaction.take() {
                        compaction.abort();
                    }
                }
                ChatEffect::Login { agent, provider } => self.login = Some((agent, provider)),
                ChatEffect::RememberSession { agent, session } => self.remember(agent, session),
                ChatEffect::Shell(command) => self.run_shell(command),
                ChatEffect::StopShell => {
                    self.command_cancel.cancel(CancelReason::User);
                    self.command_cancel = Cancel::new();
                }
                ChatEffect::Exit => self.exiting = true,
                ChatEffect::Suspend => self.suspend(),
                ChatEffect::Redraw => self.front.invalidate(),
                effect => self.ask(effect),
            }
        }
    }

    /// Stores the open session, so that the next chat begins with it.
    fn remember(&mut self, agent: String, session: String) {
        let last = self.last.clone();
        let kept = tokio::task::spawn_blocking(move || last.keep(&agent, &session));
        let work = async move {
            let failure = kept.await.ok()?.err()?;
            Some(ChatNews::Status(Err(ChatError::new(with_causes(&failure)))))
        };
        self.work.push(work.boxed());
    }

    /// Sends a request to the backend.
    fn ask(&mut self, effect: ChatEffect) {
        let (handle, registration) = AbortHandle::new_pair();
        match &effect {
            ChatEffect::Send(message) => {
                let open = OpenMessage { session: message.session_key.clone(), handle };
                self.messages.insert(message.id.clone(), open);
            }
            ChatEffect::Compact { .. } => self.compaction = Some(handle),
            _ => {}
        }
        let (backend, limit) = (Arc::clone(&self.backend), self.history_limit);
        let work = async move { carry_out(&*backend, effect, limit).await };
        self.work.push(Abortable::new(work, registration).map(|done| done.ok().flatten()).boxed());
    }

    fn run_shell(&mut self, command: String) {
        let Some(shell) = self.shell.clone() else { return };
        let (output, cancel) = (self.output.0.clone(), self.command_cancel.clone());
        let work = async move {
            // The screen shows the end of the output, so chunks that arrive too fast may be dropped.
            let mut show = |text: &str| drop(output.try_send(text.to_owned()));
            shell.run_for_user(&command, &mut show, &cancel).await
        };
        self.commands.push(work.boxed());
    }

    /// Stops the program until the shell continues it.
    fn suspend(&mut self) {
        let done = self.front.leave(&[]);
        self.check(done);
        external::suspend();
        let done = self.front.enter();
        self.check(done);
    }

    /// Hands the terminal over to a login. Runs continue meanwhile.
    async fn log_in(&mut self, agent: &str, provider: Option<&str>, stop: &Cancel) {
        let left = self.front.leave(&[]);
        self.check(left);
        let backend = Arc::clone(&self.backend);
        let mut login = backend.login(agent, provider);
        let outcome = loop {
            tokio::select! {
                outcome = &mut login => break Some(outcome),
                event = backend.next_event(), if self.has_events => self.event(event),
                Some(Some(news)) = self.work.next(), if !self.work.is_empty() => self.news(news),
                _ = stop.cancelled() => break None,
            }
        };
        drop(login);
        let entered = self.front.enter();
        self.check(entered);
        match outcome {
            Some(outcome) => self.news(ChatNews::LoggedIn(outcome)),
            None => self.exiting = true,
        }
        self.front.mark();
    }

    fn draw(&mut self) {
        if self.front.is_blocked() || self.gone {
            return;
        }
        let size = self.front.size();
        self.state.set_screen(size, self.front.cell_size());
        let frame = self.state.view(size, self.host.now_ms());
        let mut drawn = self.front.draw(&frame, self.host.now_ms());
        if let Some(bytes) = self.state.take_notification(self.front.capabilities().notification) {
            drawn = drawn.and_then(|()| self.front.write(&bytes));
        }
        self.check(drawn);
    }

    /// Treats a terminal that cannot be written to as gone.
    fn check(&mut self, done: io::Result<()>) {
        if done.is_err() {
            self.hang_up();
        }
    }

    fn hang_up(&mut self) {
        self.gone = true;
        self.exiting = true;
    }

    /// Stops active work, and waits briefly for its end.
    async fn settle(&mut self) {
        self.command_cancel.cancel(CancelReason::User);
        if let Some(compaction) = self.compaction.take() {
            compaction.abort();
        }
        let ended = async {
            for message in self.messages.values() {
                // If that fails, the run ends when it is dropped.
                drop(self.backend.abort(&message.session).await);
            }
            let mut n_open = self.messages.len();
            while n_open > 0 || !self.commands.is_empty() {
                tokio::select! {
                    Some(news) = self.work.next(), if n_open > 0 => {
                        if let Some(ChatNews::Sent { .. }) = news {
                            n_open -= 1;
                        }
                    }
                    event = self.backend.next_event(), if self.has_events => match event {
                        // Resulting effects are no longer carried out.
                        Some(event) => drop(self.state.event(event, self.host.now_ms())),
                        None => self.has_events = false,
                    },
                    Some(_) = self.commands.next(), if !self.commands.is_empty() => {}
                    else => break,
                }
            }
        };
        // Whatever has not ended by then is dropped.
        drop(tokio::time::timeout(LEAVING, ended).await);
    }

    /// Restores the terminal.
    fn leave(&mut self) {
        if self.gone {
            return;
        }
        // Finished rows stay on the screen.
        self.draw();
        let last = self.state.exit_rows();
        let left = self.front.leave(&last);
        self.check(left);
    }
}
