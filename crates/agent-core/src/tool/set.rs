//! Sets of tools, and gateways to tools that are not declared to the model, but called through one that is.
//!
//! A call of a gateway is resolved before anything else happens with it: hooks, events and spans see the call of the tool behind it, with
//! that tool's name and arguments and under the same id, and the result is that tool's. Only the conversation keeps the call as the model
//! wrote it.

use std::sync::Arc;

use pinch_llm::message::ToolDecl;

use super::{JsonObject, Tool};

/// Tools in a fixed order. Lookup returns the first tool of a name. Cloning is cheap.
#[derive(Clone, Debug, Default)]
pub struct ToolSet(Arc<[Arc<dyn Tool>]>);

impl ToolSet {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the tool with a name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.0.iter().find(|tool| tool.spec().name == name)
    }

    /// Returns the tool with a name, even if it is only called through a gateway.
    pub fn reachable(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        let behind = || self.gateways().find_map(|gateway| gateway.tools().get(name));
        self.get(name).or_else(behind)
    }

    /// Iterates over the gateways to other tools.
    pub fn gateways(&self) -> impl Iterator<Item = &dyn ToolGateway> {
        self.0.iter().filter_map(|tool| tool.gateway())
    }

    /// Iterates over the tools in order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.0.iter()
    }

    /// Returns whether there are no tools.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the tools for which `keep` returns true.
    #[must_use]
    pub fn filter(&self, mut keep: impl FnMut(&dyn Tool) -> bool) -> Self {
        self.0.iter().filter(|tool| keep(&***tool)).cloned().collect()
    }

    /// Returns the declarations for a model.
    pub fn declarations(&self) -> Vec<ToolDecl> {
        self.0.iter().map(|tool| tool.spec().declaration()).collect()
    }
}

impl FromIterator<Arc<dyn Tool>> for ToolSet {
    fn from_iter<I: IntoIterator<Item = Arc<dyn Tool>>>(tools: I) -> Self {
        Self(tools.into_iter().collect())
    }
}

/// Tools behind a [`Tool`], which returns it from [`Tool::gateway`].
pub trait ToolGateway: Send + Sync {
    /// Returns the tools behind it.
    fn tools(&self) -> &ToolSet;

    /// Returns those whose names and descriptions a system prompt may list; the others only appear in results.
    fn listed(&self) -> &ToolSet;

    /// Returns the call that a call with these raw arguments stands for. `None`: the gateway itself runs, for example to explain what is
    /// wrong with the arguments.
    fn target(&self, arguments: &JsonObject) -> Option<ForwardedCall>;
}

/// A call of a tool behind a gateway.
#[derive(Clone, Debug)]
pub struct ForwardedCall {
    /// The tool. If its [mode](super::ToolMode) is `External`, the call is not forwarded.
    pub tool: Arc<dyn Tool>,
    /// Its raw arguments.
    pub arguments: JsonObject,
}
