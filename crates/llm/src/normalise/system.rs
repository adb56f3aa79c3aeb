//! System messages: the prompt and the tools at any point of a conversation.
//!
//! The first one is the prompt, later ones change it. A model that does not accept changes within the conversation gets the *collapsed*
//! form: the current state at the start and no other system message. For other models the later ones stay in their positions.

use std::sync::Arc;

use crate::message::{Message, SystemMessage, ToolDecl};
use crate::request::{Request, SystemPrompt};

/// Prompt and tools after replaying some system messages.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct SystemState {
    /// Free texts in order.
    pub instructions: Vec<String>,
    /// Sections by name. A replaced section keeps its position; one that was removed and is added again goes to the end.
    pub sections: Vec<(Arc<str>, Arc<str>)>,
    /// Tools by name, ordered in the same way.
    pub tools: Vec<ToolDecl>,
    /// Names of the sections that are not stable.
    pub volatile: Arc<[String]>,
    /// Time of the first system message.
    pub timestamp: Option<i64>,
}

/// A prompt in two parts, so that a cached prefix can end between them. Each part may be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PromptBlocks {
    /// What every conversation of the same kind has in common.
    pub stable: String,
    /// The rest.
    pub volatile: String,
}

impl SystemState {
    /// Applies a system message.
    pub fn apply(&mut self, message: &SystemMessage) {
        self.timestamp.get_or_insert(message.timestamp);
        let text = message.content.text("\n\n");
        if !text.is_empty() {
            self.instructions.push(text);
        }
        for (name, text) in &message.sections {
            let known = self.sections.iter().position(|(known, _)| known == name);
            match (known, text) {
                (Some(at), Some(text)) => self.sections[at].1 = Arc::clone(text),
                (Some(at), None) => drop(self.sections.remove(at)),
                (None, Some(text)) => self.sections.push((Arc::clone(name), Arc::clone(text))),
                (None, None) => {}
            }
        }
        self.tools.retain(|tool| !message.tools_removed.contains(&tool.name));
        for tool in &message.tools_added {
            match self.tools.iter_mut().find(|known| known.name == tool.name) {
                Some(known) => known.clone_from(tool),
                None => self.tools.push(tool.clone()),
            }
        }
    }

    /// Returns the whole prompt: non-empty texts, then non-empty sections, the volatile ones last, joined by a blank line. A provider's cache
    /// of prompts then covers everything before the first change.
    pub fn text(&self) -> String {
        let PromptBlocks { mut stable, volatile } = self.blocks();
        if !stable.is_empty() && !volatile.is_empty() {
            stable.push_str("\n\n");
        }
        stable + &volatile
    }

    /// Returns the prompt in two parts. Both keep the order of the sections in it.
    pub fn blocks(&self) -> PromptBlocks {
        let is_volatile = |name: &str| self.volatile.iter().any(|volatile| volatile == name);
        PromptBlocks { stable: self.joined(|name| !is_volatile(name), true), volatile: self.joined(is_volatile, false) }
    }

    fn joined(&self, is_wanted: impl Fn(&str) -> bool, with_instructions: bool) -> String {
        let instructions = self.instructions.iter().filter(|_| with_instructions).map(String::as_str);
        let sections = self.sections.iter().filter(|(name, _)| is_wanted(name)).map(|(_, text)| &**text);
        let parts: Vec<&str> = instructions.chain(sections).filter(|text| !text.is_empty()).collect();
        parts.join("\n\n")
    }

    /// Returns whether there is neither a prompt nor a tool.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty() && self.text().is_empty()
    }
}

/// A conversation split into the initial prompt and the rest.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Conversation {
    /// The initial prompt and tools.
    pub head: SystemState,
    /// The rest. It contains only system messages that change the head.
    pub messages: Vec<Arc<Message>>,
    /// The prompt and tools at the end; equal to `head` if the conversation was collapsed.
    pub current: SystemState,
}

/// Replays all system messages into the head.
pub fn collapse(system: &SystemPrompt, tools: &[ToolDecl], messages: &[Arc<Message>]) -> Conversation {
    split(system, tools, messages, messages.len())
}

/// Replays only those system messages into the head that precede the conversation, or that are before `fold_until`.
pub fn split(system: &SystemPrompt, tools: &[ToolDecl], messages: &[Arc<Message>], fold_until: usize) -> Conversation {
    let mut head = given(system, tools);
    let begins = messages.iter().position(|message| !matches!(**message, Message::System(_)));
    let fold_until = begins.unwrap_or(messages.len()).max(fold_until);
    let mut rest = Vec::with_capacity(messages.len());
    let mut later = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        match &**message {
            Message::System(change) if at < fold_until => head.apply(change),
            Message::System(change) => {
                later.push(change);
                rest.push(Arc::clone(message));
            }
            _ => rest.push(Arc::clone(message)),
        }
    }
    let mut current = head.clone();
    later.into_iter().for_each(|change| current.apply(change));
    Conversation { head, messages: rest, current }
}

