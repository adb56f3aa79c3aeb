//! Reports the end of a sub-agent to the session that started it, which answers its user.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::super::engine_run::EngineRun;
use super::super::turns::{self, Turn};
use super::child;
use crate::config::messages::InboxMode;
use crate::delivery::ReplySink;
use crate::inbox::InboundMessage;
use crate::key;
use crate::parts::Parts;
use crate::parts::background::BackgroundTasks;
use crate::replies::tokens::is_silent;
use crate::run::result::RunMeta;
use crate::run::{FailureKind, RunError, RunRequest, RunResult};
use crate::runner::short_count;
use crate::subagents::record::{SubagentCleanup, SubagentRecord};
use crate::subagents::wording;

/// Pauses before the second and the third try.
const PAUSES: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(10)];

/// Why a report was not delivered.
struct ReportFailure {
    reason: String,
    /// Whether another try may succeed.
    may_pass: bool,
    /// Whether a run has begun to read it.
    has_run: bool,
}

impl ReportFailure {
    fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), may_pass: true, has_run: false }
    }
}

impl From<RunError> for ReportFailure {
    fn from(error: RunError) -> Self {
        Self::new(error.to_string())
    }
}

/// Reports the end of a sub-agent, with at most three tries. Returns false if the engine ends first: the next one reports it.
pub(super) async fn announce(background: &Weak<BackgroundTasks>, id: &str) -> bool {
    loop {
        let Some(parts) = background.upgrade().and_then(|background| background.parts()) else { return false };
        let record = parts.subagents.change(id, |record| record.cleanup_handled = true);
        let Some(record) = record else { return true };
        parts.subagents.save_or_warn().await;
        let failure = match Box::pin(deliver(&parts, &record)).await {
            Ok(()) => return true,
            Err(failure) => failure,
        };
        if parts.gate.is_closed() {
            // A report that a run has begun to read stays claimed, so that the next engine does not take it for a duplicate.
            if !failure.has_run {
                release(&parts, id).await;
            }
            return false;
        }
        let n_failed = record.announce_retry_count as usize;
        tracing::warn!(run = id, reason = failure.reason, n_failed, "the end of a sub-agent could not be reported");
        let Some(pause) = PAUSES.get(n_failed).filter(|_| failure.may_pass) else {
            let (key, now) = (&record.requester_session_key, parts.host.now_ms());
            parts.registered.events.push(key, now, wording::unannounced(&record));
            return true;
        };
        parts.subagents.change(id, |record| record.announce_retry_count += 1);
        release(&parts, id).await;
        tokio::select! {
            biased;
            () = parts.gate.closed() => return false,
            () = tokio::time::sleep(*pause) => {}
        }
    }
}

/// Records that nobody reports the end.
async fn release(parts: &Parts, id: &str) {
    parts.subagents.change(id, |record| record.cleanup_handled = false);
    parts.subagents.save_or_warn().await;
}

/// Returns whether the session of a sub-agent is deleted once that has reported.
pub(super) fn deletes_session(record: &SubagentRecord) -> bool {
    record.cleanup == SubagentCleanup::Delete
}

/// Makes one try.
async fn deliver(parts: &Arc<Parts>, record: &SubagentRecord) -> Result<(), ReportFailure> {
    let key = record.requester_session_key.as_str();
    let is_nested = key::is_subagent(key);
    let Some(text) = wording::announcement(record, &stats(record), is_nested) else { return Ok(()) };
    let known = parts.index.get(key).await.map_err(|error| ReportFailure::new(error.to_string()))?;
    if is_nested && known.is_none() {
        let gone = ReportFailure::new(format!("the session {key} no longer exists"));
        return Err(ReportFailure { may_pass: false, ..gone });
    }
    let (caller, to) = record.origin();
    let mode = match parts.config.messages.mode_of(caller.channel.as_deref()) {
        // A report does not interrupt anybody.
        InboxMode::Interrupt => InboxMode::Collect,
        mode => mode,
    };
    let mut message = InboundMessage::new(key, text).caller(caller).mode(mode);
    message.to = to;
    message.idempotency_key = Some(format!("subagent:{}:{}", record.run_id, record.announce_retry_count));
    match turns::queue(parts, key.to_owned(), message).await? {
        Turn::Run(request) => answer(parts, record, *request).await,
        Turn::Joined { .. } | Turn::Duplicate { .. } => Ok(()),
        Turn::Dropped => Err(ReportFailure::new("too many messages wait for the session")),
    }
}

