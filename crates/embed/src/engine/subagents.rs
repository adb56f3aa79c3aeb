//! Runs sub-agents: creates their sessions, carries out their runs in the background, and reports their ends.

use std::sync::Arc;

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
        let Some(background) = weak.upgrade() else { return };
        if let Err(error) = open(&background, &parts).await {
            tracing::warn!(%error, "sub-agents of an earlier engine do not go on");
        }
    });
}
