//! Sets of tools.

use std::sync::Arc;

use pinch_llm::message::ToolDecl;

use super::Tool;

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
