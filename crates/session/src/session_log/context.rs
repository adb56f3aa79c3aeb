//! What a model is shown of a branch.

use std::collections::HashMap;
use std::sync::Arc;

use pinch_llm::ids::{ModelId, ProviderId};
use pinch_llm::message::{Content, Message};

use super::index::Index;
use super::roles;
use crate::entry::scan::{EntryType, MessageRole};
use crate::entry::{Entry, EntryBody, EntryId};

/// What a branch gives a model, before roles of this layer are converted.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Context {
    /// The messages, oldest first.
    pub messages: Vec<Arc<Message>>,
    /// The entry of each message.
    pub entry_ids: Vec<EntryId>,
    /// How many of the messages came before the last edit: what providers counted with them is not what they are now.
    pub n_edited: usize,
    /// The thinking level of the branch; `off` when nothing set it.
    pub thinking_level: String,
    /// The model of the branch, when something named one.
    pub model: Option<BranchModel>,
}

/// A model as a branch names it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BranchModel {
    /// Who serves it.
    pub provider: ProviderId,
    /// Its name.
    pub model_id: ModelId,
}

impl Default for Context {
    fn default() -> Self {
        Self { messages: Vec::new(), entry_ids: Vec::new(), n_edited: 0, thinking_level: "off".to_owned(), model: None }
    }
}

/// The context of a path that is parsed already.
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

/// The context of a path of slots: only what the model is shown is parsed; of the live branch it stays parsed for the next time.
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

/// Where the kept entries of a compaction start; `None` when nothing is kept.
fn first_kept(compaction: &Entry, find: impl FnOnce(&EntryId) -> Option<usize>) -> Option<usize> {
    match &compaction.body {
        EntryBody::Compaction(compaction) => find(compaction.first_kept_entry_id.as_ref()?),
        _ => None,
    }
}

/// The messages of the entries that are shown, edited as later ones say.
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

/// The message of each entry as the context edits among them leave it; `None` for hidden entries and those without a message.
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

/// The message an entry gives; of a compaction its summary.
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
