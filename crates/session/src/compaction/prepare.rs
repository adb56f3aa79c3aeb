//! Selecting what to summarise, what to keep, and what to repeat verbatim.

use std::sync::Arc;

use pinch_llm::message::{Content, Message, SystemMessage};
use pinch_llm::normalise::system::SystemState;

use super::cut;
use super::estimate::tokens_of;
use super::file_list::FileList;
use super::{CompactError, CompactionSettings};
use crate::entry::scan::{EntryType, MessageRole};
use crate::entry::{Compaction, Entry, EntryBody, EntryId};
use crate::session_log::{Branch, SessionLog, context_of, edited_messages};

/// Maximum UTF-16 units of pinned messages to repeat in total; the newest win.
const MAX_PINNED: usize = 16_000;

/// The label that pins a message.
const PIN: &str = "pin";

/// Input for a summary.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Preparation {
    /// The first entry that is kept.
    pub first_kept_entry_id: EntryId,
    /// Whether the cut splits a turn.
    pub is_split_turn: bool,
    /// Messages the summary will replace.
    pub messages_to_summarise: Vec<Arc<Message>>,
    /// The first part of the split turn.
    pub turn_prefix: Vec<Arc<Message>>,
    /// The summary before this one.
    pub previous_summary: Option<String>,
    /// Tokens of the context as it is.
    pub tokens_before: u64,
    /// Messages of the context as it is, without system messages.
    pub messages_before: usize,
    /// Files read and changed so far.
    pub files: FileList,
    /// What must survive word for word.
    pub verbatim: Verbatim,
    /// The settings used.
    pub settings: CompactionSettings,
}

/// Text that a summary repeats verbatim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verbatim {
    /// The user's latest request, if it is among the summarised messages.
    pub last_user_request: Option<String>,
    /// Pinned messages, oldest first.
    pub pinned: Vec<String>,
}

/// Prepares the compaction of a path.
///
/// # Errors
/// [`CompactError::AlreadyCompacted`] or [`CompactError::NothingToCompact`].
pub fn prepare(path: &[Arc<Entry>], settings: &CompactionSettings) -> Result<Preparation, CompactError> {
    if path.last().is_some_and(|entry| matches!(entry.body, EntryBody::Compaction(_))) {
        return Err(CompactError::AlreadyCompacted);
    }
    let mut files = FileList::default();
    let (previous, start) = previous(path);
    if let Some(previous) = previous.filter(|previous| previous.from_hook != Some(true)) {
        files.add_details(previous.details.as_ref());
    }
    let cut = cut::find(path, start..path.len(), settings.keep_recent_tokens);
    let Some(first) = path.get(cut.first_kept) else { return Err(CompactError::NothingToCompact) };
    let history_end = cut.turn_start.unwrap_or(cut.first_kept);
    let messages = edited_messages(path);
    let gather = |from: usize, to: usize| -> Vec<Arc<Message>> {
        (from..to)
            .filter(|at| !matches!(path[*at].body, EntryBody::Compaction(_)))
            .filter_map(|at| messages[at].clone())
            .filter(|message| !matches!(**message, Message::System(_)))
            .collect()
    };
    let messages_to_summarise = gather(start, history_end);
    let turn_prefix = gather(history_end, cut.first_kept);
    if messages_to_summarise.is_empty() && turn_prefix.is_empty() {
        return Err(CompactError::NothingToCompact);
    }
    for message in messages_to_summarise.iter().chain(&turn_prefix) {
        files.add_calls(message);
    }
    let context = context_of(path);
    Ok(Preparation {
        first_kept_entry_id: first.id.clone(),
        is_split_turn: cut.turn_start.is_some(),
        messages_to_summarise,
        turn_prefix,
        previous_summary: previous.map(|previous| previous.summary.clone()),
        tokens_before: tokens_of(&context).tokens,
        messages_before: n_messages(&context.messages),
        files,
        verbatim: Verbatim::default(),
        settings: *settings,
    })
}

/// Returns the number of messages, without system messages.
pub(super) fn n_messages(messages: &[Arc<Message>]) -> usize {
    messages.iter().filter(|message| !matches!(***message, Message::System(_))).count()
}

