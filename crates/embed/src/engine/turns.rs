//! Messages to sessions that may be busy: steering, follow-ups, collected messages, interruptions.

use std::sync::Arc;

use pinch_agent_core::queue::QueueKind;
use pinch_llm::message::Image;
use pinch_stdx::cancel::CancelReason;

use super::inbound;
use crate::config::messages::InboxMode;
use crate::inbox::{Arrival, InboundMessage, MessageRefusal, Outcome, Pending, TurnGuard, Waiting};
use crate::key::RunId;
use crate::parts::Parts;
use crate::parts::active::RunTarget;
use crate::plugin::{MessageContext, MessageHooks};
use crate::run::{RunError, RunRequest};

/// What happens to a message.
#[derive(Debug)]
#[non_exhaustive]
pub enum Turn {
    /// The caller must run this request. The session's next message waits until the request and its run are dropped.
    Run(Box<RunRequest>),
    /// A current or past run has read it, or a run that another caller starts will.
    Joined {
        /// Id of the run.
        run_id: RunId,
    },
    /// Too many messages were waiting, or a later one interrupted them.
    Dropped,
    /// It was already sent with the same idempotency key.
    Duplicate {
        /// Id of the run that read it, if any yet.
        run_id: Option<RunId>,
    },
}

/// Waits until the fate of a message is decided.
pub(super) async fn send(parts: &Arc<Parts>, message: InboundMessage) -> Result<Turn, RunError> {
    if parts.gate.is_closed() {
        return Err(RunError::Draining);
    }
    let key = inbound::canonical(parts, &message.key)?;
    let hooks = MessageHooks::new(
        &parts.registered.plugins,
        || MessageContext::new(&message.caller, Some(&key), None),
        message.to.as_ref(),
    );
    hooks.received(&message.caller, &message.text, message.images.len(), parts.host.now_ms());
    queue(parts, key, message).await
}

/// Waits until the fate of a message is decided that need not come from a person. `key`: the canonical one.
pub(super) async fn queue(parts: &Arc<Parts>, key: String, message: InboundMessage) -> Result<Turn, RunError> {
    let pending = match parts.seen.admit(&key, &message).await {
        Ok(pending) => pending,
        Err(refusal) => return refused(refusal),
    };
    let rules = &parts.config.messages;
    let mode = message.mode.unwrap_or_else(|| rules.mode_of(message.caller.channel.as_deref()));
    match mode {
        // A host may also run a session without asking for its turn.
        InboxMode::Steer => {
            if let Some(run_id) = steer(parts, &key, &message).await {
                pending.confirm(&run_id);
                return Ok(Turn::Joined { run_id });
            }
        }
        InboxMode::Interrupt if parts.inbox.is_busy(&key) => {
            parts.inbox.clear(&key);
            parts.active.abort(RunTarget::Session(&key), CancelReason::Superseded);
        }
        InboxMode::Interrupt | InboxMode::FollowUp | InboxMode::Collect => {}
    }
    let joins = matches!(mode, InboxMode::Steer | InboxMode::Collect);
    loop {
        let (guard, has_waited) = match parts.inbox.arrive(&key, &message, joins, rules) {
            Arrival::Dropped => return Ok(Turn::Dropped),
            Arrival::Leads(guard) => (guard, false),
            Arrival::Waits(outcome) => match tokio::select! {
                biased;
                outcome = outcome => outcome,
                () = parts.gate.closed() => return Err(RunError::Draining),
            } {
                Ok(Outcome::Leads(guard)) => (guard, true),
                Ok(Outcome::Joined { run_id }) => {
                    pending.confirm(&run_id);
                    return Ok(Turn::Joined { run_id });
                }
                Ok(Outcome::Dropped) => return Ok(Turn::Dropped),
                // The caller that had taken it gave up, so it waits again.
                Err(_) => continue,
            },
        };
        return lead(parts, &key, (message, pending), guard, has_waited && joins).await;
    }
}

/// Handles a message that gets no run because of its idempotency key.
fn refused(refusal: MessageRefusal) -> Result<Turn, RunError> {
    match refusal {
        MessageRefusal::Known { run_id } => Ok(Turn::Duplicate { run_id }),
        MessageRefusal::Conflict => {
            Err(RunError::Config("another message of this session had the same idempotency key".to_owned()))
        }
    }
}

/// Steers the active run of a session with a message. Returns the id of the run that read it, or `None`.
async fn steer(parts: &Parts, key: &str, message: &InboundMessage) -> Option<RunId> {
    let target = RunTarget::Session(key);
    let run_id = parts.active.find_id(target)?;
    let (text, images) = (message.text.clone(), message.images.clone());
    parts.active.queue(target, text, images, QueueKind::Steering).await.ok().map(|()| run_id)
}

/// Handles the turn of a leading message and of those that its run also reads.
async fn lead(
    parts: &Arc<Parts>,
    key: &str,
    (message, pending): (InboundMessage, Pending),
    guard: TurnGuard,
    takes_along: bool,
) -> Result<Turn, RunError> {
    let mut others = Vec::new();
    if takes_along {
        // People often send several messages in a row.
        let debounce = parts.config.messages.debounce;
        while let Some(quiet_at) = parts.inbox.last_arrival(key).map(|last| last + debounce)
            && quiet_at > tokio::time::Instant::now()
        {
            tokio::time::sleep_until(quiet_at).await;
        }
        others = parts.inbox.take_along(key, &message);
    }
    let (text, images) = merged(&message, &others, parts.inbox.take_dropped(key));
    let mut request = inbound::message(parts, key, &text).await?;
    request.images = images;
    let spawned_by = request.caller.spawned_by.take();
    request.caller = message.caller;
    request.caller.spawned_by = request.caller.spawned_by.take().or(spawned_by);
    request.message_to = message.to;
    request.turn = Some(Arc::new(guard));
    // If another process was faster, the others wait again.
    if let Err(refusal) = pending.claim(&request.run_id).await {
        return refused(refusal);
    }
    others.into_iter().for_each(|other| other.join(&request.run_id));
    Ok(Turn::Run(Box::new(request)))
}

/// Returns the combined text and images of several messages.
fn merged(message: &InboundMessage, others: &[Waiting], dropped: Option<String>) -> (String, Vec<Image>) {
    let others = others.iter().map(|other| &other.message);
    let images = std::iter::once(message).chain(others.clone()).flat_map(|one| one.images.iter().cloned()).collect();
    let texts: Vec<&str> = std::iter::once(message).chain(others).map(|one| one.text.trim()).collect();
    let text = dropped.into_iter().chain([texts.join("\n\n")]).collect::<Vec<_>>().join("\n\n");
    (text, images)
}
