//! Serving a client while a prompt or a compaction is running.

use futures::{Stream, StreamExt};
use pinch_agent_core::event::AgentEvent;
use pinch_agent_core::queue::QueueKind;
use pinch_stdx::cancel::{Cancel, CancelReason};
use pinch_stdx::text::with_causes;
use serde_json::{Value, json};

use super::context::{EMPTY_NAME, PendingQuery, RpcContext, Status};
use super::io::{FinishedBash, FinishedTask, IncomingLine, Io, IoEvent, MAX_WAITING, TOO_MANY};
use super::waiting::Backlog;
use crate::compaction::{CompactError, Compacted};
use crate::event::SessionEvent;
use crate::protocol::command::{Mutation, RpcCommand, RpcRequest, RunCommand, UserInput};
use crate::protocol::response::Answerer;
use crate::protocol::results;
use crate::session::{self, Change, SessionError, SessionView};

/// Maximum events to send before reading from the client again.
const ITEMS_IN_A_ROW: usize = 64;

/// An item of the stream of work.
pub(super) enum WorkItem {
    /// An event of the session.
    Event(SessionEvent),
    /// The session cannot continue.
    Failed(SessionError),
    /// The compaction ended.
    Compacted(Result<Compacted, CompactError>),
}

/// What to handle next.
enum NextItem {
    Work(Option<WorkItem>),
    Io(IoEvent),
}

/// What the session is working on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activity {
    Prompt,
    /// An extension's command, sent as a prompt.
    Command,
    Compaction,
}

/// A client and a busy session.
pub(super) struct BusyServer<'a> {
    io: &'a mut Io,
    context: &'a RpcContext,
    activity: Activity,
    /// Cancels the work.
    cancel: Cancel,
    /// The command that started the work, until it is answered.
    starter: Option<Answerer>,
    /// Commands waiting for the work to end.
    aborts: Vec<Answerer>,
    /// Commands waiting for a retry delay to end.
    retry_aborts: Vec<Answerer>,
    waits_for_retry: bool,
    is_compacting: bool,
    /// Whether the client was sent the end of the run, so that its next commands come after it.
    has_ended: bool,
    /// Whether nothing follows.
    is_settled: bool,
    backlog: Backlog,
}

impl<'a> BusyServer<'a> {
    pub(super) fn new(
        io: &'a mut Io,
        context: &'a RpcContext,
        activity: Activity,
        cancel: Cancel,
        starter: Option<Answerer>,
    ) -> Self {
        Self {
            io,
            context,
            activity,
            cancel,
            starter,
            aborts: Vec::new(),
            retry_aborts: Vec::new(),
            waits_for_retry: false,
            is_compacting: false,
            has_ended: false,
            is_settled: false,
            backlog: Backlog::default(),
        }
    }

    /// Drives the work to its end and serves the client meanwhile.
    pub(super) async fn pull(mut self, work: impl Stream<Item = WorkItem>) -> Backlog {
        let mut work = std::pin::pin!(work);
        let mut n_items = 0_usize;
        loop {
            n_items += 1;
            let listens = !self.is_settled;
            // Events take precedence over commands, but a long answer does not block the client. A client that has read that the session is
            // idle finds it idle.
            let next = if n_items.is_multiple_of(ITEMS_IN_A_ROW) {
                tokio::select! {
                    biased;
                    event = self.io.next_event(), if listens => NextItem::Io(event),
                    item = work.next() => NextItem::Work(item),
                }
            } else {
                tokio::select! {
                    biased;
                    item = work.next() => NextItem::Work(item),
                    event = self.io.next_event(), if listens => NextItem::Io(event),
                }
            };
            match next {
                NextItem::Work(Some(item)) => self.take(item).await,
                NextItem::Work(None) => break,
                NextItem::Io(IoEvent::Line(line)) => self.line(line).await,
                NextItem::Io(IoEvent::BashFinished(finished)) => self.bash_finished(*finished).await,
                NextItem::Io(IoEvent::TaskFinished(finished)) => self.context.finish(self.io, finished).await,
                // The work is cancelled already.
                NextItem::Io(IoEvent::Closed) => self.context.ui.close(),
            }
        }
        // A prompt without any event was handled by an extension.
        if let Some(starter) = self.starter.take() {
            self.io.write(starter.with(&json!({"disposition": "handled"}))).await;
        }
        for answerer in self.retry_aborts.drain(..).chain(self.aborts.drain(..)) {
            self.io.write(answerer.done()).await;
        }
        self.backlog
    }

