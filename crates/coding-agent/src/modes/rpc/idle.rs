//! What a client may do while nothing runs, and the turns between rest and work.

use std::path::Path;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use pinch_agent_core::queue::QueueKind;
use pinch_llm::model::thinking;
use pinch_stdx::cancel::Cancel;
use pinch_stdx::pull::{Emitter, pulled};
use pinch_stdx::text::with_causes;
use serde_json::{Value, json};

use super::busy::{Busy, Kind, Work};
use super::desk::{Desk, EMPTY_NAME, Question, Status};
use super::io::{Heard, Incoming, Io, Ran};
use super::meanwhile::{Left, meanwhile};
use super::{Client, RpcError};
use crate::entry::EntryId;
use crate::event::SessionEvent;
use crate::extension::InputSource;
use crate::protocol::command::{Command, Request, Said};
use crate::protocol::response::Answerer;
use crate::protocol::results;
use crate::runtime::SessionRuntime;
use crate::session::{
    AgentSession, CompactRequest, Direction, ForkAt, ForkError, Listener, Prompt, SessionError, Wish,
};
use crate::store::StoreError;

/// A client at rest.
pub(super) struct Server<'a> {
    runtime: &'a mut SessionRuntime,
    io: Io,
    desk: Desk,
    stop: Cancel,
    /// What has come while the session was made, left or changed.
    left: Left,
}

impl<'a> Server<'a> {
    pub(super) fn new(runtime: &'a mut SessionRuntime, client: Client) -> Self {
        let Client { io, ui, stop, left } = client;
        let desk = Desk::of(runtime, &ui);
        Self { runtime, io, desk, stop, left }
    }

    /// Serves the client to its last word.
    pub(super) async fn serve(mut self) -> Result<(), RpcError> {
        loop {
            let left = std::mem::take(&mut self.left);
            self.after_work(left).await;
            if let Some(request) = self.io.next_postponed() {
                self.command(request).await;
                continue;
            }
            if self.io.has_ended() && !self.io.runs_commands() {
                break;
            }
            let control = self.desk.control.clone();
            let heard = tokio::select! {
                biased;
                heard = self.io.hear() => Some(heard),
                // Extensions want something of the session at rest.
                () = control.wants_attention() => None,
            };
            match heard {
                Some(Heard::Line(line)) => self.line(line).await,
                Some(Heard::Ran(ran)) => self.ran(*ran).await,
                Some(Heard::Dealt(dealt)) => self.desk.dealt(&mut self.io, dealt).await,
                Some(Heard::End) => self.desk.ui.close(),
                None => self.attend().await,
            }
            match control.take_wish() {
                Some(Wish::Shutdown) => break,
                Some(Wish::Reload) => self.reload().await,
                None => {}
            }
        }
        self.desk.ui.close();
        if self.io.nobody_reads() { Err(RpcError::NobodyReads) } else { Ok(()) }
    }

    async fn line(&mut self, line: Incoming) {
        if let Some(request) = self.io.command_of(&line, &self.desk.ui).await {
            self.command(request).await;
        }
    }

