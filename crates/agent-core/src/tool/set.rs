//! Which tools there are.

use std::sync::Arc;

use pinch_llm::message::ToolDecl;

use super::Tool;

/// Tools in a fixed order. Looking one up finds the first of that name. Cloning is cheap.
#[derive(Clone, Debug, Default)]
pub struct ToolSet(Arc<[Arc<dyn Tool>]>);

impl ToolSet {
    /// No tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// The tool of that name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.0.iter().find(|tool| tool.spec().name == name)
    }

    /// All tools in order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.0.iter()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The tools for which `keep` says yes.
    #[must_use]
    pub fn filter(&self, mut keep: impl FnMut(&dyn Tool) -> bool) -> Self {
        self.0.iter().filter(|tool| keep(&***tool)).cloned().collect()
    }

    /// The declarations a model is given.
    pub fn declarations(&self) -> Vec<ToolDecl> {
        self.0.iter().map(|tool| tool.spec().declaration()).collect()
    }
}

impl FromIterator<Arc<dyn Tool>> for ToolSet {
    fn from_iter<I: IntoIterator<Item = Arc<dyn Tool>>>(tools: I) -> Self {
        Self(tools.into_iter().collect())
    }
}
