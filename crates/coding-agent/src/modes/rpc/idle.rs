//! Serving a client while the session is idle, and the transitions between idle and busy.

use futures::StreamExt as _;
use futures::future::BoxFuture;
use pinch_agent_core::queue::QueueKind;
use pinch_llm::model::thinking;
use pinch_stdx::cancel::Cancel;
use pinch_stdx::pull::{Emitter, pulled};
use pinch_stdx::text::with_causes;
use serde_json::{Value, json};

use super::busy::{Activity, BusyServer, WorkItem};
use super::context::{EMPTY_NAME, PendingQuery, RpcContext, Status};
use super::io::{FinishedBash, IncomingLine, Io, IoEvent};
use super::waiting::{Backlog, serve_during};
use super::{RpcClient, RpcError};
use crate::entry::EntryId;
use crate::event::SessionEvent;
use crate::extension::InputSource;
use crate::packages::source::of_client;
use crate::protocol::command::{ExclusiveCommand, Mutation, RpcCommand, RpcRequest, RunCommand, UserInput};
use crate::protocol::response::Answerer;
use crate::protocol::results;
use crate::runtime::SessionRuntime;
use crate::session::{
    AgentSession, CompactRequest, CycleDirection, EventListener, ForkAt, ForkError, HostRequest, Prompt,
    SessionControl, SessionError,
};
use crate::store::{SessionRef, StoreError};
use crate::tools::path::lexical;

/// A client and an idle session.
pub(super) struct IdleServer<'a> {
    runtime: &'a mut SessionRuntime,
    io: Io,
    context: RpcContext,
    stop: Cancel,
    /// What finished while the session was created, replaced or changed.
    backlog: Backlog,
}

impl<'a> IdleServer<'a> {
    pub(super) fn new(runtime: &'a mut SessionRuntime, client: RpcClient) -> Self {
        let RpcClient { io, ui, stop, backlog } = client;
        let context = RpcContext::of(runtime, &ui);
        Self { runtime, io, context, stop, backlog }
    }

    /// Serves the client until it disconnects.
    pub(super) async fn serve(mut self) -> Result<(), RpcError> {
        loop {
            let backlog = std::mem::take(&mut self.backlog);
            self.after_work(backlog).await;
            let control = self.context.control.clone();
            if let Some(request) = self.io.next_postponed() {
                self.command(request).await;
            } else if self.io.has_ended() && !self.io.runs_commands() {
                break;
            } else {
                self.event(&control).await;
            }
            match control.take_host_request() {
                Some(HostRequest::Shutdown) => break,
                Some(HostRequest::Reload) => self.reload().await,
                None => {}
            }
        }
        self.context.ui.close();
        if self.io.nobody_reads() { Err(RpcError::NobodyReads) } else { Ok(()) }
    }

    /// Waits for the client, for work that ends, or for requests of extensions, and handles what comes first.
    async fn event(&mut self, control: &SessionControl) {
        let event = tokio::select! {
            biased;
            event = self.io.next_event() => Some(event),
            // Extensions have requests for the idle session.
            () = control.has_requests() => None,
        };
        match event {
            Some(IoEvent::Line(line)) => self.line(line).await,
            Some(IoEvent::BashFinished(finished)) => self.bash_finished(*finished).await,
            Some(IoEvent::TaskFinished(finished)) => self.context.finish(&mut self.io, finished).await,
            Some(IoEvent::Closed) => self.context.ui.close(),
            None => self.run_requests().await,
        }
    }

    async fn line(&mut self, line: IncomingLine) {
        if let Some(request) = self.io.command_of(&line, &self.context.ui).await {
            self.command(request).await;
        }
    }

