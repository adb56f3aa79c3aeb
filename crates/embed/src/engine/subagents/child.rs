//! The session of a sub-agent, and the requests of its runs.

use std::sync::Arc;
use std::time::Duration;

use pinch_coding_agent::store::SessionRef;
use pinch_llm::message::Provenance;
use pinch_ports::{Caller, PortError, SessionEntry};

use super::super::{entries, inbound, replaced, resolve};
use crate::key;
use crate::parts::Parts;
use crate::parts::toolbox::SESSIONS_SPAWN;
use crate::run::request::RunTrigger;
use crate::run::{RunError, RunRequest};
use crate::sessions::entry::{PERMISSION_MODE, SPAWN_DEPTH};
use crate::subagents::record::SubagentRecord;
use crate::subagents::spawn::SpawnPlan;
use crate::subagents::wording;

/// The lane of sub-agents.
const LANE: &str = "subagent";
/// What starts runs of sub-agents, and those that report their ends.
const TRIGGER: &str = "subagent";

/// Creates the session of a sub-agent, with the limits of its requester's run.
pub(super) async fn create(parts: &Arc<Parts>, record: &SubagentRecord, plan: &SpawnPlan) -> Result<(), PortError> {
    let session_id = parts.host.ids().uuid_v4();
    let mut entry = SessionEntry::new(session_id.clone(), parts.host.now_ms());
    entry.spawned_by = Some(record.requester_session_key.clone());
    entry.label.clone_from(&record.label);
    entry.thinking_level = plan.thinking.map(|level| level.as_str().to_owned());
    if let Some(model) = &plan.model {
        entry.provider_override.clone_from(&model.provider);
        entry.model_override = Some(model.model.clone());
        // Fallbacks are allowed, because no user has chosen the model.
        entry.extra.insert("modelOverrideSource".to_owned(), "auto".into());
    }
    entry.extra.insert(SPAWN_DEPTH.to_owned(), record.spawn_depth.into());
    if let Some(mode) = record.requester_limits.permission_mode() {
        entry.extra.insert(PERMISSION_MODE.to_owned(), mode.name().into());
    }
    let key = &record.child_session_key;
    parts.index.update(key, None, Arc::new(move |_| Some(entry.clone()))).await?;
    replaced::notify(parts, key, &session_id, &replaced::ReplacedEntry::default()).await;
    Ok(())
}

/// Creates the request for the next run of a sub-agent.
pub(super) async fn request(
    parts: &Arc<Parts>,
    record: &SubagentRecord,
    caller: &Caller,
    text: &str,
) -> Result<RunRequest, RunError> {
    let mut request = inbound::continued(parts, &record.child_session_key, text).await?;
    apply(parts, record, &mut request);
    let spawned_by = request.caller.spawned_by.take();
    request.caller = caller.clone();
    request.caller.spawned_by = spawned_by.or_else(|| Some(record.requester_session_key.clone()));
    request.provenance = Some(sent_by(&record.requester_session_key));
    Ok(request)
}

/// Sets what all runs of a sub-agent's session have in common.
pub(super) fn apply(parts: &Parts, record: &SubagentRecord, request: &mut RunRequest) {
    let may_spawn = record.spawn_depth < parts.config.tools.max_spawn_depth()
        && parts.registered.toolbox.is_enabled(SESSIONS_SPAWN);
    request.lane = Some(LANE.to_owned());
    request.timeout = record.run_timeout_seconds.map(Duration::from_secs);
    request.extra_system_prompt = Some(wording::system_prompt(record, may_spawn));
    let is_same_agent = key::agent(&record.child_session_key) == key::agent(&record.requester_session_key);
    record.requester_limits.apply(request, is_same_agent);
    request.requires_sandbox |= record.requires_sandbox;
    request.spawn_depth = Some(request.spawn_depth.unwrap_or(0).max(record.spawn_depth));
    request.block_replies = None;
    request.message_to = None;
    request.trigger = RunTrigger::Other(TRIGGER.to_owned());
}

/// Sets that no person has started a run, but the end of a sub-agent.
pub(super) fn mark_as_report(request: &mut RunRequest, record: &SubagentRecord) {
    request.trigger = RunTrigger::Other(TRIGGER.to_owned());
    request.provenance = Some(sent_by(&record.child_session_key));
}

fn sent_by(key: &str) -> Provenance {
    Provenance {
        kind: "inter_session".to_owned(),
        source_session_key: Some(key.to_owned()),
        source_tool: Some(SESSIONS_SPAWN.to_owned()),
        ..Provenance::default()
    }
}

/// Removes the session of a sub-agent with its transcript.
pub(super) async fn delete(parts: &Arc<Parts>, record: &SubagentRecord) {
    let key = &record.child_session_key;
    let entry = match parts.index.get(key).await {
        Ok(Some(entry)) => entry,
        Ok(None) => return,
        Err(error) => return tracing::warn!(%error, key = key.as_str(), "could not delete the session of a sub-agent"),
    };
    let at = match entries::session_file(parts, key, &entry) {
        Some(file) => SessionRef::Path(file),
        None => resolve::request(parts, &entry.session_id, Some(key), None, "").session,
    };
    match parts.store.remove(&at).await {
        Err(error) if !error.is_not_found() => {
            tracing::warn!(%error, key = key.as_str(), "could not delete the transcript of a sub-agent");
        }
        _ => {}
    }
    if let Err(error) = parts.index.update(key, None, Arc::new(|_| None)).await {
        tracing::warn!(%error, key = key.as_str(), "could not delete the session of a sub-agent");
    }
}
