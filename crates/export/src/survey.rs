//! A summary of the whole session, with one line per entry.

use std::collections::BTreeSet;

use pinch_llm::message::{Block, Content, Message};
use pinch_stdx::text::utf16_prefix;
use serde_json::Value;

use super::skill::SkillPrompt;
use super::syntax::max_coloured;
use super::tool;
use super::words::{MAX_LINE, one_line};
use pinch_session::entry::{Entry, EntryBody};
use pinch_session::session_log::{SessionLog, roles};
use pinch_session::store::StoreError;
use pinch_session::totals::UsageTotals;

/// The kind of an entry, for colors and for the sidebar's filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryKind {
    User,
    Assistant,
    /// An answer that contains only tool calls.
    Calls,
    Tool,
    FailedTool,
    Bash,
    System,
    Summary,
    Custom,
    Note,
}

/// The summary of an entry.
pub(super) struct SurveyLine {
    pub(super) kind: EntryKind,
    pub(super) preview: Box<str>,
}

/// The summary of a session.
pub(super) struct Survey {
    /// A line for each entry, in file order.
    pub(super) lines: Vec<SurveyLine>,
    pub(super) n_prompts: usize,
    pub(super) n_answers: usize,
    pub(super) n_calls: usize,
    /// Models that answered.
    pub(super) models: BTreeSet<String>,
    pub(super) spent: UsageTotals,
    /// Name of the session, or its first message.
    pub(super) title: String,
    /// Maximum bytes of a piece of code to highlight.
    pub(super) max_coloured: usize,
}

impl Survey {
    /// Reads all entries once.
    pub(super) fn of(log: &SessionLog) -> Result<Self, StoreError> {
        let mut survey = Self {
            lines: Vec::new(),
            n_prompts: 0,
            n_answers: 0,
            n_calls: 0,
            models: BTreeSet::new(),
            spent: UsageTotals::of(log),
            title: log.name().unwrap_or_default(),
            max_coloured: 0,
        };
        let mut lengths = Vec::new();
        for at in 0..log.entry_ids().len() {
            let entry = log.try_entry(at)?;
            survey.add(&entry);
            lengths.extend(entry.body.as_message().into_iter().flat_map(|message| tool::lengths(message)));
        }
        survey.max_coloured = max_coloured(lengths);
        if survey.title.is_empty() {
            survey.title = format!("Session {}", log.id());
        }
        Ok(survey)
    }

    fn add(&mut self, entry: &Entry) {
        let (kind, text) = line(&entry.body);
        self.n_prompts += usize::from(kind == EntryKind::User);
        if let EntryBody::Message(message) = &entry.body
            && let Message::Assistant(answer) = &**message
        {
            self.n_answers += 1;
            self.n_calls += answer.tool_calls().count();
            self.models.insert(format!("{}/{}", answer.provider, answer.model));
        }
        let preview = one_line(&text);
        if self.title.is_empty() && kind == EntryKind::User {
            preview.clone_into(&mut self.title);
        }
        self.lines.push(SurveyLine { kind, preview: preview.into() });
    }
}

/// Returns the kind of an entry and the text that describes it.
fn line(body: &EntryBody) -> (EntryKind, String) {
    match body {
        EntryBody::Message(message) => of_message(message),
        EntryBody::ThinkingLevelChange { thinking_level } => (EntryKind::Note, format!("thinking: {thinking_level}")),
        EntryBody::ModelChange { provider, model_id } => (EntryKind::Note, format!("model: {provider}/{model_id}")),
        EntryBody::Compaction(compaction) => (EntryKind::Summary, format!("compaction: {}", head(&compaction.summary))),
        EntryBody::BranchSummary(branch) => (EntryKind::Summary, format!("branch: {}", head(&branch.summary))),
        EntryBody::Custom { custom_type, .. } => (EntryKind::Note, format!("state of {custom_type}")),
        EntryBody::CustomMessage(message) if message.display => {
            (EntryKind::Custom, format!("{}: {}", message.custom_type, first_text(&message.content)))
        }
        EntryBody::CustomMessage(message) => (EntryKind::Note, format!("message of {}", message.custom_type)),
        EntryBody::Label { label, .. } => {
            (EntryKind::Note, format!("label: {}", label.as_deref().unwrap_or("(removed)")))
        }
        EntryBody::SessionInfo { name } => (EntryKind::Note, format!("name: {name}")),
        EntryBody::ContextEdit { .. } => (EntryKind::Note, "context edit".to_owned()),
        EntryBody::Usage(note) => (EntryKind::Note, format!("usage: {}", note.kind)),
        EntryBody::Other(_) => (EntryKind::Note, body.type_name().to_owned()),
    }
}

fn of_message(message: &Message) -> (EntryKind, String) {
    match message {
        Message::System(_) => (EntryKind::System, "system prompt and tools".to_owned()),
        Message::User(user) => {
            let text = first_text(&user.content);
            let shown = SkillPrompt::parse(&text).map(|skill| skill.command());
            (EntryKind::User, shown.unwrap_or(text))
        }
        Message::Assistant(answer) => {
            let text = answer.content.iter().filter_map(|block| block.as_text()).find(|text| !text.trim().is_empty());
            let mut calls = answer.tool_calls();
            match (text, calls.next()) {
                (Some(text), _) => (EntryKind::Assistant, head(text).to_owned()),
                (None, Some(call)) => (EntryKind::Calls, format!("→ {} {}", call.name, tool::main_argument(call))),
                (None, None) => {
                    (EntryKind::Assistant, answer.error_message.clone().unwrap_or_else(|| "(empty)".to_owned()))
                }
            }
        }
        Message::ToolResult(result) => {
            let text = result.content.iter().find_map(Block::as_text).unwrap_or_default();
            let kind = if result.is_error { EntryKind::FailedTool } else { EntryKind::Tool };
            (kind, format!("{}: {}", result.tool_name, head(text)))
        }
        Message::Other(other) => {
            let text = |name: &str| head(other.raw.get(name).and_then(Value::as_str).unwrap_or_default()).to_owned();
            match other.role() {
                roles::BASH_EXECUTION => (EntryKind::Bash, format!("$ {}", text("command"))),
                role => (EntryKind::Custom, role.to_owned()),
            }
        }
    }
}

/// Returns the start of a text, long enough for one line.
fn head(text: &str) -> &str {
    utf16_prefix(text.trim_start(), 8 * MAX_LINE)
}

/// Returns the start of a content's text.
fn first_text(content: &Content) -> String {
    match content {
        Content::Text(text) => head(text).to_owned(),
        Content::Blocks(blocks) => {
            let text = blocks.iter().filter_map(Block::as_text).find(|text| !text.trim().is_empty());
            text.map_or_else(|| "(picture)".to_owned(), |text| head(text).to_owned())
        }
    }
}
