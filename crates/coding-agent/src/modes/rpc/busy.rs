//! What a client may do while a prompt runs or a conversation is compacted.

use futures::{Stream, StreamExt};
use pinch_agent_core::event::AgentEvent;
use pinch_agent_core::queue::QueueKind;
use pinch_stdx::cancel::{Cancel, CancelReason};
use pinch_stdx::text::with_causes;
use serde_json::{Value, json};

use super::desk::{Desk, EMPTY_NAME, Question, Status};
use super::io::{Dealt, Heard, Incoming, Io, MAX_WAITING, Ran, TOO_MANY};
use super::meanwhile::Left;
use crate::compaction::{CompactError, Compacted};
use crate::event::SessionEvent;
use crate::protocol::command::{Command, Request, Said};
use crate::protocol::response::Answerer;
use crate::protocol::results;
use crate::session::{self, Change, SessionError, SessionView};

/// Events that are told before the client is listened to again.
const PIECES_IN_A_ROW: usize = 64;

/// A piece of what the session is at.
pub(super) enum Work {
    /// Something happened.
    Event(SessionEvent),
    /// The session cannot go on.
    Failed(SessionError),
    /// The conversation is compacted, or is not.
    Compacted(Result<Compacted, CompactError>),
}

/// What comes next.
enum Next {
    Piece(Option<Work>),
    Heard(Heard),
}

/// What the session is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Prompt,
    Compaction,
}

/// A client and a session at work.
pub(super) struct Busy<'a> {
    io: &'a mut Io,
    desk: &'a Desk,
    kind: Kind,
    /// Stops the work.
    cancel: Cancel,
    /// Who asked for it, until it is answered.
    asker: Option<Answerer>,
    /// Who waits for the end.
    aborts: Vec<Answerer>,
    /// Who waits for the end of the wait.
    retry_aborts: Vec<Answerer>,
    waits_for_retry: bool,
    is_compacting: bool,
    /// The run is over, as the client knows: what it says next comes after it.
    has_ended: bool,
    /// Nothing follows any more.
    is_settled: bool,
    left: Left,
}

impl<'a> Busy<'a> {
    pub(super) fn new(io: &'a mut Io, desk: &'a Desk, kind: Kind, cancel: Cancel, asker: Option<Answerer>) -> Self {
        Self {
            io,
            desk,
            kind,
            cancel,
            asker,
            aborts: Vec::new(),
            retry_aborts: Vec::new(),
            waits_for_retry: false,
            is_compacting: false,
            has_ended: false,
            is_settled: false,
            left: Left::default(),
        }
    }

    /// Pulls the work to its end and serves the client meanwhile.
    pub(super) async fn pull(mut self, work: impl Stream<Item = Work>) -> Left {
        let mut work = std::pin::pin!(work);
        let mut n_pieces = 0_usize;
        loop {
            n_pieces += 1;
            let listens = !self.is_settled;
            // What has happened is told before what is asked next, but a long answer does not keep the client waiting. Who has read that the
            // session is at rest talks to one that is.
            let next = if n_pieces.is_multiple_of(PIECES_IN_A_ROW) {
                tokio::select! {
                    biased;
                    heard = self.io.hear(), if listens => Next::Heard(heard),
                    piece = work.next() => Next::Piece(piece),
                }
            } else {
                tokio::select! {
                    biased;
                    piece = work.next() => Next::Piece(piece),
                    heard = self.io.hear(), if listens => Next::Heard(heard),
                }
            };
            match next {
                Next::Piece(Some(piece)) => self.take(piece).await,
                Next::Piece(None) => break,
                Next::Heard(Heard::Line(line)) => self.line(line).await,
                Next::Heard(Heard::Ran(ran)) => self.ran(*ran).await,
                Next::Heard(Heard::Dealt(dealt)) => self.desk.dealt(self.io, dealt).await,
                // The work is cancelled already.
                Next::Heard(Heard::End) => self.desk.ui.close(),
            }
        }
        // A prompt that went through without a word was somebody else's: an extension took it.
        if let Some(asker) = self.asker.take() {
            self.io.write(asker.with(&json!({"disposition": "handled"}))).await;
        }
        for answerer in self.retry_aborts.drain(..).chain(self.aborts.drain(..)) {
            self.io.write(answerer.done()).await;
        }
        self.left
    }

    async fn take(&mut self, piece: Work) {
        match piece {
            Work::Event(event) => self.event(event).await,
            Work::Failed(error) => {
                self.is_settled = true;
                let text = with_causes(&error);
                let line = match self.asker.take() {
                    Some(asker) => asker.failed(&text),
                    None => format!("{}\n", json!({"type": "session_error", "error": text})).into_bytes(),
                };
                self.io.write(line).await;
            }
            Work::Compacted(end) => {
                self.is_settled = true;
                if let Some(asker) = self.asker.take() {
                    let line = match end {
                        Ok(done) => asker.with(&results::compacted(&done)),
                        Err(error) => asker.failed(&with_causes(&error)),
                    };
                    self.io.write(line).await;
                }
            }
        }
    }

