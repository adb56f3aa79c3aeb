//! Which runs have the tools for sub-agents.

use std::sync::{Arc, Weak};

use pinch_agent_core::tool::Tool;

use super::control_tool::SubagentsTool;
use super::spawn_tool::SpawnTool;
use crate::parts::background::BackgroundTasks;
use crate::parts::toolbox::{SESSIONS_SPAWN, SUBAGENTS, Toolbox, ToolsFor};
use crate::run::request::RunTrigger;

/// Returns what creates the enabled tools for sub-agents. Only a session with a key has them, because its sub-agents report to that key.
pub(in crate::engine) fn tools_of_run(toolbox: &Toolbox, background: &Weak<BackgroundTasks>) -> Option<ToolsFor> {
    let (spawns, controls) = (toolbox.is_enabled(SESSIONS_SPAWN), toolbox.is_enabled(SUBAGENTS));
    let background = Weak::clone(background);
    (spawns || controls).then(|| -> ToolsFor {
        Arc::new(move |request| {
            let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
            let has_key = request.session_key.as_deref().is_some_and(|key| !key.trim().is_empty());
            if !has_key || request.trigger == RunTrigger::Memory {
                return tools;
            }
            if spawns {
                tools.push(Arc::new(SpawnTool::new(Weak::clone(&background), request)));
            }
            if controls {
                tools.push(Arc::new(SubagentsTool::new(Weak::clone(&background), request)));
            }
            tools
        })
    })
}