/// Splits for models that accept changes of the prompt within the conversation, but at most additions of tools: any other change of tools
/// is folded into the head, with everything before it.
pub fn split_at_tools(request: &Request, takes_additions: bool) -> Conversation {
    let Request { system, tools, messages, .. } = request;
    let mut known: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let mut fold_until = 0;
    for (at, message) in messages.iter().enumerate() {
        let Message::System(change) = &**message else { continue };
        let declared_again = change.tools_added.iter().any(|tool| known.contains(&tool.name.as_str()));
        let cannot_add = !change.tools_added.is_empty() && !takes_additions;
        if !change.tools_removed.is_empty() || declared_again || cannot_add {
            fold_until = at + 1;
        }
        known.extend(change.tools_added.iter().map(|tool| tool.name.as_str()));
    }
    split(system, tools, messages, fold_until)
}

/// Returns the state of a prompt and tools: a first system message with time 0.
fn given(system: &SystemPrompt, tools: &[ToolDecl]) -> SystemState {
    let (stable, volatile): (Vec<_>, Vec<_>) =
        system.sections.iter().filter(|section| !section.text.is_empty()).partition(|section| section.stable);
    let text = stable.iter().map(|section| section.text.as_str()).collect::<Vec<_>>().join("\n\n");
    let names = system.volatile.iter().chain(volatile.iter().map(|section| &section.name));
    SystemState {
        timestamp: (!system.is_empty() || !tools.is_empty()).then_some(0),
        volatile: if volatile.is_empty() { Arc::clone(&system.volatile) } else { names.cloned().collect() },
        instructions: if text.is_empty() { Vec::new() } else { vec![text] },
        sections: volatile.iter().map(|section| (section.name.as_str().into(), section.text.as_str().into())).collect(),
        tools: tools.to_vec(),
    }
}

