//! Input and output: lines of the client, lines for it, and the tasks that run beside the session.

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

/// Pages that are written at the same time; others wait.
const PAGES_AT_ONCE: usize = 4;
/// Lines of the client that are read ahead.
const AHEAD: usize = 16;

/// Commands that may wait for the session, or run beside it; further ones are refused.
pub(super) const MAX_WAITING: usize = 1024;

/// The error of commands beyond that.
pub(super) const TOO_MANY: &str =
    "1024 commands are waiting already. Wait for their answers before you send more, or send abort";

/// How long a client that has hung up may go without reading a line before it is given up.
const GRACE: Duration = Duration::from_secs(10);

/// The client's side of the protocol.
#[derive(Debug)]
pub struct LineChannel {
    /// What the client writes. Its end cancels what runs and ends the program.
    pub incoming: mpsc::Receiver<IncomingLine>,
    /// What the client reads: whole lines with their line feeds. The program waits while it is full.
    pub outgoing: mpsc::Sender<Bytes>,
    /// Is cancelled when the client will write nothing more, though some of what it wrote may not have come in yet.
    pub hung_up: Cancel,
}

/// What a client writes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IncomingLine {
    /// A line, without its line feed.
    Line(Bytes),
    /// A line of more than [`super::MAX_LINE`] bytes, which was passed over.
    TooLong,
}

impl IncomingLine {
    /// What it says.
    fn read(&self) -> Result<ClientLine, RejectedLine> {
        match self {
            Self::Line(line) => command::parse(line),
            Self::TooLong => Err(RejectedLine::no_command(&format!("the line is longer than {} MiB", MAX_LINE >> 20))),
        }
    }
}

/// Whether a command may start a task beside the session.
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

/// What happens outside of the session.
pub(super) enum IoEvent {
    /// The client wrote a line.
    Line(IncomingLine),
    /// A shell command of the user has ended.
    BashFinished(Box<FinishedBash>),
    /// Another task beside the session has ended.
    TaskFinished(FinishedTask),
    /// The client writes nothing more, or does not read any more.
    Closed,
}

/// A task beside the session that has ended.
pub(super) enum FinishedTask {
    /// A command of an extension.
    ExtensionCommand(Answerer),
    /// The extensions that see input have let a message pass, so that it waits in a queue now, or have taken it.
    Input { answerer: Answerer, is_queued: bool },
    /// An HTML page, with the answer to its command.
    Page(Vec<u8>),
}

/// A shell command of the user that has ended.
pub(super) struct FinishedBash {
    pub(super) answerer: Answerer,
    pub(super) command: String,
    pub(super) exclude: bool,
    pub(super) end: Result<UserCommand, ToolError>,
}

/// Both directions, and the tasks that run beside the session.
pub(super) struct Io {
    lines: LineChannel,
    /// Lines that were read and not handled yet.
    ahead: VecDeque<IncomingLine>,
    /// Commands that wait for the session.
    postponed: VecDeque<RpcRequest>,
    /// The client writes nothing more.
    is_silent: bool,
    /// [`IoEvent::Closed`] was returned.
    ended: bool,
    /// The program is asked to end.
    asked: Cancel,
    /// The same, also when the client goes.
    stop: Cancel,
    events: EventWriter,
    /// The queues as the client saw them last.
    queues: (Vec<String>, Vec<String>),
    /// Lines of those who cannot wait for the client.
    aside: Outbox,
    /// Commands of the user that were started.
    n_commands: u64,
    running: FuturesUnordered<BoxFuture<'static, IoEvent>>,
    commands: Cancel,
    /// Bounds the pages that are written at the same time.
    pages: Arc<Semaphore>,
}

impl Io {
    /// The command of a line. Replies are dispatched, and invalid lines are rejected.
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

    /// `None` when the person behind the client serves another one.
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

    /// For lines from code that cannot wait; they come before whatever is written later.
    pub(super) fn aside(&self) -> Outbox {
        self.aside.clone()
    }

    /// Writes a line; it is dropped when the client does not read any more.
    pub(super) async fn write(&mut self, line: Vec<u8>) {
        while let Some(line) = self.aside.pop() {
            self.send(line).await;
        }
        self.send(line.into()).await;
    }

    /// Waits for the client to take a line. A client that goes meanwhile is noticed.
    async fn send(&mut self, line: Bytes) {
        let mut given_up = std::pin::pin!(self.given_up());
        let Self { lines: LineChannel { incoming, outgoing, .. }, ahead, is_silent, stop, .. } = self;
        {
            let mut room = std::pin::pin!(outgoing.reserve());
            loop {
                tokio::select! {
                    biased;
                    room = &mut room => {
                        // There is none once the client is gone.
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

    /// Waits until a client that has hung up, or whom the program leaves, has not read for a while.
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

    /// Gives the client up.
    fn give_up(&mut self) {
        self.lines.outgoing = mpsc::channel(1).0;
        self.stop.cancel(CancelReason::Shutdown);
    }

    /// Keeps a command until the session has time for it; refused when too many wait.
    pub(super) async fn postpone(&mut self, request: RpcRequest) {
        if self.postponed.len() < MAX_WAITING {
            self.postponed.push_back(request);
        } else {
            self.write(Answerer::of(&request).failed(TOO_MANY)).await;
        }
    }

    /// The next command that waits for the session.
    pub(super) fn next_postponed(&mut self) -> Option<RpcRequest> {
        self.postponed.pop_front()
    }

    /// Commands that wait for the session.
    pub(super) fn n_postponed(&self) -> usize {
        self.postponed.len()
    }

    /// Writes an event, if it is one that is written.
    pub(super) async fn event(&mut self, event: &SessionEvent) {
        if let SessionEvent::QueueUpdate { steering, follow_up } = event {
            return self.queues(steering.clone(), follow_up.clone()).await;
        }
        if let Some(line) = self.events.line(event).map(<[u8]>::to_vec) {
            self.write(line).await;
        }
    }

    /// Sends the queues, unless they are as the client saw them last.
    pub(super) async fn queues(&mut self, steering: Vec<String>, follow_up: Vec<String>) {
        if self.queues.0 != steering || self.queues.1 != follow_up {
            self.show_queues(steering, follow_up).await;
        }
    }

    /// Sends the queues in any case.
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
            // A client that does not read is not read from either: the answers would have nowhere to go.
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

    /// Is cancelled when the program is asked to end.
    pub(super) fn asked(&self) -> &Cancel {
        &self.asked
    }

    /// Is cancelled when the client goes, or the program is asked to end.
    pub(super) fn stop(&self) -> &Cancel {
        &self.stop
    }

    /// Whether the client does not read any more.
    pub(super) fn nobody_reads(&self) -> bool {
        self.lines.outgoing.is_closed()
    }

    /// Whether the end of the client was reported.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Whether commands of the user still run.
    pub(super) fn runs_commands(&self) -> bool {
        !self.running.is_empty()
    }

    /// A permit for each page that may be written now.
    pub(super) fn pages(&self) -> Arc<Semaphore> {
        Arc::clone(&self.pages)
    }

    /// Runs a task beside everything else.
    pub(super) fn start_task(&mut self, task: impl Future<Output = FinishedTask> + Send + 'static) {
        self.running.push(task.map(IoEvent::TaskFinished).boxed());
    }

    /// Starts a shell command of the user, unless an extension blocks it. Its output is written as it comes, and it pauses while the client does
    /// not read.
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
