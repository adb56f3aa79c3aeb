//! Ids that command-line agents use for a session, stored in the entry of its key.

use std::collections::BTreeMap;
use std::sync::Arc;

use pinch_ports::{Fence, SessionEntry};
use serde_json::Value;

use super::entries;
use crate::parts::Parts;
use crate::run::RunRequest;
use crate::run::cli_sessions::CliSessions;
use crate::run::scope::RunScope;
use crate::runner::BoxedRunResult;
use crate::sessions::entry;

/// Returns the ids stored for the session of a request.
pub(super) async fn known(parts: &Parts, request: &RunRequest) -> CliSessions {
    let entry = match entries::of_request(parts, request).await {
        Ok(Some(entry)) => entry,
        Ok(None) => return CliSessions::default(),
        Err(error) => {
            tracing::warn!(%error, "could not look up the session ids of command-line agents");
            return CliSessions::default();
        }
    };
    let mut known: BTreeMap<String, String> = BTreeMap::new();
    let legacy = entry.extra.get(entry::CLAUDE_SESSION).and_then(Value::as_str);
    known.extend(legacy.map(|id| (entry::CLAUDE.to_owned(), id.to_owned())));
    let ids = entry.extra.get(entry::CLI_SESSIONS).and_then(Value::as_object);
    known.extend(ids.into_iter().flatten().filter_map(|(name, id)| Some((name.clone(), id.as_str()?.to_owned()))));
    CliSessions::new(known)
}

/// Stores the ids that a run has learned. Its result contains the session id of the agent that answered.
pub(super) async fn remember(parts: &Parts, scope: &RunScope, fence: Arc<dyn Fence>, result: &mut BoxedRunResult) {
    let learned = scope.cli_sessions.recorded();
    if learned.is_empty() {
        return;
    }
    if let Ok(result) = result
        && let Some(id) = learned.get(&result.meta.agent.provider)
    {
        result.meta.agent.session_id = id.into();
    }
    let change = move |known: &SessionEntry| entry::after_cli(known, &learned);
    if let Err(error) = entries::change(parts, &scope.request, fence, change).await {
        tracing::warn!(%error, "could not store the session ids of command-line agents");
    }
}
