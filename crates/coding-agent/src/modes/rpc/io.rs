//! Input and output: lines from and to the client, and tasks that run alongside the session.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use pinch_agent_core::tool::ToolError;
use pinch_stdx::cancel::{Cancel, CancelReason};
use tokio::sync::{Semaphore, mpsc};

use super::MAX_LINE;
use super::dialogs::ClientUi;
use super::outbox::Outbox;
use crate::event::SessionEvent;
use crate::extension::UserBashAction;
use crate::protocol::EventWriter;
use crate::protocol::command::{self, ClientLine, RejectedLine, RpcCommand, RpcRequest, RunCommand};
use crate::protocol::response::Answerer;
use crate::session::SessionControl;
use crate::tools::bash::{BashTool, UserCommand};

/// Maximum pages written at the same time; others wait.
const PAGES_AT_ONCE: usize = 4;
/// Maximum client lines to read ahead.
const AHEAD: usize = 16;

/// Maximum commands waiting for the session or running alongside it; further ones are rejected.
pub(super) const MAX_WAITING: usize = 1024;

/// The error for commands beyond that limit.
pub(super) const TOO_MANY: &str =
    "1024 commands are waiting already. Wait for their answers before you send more, or send abort";

/// How long a client that hung up may go without reading a line before it is dropped.
const GRACE: Duration = Duration::from_secs(10);

/// The client's end of the protocol.
#[derive(Debug)]
pub struct LineChannel {
    /// Lines from the client. Closing it cancels running work and ends the program.
    pub incoming: mpsc::Receiver<IncomingLine>,
    /// Complete lines for the client, with line feeds. The program waits while the channel is full.
    pub outgoing: mpsc::Sender<Bytes>,
    /// Cancelled when the client stops writing, although some of its lines may still be in transit.
    pub hung_up: Cancel,
}

/// Input from a client.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IncomingLine {
    /// A line, without its line feed.
    Line(Bytes),
    /// A line of more than [`super::MAX_LINE`] bytes, which was skipped.
    TooLong,
}

impl IncomingLine {
    /// Parses the line.
    fn read(&self) -> Result<ClientLine, RejectedLine> {
        match self {
            Self::Line(line) => command::parse(line),
            Self::TooLong => Err(RejectedLine::no_command(&format!("the line is longer than {} MiB", MAX_LINE >> 20))),
        }
    }
}

/// Returns whether a command may start a task alongside the session.
fn starts_task(command: &RpcCommand) -> bool {
    match command {
        RpcCommand::ExportHtml { .. } => true,
        RpcCommand::Run(run) => match run {
            RunCommand::Prompt { .. } | RunCommand::Steer(_) | RunCommand::FollowUp(_) | RunCommand::Bash { .. } => {
                true
            }
            RunCommand::ClearQueue | RunCommand::Abort | RunCommand::AbortRetry | RunCommand::AbortBash => false,
        },
        RpcCommand::Control(_) | RpcCommand::Query(_) | RpcCommand::Mutation(_) | RpcCommand::Exclusive(_) => false,
    }
}

/// An event outside the session.
pub(super) enum IoEvent {
    /// The client wrote a line.
    Line(IncomingLine),
    /// A shell command of the user ended.
    BashFinished(Box<FinishedBash>),
    /// Another task ended.
    TaskFinished(FinishedTask),
    /// The client stopped writing or reading.
    Closed,
}

/// A finished task that ran alongside the session.
pub(super) enum FinishedTask {
    /// A command of an extension.
    ExtensionCommand(Answerer),
    /// Extensions let an input message pass, so that it is queued now, or handled it.
    Input { answerer: Answerer, is_queued: bool },
    /// An HTML page, with the answer to its command.
    Page(Vec<u8>),
}

/// A finished shell command of the user.
pub(super) struct FinishedBash {
    pub(super) answerer: Answerer,
    pub(super) command: String,
    pub(super) exclude: bool,
    pub(super) end: Result<UserCommand, ToolError>,
}

/// Both directions, and the tasks that run alongside the session.
pub(super) struct Io {
    lines: LineChannel,
    /// Lines read but not handled yet.
    ahead: VecDeque<IncomingLine>,
    /// Commands waiting for the session.
    postponed: VecDeque<RpcRequest>,
    /// Whether the client stopped writing.
    is_silent: bool,
    /// Whether [`IoEvent::Closed`] was returned.
    ended: bool,
    /// Cancelled when the program should end.
    asked: Cancel,
    /// Cancelled when the program should end or the client disconnects.
    stop: Cancel,
    events: EventWriter,
    /// The queues as last sent to the client.
    queues: (Vec<String>, Vec<String>),
    /// Lines from code that cannot wait for the client.
    aside: Outbox,
    /// Number of user commands started.
    n_commands: u64,
    running: FuturesUnordered<BoxFuture<'static, IoEvent>>,
    commands: Cancel,
    /// Limits the pages written at the same time.
    pages: Arc<Semaphore>,
}

