//! Waiting for extensions without leaving their questions unanswered.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use super::control::SessionControl;
use super::errands::Errand;
use super::look::SessionView;
use super::stats::usage_of;
use crate::extension::actions::{Act, Acted};
use crate::session_log::SessionLog;

/// Waits for something that takes time, answers the questions of extensions meanwhile, and shows the session to those who want to look at it.
pub(super) async fn attended<T>(control: &SessionControl, log: &SessionLog, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = control.wants_answers() => answer_questions(control, log),
        }
    }
}

/// Answers the questions that wait, and lets those look who want to.
pub(super) fn answer_questions(control: &SessionControl, log: &SessionLog) {
    let now = control.peek(|state| Arc::clone(&state.now));
    show(control, &SessionView::of_log(log, &now.model, now.thinking));
    while let Some(Errand { act, reply }) = control.share(|state| state.errands.take_question()) {
        let answer = match act {
            Act::Branch => Acted::Entries(log.active_branch().entries().collect()),
            Act::Entries => Acted::Entries(log.entries().collect()),
            _ => {
                let context_window = control.peek(|state| state.now.model.context_window);
                Acted::Usage(usage_of(log, &log.context(), context_window))
            }
        };
        // Who asked may have given up meanwhile.
        drop(reply.send(Ok(answer)));
    }
}

/// Shows the session to those who want to look at it.
pub(super) fn show(control: &SessionControl, view: &SessionView<'_>) {
    if control.peek(|state| state.looks.is_empty()) {
        return;
    }
    let looks = control.share(|state| std::mem::take(&mut state.looks));
    looks.into_iter().for_each(|look| look.at(view));
}
