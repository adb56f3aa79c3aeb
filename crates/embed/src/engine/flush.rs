//! Memory flush: a silent run in the same session, before the user's run, in which an agent saves memories before its conversation is
//! compacted.

use std::sync::Arc;

use futures::StreamExt;
use pinch_coding_agent::entry::{EntryBody, EntryId};
use pinch_coding_agent::session_log::SessionLog;
use pinch_coding_agent::store::StoreError;
use pinch_llm::model::Model;
use pinch_ports::{RunLease, SessionEntry};
use pinch_stdx::cancel::Cancel;
use pinch_stdx::pull::pulled;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{entries, hooked, inbound, leasing, replying, resolve};
use crate::compaction::memory::{self, FlushTexts, SessionSize};
use crate::parts::Parts;
use crate::parts::active::ActiveRuns;
use crate::parts::notes::WRITE;
use crate::run::request::{ReplyExpectation, RunTrigger, UsageLine};
use crate::run::scope::RunScope;
use crate::run::{RunError, RunRequest, RunResult};
use crate::runner::{BoxedRunResult, Runner};
use crate::runtime::choice::RuntimeChoice;
use crate::sessions::entry;

/// Type of the transcript entry that follows the last entry before an unsuccessful flush.
const UNDONE: &str = "pinch.memory-flush-undone";

/// What a flush needs to know about the run that it precedes.
pub(super) struct BeforeRun<'r> {
    pub(super) parts: &'r Arc<Parts>,
    pub(super) request: &'r RunRequest,
    pub(super) runtimes: &'r RuntimeChoice,
    pub(super) candidates: &'r [Arc<Model>],
    pub(super) lease: &'r dyn RunLease,
    pub(super) cancel: &'r Cancel,
}

/// Lets the agent save memories if its session is about to be compacted. A failure is logged, and the user's run continues.
pub(super) async fn save_memories(before: &BeforeRun<'_>) {
    let BeforeRun { parts, request, .. } = before;
    if matches!(request.trigger, RunTrigger::Heartbeat | RunTrigger::Memory) || request.disable_tools {
        return;
    }
    // Calls are waiting for these results; a prompt before them would mark the calls as not run.
    if !request.client_results.is_empty() {
        return;
    }
    let Some(model) = before.candidates.first() else { return };
    if !before.runtimes.of(model).capabilities().compaction {
        return;
    }
    let known = match entries::of_request(parts, request).await {
        Ok(Some(known)) => known,
        Ok(None) => return,
        Err(error) => return tracing::warn!(%error, "could not look up the size of a session"),
    };
    let config = &parts.config.agents.defaults.compaction;
    let size = size(parts, &known, model, transcript_bytes(before, model).await);
    if !memory::is_due(&config.memory_flush, size) {
        return;
    }
    let zone = parts.config.agents.defaults.prompt.time_zone.as_deref();
    let date = parts.host.local_date(parts.host.now_ms(), zone);
    let request = flush_request(request, parts.host.ids().uuid_v4(), FlushTexts::new(&config.memory_flush, &date));
    match run(before, request, model).await {
        Ok(Some(result)) if is_successful(&result) => {}
        Ok(None) => return tracing::debug!("memories are not saved: this run cannot write files"),
        Ok(Some(result)) => {
            let why = result.meta.error.map_or_else(|| "it was stopped".to_owned(), |error| error.message);
            tracing::warn!(why, "could not save memories");
        }
        Err(error) => tracing::warn!(%error, "could not save memories"),
    }
    // What failed now would also fail before the next message, and delay every one until the compaction.
    if before.cancel.reason().is_none() {
        remember(before, transcript_bytes(before, model).await).await;
    }
}

/// Returns the length of the session's file; 0 if there is none.
async fn transcript_bytes(before: &BeforeRun<'_>, model: &Model) -> u64 {
    let Some(file) = before.runtimes.of(model).session_file(before.request) else { return 0 };
    tokio::fs::metadata(file).await.map_or(0, |metadata| metadata.len())
}

fn is_successful(result: &RunResult) -> bool {
    result.meta.error.is_none() && !result.meta.aborted && !result.meta.timed_out
}

fn size(parts: &Parts, known: &SessionEntry, model: &Model, transcript_bytes: u64) -> SessionSize {
    SessionSize {
        total_tokens: known.total_tokens.unwrap_or(0),
        window: model.context_window,
        reserve_tokens: resolve::compaction_rules(parts).for_model(model).reserve_tokens,
        n_compactions: known.compaction_count.unwrap_or(0),
        asked_at: known.extra.get(entry::FLUSHED_AT_COMPACTION).and_then(Value::as_u64),
        asked_at_bytes: known.extra.get(entry::FLUSHED_AT_BYTES).and_then(Value::as_u64).unwrap_or(0),
        transcript_bytes,
    }
}

