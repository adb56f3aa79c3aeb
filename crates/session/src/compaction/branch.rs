//! Summaries of abandoned branches.

use std::collections::HashSet;
use std::sync::Arc;

use futures::future::BoxFuture;
use pinch_llm::message::{Message, Usage};
use pinch_stdx::cancel::Cancel;

use super::estimate::message_tokens;
use super::file_list::FileList;
use super::summarise::focused;
use super::{CompactError, SummaryModel, instructions, serialise};
use crate::entry::{BranchSummary, Entry, EntryBody, EntryId};
use crate::session_log::{SessionLog, edited_messages};
use crate::store::StoreError;

/// Context window assumed when the model's is unknown.
const DEFAULT_WINDOW: u64 = 128_000;

/// Maximum tokens of a branch summary.
const MAX_TOKENS: u64 = 2048;

/// The entries of a branch being left, oldest first.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct LeftBranch {
    /// The entries.
    pub entries: Vec<Arc<Entry>>,
    /// The last entry shared by both branches.
    pub common_ancestor: Option<EntryId>,
}

/// Collects the entries that are left when the leaf moves from one entry to another.
///
/// # Errors
/// Fails if either entry does not exist.
pub fn collect(log: &SessionLog, old_leaf: Option<&EntryId>, target: &EntryId) -> Result<LeftBranch, StoreError> {
    let Some(old_leaf) = old_leaf else { return Ok(LeftBranch::default()) };
    let old = log.branch(old_leaf)?;
    let shared: HashSet<&EntryId> = log.branch(target)?.ids().collect();
    let n_shared = old.ids().rposition(|id| shared.contains(id)).map_or(0, |at| at + 1);
    let common_ancestor = n_shared.checked_sub(1).and_then(|at| old.ids().nth(at)).cloned();
    Ok(LeftBranch { entries: old.entries().skip(n_shared).collect(), common_ancestor })
}

/// Input for the summary of a branch.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct BranchPreparation {
    /// The messages, oldest first.
    pub messages: Vec<Arc<Message>>,
    /// Files read and changed.
    pub files: FileList,
    /// Total tokens of the messages.
    pub total_tokens: u64,
}

/// Selects the newest messages of a branch that fit into a token budget (0 = unlimited). Skips tool results and failed answers.
pub fn prepare(entries: &[Arc<Entry>], budget: u64) -> BranchPreparation {
    let mut prepared = BranchPreparation::default();
    for entry in entries {
        if let EntryBody::BranchSummary(branch) = &entry.body
            && branch.from_hook != Some(true)
        {
            prepared.files.add_details(branch.details.as_ref());
        }
    }
    let messages = edited_messages(entries);
    for (entry, message) in entries.iter().zip(messages).rev() {
        let Some(message) = message.filter(|message| is_summarised(message)) else { continue };
        prepared.files.add_calls(&message);
        let tokens = message_tokens(&message);
        if budget > 0 && prepared.total_tokens + tokens > budget {
            let is_summary = matches!(entry.body, EntryBody::Compaction(_) | EntryBody::BranchSummary(_));
            // A summary stands for far more than its size, so it may exceed the budget a little.
            if is_summary && prepared.total_tokens < budget * 9 / 10 {
                prepared.total_tokens += tokens;
                prepared.messages.push(message);
            }
            break;
        }
        prepared.total_tokens += tokens;
        prepared.messages.push(message);
    }
    prepared.messages.reverse();
    prepared
}

fn is_summarised(message: &Message) -> bool {
    match message {
        Message::ToolResult(_) | Message::System(_) => false,
        Message::Assistant(assistant) => !assistant.stop_reason.is_failure(),
        Message::User(_) | Message::Other(_) => true,
    }
}

/// The user's instructions for the summary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BranchInstructions {
    /// The user's text.
    pub text: Option<String>,
    /// Whether the text replaces the default instructions instead of extending them.
    pub replace: bool,
}

/// Summarises a branch being left. Pass the result to [`SessionLog::branch_with_summary`].
///
/// # Errors
/// Fails if the model fails or the caller cancels.
pub fn summarise<'a>(
    left: &'a LeftBranch,
    model: &'a SummaryModel<'a>,
    reserve_tokens: u64,
    wanted: &'a BranchInstructions,
    cancel: &'a Cancel,
) -> BoxFuture<'a, Result<BranchSummary, CompactError>> {
    Box::pin(async move {
        let window = if model.context_window == 0 { DEFAULT_WINDOW } else { model.context_window };
        let prepared = prepare(&left.entries, window.saturating_sub(reserve_tokens).max(1));
        let mut usage: Option<Usage> = None;
        let summary = if prepared.messages.is_empty() {
            instructions::NOTHING_TO_SUMMARISE.to_owned()
        } else {
            let text = prompt(&prepared.messages, wanted);
            let answer = model.ask("Branch summarization", text, MAX_TOKENS, cancel, &mut usage).await?;
            format!("{}{answer}{}", instructions::BRANCH_PREAMBLE, prepared.files.text())
        };
        Ok(BranchSummary {
            from_id: String::new(),
            summary,
            details: Some(prepared.files.details()),
            from_hook: Some(false),
            usage,
        })
    })
}

fn prompt(messages: &[Arc<Message>], wanted: &BranchInstructions) -> String {
    let conversation = serialise::conversation(messages);
    let head = format!("<conversation>\n{conversation}\n</conversation>\n\n");
    match &wanted.text {
        Some(text) if wanted.replace => head + text,
        text => focused(head + instructions::BRANCH, text.as_deref()),
    }
}
