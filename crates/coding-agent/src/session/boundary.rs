//! Entries that extensions append after a turn, or before the session becomes idle.

use pinch_llm::message::Message;
use pinch_stdx::cancel::Cancel;
use tokio::sync::oneshot;

use super::AgentSession;
use super::answering::answering;
use super::control::SessionControl;
use super::emitter::SessionEmitter;
use super::requests::PendingEntries;
use crate::compaction::{estimate, prepare};
use crate::entry::{Compaction, EntryBody, EntryId};
use crate::extension::{AnswerOutcome, BeforeSettle, Boundary, Draft, Point};
use crate::session_log::SessionLog;
use crate::store::StoreError;

impl SessionControl {
    /// Makes the current run append drafts. The error describes why none was appended.
    pub(super) async fn draft(&self, drafts: Vec<Draft>) -> Result<(), String> {
        if drafts.is_empty() {
            return Ok(());
        }
        let (reply, answer) = oneshot::channel();
        self.share(|state| state.drafted = Some(PendingEntries { drafts, reply }));
        answer.await.unwrap_or_else(|_| Err("The session is closed".to_owned()))
    }

    /// Appends the pending drafts. Returns whether the conversation may have changed.
    pub(super) async fn take_drafts(
        &self,
        log: &mut SessionLog,
        emitter: &SessionEmitter<'_>,
    ) -> Result<bool, StoreError> {
        if self.peek(|state| state.drafted.is_none()) {
            return Ok(false);
        }
        let Some(PendingEntries { drafts, reply }) = self.share(|state| state.drafted.take()) else { return Ok(false) };
        let done = Box::pin(append(drafts, log, emitter)).await?;
        let any = done.is_ok();
        // The receiver may have been dropped.
        drop(reply.send(done));
        Ok(any)
    }
}

/// Calls the extensions before the session becomes idle. Returns whether to call the model again.
pub(super) async fn before_settle(
    session: &mut AgentSession,
    emitter: &SessionEmitter<'_>,
    cancel: &Cancel,
) -> Result<bool, StoreError> {
    let (control, point) = (session.control.clone(), Point::AgentBeforeSettle);
    if !control.extensions().wants(point) {
        return Ok(false);
    }
    let answer = session.agent.messages.iter().rev().find_map(|message| message.as_assistant());
    let outcome = answer.map(|answer| AnswerOutcome::of(&answer.stop_reason)).unwrap_or_default();
    let asking = control.extensions().before_settle(BeforeSettle { outcome });
    let Boundary { drafts, continues } = answering(&control, &session.log, asking).await;
    if let Err(why) = append(drafts, &mut session.log, emitter).await? {
        control.extensions().report_boundary(point, format!("Invalid boundary entries: {why}"));
        return Ok(false);
    }
    session.reload();
    let waits = !session.agent.queues().is_empty();
    if cancel.is_cancelled() || !(continues || waits && outcome == AnswerOutcome::Completed) {
        return Ok(false);
    }
    let last = session.agent.messages.iter().rev().find(|message| !matches!(***message, Message::System(_)));
    let can = last.is_some_and(|last| waits || last.as_assistant().is_none());
    if !can {
        let why = "agent_before_settle requested continuation without runnable model context".to_owned();
        control.extensions().report_boundary(point, why);
    }
    Ok(can)
}

/// Appends drafts in order and emits an event for each. If one is invalid, none is appended; the inner error names it.
async fn append(
    drafts: Vec<Draft>,
    log: &mut SessionLog,
    emitter: &SessionEmitter<'_>,
) -> Result<Result<(), String>, StoreError> {
    if let Err(wrong) = drafts.iter().try_for_each(|draft| check(draft, log)) {
        return Ok(Err(wrong));
    }
    for draft in drafts {
        let body = match emitter.control.admitted_draft(draft).await {
            Draft::Custom { custom_type, data } => EntryBody::Custom { custom_type, data },
            Draft::Message(message) => EntryBody::CustomMessage(message),
            Draft::Edit { target, replacement } => EntryBody::ContextEdit { target_id: target, replacement },
            Draft::Compaction { summary, first_kept, details, usage } => {
                let context = log.context();
                EntryBody::Compaction(Compaction {
                    summary,
                    first_kept_entry_id: first_kept,
                    tokens_before: estimate::tokens_of(&context).tokens,
                    details,
                    from_hook: Some(true),
                    usage,
                    system_message: prepare::system_state(&context.messages),
                })
            }
        };
        let id = log.append(body).await?;
        emitter.entry_appended(log, &id).await;
    }
    Ok(Ok(()))
}

fn check(draft: &Draft, log: &SessionLog) -> Result<(), String> {
    let on_branch = |id: &EntryId| match log.active_branch().ids().any(|other| other == id) {
        true => Ok(()),
        false => Err(format!("Entry {id} is not on the branch")),
    };
    match draft {
        Draft::Edit { target, .. } => {
            on_branch(target)?;
            match log.entry(target).map(|entry| can_be_edited(&entry.body)) {
                Some(true) => Ok(()),
                _ => Err(format!("Entry {target} is not a message with editable content")),
            }
        }
        Draft::Compaction { first_kept: Some(first), .. } => on_branch(first),
        Draft::Compaction { .. } | Draft::Custom { .. } | Draft::Message(_) => Ok(()),
    }
}

fn can_be_edited(body: &EntryBody) -> bool {
    match body {
        EntryBody::CustomMessage(_) => true,
        EntryBody::Message(message) => {
            matches!(**message, Message::User(_) | Message::Assistant(_) | Message::ToolResult(_))
        }
        _ => false,
    }
}
