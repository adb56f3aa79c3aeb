//! Waiting for extensions without leaving their questions unanswered.

use std::future::Future;
use std::pin::pin;

use super::control::SessionControl;
use super::errands::Errand;
use super::stats::usage_of;
use crate::extension::actions::{Act, Acted};
use crate::session_log::SessionLog;

/// Waits for an extension, and answers its questions meanwhile.
pub(super) async fn attended<T>(control: &SessionControl, log: &SessionLog, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = control.until(|state| state.errands.has_questions()) => answer_questions(control, log),
        }
    }
}

/// Answers the questions that wait.
pub(super) fn answer_questions(control: &SessionControl, log: &SessionLog) {
    while let Some(Errand { act, reply }) = control.share(|state| state.errands.take_question()) {
        let answer = match act {
            Act::Branch => Acted::Entries(log.active_branch().entries().collect()),
            Act::Entries => Acted::Entries(log.entries().collect()),
            _ => {
                let context_window = control.look(|state| state.now.model.context_window);
                Acted::Usage(usage_of(log, &log.context().messages, context_window))
            }
        };
        // Who asked may have given up meanwhile.
        drop(reply.send(Ok(answer)));
    }
}
