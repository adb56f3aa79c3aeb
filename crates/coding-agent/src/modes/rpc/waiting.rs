//! Serving a client while its session is created, replaced or changed: it can answer dialogs, and everything else waits.

use std::pin::pin;

use super::dialogs::ClientUi;
use super::io::{FinishedBash, FinishedTask, Io, IoEvent};
use crate::protocol::command::{RpcCommand, RunCommand};

/// What finished while the session was unavailable, to be handled later.
#[derive(Default)]
pub(super) struct Backlog {
    /// Shell commands of the user.
    pub(super) bash: Vec<FinishedBash>,
    /// Other tasks.
    pub(super) tasks: Vec<FinishedTask>,
}

/// Runs work that needs exclusive access to the session, letting the client answer dialogs meanwhile: an extension may ask the user before
/// it lets the work continue. `abort` dismisses the open dialog; like every other command, it is answered later.
pub(super) async fn serve_during<T>(
    io: &mut Io,
    ui: &ClientUi,
    backlog: &mut Backlog,
    work: impl Future<Output = T>,
) -> T {
    let mut work = pin!(work);
    loop {
        let event = tokio::select! {
            biased;
            done = &mut work => return done,
            event = io.next_event() => event,
        };
        match event {
            IoEvent::Line(line) => {
                if let Some(request) = io.command_of(&line, ui).await {
                    if request.command == RpcCommand::Run(RunCommand::Abort) {
                        ui.dismiss();
                    }
                    io.postpone(request).await;
                }
            }
            IoEvent::BashFinished(finished) => backlog.bash.push(*finished),
            IoEvent::TaskFinished(finished) => backlog.tasks.push(finished),
            IoEvent::Closed => ui.close(),
        }
    }
}
