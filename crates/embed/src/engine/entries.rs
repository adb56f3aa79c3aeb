//! Entries of session keys, as long as they refer to the session in question.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pinch_coding_agent::session_log::SessionLog;
use pinch_coding_agent::store::{SessionRef, StoreError};
use pinch_ports::{Fence, PortError, SessionEntry};

use super::resolve;
use crate::key;
use crate::parts::Parts;
use crate::run::RunRequest;

/// Returns the path of an entry's transcript, if it is not where the store puts it.
pub(super) fn session_file(parts: &Parts, key: &str, entry: &SessionEntry) -> Option<PathBuf> {
    let dir = parts.state_dir.join("agents").join(key::agent(key).as_str()).join("sessions");
    match (&entry.session_file, key::topic(key)) {
        (Some(file), _) => Some(dir.join(Path::new(file))),
        (None, Some(topic)) => Some(dir.join(resolve::file_name(&format!("{}-topic-{topic}", entry.session_id)))),
        (None, None) => None,
    }
}

/// Opens the transcript of a key's session.
pub(super) async fn transcript(parts: &Parts, key: &str, entry: &SessionEntry) -> Result<SessionLog, StoreError> {
    let at = match session_file(parts, key, entry) {
        Some(file) => SessionRef::Path(file),
        None => resolve::request(parts, &entry.session_id, Some(key), None, "").session,
    };
    SessionLog::open(&parts.host, Arc::clone(&parts.store), &at, "").await
}

/// Returns the entry of a request's key; `None` if there is no key, or if it now refers to another session.
pub(super) async fn of_request(parts: &Parts, request: &RunRequest) -> Result<Option<SessionEntry>, PortError> {
    let Some(key) = request.session_key.as_deref() else { return Ok(None) };
    let entry = parts.index.get(key).await?;
    Ok(entry.filter(|entry| entry.session_id == request.session_id))
}

/// Changes the entry of a request's key, unless it now refers to another session.
pub(super) async fn change(
    parts: &Parts,
    request: &RunRequest,
    fence: Arc<dyn Fence>,
    change: impl Fn(&SessionEntry) -> SessionEntry + Send + Sync + 'static,
) -> Result<(), PortError> {
    let Some(key) = request.session_key.as_deref() else { return Ok(()) };
    let session_id = request.session_id.clone();
    let change = move |known: Option<SessionEntry>| match known {
        Some(known) if known.session_id == session_id => Some(change(&known)),
        other => other,
    };
    parts.index.update(key, Some(fence), Arc::new(change)).await.map(drop)
}