    async fn command(&mut self, request: RpcRequest) {
        let answerer = Answerer::of(&request);
        let line = match request.command {
            RpcCommand::Control(command) => self.context.control_command(&answerer, command).await,
            RpcCommand::Query(query) => {
                let pending =
                    PendingQuery { answerer, query, context: self.context.clone(), status: Status::default() };
                pending.answer(&self.session().view())
            }
            RpcCommand::ExportHtml { path } => {
                let snapshot = self.context.write_page(&mut self.io, answerer, path);
                return snapshot(&self.session().view());
            }
            RpcCommand::Run(command) => return self.run_command(answerer, command).await,
            RpcCommand::Mutation(mutation) => self.mutate(&answerer, mutation).await,
            RpcCommand::Exclusive(command) => return self.exclusive(answerer, command).await,
        };
        self.io.write(line).await;
    }

    async fn run_command(&mut self, answerer: Answerer, command: RunCommand) {
        let line = match command {
            RunCommand::Prompt { input, .. } => return self.prompt(answerer, input).await,
            RunCommand::Steer(input) => {
                return self.context.queue(&mut self.io, answerer, QueueKind::Steering, input).await;
            }
            RunCommand::FollowUp(input) => {
                return self.context.queue(&mut self.io, answerer, QueueKind::FollowUp, input).await;
            }
            RunCommand::Bash { command, exclude } => {
                let (control, shell) = (self.context.control.clone(), self.context.shell());
                return self.io.start_bash(answerer, control, shell, command, exclude);
            }
            RunCommand::ClearQueue => self.context.clear_queues(&mut self.io, &answerer).await,
            // There is no run to cancel.
            RunCommand::Abort | RunCommand::AbortRetry => answerer.done(),
            RunCommand::AbortBash => {
                self.io.stop_commands();
                answerer.done()
            }
        };
        self.io.write(line).await;
    }

    async fn mutate(&mut self, answerer: &Answerer, mutation: Mutation) -> Vec<u8> {
        match mutation {
            Mutation::SetModel { provider, model } => self.set_model(answerer, &provider, &model).await,
            Mutation::CycleModel => self.cycle_model(answerer).await,
            Mutation::SetThinkingLevel { level } => {
                let level = thinking::clamp_word(self.session().model(), &level);
                let done = self.change_level(async |session| session.set_thinking(level).await.map(Some)).await;
                done.map_or_else(|error| answerer.failed(&with_causes(&error)), |_| answerer.done())
            }
            Mutation::CycleThinkingLevel => {
                match self.change_level(async |session| session.cycle_thinking().await).await {
                    Ok(Some(level)) => answerer.with(&json!({"level": level.as_str()})),
                    Ok(None) => answerer.with(&Value::Null),
                    Err(error) => answerer.failed(&with_causes(&error)),
                }
            }
            Mutation::SetSessionName { name } => self.set_name(answerer, &name).await,
        }
    }

    async fn exclusive(&mut self, answerer: Answerer, command: ExclusiveCommand) {
        let line = match command {
            ExclusiveCommand::Compact { focus } => return self.compact(answerer, focus).await,
            ExclusiveCommand::NewSession { parent } => {
                let work = self.runtime.new_session(parent);
                let done = serve_during(&mut self.io, &self.context.ui, &mut self.backlog, work).await;
                let done = done.map(|()| None).map_err(ForkError::Session);
                self.replaced(done, false, &answerer)
            }
            ExclusiveCommand::SwitchSession { path } => {
                let target = {
                    let services = &self.context.services;
                    SessionRef::Path(lexical(&services.cwd().join(of_client(&path, services.host().home()))))
                };
                let work = self.runtime.switch_session(&target);
                match serve_during(&mut self.io, &self.context.ui, &mut self.backlog, work).await {
                    Ok(is_done) => {
                        self.context = RpcContext::of(self.runtime, &self.context.ui.clone());
                        answerer.with(&json!({"cancelled": !is_done}))
                    }
                    Err(error) => answerer.failed(&with_causes(&error)),
                }
            }
            ExclusiveCommand::Fork { entry } => {
                let done = self.fork(&entry, ForkAt::Before).await;
                self.replaced(done, true, &answerer)
            }
            ExclusiveCommand::Clone => {
                let log = self.session().log();
                if log.is_saved() && log.leaf_id().is_none() {
                    answerer.failed("Cannot clone session: no current entry selected")
                } else {
                    let leaf = log.leaf_id().cloned().unwrap_or_else(|| EntryId::new(""));
                    let done = self.fork(&leaf, ForkAt::Entry).await;
                    self.replaced(done, false, &answerer)
                }
            }
        };
        self.io.write(line).await;
    }