    async fn take(&mut self, item: WorkItem) {
        match item {
            WorkItem::Event(event) => self.event(event).await,
            WorkItem::Failed(error) => {
                self.is_settled = true;
                let text = with_causes(&error);
                let line = match self.starter.take() {
                    Some(starter) => starter.failed(&text),
                    None => format!("{}\n", json!({"type": "session_error", "error": text})).into_bytes(),
                };
                self.io.write(line).await;
            }
            WorkItem::Compacted(end) => {
                self.is_settled = true;
                if let Some(starter) = self.starter.take() {
                    let line = match end {
                        Ok(done) => starter.with(&results::compacted(&done)),
                        Err(error) => starter.failed(&with_causes(&error)),
                    };
                    self.io.write(line).await;
                }
            }
        }
    }

    async fn event(&mut self, event: SessionEvent) {
        let disposition = match self.activity {
            // A failure of an extension does not tell whether the prompt was accepted.
            Activity::Prompt if !matches!(event, SessionEvent::ExtensionError(_)) => Some("started"),
            Activity::Command if !may_be_of_command(&event) && !self.context.control.runs_command() => Some("handled"),
            _ => None,
        };
        if let Some(disposition) = disposition
            && let Some(starter) = self.starter.take()
        {
            self.io.write(starter.with(&json!({ "disposition": disposition }))).await;
        }
        match &event {
            SessionEvent::CompactionStart { .. } => self.is_compacting = true,
            SessionEvent::CompactionEnd { .. } => self.is_compacting = false,
            SessionEvent::RetryStart { .. } => self.waits_for_retry = true,
            SessionEvent::RetryEnd { .. } => self.waits_for_retry = false,
            SessionEvent::Agent(AgentEvent::AgentStart) => (self.waits_for_retry, self.has_ended) = (false, false),
            SessionEvent::RunEnd { will_retry, .. } => self.has_ended = !will_retry,
            SessionEvent::Settled { .. } => self.is_settled = true,
            _ => {}
        }
        self.io.event(&event).await;
        if !self.waits_for_retry {
            for answerer in std::mem::take(&mut self.retry_aborts) {
                self.io.write(answerer.done()).await;
            }
        }
    }

    async fn line(&mut self, line: IncomingLine) {
        if let Some(request) = self.io.command_of(&line, &self.context.ui).await {
            self.command(request).await;
        }
    }

    async fn command(&mut self, request: RpcRequest) {
        let answerer = Answerer::of(&request);
        match request.command {
            RpcCommand::Control(command) => {
                let line = self.context.control_command(&answerer, command).await;
                self.io.write(line).await;
            }
            RpcCommand::Query(query) => {
                let status = Status {
                    is_streaming: self.activity != Activity::Compaction,
                    is_compacting: self.is_compacting || self.activity == Activity::Compaction,
                };
                let pending = PendingQuery { answerer, query, context: self.context.clone(), status };
                self.observe(move |view| pending.answer(view));
            }
            RpcCommand::ExportHtml { path } => {
                let snapshot = self.context.write_page(self.io, answerer, path);
                self.context.control.observe(snapshot);
            }
            // Without a queue, a prompt waits for the next run, if this one has ended for the client or there is none.
            RpcCommand::Run(RunCommand::Prompt { queue: None, .. })
                if self.activity == Activity::Compaction || self.has_ended =>
            {
                self.io.postpone(request).await;
            }
            RpcCommand::Run(command) => self.run_command(answerer, command).await,
            RpcCommand::Mutation(mutation) => self.mutate(answerer, mutation).await,
            RpcCommand::Exclusive(_) => {
                self.cancel.cancel(CancelReason::Superseded);
                self.io.postpone(request).await;
            }
        }
    }

    async fn run_command(&mut self, answerer: Answerer, command: RunCommand) {
        match command {
            RunCommand::Prompt { input, queue } => self.prompt(answerer, input, queue).await,
            RunCommand::Steer(input) => self.context.queue(self.io, answerer, QueueKind::Steering, input).await,
            RunCommand::FollowUp(input) => self.context.queue(self.io, answerer, QueueKind::FollowUp, input).await,
            RunCommand::ClearQueue => {
                let line = self.context.clear_queues(self.io, &answerer).await;
                self.io.write(line).await;
            }
            RunCommand::Abort => {
                self.cancel.cancel(CancelReason::User);
                match self.aborts.len() < MAX_WAITING {
                    true => self.aborts.push(answerer),
                    false => self.io.write(answerer.failed(TOO_MANY)).await,
                }
            }
            RunCommand::AbortRetry if self.waits_for_retry && self.retry_aborts.len() < MAX_WAITING => {
                self.retry_aborts.push(answerer);
                self.context.control.cancel_retry();
            }
            RunCommand::AbortRetry => self.io.write(answerer.done()).await,
            RunCommand::Bash { command, exclude } => {
                let (control, shell) = (self.context.control.clone(), self.context.shell());
                self.io.start_bash(answerer, control, shell, command, exclude);
            }
            RunCommand::AbortBash => {
                self.io.stop_commands();
                self.io.write(answerer.done()).await;
            }
        }
    }

