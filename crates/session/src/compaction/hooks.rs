//! Hooks around summaries and moves in the tree.

use std::sync::Arc;

use futures::future::BoxFuture;
use pinch_stdx::cancel::Cancel;
use serde_json::Value;

use super::{CompactError, Compacted, CompactionReason, Preparation, Summarised};
use crate::entry::{Entry, EntryId};

/// Hooks called before and after compactions and moves of the leaf. The defaults change nothing.
pub trait SummaryHooks: Send + Sync {
    /// Called before a compaction is summarised.
    fn before_compaction<'a>(
        &'a self,
        ahead: &'a PendingCompaction<'a>,
        cancel: &'a Cancel,
    ) -> BoxFuture<'a, BeforeCompaction> {
        let _ = (ahead, cancel);
        Box::pin(async { BeforeCompaction::Continue })
    }

    /// Makes the summary instead of the session's model; `None` leaves it to that model. Called if no hook cancelled or supplied a summary.
    fn summarise<'a>(
        &'a self,
        ahead: &'a PendingCompaction<'a>,
        cancel: &'a Cancel,
    ) -> BoxFuture<'a, Option<Result<Summarised, CompactError>>> {
        let _ = (ahead, cancel);
        Box::pin(async { None })
    }

    /// Called after a compaction was stored.
    fn compacted(&self, done: &Compacted) {
        let _ = done;
    }

    /// Called after a compaction failed or was cancelled.
    fn compaction_failed(&self, reason: CompactionReason, error: &CompactError) {
        let _ = (reason, error);
    }

    /// Called before the leaf moves to another branch.
    fn before_move<'a>(&'a self, ahead: &'a PendingMove, cancel: &'a Cancel) -> BoxFuture<'a, BeforeMove> {
        let _ = (ahead, cancel);
        Box::pin(async { BeforeMove::Continue(MoveChanges::default()) })
    }

    /// Called after the leaf moved.
    fn moved(&self, moved: &MovedLeaf) {
        let _ = moved;
    }
}

/// The default hooks, which change nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSummaryHooks;

impl SummaryHooks for NoSummaryHooks {}

/// A compaction about to run.
#[derive(Clone, Copy, Debug)]
pub struct PendingCompaction<'a> {
    /// What will be summarised and what will be kept.
    pub preparation: &'a Preparation,
    /// What triggered it.
    pub reason: CompactionReason,
    /// What the summary should focus on.
    pub focus: Option<&'a str>,
    /// Whether a failed prompt is retried afterwards.
    pub will_retry: bool,
}

/// A hook's decision about a compaction.
#[derive(Clone, Debug, PartialEq)]
pub enum BeforeCompaction {
    /// Let the session's model summarise.
    Continue,
    /// Cancel the compaction.
    Cancel,
    /// Use this summary instead of the model's. Stored unchanged if it is marked as made by an extension.
    Instead(Box<Summarised>),
}

/// A move of the leaf about to happen.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingMove {
    /// The new leaf.
    pub target: EntryId,
    /// The current leaf; `None` before the first entry.
    pub old_leaf: Option<EntryId>,
    /// The last entry shared by both branches.
    pub common_ancestor: Option<EntryId>,
    /// The entries being left, oldest first.
    pub left: Vec<Arc<Entry>>,
    /// Whether to summarise them.
    pub summarise: bool,
    /// What the summary should focus on.
    pub focus: Option<String>,
    /// Whether `focus` replaces the default instructions.
    pub replace_instructions: bool,
    /// The label to set on the target.
    pub label: Option<String>,
}

/// A hook's decision about a move.
#[derive(Clone, Debug, PartialEq)]
pub enum BeforeMove {
    /// Move, with these changes.
    Continue(MoveChanges),
    /// Cancel the move.
    Cancel,
}

/// Changes to a move; `None` leaves a part unchanged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MoveChanges {
    /// A summary and its details to use instead of the model's; ignored unless a summary is requested.
    pub summary: Option<(String, Option<Value>)>,
    /// What the summary should focus on instead.
    pub focus: Option<String>,
    /// Whether it replaces the default instructions.
    pub replace_instructions: Option<bool>,
    /// Another label.
    pub label: Option<String>,
}

/// A completed move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedLeaf {
    /// The new leaf; `None` before the first entry.
    pub new_leaf: Option<EntryId>,
    /// The previous leaf.
    pub old_leaf: Option<EntryId>,
    /// The entry that summarises the branch left behind.
    pub summary: Option<EntryId>,
    /// Whether the summary came from a hook.
    pub from_hook: bool,
}