/// Carries out the run in which the requester reads the report.
async fn answer(parts: &Arc<Parts>, record: &SubagentRecord, mut request: RunRequest) -> Result<(), ReportFailure> {
    let of_requester = parts.subagents.of_session(&record.requester_session_key);
    child::mark_as_report(&mut request, record);
    let sink = match &of_requester {
        Some(parent) => {
            child::apply(parts, parent, &mut request);
            request.cancel = parts.subagents.begin(parent.run_id.as_str());
            None
        }
        None => {
            record.requester_limits.apply(&mut request, true);
            sink_for(parts, &mut request)
        }
    };
    let run = EngineRun::new(Arc::clone(parts), request);
    let is_last = record.announce_retry_count as usize >= PAUSES.len();
    let result = match sink {
        None => run.finish().await,
        Some(sink) => {
            let delivered = run.deliver(Arc::clone(&sink)).await;
            // The user learns of a failure only if no other try follows.
            if is_last || failure_of(&delivered.result).is_none() {
                delivered.send_rest(sink).await;
            }
            delivered.result
        }
    };
    if let Some(parent) = of_requester {
        let (meta, answer) = facts_of(&result);
        let usage = meta.map(|meta| meta.agent.usage);
        parts.subagents.change(parent.run_id.as_str(), |parent| {
            usage.iter().for_each(|usage| parent.usage.add(usage));
            // What a sub-agent says about the report of another one is its new result.
            if !answer.trim().is_empty() && !is_silent(&answer) {
                parent.keep_result(&answer);
            }
        });
    }
    let reason = match failure_of(&result) {
        None if parts.gate.is_closed() && was_cancelled(&result) => Some("the program is ending".to_owned()),
        reason => reason,
    };
    reason.map_or(Ok(()), |reason| Err(ReportFailure { has_run: true, ..ReportFailure::new(reason) }))
}

/// Returns why the requester did not read the report, if it did not. To stop its run, or silence, is an answer.
fn failure_of(result: &Result<RunResult, RunError>) -> Option<String> {
    match result {
        _ if was_cancelled(result) => None,
        Ok(result) => {
            result.failure().filter(|failure| failure.kind != FailureKind::Empty).map(|failure| failure.message)
        }
        Err(error) => Some(error.to_string()),
    }
}

/// Returns whether a run was stopped.
pub(super) fn was_cancelled(result: &Result<RunResult, RunError>) -> bool {
    match result {
        Ok(result) => result.failure().is_some_and(|failure| failure.kind == FailureKind::Cancelled),
        Err(error) => error.kind() == FailureKind::Cancelled,
    }
}

/// Lets the host prepare the run, and returns where its reply goes.
fn sink_for(parts: &Parts, request: &mut RunRequest) -> Option<Arc<dyn ReplySink>> {
    let choose = parts.registered.background_replies.as_ref()?;
    let chosen = std::panic::catch_unwind(AssertUnwindSafe(|| choose(request)));
    chosen.unwrap_or_else(|_| {
        tracing::warn!("the host's preparation of a run panicked");
        None
    })
}

/// Returns the line about what a sub-agent used.
fn stats(record: &SubagentRecord) -> String {
    let mut parts = Vec::new();
    if let Some(ended) = record.ended_at {
        let seconds = (ended - record.started_at.unwrap_or(record.created_at)).max(0) / 1000;
        parts.push(match seconds {
            0..60 => format!("runtime {seconds}s"),
            60..3600 => format!("runtime {}m{:02}s", seconds / 60, seconds % 60),
            _ => format!("runtime {}h{:02}m", seconds / 3600, seconds / 60 % 60),
        });
    }
    let usage = &record.usage;
    if usage.input_tokens + usage.output_tokens > 0 {
        parts.push(format!("tokens {} in, {} out", short_count(usage.input_tokens), short_count(usage.output_tokens)));
    }
    if usage.cost_usd > 0.0 {
        parts.push(format!("cost ${:.4}", usage.cost_usd));
    }
    parts.push(format!("session {}", record.child_session_key));
    parts.join(" · ")
}

/// Returns what is known about a run, and its last answer.
pub(super) fn facts_of(result: &Result<RunResult, RunError>) -> (Option<&RunMeta>, String) {
    let meta = match result {
        Ok(result) => Some(&result.meta),
        Err(error) => error.meta(),
    };
    let answer = meta.and_then(|meta| meta.final_answer.as_ref()).map(|answer| answer.visible());
    (meta, answer.unwrap_or_default())
}
