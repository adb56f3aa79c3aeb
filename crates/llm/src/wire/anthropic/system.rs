//! Changes of prompt, tools and effort within a conversation.

use serde_json::{Value, json};

use super::convert::text_part;
use crate::message::SystemMessage;
use crate::normalise::system;

/// Name of the tool that keeps the list of tools open for later additions.
pub(super) const PLACEHOLDER_TOOL: &str = "__pi_deferred_placeholder__";

/// System messages waiting for their position: before the next answer, or at the end.
#[derive(Default)]
pub(super) struct PendingSystem {
    texts: Vec<Value>,
    changes: Vec<Value>,
}

impl PendingSystem {
    /// Applies a change. `declare` encodes a tool; without it, changes of tools only appear in the list of tools.
    pub(super) fn add(&mut self, change: &SystemMessage, declare: Option<&dyn Fn(&crate::message::ToolDecl) -> Value>) {
        let text = system::change_text(change);
        if !text.is_empty() {
            self.texts.push(text_part(&text));
        }
        let Some(declare) = declare else { return };
        for name in &change.tools_removed {
            let tool = json!({"type": "tool_reference", "name": name});
            self.changes.push(json!({"type": "tool_removal", "tool": tool}));
        }
        for tool in &change.tools_added {
            let tool = json!({"type": "tool_definition", "definition": declare(tool)});
            self.changes.push(json!({"type": "tool_addition", "tool": tool}));
        }
    }

    /// Writes the pending changes and the effort of the coming answer as one message.
    pub(super) fn flush(&mut self, effort: Option<&str>, to: &mut Vec<Value>) {
        let mut content = std::mem::take(&mut self.texts);
        content.append(&mut self.changes);
        if !content.is_empty() {
            to.push(json!({"role": "system", "content": content}));
        }
        if let Some(effort) = effort {
            to.push(json!({"role": "system", "content": [], "output_config": {"effort": effort}}));
        }
    }
}