    async fn mutate(&mut self, answerer: Answerer, mutation: Mutation) {
        let context = self.context.clone();
        match mutation {
            Mutation::SetModel { provider, model } => match context.available(&provider, &model) {
                Ok(model) => {
                    context.control.change(Change::Model(model));
                    self.observe(move |view| answerer.with(&view.model.to_shown_record()));
                }
                Err(why) => self.io.write(answerer.failed(&why)).await,
            },
            Mutation::CycleModel => self.observe(move |view| answerer.with(&context.cycle_model_in_run(view))),
            Mutation::SetThinkingLevel { level } => self.observe(move |view| {
                let level = pinch_llm::model::thinking::clamp_word(view.model, &level);
                context.control.change(Change::Thinking(level));
                answerer.done()
            }),
            Mutation::CycleThinkingLevel => {
                self.observe(move |view| answerer.with(&context.cycle_thinking_in_run(view)));
            }
            Mutation::SetSessionName { name } if name.trim().is_empty() => {
                self.io.write(answerer.failed(EMPTY_NAME)).await;
            }
            Mutation::SetSessionName { name } => {
                context.control.change(Change::Name(name));
                self.observe(move |_| answerer.done());
            }
        }
    }

    async fn prompt(&mut self, answerer: Answerer, input: UserInput, queue: Option<QueueKind>) {
        let control = &self.context.control;
        if let Some((found, args)) = control.find_command(&input.text) {
            let control = control.clone();
            return self.io.start_task(async move {
                control.run_command(&found, &args).await;
                FinishedTask::ExtensionCommand(answerer)
            });
        }
        match queue {
            Some(kind) => self.context.queue(self.io, answerer, kind, input).await,
            None => self.io.write(answerer.failed(&session::SessionBusy.to_string())).await,
        }
    }

    /// Sends an answer built from the session as soon as the session can be observed.
    fn observe(&self, answer: impl FnOnce(&SessionView<'_>) -> Vec<u8> + Send + 'static) {
        let aside = self.io.aside();
        self.context.control.observe(move |view| aside.push(answer(view)));
    }

    async fn bash_finished(&mut self, finished: FinishedBash) {
        if self.activity == Activity::Compaction {
            self.backlog.bash.push(finished);
            return;
        }
        let line = match finished.end {
            Ok(done) => {
                let line = finished.answerer.with(&results::user_command(&done));
                let record =
                    done.into_record(&finished.command, finished.exclude, self.context.services.host().now_ms());
                self.context.control.change(Change::Bash(record));
                line
            }
            Err(error) => finished.answerer.failed(&error.to_string()),
        };
        self.io.write(line).await;
    }
}

/// Returns whether an event may be a direct effect of a command, which the client sees before the command's answer.
fn may_be_of_command(event: &SessionEvent) -> bool {
    matches!(
        event,
        SessionEvent::ExtensionError(_)
            | SessionEvent::InfoChanged { .. }
            | SessionEvent::EntryAppended(_)
            | SessionEvent::ThinkingLevelChanged { .. }
            | SessionEvent::CompactionStart { .. }
            | SessionEvent::Agent(AgentEvent::MessageStart(_) | AgentEvent::MessageEnd { .. })
    )
}

impl RpcContext {
    /// Switches to the next model during a run.
    fn cycle_model_in_run(&self, view: &SessionView<'_>) -> Value {
        let models = self.models_to_cycle();
        let Some(next) = crate::session::models::next_of(&models, view.model, crate::session::CycleDirection::Forward)
        else {
            return Value::Null;
        };
        self.control.change(Change::Model(std::sync::Arc::clone(&next.model)));
        if let Some(level) = next.thinking {
            self.control.change(Change::Thinking(level));
        }
        let level = pinch_llm::model::thinking::clamp(&next.model, next.thinking.unwrap_or(view.thinking));
        json!({"model": next.model.to_shown_record(), "thinkingLevel": level.as_str(), "isScoped": self.is_scoped()})
    }

    /// Switches to the next thinking level during a run.
    fn cycle_thinking_in_run(&self, view: &SessionView<'_>) -> Value {
        match crate::session::models::next_level(view.model, view.thinking) {
            Some(level) => {
                self.control.change(Change::Thinking(level));
                json!({"level": level.as_str()})
            }
            None => Value::Null,
        }
    }
}