    fn session(&mut self) -> &mut AgentSession {
        self.runtime.session_mut()
    }

    async fn fork(&mut self, entry: &EntryId, place: ForkAt) -> Result<Option<String>, ForkError> {
        let work = self.runtime.fork(entry, place);
        serve_during(&mut self.io, &self.context.ui, &mut self.backlog, work).await
    }

    async fn prompt(&mut self, answerer: Answerer, input: UserInput) {
        let cancel = self.stop.child();
        let prompt = Prompt {
            text: input.text,
            images: input.images,
            cancel: cancel.clone(),
            source: InputSource::Rpc,
            ..Prompt::default()
        };
        let is_command = self.context.control.find_command(&prompt.text).is_some();
        let activity = if is_command { Activity::Command } else { Activity::Prompt };
        let busy = BusyServer::new(&mut self.io, &self.context, activity, cancel, Some(answerer));
        let run = self.runtime.session_mut().prompt(prompt);
        let backlog = busy.pull(run.map(|item| item.map_or_else(WorkItem::Failed, WorkItem::Event))).await;
        self.after_work(backlog).await;
    }

    async fn compact(&mut self, answerer: Answerer, focus: Option<String>) {
        let cancel = self.stop.child();
        let request = CompactRequest { cancel: cancel.clone(), ..CompactRequest::manual(focus) };
        let busy = BusyServer::new(&mut self.io, &self.context, Activity::Compaction, cancel, Some(answerer));
        let session = self.runtime.session_mut();
        let work = pulled(|emitter| async move {
            let end = session.compact_with(request, &WorkListener(&emitter)).await;
            emitter.emit(WorkItem::Compacted(end)).await;
        });
        let backlog = busy.pull(work).await;
        self.after_work(backlog).await;
    }

    /// Catches up with what finished while the session was busy.
    async fn after_work(&mut self, backlog: Backlog) {
        self.runtime.session().notify_observers();
        for finished in backlog.bash {
            self.bash_finished(finished).await;
        }
        for finished in backlog.tasks {
            self.context.finish(&mut self.io, finished).await;
        }
    }

    /// Performs the requests that extensions made while the session was idle.
    async fn run_requests(&mut self) {
        let cancel = self.stop.child();
        let busy = BusyServer::new(&mut self.io, &self.context, Activity::Prompt, cancel.clone(), None);
        let run = self.runtime.session_mut().run_requests(&cancel);
        let backlog = busy.pull(run.map(|item| item.map_or_else(WorkItem::Failed, WorkItem::Event))).await;
        self.after_work(backlog).await;
    }

    /// Reloads settings, resources and extensions.
    async fn reload(&mut self) {
        match serve_during(&mut self.io, &self.context.ui, &mut self.backlog, self.runtime.reload()).await {
            Ok(()) => self.context = RpcContext::of(self.runtime, &self.context.ui.clone()),
            Err(error) => {
                let line = json!({"type": "session_error", "error": with_causes(&error)});
                self.io.write(format!("{line}\n").into_bytes()).await;
            }
        }
    }

    async fn set_model(&mut self, answerer: &Answerer, provider: &str, id: &str) -> Vec<u8> {
        let model = match self.context.available(provider, id) {
            Ok(model) => model,
            Err(why) => return answerer.failed(&why),
        };
        let taken = std::sync::Arc::clone(&model);
        let done = self.change_level(async move |session| session.set_model(taken).await.map(|()| None::<()>)).await;
        match done {
            Ok(_) => answerer.with(&model.to_shown_record()),
            Err(error) => answerer.failed(&with_causes(&error)),
        }
    }

