//! Runs sub-agents: creates their sessions, carries out their runs in the background, and reports their ends.

use std::sync::Arc;
use std::time::Duration;

use crate::parts::Parts;
use crate::parts::background::BackgroundTasks;
use crate::parts::toolbox::{SESSIONS_SPAWN, SUBAGENTS};
use crate::subagents::registry::SubagentStoreError;

mod child;
mod announce;
mod driver;
mod restore;
mod spawn_tool;
mod control_tool;
mod offered;

pub(super) use offered::tools_of_run;

/// How often to look whether another program has released the sub-agents.
const BUSY_PAUSE: Duration = Duration::from_secs(2);

/// Opens the registry of sub-agents. The first time, those that an earlier engine did not finish go on.
pub(super) async fn open(background: &Arc<BackgroundTasks>, parts: &Arc<Parts>) -> Result<(), SubagentStoreError> {
    if parts.subagents.open(&parts.state_dir).await? {
        restore::restore(background, parts);
    }
    Ok(())
}

/// Goes on with the sub-agents of an earlier engine, if there are any and their tools are enabled.
pub(super) fn resume(background: &Arc<BackgroundTasks>, parts: &Arc<Parts>) {
    let toolbox = &parts.registered.toolbox;
    if !(toolbox.is_enabled(SESSIONS_SPAWN) || toolbox.is_enabled(SUBAGENTS)) {
        return;
    }
    let (weak, parts) = (Arc::downgrade(background), Arc::clone(parts));
    background.spawn(async move {
        loop {
            let Some(background) = weak.upgrade() else { return };
            match open(&background, &parts).await {
                Ok(()) => return,
                // A predecessor that is still ending, or another program that may end later.
                Err(error @ SubagentStoreError::Busy(_)) => tracing::debug!(%error, "waiting for the sub-agents"),
                Err(error) => return tracing::warn!(%error, "sub-agents of an earlier engine do not go on"),
            }
            drop(background);
            tokio::select! {
                biased;
                () = parts.gate.closed() => return,
                () = tokio::time::sleep(BUSY_PAUSE) => {}
            }
        }
    });
}
