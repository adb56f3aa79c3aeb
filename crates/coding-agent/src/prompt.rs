//! The system prompt, in named sections.
//!
//! Sections are written into the conversation as system messages: the first one holds them all, later ones what has changed. A prompt that
//! stays the same costs nothing, and providers keep their caches.

use std::path::Path;

use pinch_agent_core::tool::ToolSet;
use pinch_llm::message::{Content, Message, SystemMessage};

use crate::resources::context_files::ContextFile;
use crate::tools;

/// A system prompt: sections in order, each with its whole text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prompt {
    sections: Vec<(String, String)>,
}

/// What the prompt of the coding agent is made of.
#[derive(Clone, Copy, Debug)]
pub struct PromptParts<'a> {
    /// Takes the place of the preamble, the tools, the rules and the notes on documentation.
    pub custom: Option<&'a str>,
    /// Put behind them.
    pub addendum: Option<&'a str>,
    /// The active tools.
    pub tools: &'a ToolSet,
    /// Files with instructions of the project.
    pub context_files: &'a [ContextFile],
    /// The working directory.
    pub cwd: &'a Path,
}

const PREAMBLE: &str = "You are a coding agent. You help the user with work on files and programs: you read and search, run commands, \
     change code and write new files, and you say briefly what you did.";

const DOCS: &str = "You run inside pinch. When the user asks about pinch itself, its settings, sessions or how to embed it, read the files \
     under docs/ of its source, or run `pinch --help`.";

/// Rules that hold whatever the tools are.
const RULES: [&str; 2] = ["Be brief.", "Name files by their paths."];

impl Prompt {
    /// The prompt of the coding agent.
    pub fn coding(parts: &PromptParts<'_>) -> Self {
        let mut prompt = Self::default();
        match parts.custom {
            Some(custom) => prompt.push("preamble", custom.to_owned()),
            None => {
                prompt.push("preamble", PREAMBLE.to_owned());
                prompt.push_wrapped("tools", &tool_lines(parts.tools));
                prompt.push_wrapped("rules", &rule_lines(parts.tools));
                prompt.push_wrapped("docs", DOCS);
            }
        }
        if let Some(addendum) = parts.addendum {
            prompt.push_wrapped("addendum", addendum);
        }
        let files: Vec<String> = parts.context_files.iter().map(ContextFile::render).collect();
        prompt.push_wrapped("project_context", &files.join("\n\n"));
        prompt.push_wrapped("cwd", &parts.cwd.to_string_lossy().replace('\\', "/"));
        prompt
    }

    /// A prompt of one text.
    pub fn text(text: impl Into<String>) -> Self {
        let mut prompt = Self::default();
        prompt.push("preamble", text.into());
        prompt
    }

    /// Adds a section as it is; an empty one is left out.
    pub fn push(&mut self, name: &str, text: String) {
        if !text.is_empty() {
            self.sections.push((name.to_owned(), text));
        }
    }

    /// Adds a section between tags of its name; an empty one is left out.
    pub fn push_wrapped(&mut self, name: &str, text: &str) {
        if !text.is_empty() {
            self.sections.push((name.to_owned(), format!("<{name}>\n{text}\n</{name}>")));
        }
    }

    /// The sections in order.
    pub fn sections(&self) -> impl Iterator<Item = (&str, &str)> {
        self.sections.iter().map(|(name, text)| (name.as_str(), text.as_str()))
    }

    /// The system message that makes a conversation's sections this prompt; `None` when they are already.
    pub fn difference<'a>(
        &self,
        conversation: impl IntoIterator<Item = &'a Message>,
        now: i64,
    ) -> Option<SystemMessage> {
        let said = replay(conversation);
        let mut changes: Vec<(String, Option<String>)> = Vec::new();
        for (name, text) in &self.sections {
            if said.iter().find(|(old, _)| old == name).map(|(_, text)| text) != Some(text) {
                changes.push((name.clone(), Some(text.clone())));
            }
        }
        let is_gone = |name: &String| !self.sections.iter().any(|(new, _)| new == name);
        changes.extend(said.into_iter().filter(|(name, _)| is_gone(name)).map(|(name, _)| (name, None)));
        (!changes.is_empty()).then(|| SystemMessage {
            content: Content::Text(String::new()),
            sections: changes,
            timestamp: now,
            ..SystemMessage::default()
        })
    }
}

/// The sections a conversation has come to.
fn replay<'a>(conversation: impl IntoIterator<Item = &'a Message>) -> Vec<(String, String)> {
    let mut sections: Vec<(String, String)> = Vec::new();
    for message in conversation {
        let Message::System(system) = message else { continue };
        for (name, text) in &system.sections {
            match (sections.iter().position(|(old, _)| old == name), text) {
                (Some(at), Some(text)) => sections[at].1.clone_from(text),
                (Some(at), None) => drop(sections.remove(at)),
                (None, Some(text)) => sections.push((name.clone(), text.clone())),
                (None, None) => {}
            }
        }
    }
    sections
}

fn tool_lines(active: &ToolSet) -> String {
    let lines: Vec<String> = active
        .iter()
        .filter_map(|tool| {
            let name = &tool.spec().name;
            Some(format!("- {name}: {}", tools::prompt_snippet(name)?))
        })
        .collect();
    lines.join("\n")
}

fn rule_lines(active: &ToolSet) -> String {
    let of_tools = active.iter().flat_map(|tool| tools::prompt_guidelines(&tool.spec().name));
    let lines: Vec<String> = of_tools.chain(&RULES).map(|rule| format!("- {rule}")).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(sections: &[(&str, &str)]) -> Prompt {
        let mut prompt = Prompt::default();
        sections.iter().for_each(|(name, text)| prompt.push(name, (*text).to_owned()));
        prompt
    }

    #[test]
    fn only_what_changed_is_said() {
        let first = prompt(&[("preamble", "p"), ("cwd", "/a"), ("old", "x")]).difference([], 1).unwrap();
        assert_eq!(first.sections.len(), 3);
        let said = [Message::System(first)];
        let now = prompt(&[("preamble", "p"), ("cwd", "/b")]);
        let change = now.difference(&said, 2).unwrap();
        assert_eq!(change.sections, [("cwd".to_owned(), Some("/b".to_owned())), ("old".to_owned(), None)]);
        assert_eq!(now.difference(&[said[0].clone(), Message::System(change)], 3), None);
    }
}
