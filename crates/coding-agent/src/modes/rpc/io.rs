//! What goes in and out: lines of the client, and lines for it.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use pinch_agent_core::tool::ToolError;
use pinch_stdx::cancel::{Cancel, CancelReason};
use serde_json::json;
use tokio::sync::mpsc;

use super::MAX_LINE;
use super::dialogs::ClientUi;
use crate::event::SessionEvent;
use crate::extension::UserBashAction;
use crate::protocol::EventWriter;
use crate::protocol::command::{self, ClientLine, Refused, Request};
use crate::protocol::response::Answerer;
use crate::session::SessionControl;
use crate::tools::bash::{BashTool, UserCommand};

/// The client's side of the protocol.
#[derive(Debug)]
pub struct Lines {
    /// What the client writes. Its end is the end of the program.
    pub incoming: mpsc::Receiver<Incoming>,
    /// What the client reads: whole lines with their line feeds. The program waits while it is full.
    pub outgoing: mpsc::Sender<Bytes>,
}

/// What a client writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Incoming {
    /// A line, without its line feed.
    Line(Bytes),
    /// A line of more than [`super::MAX_LINE`] bytes, which was passed over.
    TooLong,
}

impl Incoming {
    /// What it says.
    fn read(&self) -> Result<ClientLine, Refused> {
        match self {
            Self::Line(line) => command::parse(line),
            Self::TooLong => Err(Refused::no_command(&format!("the line is longer than {} MiB", MAX_LINE >> 20))),
        }
    }
}

/// What happens outside of a session.
pub(super) enum Heard {
    /// The client says something.
    Line(Incoming),
    /// A command of the user has ended.
    Ran(Box<Ran>),
    /// An extension has dealt with something.
    Dealt(Dealt),
    /// The client has nothing more to say, or does not read any more.
    End,
}

/// What extensions have dealt with beside the session.
pub(super) enum Dealt {
    /// A command of theirs has ended.
    Command(Answerer),
    /// They let a message pass, which waits in a queue now, or have kept it.
    Said { answerer: Answerer, is_queued: bool },
}

/// A command of the user that has ended.
pub(super) struct Ran {
    pub(super) answerer: Answerer,
    pub(super) command: String,
    pub(super) exclude: bool,
    pub(super) end: Result<UserCommand, ToolError>,
}

/// Both directions, and the commands of the user that run beside the session.
pub(super) struct Io {
    lines: Lines,
    /// The client has said its last word.
    ended: bool,
    /// The program is asked to end.
    stop: Cancel,
    events: EventWriter,
    /// What the client was told of the queues last.
    queues: (Vec<String>, Vec<String>),
    /// Lines of those who cannot wait for the client.
    aside: mpsc::UnboundedReceiver<Bytes>,
    to_aside: mpsc::UnboundedSender<Bytes>,
    /// The next of them, when the client has no room for it.
    held: Option<Bytes>,
    running: FuturesUnordered<BoxFuture<'static, Heard>>,
    commands: Cancel,
}

impl Io {
    /// The command of a line. Replies reach those who wait for them, and what is no line of the protocol is refused.
    pub(super) async fn command_of(&mut self, line: &Incoming, ui: &ClientUi) -> Option<Request> {
        match line.read() {
            Ok(ClientLine::Command(request)) => return Some(*request),
            Ok(ClientLine::UiReply(reply)) => ui.reply(reply),
            Ok(ClientLine::ToolReply(reply)) => ui.reply_to_call(reply),
            Err(refused) => self.write(refused.line()).await,
        }
        None
    }

    /// `None` when the person behind the client serves another one.
    pub(super) fn new(lines: Lines, ui: &ClientUi, stop: &Cancel) -> Option<Self> {
        let (to_aside, aside) = (ui.lines(), ui.take_outcome()?);
        Some(Self {
            lines,
            ended: false,
            stop: stop.clone(),
            events: EventWriter::new(),
            queues: Default::default(),
            aside,
            to_aside,
            held: None,
            running: FuturesUnordered::new(),
            commands: stop.child(),
        })
    }

