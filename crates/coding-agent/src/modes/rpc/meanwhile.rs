//! A client while its session is being made, left or changed: it can answer dialogs, and everything else it says waits.

use std::pin::pin;

use super::dialogs::ClientUi;
use super::io::{Dealt, Heard, Io, Ran};
use crate::protocol::command::Command;

/// What is to be done when the session is there again.
#[derive(Default)]
pub(super) struct Left {
    /// Commands of the user that have ended.
    pub(super) ran: Vec<Ran>,
    /// What was dealt with beside the session.
    pub(super) dealt: Vec<Dealt>,
}

/// Waits for something that needs the session for itself. Without this, an extension that asks a person meanwhile would be waited for, and nobody
/// would hear the answer. `abort` ends what is asked just now; it is answered afterwards, like every other command.
pub(super) async fn meanwhile<T>(io: &mut Io, ui: &ClientUi, left: &mut Left, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    loop {
        let heard = tokio::select! {
            biased;
            done = &mut work => return done,
            heard = io.hear() => heard,
        };
        match heard {
            Heard::Line(line) => {
                if let Some(request) = io.command_of(&line, ui).await {
                    if request.command == Command::Abort {
                        ui.dismiss();
                    }
                    io.postpone(request).await;
                }
            }
            Heard::Ran(ran) => left.ran.push(*ran),
            Heard::Dealt(dealt) => left.dealt.push(dealt),
            Heard::End => ui.close(),
        }
    }
}
