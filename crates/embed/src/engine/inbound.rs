//! Messages by session key: finds or begins the session, and records the outcome of its run.

use std::sync::Arc;

use pinch_coding_agent::store::SessionRef;
use pinch_ports::{Fence, OverrideSource, PortError, SessionEntry};
use pinch_tools::policy::{PermissionMode, nesting_depth};

use super::replaced::ReplacedEntry;
use super::{agents, entries, replaced, resolve};
use crate::config::thinking::parse_level;
use crate::key::{self, ProfileId};
use crate::parts::Parts;
use crate::plugin::ResetReason;
use crate::profiles::choice::{ProfileChoice, ProfileSource};
use crate::profiles::pin::SessionPin;
use crate::replies::ReasoningLevel;
use crate::replies::tool_notes::Verbose;
use crate::run::result::RunMeta;
use crate::run::{RunError, RunRequest, UsageLine};
use crate::sessions::entry::{self, PERMISSION_MODE, RunRecord, SPAWN_DEPTH};
use crate::sessions::reset;
use crate::workspace;

/// The prompt of a message that only starts a new session.
const GREETING: &str =
    "The user has started a new session. Greet them in one or two sentences, and ask what they would like to do.";

/// Creates the request for a message: for its key's current session, with the settings of that session.
pub(super) async fn message(parts: &Arc<Parts>, key: &str, text: &str) -> Result<RunRequest, RunError> {
    let key = canonical(parts, key)?;
    let parts = &agents::of_agent(parts, &workspace::agent_of(&parts.config.agents, None, Some(&key)).0);
    let parsed = reset::parse(&parts.config.session, text);
    let now = parts.host.now_ms();
    let parent = match key::thread_parent(&key) {
        Some(parent) => parts.index.get(parent).await.map_err(port_error)?,
        None => None,
    };
    let (session_id, host, rules) = (parts.host.ids().uuid_v4(), parts.host.clone(), parts.config.session.reset);
    let resets = parsed.resets;
    let (new_id, replaced) = (session_id.clone(), ReplacedEntry::default());
    let noted = replaced.clone();
    let change = move |known: Option<SessionEntry>| {
        noted.set(None);
        Some(match known {
            None => entry::begin(&new_id, now, parent.as_ref()),
            Some(known) if resets || reset::is_due(rules, known.updated_at, &host, now) => {
                let reason = if resets { ResetReason::Asked } else { ResetReason::Rules };
                noted.set(Some((known.clone(), reason)));
                entry::start_anew(&known, &new_id, now)
            }
            Some(mut known) => {
                known.updated_at = now;
                known
            }
        })
    };
    let found = parts.index.update(&key, None, Arc::new(change)).await.map_err(port_error)?;
    let found = found.ok_or_else(|| RunError::Internal(format!("the session index no longer contains {key}")))?;
    if found.session_id == session_id {
        replaced::notify(parts, &key, &session_id, &replaced).await;
    }
    let prompt = if parsed.resets && parsed.text.is_empty() { GREETING } else { parsed.text };
    of_entry(parts, &key, &found, found.session_id == session_id, prompt).await
}

/// Creates the request for a further message to a session that exists, whatever the message says and the reset rules.
pub(super) async fn continued(parts: &Arc<Parts>, key: &str, text: &str) -> Result<RunRequest, RunError> {
    let parts = &agents::of_agent(parts, &workspace::agent_of(&parts.config.agents, None, Some(key)).0);
    let found = parts.index.get(key).await.map_err(port_error)?;
    let found = found.ok_or_else(|| RunError::Config(format!("the session {key} does not exist")))?;
    of_entry(parts, key, &found, false, text).await
}

/// Creates the request for a prompt to the session of an entry.
async fn of_entry(
    parts: &Parts,
    key: &str,
    entry: &SessionEntry,
    is_new: bool,
    prompt: &str,
) -> Result<RunRequest, RunError> {
    let mut request = resolve::request(parts, &entry.session_id, Some(key), None, prompt);
    request.is_indexed = true;
    if let Some(file) = entries::session_file(parts, key, entry) {
        request.session = SessionRef::Path(file);
    }
    apply(entry, &mut request)?;
    pin(parts, key, entry, is_new, &mut request).await?;
    Ok(request)
}

/// Returns the canonical form of a key.
pub(super) fn canonical(parts: &Parts, key: &str) -> Result<String, RunError> {
    // A key of the old form names its agent.
    let (agent, _) = workspace::agent_of(&parts.config.agents, None, Some(key));
    key::canonical(key, &agent, &parts.config.session.main_key).ok_or_else(|| {
        RunError::Config(format!("malformed session key {key:?}: expected agent:<id>:<name>, or a name alone"))
    })
}