    async fn event(&mut self, event: SessionEvent) {
        // What extensions failed at says nothing about whether the prompt was taken.
        if self.kind == Kind::Prompt
            && !matches!(event, SessionEvent::ExtensionError(_))
            && let Some(asker) = self.asker.take()
        {
            self.io.write(asker.with(&json!({"disposition": "started"}))).await;
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
        let status = Status {
            is_streaming: self.kind == Kind::Prompt,
            is_compacting: self.is_compacting || self.kind == Kind::Compaction,
        };
        let command = match Question::new(self.desk, answerer.clone(), request.command.clone(), status) {
            Ok(question) => return self.look(move |view| question.answer(view)),
            Err(command) => command,
        };
        match command {
            Command::Prompt { queue, .. } if queue.is_none() && (self.kind == Kind::Compaction || self.has_ended) => {
                self.io.postpone(request).await;
            }
            Command::Prompt { said, queue } => self.prompt(answerer, said, queue).await,
            Command::Steer(said) => self.desk.queue(self.io, answerer, QueueKind::Steering, said).await,
            Command::FollowUp(said) => self.desk.queue(self.io, answerer, QueueKind::FollowUp, said).await,
            Command::ClearQueue => {
                let line = self.desk.clear_queues(self.io, &answerer).await;
                self.io.write(line).await;
            }
            Command::Abort => {
                self.cancel.cancel(CancelReason::User);
                match self.aborts.len() < MAX_WAITING {
                    true => self.aborts.push(answerer),
                    false => self.io.write(answerer.failed(TOO_MANY)).await,
                }
            }
            Command::AbortRetry if self.waits_for_retry && self.retry_aborts.len() < MAX_WAITING => {
                self.retry_aborts.push(answerer);
                self.desk.control.cancel_retry();
            }
            Command::AbortRetry => self.io.write(answerer.done()).await,
            Command::AbortBash => {
                self.io.stop_commands();
                self.io.write(answerer.done()).await;
            }
            Command::ExportHtml { path } => {
                let look = self.desk.write_page(self.io, answerer, path);
                self.desk.control.look(look);
            }
            Command::Bash { command, exclude } => {
                self.io.start(answerer, self.desk.control.clone(), self.desk.shell(), command, exclude)
            }
            Command::SetModel { provider, model } => match self.desk.available(&provider, &model) {
                Ok(model) => {
                    self.desk.control.change(Change::Model(std::sync::Arc::clone(&model)));
                    self.look(move |view| answerer.with(&view.model.to_shown_record()));
                }
                Err(why) => self.io.write(answerer.failed(&why)).await,
            },
            Command::CycleModel => {
                let desk = self.desk.clone();
                self.look(move |view| answerer.with(&desk.cycle_model_in_run(view)));
            }
            Command::SetThinkingLevel { level } => {
                let desk = self.desk.clone();
                self.look(move |view| {
                    let level = pinch_llm::model::thinking::clamp_word(view.model, &level);
                    desk.control.change(Change::Thinking(level));
                    answerer.done()
                });
            }
            Command::CycleThinkingLevel => {
                let desk = self.desk.clone();
                self.look(move |view| answerer.with(&desk.cycle_thinking_in_run(view)));
            }
            Command::SetSessionName { name } if name.trim().is_empty() => {
                self.io.write(answerer.failed(EMPTY_NAME)).await;
            }
            Command::SetSessionName { name } => {
                self.desk.control.change(Change::Name(name));
                self.look(move |_| answerer.done());
            }
            // What is left needs the session for itself; the run under way ends first, and in order.
            _ => {
                self.cancel.cancel(CancelReason::Superseded);
                self.io.postpone(request).await;
            }
        }
    }

    async fn prompt(&mut self, answerer: Answerer, said: Said, queue: Option<QueueKind>) {
        let control = &self.desk.control;
        if let Some((found, args)) = control.find_command(&said.text) {
            let control = control.clone();
            return self.io.beside(async move {
                control.run_command(&found, &args).await;
                Dealt::Command(answerer)
            });
        }
        match queue {
            Some(kind) => self.desk.queue(self.io, answerer, kind, said).await,
            None => self.io.write(answerer.failed(&session::Busy.to_string())).await,
        }
    }

    /// Answers with what the session shows as soon as it can be looked at.
    fn look(&self, answer: impl FnOnce(&SessionView<'_>) -> Vec<u8> + Send + 'static) {
        let aside = self.io.aside();
        self.desk.control.look(move |view| aside.push(answer(view)));
    }

    async fn ran(&mut self, ran: Ran) {
        if self.kind == Kind::Compaction {
            self.left.ran.push(ran);
            return;
        }
        let line = match ran.end {
            Ok(done) => {
                let line = ran.answerer.with(&results::user_command(&done));
                let record = done.into_record(&ran.command, ran.exclude, self.desk.services.host().now_ms());
                self.desk.control.change(Change::Bash(record));
                line
            }
            Err(error) => ran.answerer.failed(&error.to_string()),
        };
        self.io.write(line).await;
    }
}

impl Desk {
    /// Goes on to the next model while a run is under way.
    fn cycle_model_in_run(&self, view: &SessionView<'_>) -> Value {
        let models = self.models_to_cycle();
        let Some(next) = crate::session::models::next_of(&models, view.model, crate::session::Direction::Forward)
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

    /// Goes on to the next thinking level while a run is under way.
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
