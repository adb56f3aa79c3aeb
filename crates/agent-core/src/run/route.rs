//! Finds the tool that a call reaches, directly or through a gateway.

use std::sync::Arc;

use pinch_llm::message::ToolCall;
use serde_json::{Value, json};

use crate::tool::{ForwardedCall, Tool, ToolMode, ToolSet};

/// The tool that a call reaches.
pub(super) struct Route {
    /// The tool; `None`: there is none.
    pub(super) tool: Option<Arc<dyn Tool>>,
    /// Name of the gateway that the model called, if it was one.
    pub(super) gateway: Option<String>,
}

impl Route {
    /// Resolves a call of the model. Returns the call as it runs.
    pub(super) fn of(call: &ToolCall, tools: &ToolSet) -> (Self, ToolCall) {
        let tool = tools.get(&call.name);
        let gateway = tool.and_then(|tool| tool.gateway()).filter(|_| call.arguments_error.is_none());
        let target = gateway.and_then(|gateway| gateway.target(&call.arguments));
        match target.filter(|target| target.tool.spec().mode != ToolMode::External) {
            Some(ForwardedCall { tool, arguments }) => {
                let mut forwarded = call.clone();
                forwarded.name.clone_from(&tool.spec().name);
                forwarded.arguments = arguments;
                (Self { tool: Some(tool), gateway: Some(call.name.clone()) }, forwarded)
            }
            None => (Self { tool: tool.cloned(), gateway: None }, call.clone()),
        }
    }

    /// Returns how calls of the tool are run.
    pub(super) fn mode(&self) -> ToolMode {
        self.tool.as_ref().map(|tool| tool.spec().mode).unwrap_or_default()
    }

    /// Returns the name of the tool that the model called.
    pub(super) fn name<'a>(&'a self, call: &'a ToolCall) -> &'a str {
        self.gateway.as_deref().unwrap_or(&call.name)
    }

    /// Returns the details to store with a result: those of a call through a gateway name the tool behind it.
    pub(super) fn details(&self, call: &ToolCall, details: Option<Value>) -> Option<Value> {
        match self.gateway {
            Some(_) => Some(json!({"tool": {"id": call.name, "name": call.name}, "result": {"details": details}})),
            None => details,
        }
    }
}