    async fn command(&mut self, request: Request) {
        let answerer = Answerer::of(&request);
        if let Some(line) = self.desk.answer(&answerer, &request.command).await {
            return self.io.write(line).await;
        }
        let command = match Question::new(&self.desk, answerer.clone(), request.command, Status::default()) {
            Ok(question) => {
                let line = question.answer(&self.session().view());
                return self.io.write(line).await;
            }
            Err(command) => command,
        };
        let line = match command {
            Command::Prompt { said, .. } => return self.prompt(answerer, said).await,
            Command::Compact { focus } => return self.compact(answerer, focus).await,
            Command::ExportHtml { path } => {
                let look = self.desk.write_page(&mut self.io, answerer, path);
                return look(&self.session().view());
            }
            Command::Bash { command, exclude } => {
                return self.io.start(answerer, self.desk.control.clone(), self.desk.shell(), command, exclude);
            }
            Command::Steer(said) => {
                return self.desk.queue(&mut self.io, answerer, QueueKind::Steering, said).await;
            }
            Command::FollowUp(said) => {
                return self.desk.queue(&mut self.io, answerer, QueueKind::FollowUp, said).await;
            }
            Command::ClearQueue => self.desk.clear_queues(&mut self.io, &answerer).await,
            Command::AbortBash => {
                self.io.stop_commands();
                answerer.done()
            }
            Command::SetModel { provider, model } => self.set_model(&answerer, &provider, &model).await,
            Command::CycleModel => self.cycle_model(&answerer).await,
            Command::SetThinkingLevel { level } => {
                let level = thinking::clamp_word(self.session().model(), &level);
                let done = self.change_level(async |session| session.set_thinking(level).await.map(Some)).await;
                done.map_or_else(|error| answerer.failed(&with_causes(&error)), |_| answerer.done())
            }
            Command::CycleThinkingLevel => {
                match self.change_level(async |session| session.cycle_thinking().await).await {
                    Ok(Some(level)) => answerer.with(&json!({"level": level.as_str()})),
                    Ok(None) => answerer.with(&Value::Null),
                    Err(error) => answerer.failed(&with_causes(&error)),
                }
            }
            Command::SetSessionName { name } => self.set_name(&answerer, &name).await,
            Command::NewSession { parent } => {
                let work = self.runtime.new_session(parent);
                let done = meanwhile(&mut self.io, &self.desk.ui, &mut self.left, work).await;
                let done = done.map(|()| None).map_err(ForkError::Session);
                self.replaced(done, false, &answerer)
            }
            Command::SwitchSession { path } => {
                let work = self.runtime.switch_session(Path::new(&path));
                match meanwhile(&mut self.io, &self.desk.ui, &mut self.left, work).await {
                    Ok(is_done) => {
                        self.desk = Desk::of(self.runtime, &self.desk.ui.clone());
                        answerer.with(&json!({"cancelled": !is_done}))
                    }
                    Err(error) => answerer.failed(&with_causes(&error)),
                }
            }
            Command::Fork { entry } => {
                let done = self.fork(&entry, ForkAt::Before).await;
                self.replaced(done, true, &answerer)
            }
            Command::Clone => {
                let log = self.session().log();
                if log.is_saved() && log.leaf_id().is_none() {
                    answerer.failed("Cannot clone session: no current entry selected")
                } else {
                    let leaf = log.leaf_id().cloned().unwrap_or_else(|| EntryId::new(""));
                    let done = self.fork(&leaf, ForkAt::Entry).await;
                    self.replaced(done, false, &answerer)
                }
            }
            // Nothing runs that could be stopped.
            _ => answerer.done(),
        };
        self.io.write(line).await;
    }

    fn session(&mut self) -> &mut AgentSession {
        self.runtime.session_mut()
    }

    async fn fork(&mut self, entry: &EntryId, place: ForkAt) -> Result<Option<String>, ForkError> {
        let work = self.runtime.fork(entry, place);
        meanwhile(&mut self.io, &self.desk.ui, &mut self.left, work).await
    }

    async fn prompt(&mut self, answerer: Answerer, said: Said) {
        let cancel = self.stop.child();
        let prompt = Prompt {
            text: said.text,
            images: said.images,
            cancel: cancel.clone(),
            source: InputSource::Rpc,
            ..Prompt::default()
        };
        let busy = Busy::new(&mut self.io, &self.desk, Kind::Prompt, cancel, Some(answerer));
        let run = self.runtime.session_mut().prompt(prompt);
        let left = busy.pull(run.map(|item| item.map_or_else(Work::Failed, Work::Event))).await;
        self.after_work(left).await;
    }

    async fn compact(&mut self, answerer: Answerer, focus: Option<String>) {
        let cancel = self.stop.child();
        let request = CompactRequest { cancel: cancel.clone(), ..CompactRequest::manual(focus) };
        let busy = Busy::new(&mut self.io, &self.desk, Kind::Compaction, cancel, Some(answerer));
        let session = self.runtime.session_mut();
        let work = pulled(|emitter| async move {
            let end = session.compact_telling(request, &Gives(&emitter)).await;
            emitter.emit(Work::Compacted(end)).await;
        });
        let left = busy.pull(work).await;
        self.after_work(left).await;
    }

    /// Catches up with what was asked for while the session was at work.
    async fn after_work(&mut self, left: Left) {
        self.runtime.session().answer_looks();
        for ran in left.ran {
            self.ran(ran).await;
        }
        for dealt in left.dealt {
            self.desk.dealt(&mut self.io, dealt).await;
        }
    }