/// Describes the change of a later system message for the model; empty if it changes no text.
pub fn change_text(change: &SystemMessage) -> String {
    let mut parts = vec![change.content.text("\n\n")];
    for (name, text) in &change.sections {
        parts.push(match text {
            Some(text) => format!("Updated system prompt section \"{name}\":\n\n{text}"),
            None => format!("Removed system prompt section \"{name}\"."),
        });
    }
    parts.retain(|part| !part.trim().is_empty());
    parts.join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Content;
    use crate::request::Section;

    fn tool(name: &str) -> ToolDecl {
        ToolDecl {
            name: name.into(),
            description: String::new(),
            parameters: serde_json::json!({}).into(),
            constrained_sampling: None,
        }
    }

    fn change(sections: &[(&str, Option<&str>)], added: &[&str], removed: &[&str]) -> Arc<Message> {
        Arc::new(Message::System(SystemMessage {
            content: Content::default(),
            sections: sections.iter().map(|(n, t)| ((*n).into(), t.map(Into::into))).collect(),
            tools_added: added.iter().map(|name| tool(name)).collect(),
            tools_removed: removed.iter().map(|name| (*name).to_owned()).collect(),
            timestamp: 5,
        }))
    }

    fn names(state: &SystemState) -> Vec<&str> {
        state.tools.iter().map(|tool| tool.name.as_str()).collect()
    }

    #[test]
    fn sections_keep_their_place_and_come_back_at_the_end() {
        let messages = [
            change(&[("a", Some("A")), ("b", Some("B")), ("c", Some(""))], &["x", "y"], &[]),
            Arc::new(Message::user("hi", 1)),
            change(&[("a", Some("A2"))], &["z"], &["x"]),
            change(&[("a", None)], &[], &[]),
            change(&[("a", Some("A3"))], &["x"], &[]),
        ];
        let all = collapse(&SystemPrompt::default(), &[], &messages);
        assert_eq!(all.head.text(), "B\n\nA3");
        assert_eq!(names(&all.head), ["y", "z", "x"]);
        assert_eq!(all.messages.len(), 1);
        let split = split(&SystemPrompt::default(), &[], &messages, 3);
        assert_eq!(split.head.text(), "A2\n\nB");
        assert_eq!((names(&split.head), split.messages.len()), (vec!["y", "z"], 3));
        assert_eq!(split.current, all.head);
    }

    #[test]
    fn volatile_sections_are_a_block_of_their_own() {
        let messages = [change(&[("a", Some("A")), ("b", Some("B")), ("c", Some("C"))], &[], &[])];
        let head = |system: &SystemPrompt| collapse(system, &[], &messages).head;
        let given = head(&SystemPrompt::volatile(["b".to_owned()]));
        let blocks = PromptBlocks { stable: "A\n\nC".into(), volatile: "B".into() };
        assert_eq!((given.text().as_str(), given.blocks()), ("A\n\nC\n\nB", blocks));
        let mut system = SystemPrompt::text("P");
        let section = |text: &str| Section { name: "now".into(), text: text.into(), stable: false };
        system.sections.insert(0, section("N"));
        let blocks = PromptBlocks { stable: "P\n\nA\n\nB\n\nC".into(), volatile: "N".into() };
        assert_eq!((head(&system).blocks(), system.render().as_str()), (blocks, "P\n\nN"));
        // A system message of the conversation replaces it.
        let later = [change(&[("now", Some("M"))], &[], &[])];
        assert_eq!(collapse(&system, &[], &later).head.blocks().volatile, "M");
    }

    #[test]
    fn a_given_prompt_comes_first() {
        let all = collapse(&SystemPrompt::text("P"), &[tool("t")], &[change(&[("a", Some("A"))], &[], &[])]);
        assert_eq!(all.head.text(), "P\n\nA");
        assert_eq!(all.head.timestamp, Some(0));
        assert!(collapse(&SystemPrompt::default(), &[], &[]).head.is_empty());
    }

    #[test]
    fn system_messages_before_the_conversation_are_part_of_the_prompt() {
        let text = |text: &str| {
            let content = Content::Text(text.to_owned());
            Arc::new(Message::System(SystemMessage { content, ..SystemMessage::default() }))
        };
        let messages = [text("be brief"), text(""), text("be kind"), Arc::new(Message::user("hi", 1)), text("be bold")];
        let all = split(&SystemPrompt::default(), &[], &messages, 0);
        assert_eq!((all.head.instructions, all.messages.len()), (vec!["be brief".to_owned(), "be kind".to_owned()], 2));
        assert_eq!(all.current.text(), "be brief\n\nbe kind\n\nbe bold");
        assert_eq!(split(&SystemPrompt::default(), &[], &messages[..3], 0).messages.len(), 0);
    }

    #[test]
    fn without_a_prompt_only_tools_count() {
        let nothing = collapse(&SystemPrompt::default(), &[], &[]).head;
        assert_eq!((nothing.is_empty(), nothing.timestamp), (true, None));
        let tools = collapse(&SystemPrompt::default(), &[tool("t")], &[]).head;
        assert_eq!((tools.is_empty(), tools.timestamp, tools.instructions.len()), (false, Some(0), 0));
        let prompt = collapse(&SystemPrompt::text("P"), &[], &[]).head;
        assert_eq!((prompt.is_empty(), prompt.timestamp, prompt.instructions), (false, Some(0), vec!["P".to_owned()]));
        assert_eq!(collapse(&SystemPrompt::default(), &[], &[change(&[], &[], &[])]).head.timestamp, Some(5));
    }

    /// Checks how many messages remain in a conversation whose second message changes the tools.
    #[track_caller]
    fn check_split(added: &[&str], removed: &[&str], takes_additions: bool, n_left: usize) {
        let user = || Arc::new(Message::user("hi", 1));
        let messages = vec![user(), change(&[], added, removed), user(), change(&[("a", Some("A"))], &[], &[])];
        let model =
            crate::model::Model::from_record(&serde_json::json!({"id": "m", "api": "a", "provider": "p"})).unwrap();
        let mut request = Request::new(model, messages);
        request.tools = vec![tool("t")].into();
        assert_eq!(split_at_tools(&request, takes_additions).messages.len(), n_left, "{added:?} {removed:?}");
    }

    #[test]
    fn only_additions_of_tools_may_stay_in_the_conversation() {
        check_split(&[], &[], false, 4);
        check_split(&["u"], &[], true, 4);
        check_split(&["u"], &[], false, 3);
        check_split(&["t"], &[], true, 3);
        check_split(&[], &["t"], true, 3);
        check_split(&["u"], &["t"], true, 3);
    }

    #[test]
    fn a_change_is_described_for_the_model() {
        let text = |sections: &[(&str, Option<&str>)], content: &str| {
            let Message::System(mut change) = (*change(sections, &[], &[])).clone() else { unreachable!() };
            change.content = Content::Text(content.to_owned());
            change_text(&change)
        };
        assert_eq!(text(&[], " "), "");
        assert_eq!(text(&[], "be brief"), "be brief");
        assert_eq!(
            text(&[("a", Some("A")), ("b", None)], "c"),
            "c\n\nUpdated system prompt section \"a\":\n\nA\n\nRemoved system prompt section \"b\"."
        );
    }
}