/// Builds the request of the silent run: the user's, with another prompt and no delivery.
fn flush_request(of_user: &RunRequest, run_id: String, texts: FlushTexts) -> RunRequest {
    let mut request = of_user.clone();
    request.run_id = run_id.into();
    request.trigger = RunTrigger::Memory;
    request.prompt = texts.prompt;
    request.images = Vec::new();
    request.client_tools = Vec::new();
    let sections: Vec<String> = request.extra_system_prompt.take().into_iter().chain([texts.system_prompt]).collect();
    request.extra_system_prompt = Some(sections.join("\n\n"));
    request.memory_flush_write_path = Some(texts.path);
    (request.block_replies, request.preview) = (None, None);
    (request.reply, request.usage_line) = (ReplyExpectation::Optional, UsageLine::Off);
    request
}

/// Carries out the silent run; returns `None` if it could not write anything.
async fn run(before: &BeforeRun<'_>, request: RunRequest, model: &Model) -> Result<Option<RunResult>, RunError> {
    let &BeforeRun { parts, lease, candidates, runtimes, cancel, .. } = before;
    let hooks = hooked::of_run(parts, &request);
    let scope = Box::new(Box::pin(resolve::scope(parts, Box::new(request), hooks, lease.fence())).await?);
    // Notes in a copy of the workspace do not become memories of the agent.
    let is_copy = scope.sandbox.as_ref().is_some_and(|sandbox| sandbox.access.as_deref() != Some("rw"));
    if is_copy || scope.tools.for_model(model, &scope.extensions)?.get(WRITE).is_none() {
        return Ok(None);
    }
    let leaf = transcript(parts, &scope).await.map_err(unusable)?.leaf_id().cloned();
    let result = run_silently(parts, &scope, runtimes, candidates, lease, cancel).await;
    match &result {
        Ok(result) if is_successful(result) => {
            inbound::record(parts, &scope.request, lease.fence(), &result.meta).await
        }
        _ => undo(parts, &scope, leaf.as_ref()).await.map_err(unusable)?,
    }
    result.map(|result| Some(*result))
}

async fn transcript(parts: &Parts, scope: &RunScope) -> Result<SessionLog, StoreError> {
    let mut log = SessionLog::open(&parts.host, Arc::clone(&parts.store), &scope.request.session, "").await?;
    log.set_fence(Arc::clone(&scope.fence));
    Ok(log)
}

/// Leaves what an unsuccessful run has written beside the conversation, which continues after the entry before it.
async fn undo(parts: &Parts, scope: &RunScope, leaf: Option<&EntryId>) -> Result<(), StoreError> {
    let mut log = transcript(parts, scope).await?;
    if log.leaf_id() == leaf {
        return Ok(());
    }
    match leaf {
        Some(leaf) => log.move_to(leaf)?,
        None => log.reset_leaf(),
    }
    let data = Some(json!({"runId": scope.request.run_id.as_str()}));
    log.append(EntryBody::Custom { custom_type: UNDONE.to_owned(), data }).await.map(drop)
}

fn unusable(error: StoreError) -> RunError {
    RunError::Internal(format!("cannot use the session: {error}"))
}

/// Carries out a run whose events are discarded. It is not among the active runs: a message to the session waits for the user's run.
async fn run_silently(
    parts: &Parts,
    scope: &RunScope,
    runtimes: &RuntimeChoice,
    candidates: &[Arc<Model>],
    lease: &dyn RunLease,
    cancel: &Cancel,
) -> BoxedRunResult {
    let request = &scope.request;
    let stop = cancel.child();
    let (limited, extension) = request.limited(&stop, scope.summaries.timeout());
    let active = ActiveRuns::default().register(request, stop.clone());
    let replies = replying::replies(parts, scope)?;
    let mut done = Err(RunError::Internal("the run has not ended".to_owned()));
    let slot = &mut done;
    let mut events = pulled(|emitter| async move {
        let mut runner = Runner {
            parts,
            scope,
            runtimes,
            runtime: Arc::clone(&runtimes.native),
            lease,
            active: &active,
            emitter: &emitter,
            cancel: limited,
            extension,
            stop,
            began: Instant::now(),
            replies,
            held: Vec::new(),
            reports: Vec::new(),
            outcomes: Vec::new(),
            unknown_models: Vec::new(),
            requested: None,
            has_fallbacks: false,
            failed_candidates: Vec::new(),
            failed: None,
        };
        *slot = leasing::run(&mut runner, candidates, lease).await;
    });
    while events.next().await.is_some() {}
    drop(events);
    done
}

/// Records that the agent was asked, successfully or not, since the last compaction.
async fn remember(before: &BeforeRun<'_>, transcript_bytes: u64) {
    let now = before.parts.host.now_ms();
    let change = move |known: &SessionEntry| entry::after_flush(known, now, transcript_bytes);
    if let Err(error) = entries::change(before.parts, before.request, before.lease.fence(), change).await {
        tracing::warn!(%error, "could not record that memories were saved");
    }
}