    /// Does what extensions have asked for while the session was at rest.
    async fn attend(&mut self) {
        let cancel = self.stop.child();
        let busy = Busy::new(&mut self.io, &self.desk, Kind::Prompt, cancel.clone(), None);
        let run = self.runtime.session_mut().attend(&cancel);
        let left = busy.pull(run.map(|item| item.map_or_else(Work::Failed, Work::Event))).await;
        self.after_work(left).await;
    }

    /// Reads settings, resources and extensions anew.
    async fn reload(&mut self) {
        match meanwhile(&mut self.io, &self.desk.ui, &mut self.left, self.runtime.reload()).await {
            Ok(()) => self.desk = Desk::of(self.runtime, &self.desk.ui.clone()),
            Err(error) => {
                let line = json!({"type": "session_error", "error": with_causes(&error)});
                self.io.write(format!("{line}\n").into_bytes()).await;
            }
        }
    }

    async fn set_model(&mut self, answerer: &Answerer, provider: &str, id: &str) -> Vec<u8> {
        let model = match self.desk.available(provider, id) {
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
        let models = self.desk.models_to_cycle();
        let mut next = None;
        let done = self
            .change_level(async |session| {
                next = session.cycle_model(&models, Direction::Forward).await?;
                Ok(None::<()>)
            })
            .await;
        match (done, next) {
            (Err(error), _) => answerer.failed(&with_causes(&error)),
            (Ok(_), None) => answerer.with(&Value::Null),
            (Ok(_), Some(next)) => {
                let is_scoped = self.desk.is_scoped();
                let level = self.session().thinking();
                answerer.with(
                    &json!({"model": next.model.to_shown_record(), "thinkingLevel": level.as_str(), "isScoped": is_scoped}),
                )
            }
        }
    }

    /// Does something that may change the thinking level, and says so when it did.
    async fn change_level<T>(
        &mut self,
        change: impl AsyncFnOnce(&mut AgentSession) -> Result<Option<T>, SessionError>,
    ) -> Result<Option<T>, SessionError> {
        let before = self.session().thinking();
        let work = change(self.runtime.session_mut());
        let done = meanwhile(&mut self.io, &self.desk.ui, &mut self.left, work).await?;
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
        if let Err(error) = meanwhile(&mut self.io, &self.desk.ui, &mut self.left, work).await {
            return answerer.failed(&with_causes(&error));
        }
        let name = self.session().log().name();
        self.io.event(&SessionEvent::InfoChanged { name }).await;
        answerer.done()
    }

    /// The answer to a command that may have brought another session. An extension may have stood against it.
    fn replaced(&mut self, done: Result<Option<String>, ForkError>, tells_text: bool, answerer: &Answerer) -> Vec<u8> {
        let (text, cancelled) = match done {
            Ok(text) => {
                self.desk = Desk::of(self.runtime, &self.desk.ui.clone());
                (text.unwrap_or_default(), false)
            }
            Err(ForkError::Session(SessionError::Stayed)) => (String::new(), true),
            Err(error) => return answerer.failed(&fork_error(&error)),
        };
        match tells_text {
            true => answerer.with(&json!({"text": text, "cancelled": cancelled})),
            false => answerer.with(&json!({"cancelled": cancelled})),
        }
    }

    async fn ran(&mut self, ran: Ran) {
        let line = match ran.end {
            Ok(done) => {
                let line = ran.answerer.with(&results::user_command(&done));
                let now = self.desk.services.host().now_ms();
                let record = done.into_record(&ran.command, ran.exclude, now);
                match self.session().record_bash(record).await {
                    Ok(()) => line,
                    Err(error) => ran.answerer.failed(&with_causes(&error)),
                }
            }
            Err(error) => ran.answerer.failed(&error.to_string()),
        };
        self.io.write(line).await;
    }
}

/// Gives what a compaction tells to whoever pulls it.
struct Gives<'g>(&'g Emitter<Work>);

impl Listener for Gives<'_> {
    fn event(&self, event: SessionEvent) -> BoxFuture<'_, ()> {
        Box::pin(self.0.emit(Work::Event(event)))
    }
}

fn fork_error(error: &ForkError) -> String {
    match error {
        ForkError::Session(SessionError::Store(StoreError::NoEntry { .. })) => ForkError::NotAMessage.to_string(),
        _ => with_causes(error),
    }
}