impl Io {
    /// Returns the command in a line. Replies are dispatched, and invalid lines are rejected.
    pub(super) async fn command_of(&mut self, line: &IncomingLine, ui: &ClientUi) -> Option<RpcRequest> {
        match line.read() {
            Ok(ClientLine::Command(request)) if self.running.len() >= MAX_WAITING && starts_task(&request.command) => {
                self.write(Answerer::of(&request).failed(TOO_MANY)).await;
            }
            Ok(ClientLine::Command(request)) => return Some(*request),
            Ok(ClientLine::UiReply(reply)) => ui.reply(reply),
            Ok(ClientLine::ToolReply(reply)) => ui.reply_to_call(reply),
            Err(refused) => self.write(refused.line()).await,
        }
        None
    }

    /// Returns `None` if the user interface already serves another client.
    pub(super) fn new(lines: LineChannel, ui: &ClientUi, asked: &Cancel) -> Option<Self> {
        let stop = asked.child();
        Some(Self {
            lines,
            ahead: VecDeque::new(),
            postponed: VecDeque::new(),
            is_silent: false,
            ended: false,
            asked: asked.clone(),
            stop: stop.clone(),
            events: EventWriter::new(),
            queues: Default::default(),
            aside: ui.take_lines()?,
            n_commands: 0,
            running: FuturesUnordered::new(),
            commands: stop.child(),
            pages: Arc::new(Semaphore::new(PAGES_AT_ONCE)),
        })
    }

    /// Returns the outbox for lines from code that cannot wait; they precede lines written later.
    pub(super) fn aside(&self) -> Outbox {
        self.aside.clone()
    }

    /// Writes a line; it is dropped if the client no longer reads.
    pub(super) async fn write(&mut self, line: Vec<u8>) {
        while let Some(line) = self.aside.pop() {
            self.send(line).await;
        }
        self.send(line.into()).await;
    }

    /// Waits for the client to accept a line, noticing if it disconnects meanwhile.
    async fn send(&mut self, line: Bytes) {
        let mut given_up = std::pin::pin!(self.given_up());
        let Self { lines: LineChannel { incoming, outgoing, .. }, ahead, is_silent, stop, .. } = self;
        {
            let mut room = std::pin::pin!(outgoing.reserve());
            loop {
                tokio::select! {
                    biased;
                    room = &mut room => {
                        // Fails after the client has disconnected.
                        if let Ok(room) = room {
                            room.send(line);
                        }
                        return;
                    }
                    () = &mut given_up => break,
                    line = incoming.recv(), if !*is_silent && ahead.len() < AHEAD => match line {
                        Some(line) => ahead.push_back(line),
                        None => {
                            *is_silent = true;
                            stop.cancel(CancelReason::Shutdown);
                        }
                    },
                }
            }
        }
        self.give_up();
    }

    /// Waits until the client has not read for a while after it hung up or the program began to end.
    fn given_up(&self) -> impl Future<Output = ()> + use<> {
        let (hung_up, stop) = (self.lines.hung_up.clone(), self.stop.clone());
        async move {
            tokio::select! {
                _ = hung_up.cancelled() => {}
                _ = stop.cancelled() => {}
            }
            tokio::time::sleep(GRACE).await;
        }
    }

    /// Stops serving the client.
    fn give_up(&mut self) {
        self.lines.outgoing = mpsc::channel(1).0;
        self.stop.cancel(CancelReason::Shutdown);
    }

    /// Postpones a command until the session is available; rejects it if too many are waiting.
    pub(super) async fn postpone(&mut self, request: RpcRequest) {
        if self.postponed.len() < MAX_WAITING {
            self.postponed.push_back(request);
        } else {
            self.write(Answerer::of(&request).failed(TOO_MANY)).await;
        }
    }

    /// Returns the next postponed command.
    pub(super) fn next_postponed(&mut self) -> Option<RpcRequest> {
        self.postponed.pop_front()
    }

    /// Returns the number of postponed commands.
    pub(super) fn n_postponed(&self) -> usize {
        self.postponed.len()
    }

    /// Writes an event, if it is part of the protocol.
    pub(super) async fn event(&mut self, event: &SessionEvent) {
        if let SessionEvent::QueueUpdate { steering, follow_up } = event {
            return self.queues(steering.clone(), follow_up.clone()).await;
        }
        if let Some(line) = self.events.line(event).map(<[u8]>::to_vec) {
            self.write(line).await;
        }
    }

