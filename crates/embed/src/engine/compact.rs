//! Compacts a session at the request of its host.

use std::sync::Arc;

use pinch_coding_agent::auth::{FixedAuth, RequestAuth};
use pinch_coding_agent::compaction::Compacted;
use pinch_llm::model::Model;
use pinch_llm::request::Auth;
use pinch_ports::{Fence, SessionEntry};
use pinch_stdx::cancel::Deadline;
use serde_json::{Map, Value, json};

use super::{agents, entries, hooked, leasing, resolve};
use crate::parts::Parts;
use crate::parts::credentials::advice;
use crate::run::{RunError, RunRequest};
use crate::runner::hard_end;
use crate::runtime::AttemptRuntime;
use crate::sessions::entry;

/// Outcome of a request to compact a session.
#[derive(Clone, Debug, PartialEq)]
pub enum CompactionOutcome {
    /// Old messages were replaced with a summary.
    Compacted(CompactedSession),
    /// Nothing was changed.
    NotCompacted {
        /// The reason, for people.
        reason: String,
    },
}

/// Result of a compaction.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CompactedSession {
    /// The summary.
    pub summary: String,
    /// The first entry of the transcript that the model still reads verbatim.
    pub first_kept_entry_id: String,
    /// Tokens in the conversation before the compaction.
    pub tokens_before: u64,
    /// Estimated tokens afterwards; `None` if the estimate is not below `tokens_before`.
    pub tokens_after: Option<u64>,
    /// Details such as the files that the summary lists.
    pub details: Option<Value>,
}

impl CompactionOutcome {
    /// Returns the JSON form: `{ok, compacted, reason?, result?}`.
    pub fn to_json(&self) -> Value {
        let session = match self {
            Self::NotCompacted { reason } => return json!({"ok": false, "compacted": false, "reason": reason}),
            Self::Compacted(session) => session,
        };
        let mut result = Map::new();
        result.insert("summary".into(), session.summary.as_str().into());
        result.insert("firstKeptEntryId".into(), session.first_kept_entry_id.as_str().into());
        result.insert("tokensBefore".into(), session.tokens_before.into());
        if let Some(tokens) = session.tokens_after {
            result.insert("tokensAfter".into(), tokens.into());
        }
        if let Some(details) = &session.details {
            result.insert("details".into(), details.clone());
        }
        json!({"ok": true, "compacted": true, "result": result})
    }
}

/// Compacts the session of a request.
pub(super) async fn compact(parts: &Arc<Parts>, request: RunRequest, instructions: Option<&str>) -> CompactionOutcome {
    match try_compact(parts, request, instructions).await {
        Ok(session) => CompactionOutcome::Compacted(session),
        Err(error) => CompactionOutcome::NotCompacted { reason: error.to_string() },
    }
}

async fn try_compact(
    parts: &Arc<Parts>,
    request: RunRequest,
    instructions: Option<&str>,
) -> Result<CompactedSession, RunError> {
    if let Some(why) = &parts.config.unusable {
        return Err(RunError::Config(why.clone()));
    }
    let _admitted = parts.gate.admit()?;
    let parts = &agents::of_request(parts, &request);
    let cancel = match request.timeout {
        Some(limit) => request.cancel.child_until(Deadline::after(limit)),
        None => request.cancel.child(),
    };
    let model = resolve::candidates(parts, &request)?.into_iter().next().ok_or(RunError::NoModel)?;
    let runtime = resolve::runtimes(parts, &request)?.of(&model);
    let lease = Box::pin(leasing::acquire(parts, &request, &*runtime, None, &cancel)).await?;
    parts.profiles.refresh().await;
    let auth = auth(parts, &request, &*runtime, &model)?;
    let hooks = hooked::of_run(parts, &request);
    let scope = Box::new(Box::pin(resolve::scope(parts, Box::new(request), hooks, lease.fence())).await?);
    let active = parts.active.register(&scope.request, cancel.clone());
    let work = async {
        let mut attempts = runtime.open(&scope, model).await?;
        active.attach(attempts.control());
        attempts
            .compact(instructions, auth, cancel.clone())
            .await
            .map_err(|refusal| RunError::Config(refusal.to_string()))
    };
    let compacted = tokio::select! {
        biased;
        compacted = Box::pin(work) => compacted?,
        () = lease.keep() => {
            return Err(RunError::Busy("another process took over the session".to_owned()));
        }
        reason = hard_end(&cancel) => return Err(RunError::Cancelled(reason)),
    };
    let session = outcome(compacted);
    record(parts, &scope.request, lease.fence(), &session).await;
    Ok(session)
}

/// Returns the credentials of the first usable profile.
fn auth(
    parts: &Parts,
    request: &RunRequest,
    runtime: &dyn AttemptRuntime,
    model: &Model,
) -> Result<Arc<dyn RequestAuth>, RunError> {
    if !runtime.capabilities().profiles {
        return Ok(Arc::new(FixedAuth(Auth::default())));
    }
    let selection = parts
        .profiles
        .select(model, request.auth_profile.as_ref())
        .map_err(|error| RunError::Config(error.to_string()))?;
    let usable = selection.ids.iter().find(|id| selection.locked || parts.profiles.is_usable(id, model));
    let profile = usable.or(selection.ids.first());
    parts.profiles.auth(profile, model).map_err(|error| RunError::Config(advice(&error)))
}

fn outcome(compacted: Compacted) -> CompactedSession {
    let after = compacted.estimated_tokens_after;
    CompactedSession {
        summary: compacted.summary,
        first_kept_entry_id: compacted.first_kept_entry_id.as_str().to_owned(),
        tokens_before: compacted.tokens_before,
        tokens_after: (after <= compacted.tokens_before).then_some(after),
        details: compacted.details,
    }
}

/// Counts the compaction in the entry of the session's key.
async fn record(parts: &Parts, request: &RunRequest, fence: Arc<dyn Fence>, compacted: &CompactedSession) {
    let (tokens, now) = (compacted.tokens_after, parts.host.now_ms());
    let change = move |known: &SessionEntry| entry::after_compaction(known, tokens, now);
    if let Err(error) = entries::change(parts, request, fence, change).await {
        tracing::warn!(%error, "could not record a compaction");
    }
}
