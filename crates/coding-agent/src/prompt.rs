//! The system prompt, in named sections.
//!
//! Sections are written to the conversation as system messages: the first holds all of them, later ones only what has changed. An unchanged
//! prompt costs nothing and keeps the providers' caches valid.

use std::path::Path;
use std::sync::Arc;

use pinch_agent_core::tool::ToolSet;
use pinch_llm::message::{Content, Message, SystemMessage};

use crate::resources::context_files::ContextFile;
use crate::resources::skills::{self, Skill};
use crate::tools;

/// A system prompt: sections in order, each with its complete text. Clones share the texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PromptSections {
    sections: Arc<Vec<(Arc<str>, Arc<str>)>>,
    /// Names of the sections that are not stable.
    volatile: Arc<[String]>,
}

/// The inputs for the coding agent's prompt. [`PromptParts::new`] sets defaults for all but two.
#[derive(Clone, Copy, Debug)]
pub struct PromptParts<'a> {
    /// Replaces the preamble, the tools, the rules and the documentation notes.
    pub custom: Option<&'a str>,
    /// Appended after them.
    pub addendum: Option<&'a str>,
    /// The active tools.
    pub tools: &'a ToolSet,
    /// Notes for additional tools, and replacements for those of built-in ones.
    pub notes: &'a [ToolPrompt],
    /// Location of the documentation: a URL or a directory.
    pub docs: &'a str,
    /// The project's instruction files.
    pub context_files: &'a [ContextFile],
    /// Skills; listed only if the model has a tool to read their files.
    pub skills: &'a [Skill],
    /// What tools can reach in their sandbox, if there is one.
    pub sandbox: Option<&'a str>,
    /// The working directory.
    pub cwd: &'a Path,
}

/// The prompt's notes on a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolPrompt {
    /// Name of the tool.
    pub name: String,
    /// A line for the list of tools; without one, the tool is not listed.
    pub snippet: Option<String>,
    /// Guidelines for using it.
    pub guidelines: Vec<String>,
}

const PREAMBLE: &str = "You are a coding agent. You help the user with work on files and programs: you read and search, run commands, \
     change code and write new files, and you say briefly what you did.";

/// The default location of the documentation.
pub const DOCS: &str = "https://github.com/pinch-agent/pinch/tree/main/docs";

const OTHER_TOOLS: &str = "The project may add more tools; each describes its own purpose.";

const CONTEXT_INTRO: &str = "Project-specific instructions and guidelines:";

/// Rules that apply with any tools.
const RULES: [&str; 2] = ["Be brief.", "Name files by their paths."];

impl<'a> PromptParts<'a> {
    /// Returns the default prompt for these tools in this directory.
    pub fn new(tools: &'a ToolSet, cwd: &'a Path) -> Self {
        let none: (&[ToolPrompt], &[ContextFile], &[Skill]) = (&[], &[], &[]);
        Self {
            custom: None,
            addendum: None,
            tools,
            notes: none.0,
            docs: DOCS,
            context_files: none.1,
            skills: none.2,
            sandbox: None,
            cwd,
        }
    }

    fn tool_notes(&self) -> Vec<ToolPrompt> {
        let note = |name: &String| {
            self.notes.iter().find(|note| note.name == *name).cloned().unwrap_or_else(|| ToolPrompt::builtin(name))
        };
        self.tools.iter().map(|tool| note(&tool.spec().name)).collect()
    }
}

impl ToolPrompt {
    /// Returns the notes on a built-in tool; empty for other tools.
    pub fn builtin(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            snippet: tools::prompt_snippet(name).map(str::to_owned),
            guidelines: tools::prompt_guidelines(name).iter().map(|rule| (*rule).to_owned()).collect(),
        }
    }
}