/// Applies the settings of a session. Words unknown to this version are ignored, except in a limit.
fn apply(entry: &SessionEntry, request: &mut RunRequest) -> Result<(), RunError> {
    if let Some(mode) = entry.extra.get(PERMISSION_MODE) {
        let known = mode.as_str().and_then(PermissionMode::parse);
        request.permission_mode = Some(known.ok_or_else(|| {
            let names = PermissionMode::ALL.map(PermissionMode::name).join(", ");
            RunError::Config(format!("the session has the unknown {PERMISSION_MODE} {mode}; expected one of {names}"))
        })?);
    }
    request.caller.spawned_by.clone_from(&entry.spawned_by);
    let stored = entry.extra.get(SPAWN_DEPTH).and_then(|depth| depth.as_u64());
    // The host may set another caller, but the session stays that of a sub-agent.
    let derived = || entry.spawned_by.as_deref().map(|parent| nesting_depth("", Some(parent), &|_| None));
    request.spawn_depth = stored.map(|depth| depth.try_into().unwrap_or(u32::MAX)).or_else(derived);
    if let Some(level) = entry.thinking_level.as_deref().and_then(parse_level) {
        request.think_level = Some(level);
    }
    if let Some(level) = entry.verbose_level.as_deref().and_then(Verbose::parse) {
        request.verbose_level = level;
    }
    if let Some(level) = entry.reasoning_level.as_deref().and_then(ReasoningLevel::parse) {
        request.reasoning_level = level;
    }
    if let Some(line) = entry.extra.get("responseUsage").and_then(|word| UsageLine::parse(word.as_str()?)) {
        request.usage_line = line;
    }
    if let Some(model) = &entry.model_override {
        request.model = Some(model.clone());
        request.provider.clone_from(&entry.provider_override);
        // Never silently replace what the user chose.
        if entry.extra.get("modelOverrideSource").is_none_or(|source| source == "user") {
            request.fallbacks = Some(Vec::new());
        }
    }
    Ok(())
}

/// Chooses the profile that the session sticks to, and stores the choice.
async fn pin(
    parts: &Parts,
    key: &str,
    entry: &SessionEntry,
    is_new_session: bool,
    request: &mut RunRequest,
) -> Result<(), RunError> {
    // Without a model there is no run; the run itself reports why.
    let Ok(candidates) = resolve::candidates(parts, request) else { return Ok(()) };
    let Some(model) = candidates.first() else { return Ok(()) };
    let pin = SessionPin {
        profile: entry.auth_profile_override.as_deref().map(ProfileId::from),
        source: entry.auth_profile_override_source,
        chosen_at_compaction: entry.auth_profile_override_compaction_count,
        compaction_count: entry.compaction_count.unwrap_or(0),
        is_new_session,
    };
    let order = parts.profiles.order(&model.provider, Some(model.id.as_str()));
    let choice = pin.next(&order, |id| parts.profiles.is_usable(id, model));
    if is_same(entry, choice.as_ref()) {
        request.auth_profile = choice;
        return Ok(());
    }
    let (session_id, chosen) = (entry.session_id.clone(), choice.clone());
    let change = move |known: Option<SessionEntry>| {
        let mut known = known?;
        if known.session_id == session_id {
            known.auth_profile_override = chosen.as_ref().map(|choice| choice.id.to_string());
            known.auth_profile_override_source = chosen.as_ref().map(|choice| match choice.source {
                ProfileSource::Auto => OverrideSource::Auto,
                ProfileSource::User => OverrideSource::User,
            });
            known.auth_profile_override_compaction_count = chosen.as_ref().map(|_| known.compaction_count.unwrap_or(0));
        }
        Some(known)
    };
    parts.index.update(key, None, Arc::new(change)).await.map_err(port_error)?;
    request.auth_profile = choice;
    Ok(())
}

/// Returns whether an entry already contains the choice. A choice made by the user is left as written.
fn is_same(entry: &SessionEntry, choice: Option<&ProfileChoice>) -> bool {
    let same_id = entry.auth_profile_override.as_deref() == choice.map(|choice| choice.id.as_str());
    let counted = entry.auth_profile_override_compaction_count == Some(entry.compaction_count.unwrap_or(0));
    same_id && choice.is_none_or(|choice| choice.source == ProfileSource::User || counted)
}

/// Records the end of a run, if its session is still the current one of its key.
pub(super) async fn record(parts: &Parts, request: &RunRequest, fence: Arc<dyn Fence>, meta: &RunMeta) {
    match entries::of_request(parts, request).await {
        Ok(Some(_)) => {}
        Ok(None) => return,
        Err(error) => return tracing::warn!(%error, "could not look up the session of a run"),
    }
    let (now, run) = (parts.host.now_ms(), RunRecord::new(request, meta));
    let change = move |known: &SessionEntry| entry::after_run(known, &run, now);
    if let Err(error) = entries::change(parts, request, fence, change).await {
        tracing::warn!(%error, "could not record the end of a run");
    }
}

pub(super) fn port_error(error: PortError) -> RunError {
    match error {
        PortError::Fenced { .. } => RunError::Busy(error.to_string()),
        error => RunError::Config(error.to_string()),
    }
}
