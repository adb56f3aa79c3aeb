//! The messages that a branch gives a model.

use std::collections::HashMap;
use std::sync::Arc;

use pinch_llm::ids::{ModelId, ProviderId};
use pinch_llm::message::{Content, Message};

use super::index::Index;
use super::roles;
use crate::entry::scan::{EntryType, MessageRole};
use crate::entry::{Entry, EntryBody, EntryId};

/// The messages, model and thinking level of a branch, before session-only roles are converted.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Context {
    /// The messages, oldest first.
    pub messages: Vec<Arc<Message>>,
    /// The entry of each message.
    pub entry_ids: Vec<EntryId>,
    /// Number of messages before the last edit, for which the usage reported by providers is outdated.
    pub n_edited: usize,
    /// The thinking level of the branch; `off` if unset.
    pub thinking_level: String,
    /// The model of the branch, if set.
    pub model: Option<BranchModel>,
}

/// A model as a branch names it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BranchModel {
    /// Provider that serves the model.
    pub provider: ProviderId,
    /// Id of the model.
    pub model_id: ModelId,
}

impl Default for Context {
    fn default() -> Self {
        Self { messages: Vec::new(), entry_ids: Vec::new(), n_edited: 0, thinking_level: "off".to_owned(), model: None }
    }
}

/// Builds the context of a parsed path.
pub fn context_of(path: &[Arc<Entry>]) -> Context {
    let compaction = path.iter().rposition(|entry| matches!(entry.body, EntryBody::Compaction(_)));
    let shown: Vec<Arc<Entry>> = match compaction {
        None => path.to_vec(),
        Some(at) => {
            let kept = first_kept(&path[at], |id| path[..at].iter().position(|entry| entry.id == *id)).unwrap_or(at);
            let kept = path[kept..at].iter().filter(|entry| {
                !matches!(&entry.body, EntryBody::Compaction(_))
                    && !matches!(entry.body.as_message().map(|message| &**message), Some(Message::System(_)))
            });
            std::iter::once(&path[at]).chain(kept).chain(&path[at + 1..]).cloned().collect()
        }
    };
    let mut context = emit(&shown);
    if let Some(level) = path.iter().rev().find_map(|entry| level_of(entry)) {
        context.thinking_level = level;
    }
    context.model = path.iter().rev().find_map(|entry| model_of(entry));
    context
}

/// Builds the context of a path of slots, parsing only what the model sees. Entries of the live branch stay parsed for the next time.
pub(super) fn context_at(index: &Index, path: &[usize], is_live: bool) -> Context {
    let slots = index.slots();
    let compaction = path.iter().rposition(|at| slots[*at].kind == EntryType::Compaction);
    let mut shown: Vec<usize> = Vec::new();
    let rest = match compaction {
        None => 0,
        Some(place) => {
            let entry = index.entry(path[place]);
            let kept = first_kept(&entry, |id| path[..place].iter().position(|at| slots[*at].id == *id));
            shown.push(path[place]);
            let kept = &path[kept.unwrap_or(place)..place];
            shown.extend(
                kept.iter()
                    .filter(|at| slots[**at].kind != EntryType::Compaction && slots[**at].role != MessageRole::System),
            );
            place + 1
        }
    };
    shown.extend(&path[rest..]);
    shown.retain(|at| {
        matches!(
            slots[*at].kind,
            EntryType::Message
                | EntryType::CustomMessage
                | EntryType::BranchSummary
                | EntryType::ContextEdit
                | EntryType::Compaction
        )
    });
    let entries = index.entries(&shown);
    if is_live {
        index.keep_only(shown.into_iter().zip(entries.iter().cloned()));
    }
    let mut context = emit(&entries);
    let slots = path.iter().rev().map(|at| (*at, slots[*at].kind, slots[*at].role));
    let mut levels = slots.clone().filter(|(_, kind, _)| *kind == EntryType::ThinkingLevelChange);
    if let Some(level) = levels.find_map(|(at, ..)| level_of(&index.entry(at))) {
        context.thinking_level = level;
    }
    let mut models = slots.filter(|(_, kind, role)| *kind == EntryType::ModelChange || *role == MessageRole::Assistant);
    context.model = models.find_map(|(at, ..)| model_of(&index.entry(at)));
    context
}

fn level_of(entry: &Entry) -> Option<String> {
    match &entry.body {
        EntryBody::ThinkingLevelChange { thinking_level } => Some(thinking_level.clone()),
        _ => None,
    }
}

fn model_of(entry: &Entry) -> Option<BranchModel> {
    match &entry.body {
        EntryBody::ModelChange { provider, model_id } => {
            Some(BranchModel { provider: provider.clone(), model_id: model_id.clone() })
        }
        EntryBody::Message(message) => {
            let assistant = message.as_assistant()?;
            Some(BranchModel { provider: assistant.provider.clone(), model_id: assistant.model.clone() })
        }
        _ => None,
    }
}

/// Returns the index at which a compaction's kept entries start; `None` if nothing is kept.
fn first_kept(compaction: &Entry, find: impl FnOnce(&EntryId) -> Option<usize>) -> Option<usize> {
    match &compaction.body {
        EntryBody::Compaction(compaction) => find(compaction.first_kept_entry_id.as_ref()?),
        _ => None,
    }
}

/// Returns the messages of the visible entries, with context edits applied.
fn emit(shown: &[Arc<Entry>]) -> Context {
    let mut context = Context::default();
    for (entry, message) in shown.iter().zip(edited_messages(shown)) {
        if matches!(entry.body, EntryBody::ContextEdit { .. }) {
            context.n_edited = context.messages.len();
        }
        let Some(message) = message else { continue };
        if let EntryBody::Compaction(compaction) = &entry.body
            && let Some(system) = &compaction.system_message
        {
            context.messages.push(Arc::clone(system));
            context.entry_ids.push(entry.id.clone());
        }
        context.messages.push(message);
        context.entry_ids.push(entry.id.clone());
    }
    context
}

/// Returns the message of each entry after applying the context edits among them; `None` for hidden entries and those without a message.
pub(crate) fn edited_messages(entries: &[Arc<Entry>]) -> Vec<Option<Arc<Message>>> {
    let mut edits: HashMap<&EntryId, Option<&Content>> = HashMap::new();
    for entry in entries {
        if let EntryBody::ContextEdit { target_id, replacement } = &entry.body {
            edits.insert(target_id, replacement.as_ref());
        }
    }
    let edited = |entry: &Arc<Entry>| match edits.get(&entry.id) {
        None => message_of(entry),
        Some(None) => None,
        Some(Some(content)) => message_of(entry).map(|message| Arc::new(roles::with_content(&message, content))),
    };
    entries.iter().map(edited).collect()
}

/// Returns the message an entry contributes; for a compaction, its summary.
fn message_of(entry: &Entry) -> Option<Arc<Message>> {
    let time = || entry.timestamp_ms();
    match &entry.body {
        EntryBody::Message(message) => Some(Arc::clone(message)),
        EntryBody::CustomMessage(message) => Some(Arc::new(roles::custom(message, time()))),
        EntryBody::BranchSummary(branch) => roles::branch_summary(branch, time()).map(Arc::new),
        EntryBody::Compaction(compaction) => Some(Arc::new(roles::compaction_summary(compaction, time()))),
        _ => None,
    }
}