impl PromptSections {
    /// Builds the coding agent's prompt.
    pub fn coding(parts: &PromptParts<'_>) -> Self {
        let mut prompt = Self::default();
        let notes = parts.tool_notes();
        match parts.custom {
            Some(custom) => prompt.push("preamble", custom.to_owned()),
            None => {
                prompt.push("preamble", PREAMBLE.to_owned());
                prompt.push_wrapped("tools", &format!("{}\n\n{OTHER_TOOLS}", tool_lines(&notes)));
                prompt.push_wrapped("rules", &rule_lines(&notes));
                prompt.push_wrapped("docs", &docs(parts.docs));
            }
        }
        if let Some(addendum) = parts.addendum {
            prompt.push_wrapped("addendum", addendum);
        }
        let files: Vec<String> = parts.context_files.iter().map(ContextFile::render).collect();
        if !files.is_empty() {
            prompt.push_wrapped("project_context", &format!("{CONTEXT_INTRO}\n\n{}", files.join("\n\n")));
        }
        if notes.iter().any(|note| note.name == "read" || note.name == "bash") {
            prompt.push_wrapped("skills", &skills::prompt_block(parts.skills));
        }
        prompt.push_wrapped("sandbox", parts.sandbox.unwrap_or_default());
        prompt.push_wrapped("cwd", &parts.cwd.to_string_lossy().replace('\\', "/"));
        prompt
    }

    /// Returns the complete text: all sections in order.
    pub fn whole(&self) -> String {
        joined(self.sections())
    }

    /// Returns the complete text as providers get it: the volatile sections are last.
    pub fn as_sent(&self) -> String {
        let is_volatile = |(name, _): &(&str, &str)| self.volatile.iter().any(|volatile| volatile == name);
        let stable = self.sections().filter(|section| !is_volatile(section));
        joined(stable.chain(self.sections().filter(is_volatile)))
    }

    /// Marks sections as not stable: they differ between conversations of the same kind, such as those of another directory or channel.
    /// Providers with cache markers cache the other sections as a prefix of their own.
    pub fn mark_volatile<'a>(&mut self, names: impl IntoIterator<Item = &'a str>) {
        let mut volatile = self.volatile.to_vec();
        for name in names {
            if !volatile.iter().any(|known| known == name) {
                volatile.push(name.to_owned());
            }
        }
        self.volatile = volatile.into();
    }

    /// Returns the names of the sections that are not stable.
    pub fn volatile(&self) -> Arc<[String]> {
        Arc::clone(&self.volatile)
    }

    /// Creates a prompt from a single text.
    pub fn text(text: impl Into<String>) -> Self {
        let mut prompt = Self::default();
        prompt.push("preamble", text.into());
        prompt
    }

    /// Adds a section unchanged; an empty one is omitted.
    pub fn push(&mut self, name: &str, text: String) {
        if !text.is_empty() {
            self.add(name, text);
        }
    }

    /// Adds a section between tags with its name; an empty one is omitted.
    pub fn push_wrapped(&mut self, name: &str, text: &str) {
        if !text.is_empty() {
            self.add(name, format!("<{name}>\n{text}\n</{name}>"));
        }
    }

    /// Replaces the section of a name, or adds one, between tags with its name. Without a text the section is removed.
    pub fn replace_wrapped(&mut self, name: &str, text: &str) {
        let wrapped = format!("<{name}>\n{text}\n</{name}>");
        let sections = Arc::make_mut(&mut self.sections);
        match sections.iter().position(|(known, _)| **known == *name) {
            Some(at) if text.is_empty() => drop(sections.remove(at)),
            Some(at) => sections[at].1 = wrapped.into(),
            None => self.push_wrapped(name, text),
        }
    }

    /// Replaces names and texts by equal ones, as those of a pool that many prompts share.
    pub fn share(&mut self, shared: impl Fn(&Arc<str>) -> Arc<str>) {
        let sections = self.sections.iter().map(|(name, text)| (shared(name), shared(text)));
        // Collected anew, as sections added one by one leave unused capacity.
        self.sections = Arc::new(sections.collect());
    }

    fn add(&mut self, name: &str, text: String) {
        Arc::make_mut(&mut self.sections).push((name.into(), text.into()));
    }

    /// Returns the sections in order.
    pub fn sections(&self) -> impl Iterator<Item = (&str, &str)> {
        self.sections.iter().map(|(name, text)| (&**name, &**text))
    }

    /// Returns the system message that turns a conversation's sections into this prompt, or `None` if they match already.
    pub fn difference<'a>(
        &self,
        conversation: impl IntoIterator<Item = &'a Message>,
        now: i64,
    ) -> Option<SystemMessage> {
        let current = replay(conversation);
        let mut changes: Vec<(Arc<str>, Option<Arc<str>>)> = Vec::new();
        for (name, text) in self.sections.iter() {
            if current.iter().find(|(old, _)| old == name).map(|(_, text)| text) != Some(text) {
                changes.push((Arc::clone(name), Some(Arc::clone(text))));
            }
        }
        let is_gone = |name: &Arc<str>| !self.sections.iter().any(|(new, _)| new == name);
        changes.extend(current.into_iter().filter(|(name, _)| is_gone(name)).map(|(name, _)| (name, None)));
        (!changes.is_empty()).then(|| SystemMessage {
            content: Content::Text(String::new()),
            sections: changes,
            timestamp: now,
            ..SystemMessage::default()
        })
    }
}