    /// Sends the queues if they have changed.
    pub(super) async fn queues(&mut self, steering: Vec<String>, follow_up: Vec<String>) {
        if self.queues.0 != steering || self.queues.1 != follow_up {
            self.show_queues(steering, follow_up).await;
        }
    }

    /// Sends the queues unconditionally.
    pub(super) async fn show_queues(&mut self, steering: Vec<String>, follow_up: Vec<String>) {
        self.queues = (steering.clone(), follow_up.clone());
        let event = SessionEvent::QueueUpdate { steering, follow_up };
        if let Some(line) = self.events.line(&event).map(<[u8]>::to_vec) {
            self.write(line).await;
        }
    }

    /// Waits for the next event. Dropping the future loses nothing.
    pub(super) async fn next_event(&mut self) -> IoEvent {
        loop {
            // Do not read from a client that does not read: there would be no room for the answers.
            if self.aside.has_room() && !self.ended {
                if let Some(line) = self.ahead.pop_front() {
                    return IoEvent::Line(line);
                }
                if self.is_silent {
                    return self.end();
                }
            }
            let (has_lines, mut is_over, mut is_given_up) = (!self.aside.is_empty(), false, false);
            tokio::select! {
                biased;
                room = self.lines.outgoing.reserve(), if has_lines => {
                    if let (Some(line), Ok(room)) = (self.aside.pop(), room) {
                        room.send(line);
                    }
                }
                () = self.given_up(), if has_lines && !self.ended => is_given_up = true,
                () = self.aside.filled(), if !has_lines => {}
                () = self.lines.outgoing.closed(), if !self.ended => is_over = true,
                _ = self.asked.cancelled(), if !self.ended => is_over = true,
                Some(event) = self.running.next() => return event,
                line = self.lines.incoming.recv(), if !self.is_silent && self.ahead.len() < AHEAD => match line {
                    Some(line) => self.ahead.push_back(line),
                    None => {
                        self.is_silent = true;
                        self.stop.cancel(CancelReason::Shutdown);
                    }
                },
                else => std::future::pending().await,
            }
            if is_given_up {
                self.give_up();
            }
            if is_over || is_given_up {
                return self.end();
            }
        }
    }

    fn end(&mut self) -> IoEvent {
        self.ended = true;
        self.stop.cancel(CancelReason::Shutdown);
        IoEvent::Closed
    }

    /// Returns the token cancelled when the program should end.
    pub(super) fn asked(&self) -> &Cancel {
        &self.asked
    }

    /// Returns the token cancelled when the program should end or the client disconnects.
    pub(super) fn stop(&self) -> &Cancel {
        &self.stop
    }

    /// Returns whether the client stopped reading.
    pub(super) fn nobody_reads(&self) -> bool {
        self.lines.outgoing.is_closed()
    }

    /// Returns whether the client's end was reported.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Returns whether any user commands are running.
    pub(super) fn runs_commands(&self) -> bool {
        !self.running.is_empty()
    }

    /// Returns the semaphore that limits concurrent page writes.
    pub(super) fn pages(&self) -> Arc<Semaphore> {
        Arc::clone(&self.pages)
    }

    /// Starts a task alongside everything else.
    pub(super) fn start_task(&mut self, task: impl Future<Output = FinishedTask> + Send + 'static) {
        self.running.push(task.map(IoEvent::TaskFinished).boxed());
    }

    /// Starts a shell command of the user, unless an extension blocks it. Its output is streamed, and it pauses while the client does not
    /// read.
    pub(super) fn start_bash(
        &mut self,
        answerer: Answerer,
        control: SessionControl,
        shell: Arc<BashTool>,
        command: String,
        exclude: bool,
    ) {
        let aside = self.aside();
        let cancel = self.commands.child();
        self.n_commands += 1;
        let number = self.n_commands;
        let work = async move {
            let mut on_output = |text: &str| aside.push_text(number, answerer.id(), text);
            let end = match control.before_bash(&command, exclude).await {
                UserBashAction::Run => {
                    aside.paced(shell.run_for_user(&command, &mut on_output, &cancel), &cancel).await
                }
                UserBashAction::RunOn(machine) => {
                    let shell = shell.on(machine);
                    aside.paced(shell.run_for_user(&command, &mut on_output, &cancel), &cancel).await
                }
                UserBashAction::Instead(ran) => Ok(ran),
                UserBashAction::Block { reason } => Err(ToolError::new(reason)),
            };
            IoEvent::BashFinished(Box::new(FinishedBash { answerer, command, exclude, end }))
        };
        self.running.push(work.boxed());
    }

    /// Stops all commands of the user.
    pub(super) fn stop_commands(&mut self) {
        self.commands.cancel(CancelReason::User);
        self.commands = self.stop.child();
    }
}
