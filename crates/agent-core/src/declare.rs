//! Declaring to the model which tools it may call.
//!
//! Tool declarations are messages: the first system message declares the initial tools, later ones add and remove some. Before every
//! request the loop compares the declared tools with the available ones, and declares the difference.

use std::sync::Arc;

use pinch_llm::message::{Message, SystemMessage, ToolDecl};

use crate::tool::ToolSet;

/// The tools that a conversation's system messages have declared so far.
#[derive(Clone, Debug, Default)]
pub struct Declared {
    tools: Vec<DeclaredTool>,
}

/// A tool in the message that declared it, which the conversation keeps anyway.
#[derive(Clone, Debug)]
struct DeclaredTool {
    message: Arc<Message>,
    /// Its index among the tools that the message adds.
    at: usize,
}

impl DeclaredTool {
    fn declaration(&self) -> Option<&ToolDecl> {
        match &*self.message {
            Message::System(system) => system.tools_added.get(self.at),
            _ => None,
        }
    }
}

impl Declared {
    /// Replays a conversation to find its declared tools.
    pub fn replay<'a>(messages: impl IntoIterator<Item = &'a Arc<Message>>) -> Self {
        let mut declared = Self::default();
        messages.into_iter().for_each(|message| declared.apply(message));
        declared
    }

    /// Returns the names of the tools, in order of declaration.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.declarations().map(|tool| tool.name.as_str())
    }

    fn declarations(&self) -> impl Iterator<Item = &ToolDecl> {
        self.tools.iter().filter_map(DeclaredTool::declaration)
    }

    /// Applies one more message.
    pub fn apply(&mut self, message: &Arc<Message>) {
        let Message::System(system) = &**message else { return };
        let is_named =
            |tool: &DeclaredTool, name: &str| tool.declaration().is_some_and(|declared| declared.name == name);
        self.tools.retain(|tool| !system.tools_removed.iter().any(|name| is_named(tool, name)));
        for (at, added) in system.tools_added.iter().enumerate() {
            let tool = DeclaredTool { message: Arc::clone(message), at };
            match self.tools.iter_mut().find(|tool| is_named(tool, &added.name)) {
                Some(old) => *old = tool,
                None => self.tools.push(tool),
            }
        }
    }

    /// Returns the change to declare so that exactly `tools` are declared, or `None` if they already are. The order of tools does not
    /// matter: a reordered set would cause a cache miss for nothing.
    pub fn difference(&self, tools: &ToolSet) -> Option<ToolDifference> {
        let wanted = tools.declarations();
        let removed: Vec<String> = (self.declarations())
            .filter(|old| wanted.iter().find(|new| new.name == old.name) != Some(*old))
            .map(|old| old.name.clone())
            .collect();
        let added: Vec<ToolDecl> =
            wanted.into_iter().filter(|new| !self.declarations().any(|old| old == new)).collect();
        (!removed.is_empty() || !added.is_empty()).then_some(ToolDifference { added, removed })
    }
}

/// Tools to add and remove.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolDifference {
    added: Vec<ToolDecl>,
    removed: Vec<String>,
}

impl ToolDifference {
    /// Writes the difference to a system message.
    pub fn write_to(self, system: &mut SystemMessage) {
        system.tools_added = self.added;
        system.tools_removed = self.removed;
    }
}
