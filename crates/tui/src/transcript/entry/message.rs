//! Entries for messages of a session.

use std::sync::Arc;

use pinch_coding_agent::entry::EntryBody;
use pinch_coding_agent::export::html::SkillPrompt;
use pinch_coding_agent::session_log::roles;
use pinch_llm::message::{AssistantMessage, Message, OtherMessage, StopReason};
use serde_json::Value;

use super::TranscriptEntry;
use super::answer::AnswerView;
use super::bash::Bash;
use super::custom::CustomView;
use super::skill::SkillView;
use super::tool::ToolCallView;
use crate::figures::tokens;
use crate::image::ImageSource;

/// Returns the displayed reason for a failed answer.
pub(in crate::transcript) fn failure_of(answer: &AssistantMessage) -> Option<String> {
    let text = answer.error_message.as_deref().unwrap_or_default();
    match answer.stop_reason {
        StopReason::Aborted if text.is_empty() || text == "Request was aborted" => Some("Operation aborted".to_owned()),
        StopReason::Aborted => Some(text.to_owned()),
        StopReason::Error if text.is_empty() => Some("Error: the request failed".to_owned()),
        StopReason::Error => Some(format!("Error: {text}")),
        _ => None,
    }
}

/// Returns the entries for messages of a session.
pub(in crate::transcript) fn of_messages(messages: &[Arc<Message>]) -> Vec<TranscriptEntry> {
    let mut entries: Vec<TranscriptEntry> = Vec::new();
    let mut open = std::collections::HashMap::new();
    for message in messages {
        match &**message {
            Message::Assistant(answer) => {
                let failure = failure_of(answer);
                let mut view = AnswerView::of(answer);
                let has_calls = answer.tool_calls().next().is_some();
                view.finish(failure.as_deref().filter(|_| !has_calls), answer.stop_reason == StopReason::Length);
                entries.push(TranscriptEntry::AnswerView(Box::new(view)));
                for call in answer.tool_calls() {
                    let mut tool = ToolCallView::new(call.id.as_str(), &call.name);
                    tool.set_arguments(&call.arguments);
                    if let Some(failure) = &failure {
                        tool.fail(failure);
                    }
                    open.insert(call.id.clone(), entries.len());
                    entries.push(TranscriptEntry::Tool(Box::new(tool)));
                }
            }
            Message::ToolResult(result) => {
                if let Some(TranscriptEntry::Tool(tool)) =
                    open.remove(&result.tool_call_id).and_then(|at| entries.get_mut(at))
                {
                    tool.set_result(result);
                    tool.set_images(ImageSource::in_message(message));
                }
            }
            _ => entries.extend(TranscriptEntry::of_message(message)),
        }
    }
    // Calls without results will never get one.
    for entry in &mut entries {
        entry.settle();
    }
    entries
}

impl TranscriptEntry {
    pub(in crate::transcript) fn compaction(summary: &str, tokens_before: u64) -> Self {
        Self::Labelled {
            label: "compaction".to_owned(),
            line: format!("Compacted from {} tokens", tokens(tokens_before)),
            whole: summary.to_owned(),
            expanded: false,
        }
    }

    /// Returns the entries for a message that is neither an answer nor a tool result.
    pub(in crate::transcript) fn of_message(message: &Arc<Message>) -> Vec<Self> {
        match &**message {
            Message::User(user) => Self::of_prompt(&user.content.text("\n"), ImageSource::in_message(message)),
            Message::Other(other) => Self::of_other(other).into_iter().collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the entries for a prompt: the skill that it begins with, if any, and the user's own words.
    fn of_prompt(text: &str, images: Vec<ImageSource>) -> Vec<Self> {
        let user = |text: &str, images| Self::User { text: text.to_owned(), images };
        match SkillPrompt::parse(text) {
            Some(skill) => {
                let words = !skill.rest.is_empty() || !images.is_empty();
                let words = words.then(|| user(skill.rest, images));
                std::iter::once(Self::Skill(SkillView::new(skill.name, skill.body))).chain(words).collect()
            }
            None => vec![user(text, images)],
        }
    }

    /// Returns the entry for a message of another role, if it is shown.
    fn of_other(other: &OtherMessage) -> Option<Self> {
        let text = |name: &str| other.raw.get(name).and_then(Value::as_str).unwrap_or_default();
        match text("role") {
            roles::BASH_EXECUTION => Some(Self::Bash(Box::new(Bash::of(&other.raw)))),
            roles::COMPACTION_SUMMARY => {
                let tokens_before = other.raw.get("tokensBefore").and_then(Value::as_u64).unwrap_or(0);
                Some(Self::compaction(text("summary"), tokens_before))
            }
            roles::BRANCH_SUMMARY => Some(Self::Labelled {
                label: "branch".to_owned(),
                line: "Branch summary".to_owned(),
                whole: text("summary").to_owned(),
                expanded: false,
            }),
            roles::CUSTOM if other.raw.get("display").and_then(Value::as_bool) == Some(true) => {
                let details = other.raw.get("details").filter(|details| !details.is_null()).cloned();
                let view = CustomView::new(text("customType"), roles::custom_content(other), details);
                Some(Self::Custom(Box::new(view)))
            }
            _ => None,
        }
    }

    /// Returns the entry for something appended to the session outside a run.
    pub(in crate::transcript) fn of_entry(body: &EntryBody) -> Option<Self> {
        match body {
            EntryBody::CustomMessage(message) if message.display => Some(Self::Custom(Box::new(CustomView::new(
                &message.custom_type,
                message.content.clone(),
                message.details.clone(),
            )))),
            _ => None,
        }
    }
}