/// Returns the current sections of a conversation.
fn replay<'a>(conversation: impl IntoIterator<Item = &'a Message>) -> Vec<(Arc<str>, Arc<str>)> {
    let mut sections: Vec<(Arc<str>, Arc<str>)> = Vec::new();
    for message in conversation {
        let Message::System(system) = message else { continue };
        for (name, text) in &system.sections {
            match (sections.iter().position(|(old, _)| old == name), text) {
                (Some(at), Some(text)) => sections[at].1 = Arc::clone(text),
                (Some(at), None) => drop(sections.remove(at)),
                (None, Some(text)) => sections.push((Arc::clone(name), Arc::clone(text))),
                (None, None) => {}
            }
        }
    }
    sections
}

fn joined<'a>(sections: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    sections.map(|(_, text)| text).collect::<Vec<_>>().join("\n\n")
}

/// Returns the list of tools: a line for each that has one.
pub fn tool_lines(notes: &[ToolPrompt]) -> String {
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = |note: &ToolPrompt| {
        let snippet = one_line(note.snippet.as_deref()?);
        (!snippet.is_empty()).then(|| format!("- {}: {snippet}", note.name))
    };
    let lines: Vec<String> = notes.iter().filter_map(line).collect();
    if lines.is_empty() { "(none)".to_owned() } else { lines.join("\n") }
}

/// Returns the rules: how to explore, the tools' guidelines, and the general ones, without duplicates.
pub fn rule_lines(notes: &[ToolPrompt]) -> String {
    let has = |name: &str| notes.iter().any(|note| note.name == name);
    let exploration_tools: Vec<&str> = ["grep", "find", "ls"].into_iter().filter(|name| has(name)).collect();
    let exploring = match (has("bash"), &exploration_tools[..]) {
        (false, _) => None,
        (true, []) => Some("List folders and search files with bash: ls, rg, find.".to_owned()),
        (true, tools) => Some(format!(
            "Look for files and text with {} rather than with bash: {} fast and {} ignored files out.",
            list(tools),
            if tools.len() == 1 { "it is" } else { "they are" },
            if tools.len() == 1 { "leaves" } else { "leave" },
        )),
    };
    let of_tools = notes.iter().flat_map(|note| &note.guidelines).map(|rule| rule.trim());
    let mut rules: Vec<&str> = Vec::new();
    for rule in exploring.as_deref().into_iter().chain(of_tools).chain(RULES) {
        if !rule.is_empty() && !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    rules.iter().map(|rule| format!("- {rule}")).collect::<Vec<_>>().join("\n")
}

/// Joins names for a sentence: `a, b and c`.
fn list(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [others @ .., last] => format!("{} and {last}", others.join(", ")),
    }
}

fn docs(place: &str) -> String {
    format!(
        "You run inside pinch. Its documentation is at {place}. Read there, or run `pinch --help`, only when the user asks about pinch itself: \
         its settings, sessions, skills, packages and extensions, or how to embed it."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(sections: &[(&str, &str)]) -> PromptSections {
        let mut prompt = PromptSections::default();
        sections.iter().for_each(|(name, text)| prompt.push(name, (*text).to_owned()));
        prompt
    }

    #[test]
    fn only_changed_sections_are_sent() {
        let first = prompt(&[("preamble", "p"), ("cwd", "/a"), ("old", "x")]).difference([], 1).unwrap();
        assert_eq!(first.sections.len(), 3);
        let current = [Message::System(first)];
        let now = prompt(&[("preamble", "p"), ("cwd", "/b")]);
        let change = now.difference(&current, 2).unwrap();
        assert_eq!(change.sections, [("cwd".into(), Some("/b".into())), ("old".into(), None)]);
        assert_eq!(now.difference(&[current[0].clone(), Message::System(change)], 3), None);
    }
}
