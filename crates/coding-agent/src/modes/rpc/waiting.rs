//! Serving a client while its session is being created, replaced or changed: it can answer dialogs, and everything else waits.

use std::pin::pin;

use super::dialogs::ClientUi;
use super::io::{FinishedBash, FinishedTask, Io, IoEvent};
use crate::protocol::command::{RpcCommand, RunCommand};

/// What has finished while the session was not available, to be handled when it is again.
#[derive(Default)]
pub(super) struct Backlog {
    /// Shell commands of the user.
    pub(super) bash: Vec<FinishedBash>,
    /// Other tasks beside the session.
    pub(super) tasks: Vec<FinishedTask>,
}

/// Runs something that needs the session for itself, and lets the client answer dialogs meanwhile: an extension may ask the user before it lets
/// the work continue. `abort` dismisses the dialog that is open; it is answered later, like every other command.
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
