//! The entry of a session's key, as long as it is about that session.

use std::sync::Arc;

use pinch_ports::{Fence, PortError, SessionEntry};

use crate::parts::Parts;
use crate::run::RunRequest;

/// The entry of a request's key; `None` if there is no key, or if it means another session by now.
pub(super) async fn of_request(parts: &Parts, request: &RunRequest) -> Result<Option<SessionEntry>, PortError> {
    let Some(key) = request.session_key.as_deref() else { return Ok(None) };
    let entry = parts.index.get(key).await?;
    Ok(entry.filter(|entry| entry.session_id == request.session_id))
}

/// Changes the entry of a request's key, unless it means another session by now.
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