    /// For lines that come from where nobody can wait; they stand before whatever is written later.
    pub(super) fn aside(&self) -> mpsc::UnboundedSender<Bytes> {
        self.to_aside.clone()
    }

    /// Writes a line. Where nobody reads any more it is dropped.
    pub(super) async fn write(&mut self, line: Vec<u8>) {
        while let Some(line) = self.held.take().or_else(|| self.aside.try_recv().ok()) {
            drop(self.lines.outgoing.send(line).await);
        }
        drop(self.lines.outgoing.send(line.into()).await);
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

    /// Shows the queues, unless the client knows them like this.
    pub(super) async fn queues(&mut self, steering: Vec<String>, follow_up: Vec<String>) {
        if self.queues.0 != steering || self.queues.1 != follow_up {
            self.show_queues(steering, follow_up).await;
        }
    }

    /// Shows the queues, also to a client that knows them like this.
    pub(super) async fn show_queues(&mut self, steering: Vec<String>, follow_up: Vec<String>) {
        self.queues = (steering.clone(), follow_up.clone());
        let event = SessionEvent::QueueUpdate { steering, follow_up };
        if let Some(line) = self.events.line(&event).map(<[u8]>::to_vec) {
            self.write(line).await;
        }
    }

    /// Waits for the next thing that happens. Dropping the wait loses nothing.
    pub(super) async fn hear(&mut self) -> Heard {
        loop {
            tokio::select! {
                biased;
                room = self.lines.outgoing.reserve(), if self.held.is_some() => {
                    if let (Ok(room), Some(line)) = (room, self.held.take()) {
                        room.send(line);
                    }
                }
                Some(line) = self.aside.recv(), if self.held.is_none() => self.held = Some(line),
                () = self.lines.outgoing.closed(), if !self.ended => {
                    self.ended = true;
                    return Heard::End;
                }
                _ = self.stop.cancelled(), if !self.ended => {
                    self.ended = true;
                    return Heard::End;
                }
                Some(heard) = self.running.next() => return heard,
                line = self.lines.incoming.recv(), if !self.ended => match line {
                    Some(line) => return Heard::Line(line),
                    None => {
                        self.ended = true;
                        return Heard::End;
                    }
                },
                else => std::future::pending().await,
            }
        }
    }

    /// Whether the client does not read any more.
    pub(super) fn nobody_reads(&self) -> bool {
        self.lines.outgoing.is_closed()
    }

    /// Whether the client has said its last word.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Whether commands of the user still run.
    pub(super) fn runs_commands(&self) -> bool {
        !self.running.is_empty()
    }

    /// Waits for extensions beside everything else.
    pub(super) fn beside(&mut self, work: impl Future<Output = Dealt> + Send + 'static) {
        self.running.push(work.map(Heard::Dealt).boxed());
    }

    /// Starts a command of the user, if no extension stands against it; what it prints is written as it comes.
    pub(super) fn start(
        &mut self,
        answerer: Answerer,
        control: SessionControl,
        shell: Arc<BashTool>,
        command: String,
        exclude: bool,
    ) {
        let aside = self.aside();
        let cancel = self.commands.child();
        let work = async move {
            let mut tell = |text: &str| {
                let mut event = json!({"type": "bash_execution_update"});
                if let Some(id) = answerer.id() {
                    event["id"] = id.clone();
                }
                event["delta"] = text.into();
                // Who is gone is found out by the next line that waits.
                drop(aside.send(format!("{event}\n").into()));
            };
            let end = match control.before_bash(&command, exclude).await {
                UserBashAction::Run => shell.run_for_user(&command, &mut tell, &cancel).await,
                UserBashAction::RunOn(machine) => shell.on(machine).run_for_user(&command, &mut tell, &cancel).await,
                UserBashAction::Instead(ran) => Ok(ran),
                UserBashAction::Block { reason } => Err(ToolError::new(reason)),
            };
            Heard::Ran(Box::new(Ran { answerer, command, exclude, end }))
        };
        self.running.push(work.boxed());
    }

    /// Stops all commands of the user.
    pub(super) fn stop_commands(&mut self) {
        self.commands.cancel(CancelReason::User);
        self.commands = self.stop.child();
    }
}
