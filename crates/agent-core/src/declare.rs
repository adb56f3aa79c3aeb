//! Declaring to the model which tools it may call.
//!
//! Tool declarations are messages: the first system message declares the initial tools, later ones add and remove some. Before every
//! request the loop compares the declared tools with the available ones, and declares the difference.

use pinch_llm::message::{Message, SystemMessage, ToolDecl};

use crate::tool::ToolSet;

/// The tools that a conversation's system messages have declared so far.
#[derive(Clone, Debug, Default)]
pub struct Declared {
    tools: Vec<ToolDecl>,
}

impl Declared {
    /// Replays a conversation to find its declared tools.
    pub fn replay<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Self {
        let mut declared = Self::default();
        messages.into_iter().for_each(|message| declared.apply(message));
        declared
    }

    /// Returns the names of the tools, in order of declaration.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|tool| tool.name.as_str())
    }

    /// Applies one more message.
    pub fn apply(&mut self, message: &Message) {
        if let Message::System(system) = message {
            self.tools.retain(|tool| !system.tools_removed.contains(&tool.name));
            for added in &system.tools_added {
                match self.tools.iter_mut().find(|tool| tool.name == added.name) {
                    Some(old) => *old = added.clone(),
                    None => self.tools.push(added.clone()),
                }
            }
        }
    }

    /// Returns the change to declare so that exactly `tools` are declared, or `None` if they already are. The order of tools does not
    /// matter: a reordered set would cause a cache miss for nothing.
    pub fn difference(&self, tools: &ToolSet) -> Option<ToolDifference> {
        let wanted = tools.declarations();
        let removed: Vec<String> = (self.tools.iter())
            .filter(|old| wanted.iter().find(|new| new.name == old.name) != Some(*old))
            .map(|old| old.name.clone())
            .collect();
        let added: Vec<ToolDecl> = wanted.into_iter().filter(|new| !self.tools.contains(new)).collect();
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