    async fn cycle_model(&mut self, answerer: &Answerer) -> Vec<u8> {
        let models = self.context.models_to_cycle();
        let mut next = None;
        let done = self
            .change_level(async |session| {
                next = session.cycle_model(&models, CycleDirection::Forward).await?;
                Ok(None::<()>)
            })
            .await;
        match (done, next) {
            (Err(error), _) => answerer.failed(&with_causes(&error)),
            (Ok(_), None) => answerer.with(&Value::Null),
            (Ok(_), Some(next)) => {
                let is_scoped = self.context.is_scoped();
                let level = self.session().thinking();
                answerer.with(
                    &json!({"model": next.model.to_shown_record(), "thinkingLevel": level.as_str(), "isScoped": is_scoped}),
                )
            }
        }
    }

    /// Applies a change that may affect the thinking level, and emits an event if it did.
    async fn change_level<T>(
        &mut self,
        change: impl AsyncFnOnce(&mut AgentSession) -> Result<Option<T>, SessionError>,
    ) -> Result<Option<T>, SessionError> {
        let before = self.session().thinking();
        let work = change(self.runtime.session_mut());
        let done = serve_during(&mut self.io, &self.context.ui, &mut self.backlog, work).await?;
        let level = self.session().thinking();
        if level != before {
            self.io.event(&SessionEvent::ThinkingLevelChanged { level }).await;
        }
        Ok(done)
    }

    async fn set_name(&mut self, answerer: &Answerer, name: &str) -> Vec<u8> {
        if name.trim().is_empty() {
            return answerer.failed(EMPTY_NAME);
        }
        let work = self.runtime.session_mut().set_name(name);
        if let Err(error) = serve_during(&mut self.io, &self.context.ui, &mut self.backlog, work).await {
            return answerer.failed(&with_causes(&error));
        }
        let name = self.session().log().name();
        self.io.event(&SessionEvent::InfoChanged { name }).await;
        answerer.done()
    }

    /// Answers a command that replaces the session; an extension may have cancelled it.
    fn replaced(&mut self, done: Result<Option<String>, ForkError>, with_text: bool, answerer: &Answerer) -> Vec<u8> {
        let (text, cancelled) = match done {
            Ok(text) => {
                self.context = RpcContext::of(self.runtime, &self.context.ui.clone());
                (text.unwrap_or_default(), false)
            }
            Err(ForkError::Session(SessionError::SwitchCancelled)) => (String::new(), true),
            Err(error) => return answerer.failed(&fork_error(&error)),
        };
        match with_text {
            true => answerer.with(&json!({"text": text, "cancelled": cancelled})),
            false => answerer.with(&json!({"cancelled": cancelled})),
        }
    }

    async fn bash_finished(&mut self, finished: FinishedBash) {
        let line = match finished.end {
            Ok(done) => {
                let line = finished.answerer.with(&results::user_command(&done));
                let now = self.context.services.host().now_ms();
                let record = done.into_record(&finished.command, finished.exclude, now);
                match self.session().record_bash(record).await {
                    Ok(()) => line,
                    Err(error) => finished.answerer.failed(&with_causes(&error)),
                }
            }
            Err(error) => finished.answerer.failed(&error.to_string()),
        };
        self.io.write(line).await;
    }
}

/// Forwards the events of a compaction as work items.
struct WorkListener<'g>(&'g Emitter<WorkItem>);

impl EventListener for WorkListener<'_> {
    fn event(&self, event: SessionEvent) -> BoxFuture<'_, ()> {
        Box::pin(self.0.emit(WorkItem::Event(event)))
    }
}

fn fork_error(error: &ForkError) -> String {
    match error {
        ForkError::Session(SessionError::Store(StoreError::NoEntry { .. })) => ForkError::NotAMessage.to_string(),
        _ => with_causes(error),
    }
}
