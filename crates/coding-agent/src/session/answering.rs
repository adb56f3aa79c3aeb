//! Waiting for extensions while answering their queries.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use super::control::{ControlState, SessionControl};
use super::requests::PendingRequest;
use super::stats::usage_of;
use super::view::SessionView;
use crate::extension::actions::{ActionOutcome, SessionAction};
use crate::session_log::SessionLog;

/// Waits for a future, meanwhile answering queries of extensions and calling observers.
pub(super) async fn answering<T>(control: &SessionControl, log: &SessionLog, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = control.has_queries() => answer_queries(control, log),
        }
    }
}

/// Answers the pending queries and calls the observers.
pub(super) fn answer_queries(control: &SessionControl, log: &SessionLog) {
    if !control.peek(ControlState::has_queries) {
        return;
    }
    let now = control.peek(|state| Arc::clone(&state.now));
    notify_observers(control, &SessionView::of_log(log, &now.model, now.thinking));
    while let Some(PendingRequest { act, reply }) = control.share(|state| state.requests.take_query()) {
        let answer = match act {
            SessionAction::Branch => ActionOutcome::Entries(log.active_branch().entries().collect()),
            SessionAction::Entries => ActionOutcome::Entries(log.entries().collect()),
            SessionAction::Context => ActionOutcome::Context(Box::new(log.context())),
            SessionAction::Header => ActionOutcome::Header(Box::new(log.header().clone())),
            _ => {
                let context_window = control.peek(|state| state.now.model.context_window);
                ActionOutcome::Usage(usage_of(log, &log.context(), context_window))
            }
        };
        // The extension may have given up meanwhile.
        drop(reply.send(Ok(answer)));
    }
}

/// Calls the observers with a view of the session.
pub(super) fn notify_observers(control: &SessionControl, view: &SessionView<'_>) {
    if control.peek(|state| state.observers.is_empty()) {
        return;
    }
    let observers = control.share(|state| std::mem::take(&mut state.observers));
    observers.into_iter().for_each(|observer| observer.call(view));
}
