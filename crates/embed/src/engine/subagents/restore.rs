//! Sub-agents of an earlier engine, and the removal of old ones.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::child;
use super::driver::SubagentDriver;
use crate::parts::Parts;
use crate::parts::background::BackgroundTasks;
use crate::subagents::record::{SubagentOutcome, SubagentStatus};
use crate::subagents::wording;

/// How often old sub-agents are looked for.
const SWEEP: Duration = Duration::from_secs(60);
/// A sub-agent that started longer ago does not go on after a restart.
const MAX_AGE_MS: i64 = 2 * 60 * 60 * 1000;

/// Goes on with sub-agents that an earlier engine did not finish, and starts to look for old ones.
pub(super) fn restore(background: &Arc<BackgroundTasks>, parts: &Arc<Parts>) {
    let now = parts.host.now_ms();
    for record in parts.subagents.find(|record| record.cleanup_completed_at.is_none()) {
        let id = record.run_id.to_string();
        if !parts.subagents.revive(&id) {
            continue;
        }
        let (caller, _) = record.origin();
        let driver = SubagentDriver { background: Arc::downgrade(background), id: id.clone(), caller };
        if record.ended_at.is_none() && now - record.created_at <= MAX_AGE_MS {
            let first = match record.started_at {
                None => wording::task_message(&record.task),
                Some(_) => wording::resume_message(&record.task),
            };
            background.spawn(async move { Box::pin(driver.run(first)).await });
            continue;
        }
        parts.subagents.change(&id, |record| {
            // A run was about to read the report, which got no further.
            record.announce_retry_count += u32::from(record.cleanup_handled);
            if record.ended_at.is_none() {
                record.ended_at = Some(now);
                let error = "the program ended before it did".to_owned();
                record.outcome = Some(SubagentOutcome::new(SubagentStatus::Unknown, Some(error)));
            }
        });
        let subagents = parts.subagents.clone();
        background.spawn(async move {
            Box::pin(driver.report()).await;
            subagents.rest(&id);
        });
    }
    background.spawn(sweep_always(Arc::downgrade(background)));
}

/// Removes old sub-agents until the engine ends.
async fn sweep_always(background: Weak<BackgroundTasks>) {
    loop {
        let Some(parts) = background.upgrade().and_then(|background| background.parts()) else { return };
        sweep(&parts).await;
        tokio::select! {
            biased;
            () = parts.gate.closed() => return,
            () = tokio::time::sleep(SWEEP) => {}
        }
    }
}

/// Removes the sub-agents whose time has come, with their sessions.
async fn sweep(parts: &Arc<Parts>) {
    let now = parts.host.now_ms();
    let is_due = |at: Option<i64>| at.is_some_and(|at| at <= now);
    let due = parts.subagents.find(|record| is_due(record.archive_at_ms) && record.cleanup_completed_at.is_some());
    for record in &due {
        child::delete(parts, record).await;
        parts.subagents.remove(&record.run_id);
    }
    if !due.is_empty() {
        parts.subagents.save_or_warn().await;
    }
}
