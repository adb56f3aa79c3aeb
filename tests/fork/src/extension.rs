//! An extension for coding sessions: adds a tool and forbids deletions.

use std::sync::Arc;

use pinch_agent_core::hooks::{BeforeTool, PendingCall};
use pinch_coding_agent::extension::{
    Extension, ExtensionCx, ExtensionError, ExtensionHandle, HandlerFuture, Point, Points, Registrations,
};

use crate::tools::{ForkDeleteTool, word_count};

/// Adds the tools of this crate and denies calls of `delete`.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoDeletions;

impl Extension for NoDeletions {
    fn name(&self) -> &str {
        "no-deletions"
    }

    fn points(&self) -> Points {
        Points::of([Point::ToolCall])
    }

    fn register(&self, to: &mut Registrations, _: &ExtensionHandle) -> Result<(), ExtensionError> {
        to.tool(Arc::new(word_count()));
        to.tool(Arc::new(ForkDeleteTool::default()));
        Ok(())
    }

    fn tool_call<'a>(&'a self, call: &'a PendingCall, _: &'a ExtensionCx) -> HandlerFuture<'a, BeforeTool> {
        let action = match call.call.name.as_str() {
            "delete" => BeforeTool::deny("deletions are forbidden"),
            _ => BeforeTool::Allow,
        };
        Box::pin(async { Ok(action) })
    }
}