/// Returns the last compaction of a path and the index of the first entry not summarised yet.
fn previous(path: &[Arc<Entry>]) -> (Option<&Compaction>, usize) {
    let last = path.iter().enumerate().rev().find_map(|(at, entry)| match &entry.body {
        EntryBody::Compaction(compaction) => Some((at, compaction)),
        _ => None,
    });
    let Some((at, compaction)) = last else { return (None, 0) };
    let kept = compaction.first_kept_entry_id.as_ref();
    let kept = kept.and_then(|kept| path[..at].iter().position(|entry| entry.id == *kept));
    (Some(compaction), kept.unwrap_or(at + 1))
}

/// Prepares the compaction of a log's active branch. Parses only the entries since the last compaction.
///
/// # Errors
/// Same as [`prepare`].
pub fn prepare_log(log: &SessionLog, settings: &CompactionSettings) -> Result<Preparation, CompactError> {
    let branch = log.active_branch();
    let (path, index) = (branch.path(), branch.index());
    let compaction = path.iter().rposition(|at| index.slots()[*at].kind == EntryType::Compaction);
    let from = compaction.map_or(0, |place| {
        let kept = match &index.entry(path[place]).body {
            EntryBody::Compaction(compaction) => compaction.first_kept_entry_id.clone(),
            _ => None,
        };
        kept.and_then(|kept| path[..place].iter().position(|at| index.slots()[*at].id == kept)).unwrap_or(place)
    });
    let live: Vec<Arc<Entry>> = path[from..].iter().map(|at| index.entry(*at)).collect();
    let mut preparation = prepare(&live, settings)?;
    let first_kept = path.iter().position(|at| index.slots()[*at].id == preparation.first_kept_entry_id);
    preparation.verbatim = verbatim(log, &branch, first_kept.unwrap_or(0));
    Ok(preparation)
}

/// Collects the text before `first_kept` that must survive verbatim.
fn verbatim(log: &SessionLog, branch: &Branch<'_>, first_kept: usize) -> Verbatim {
    let (path, index) = (branch.path(), branch.index());
    let speaks = |at: &usize| {
        let slot = &index.slots()[*at];
        slot.role == MessageRole::User || slot.kind == EntryType::CustomMessage
    };
    let newest = path.iter().rposition(speaks).filter(|place| *place < first_kept);
    let last_user_request = newest.map(|place| text_of(&index.entry(path[place]))).filter(|text| !text.is_empty());
    let mut left = MAX_PINNED;
    let mut pinned = Vec::new();
    for at in path[..first_kept].iter().rev().filter(|at| speaks(at)) {
        if log.label(&index.slots()[*at].id).is_none_or(|label| label.text != PIN) {
            continue;
        }
        let text = text_of(&index.entry(*at));
        match left.checked_sub(text.chars().count()) {
            Some(rest) => left = rest,
            None => break,
        }
        pinned.push(text);
    }
    pinned.reverse();
    Verbatim { last_user_request, pinned }
}

fn text_of(entry: &Entry) -> String {
    match &entry.body {
        EntryBody::Message(message) => match &**message {
            Message::User(user) => user.content.text(""),
            _ => String::new(),
        },
        EntryBody::CustomMessage(message) => message.content.text(""),
        _ => String::new(),
    }
}

/// Returns the combined state of prompt and tools from a context's system messages, or `None` if it has none.
pub fn system_state(messages: &[Arc<Message>]) -> Option<Arc<Message>> {
    let mut state = SystemState::default();
    for message in messages {
        if let Message::System(system) = &**message {
            state.apply(system);
        }
    }
    let timestamp = state.timestamp.filter(|_| !state.is_empty())?;
    Some(Arc::new(Message::System(SystemMessage {
        content: Content::Text(state.instructions.join("\n\n")),
        sections: state.sections.into_iter().map(|(name, text)| (name, Some(text))).collect(),
        tools_added: state.tools,
        tools_removed: Vec::new(),
        timestamp,
    })))
}
