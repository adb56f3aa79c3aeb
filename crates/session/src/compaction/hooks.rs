//! Where an owner may step into the making of summaries.

use std::sync::Arc;

use futures::future::BoxFuture;
use pinch_stdx::cancel::Cancel;
use serde_json::Value;

use super::{CompactError, Compacted, CompactionReason, Preparation, Summarised};
use crate::entry::{Entry, EntryId};

/// Hooks that are called before and after compactions and moves in the tree. By default, they change nothing.
pub trait SummaryHooks: Send + Sync {
    /// Before a compaction is summarised.
    fn before_compaction<'a>(
        &'a self,
        ahead: &'a CompactionAhead<'a>,
        cancel: &'a Cancel,
    ) -> BoxFuture<'a, BeforeCompaction> {
        let _ = (ahead, cancel);
        Box::pin(async { BeforeCompaction::GoOn })
    }

    /// Makes the summary in place of the session's own model; `None`: that model makes it. Called once nobody has stepped in.
    fn summarise<'a>(
        &'a self,
        ahead: &'a CompactionAhead<'a>,
        cancel: &'a Cancel,
    ) -> BoxFuture<'a, Option<Result<Summarised, CompactError>>> {
        let _ = (ahead, cancel);
        Box::pin(async { None })
    }

    /// A compaction is in the log.
    fn compacted(&self, done: &Compacted) {
        let _ = done;
    }

    /// A compaction that had begun failed or was cancelled.
    fn compaction_failed(&self, reason: CompactionReason, error: &CompactError) {
        let _ = (reason, error);
    }

    /// Before the leaf moves to another branch.
    fn before_move<'a>(&'a self, ahead: &'a MoveAhead, cancel: &'a Cancel) -> BoxFuture<'a, BeforeMove> {
        let _ = (ahead, cancel);
        Box::pin(async { BeforeMove::GoOn(MoveChanges::default()) })
    }

    /// The leaf has moved.
    fn moved(&self, moved: &MovedLeaf) {
        let _ = moved;
    }
}

/// Hooks that change nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSummaryHooks;

impl SummaryHooks for NoSummaryHooks {}

/// A compaction that is about to be made.
#[derive(Clone, Copy, Debug)]
pub struct CompactionAhead<'a> {
    /// What is summarised and what is kept.
    pub preparation: &'a Preparation,
    /// Why.
    pub reason: CompactionReason,
    /// What the summary is to look at in particular.
    pub focus: Option<&'a str>,
    /// A failed prompt is tried again afterwards.
    pub will_retry: bool,
}

/// What may happen to a compaction.
#[derive(Clone, Debug, PartialEq)]
pub enum BeforeCompaction {
    /// The session's model summarises.
    GoOn,
    /// Nothing is compacted.
    Cancel,
    /// This takes the place of a summary by the model, and is stored as it is when it says that an extension made it.
    Instead(Box<Summarised>),
}

/// A move of the leaf that is about to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct MoveAhead {
    /// Where to.
    pub target: EntryId,
    /// Where from; `None` before the first entry.
    pub old_leaf: Option<EntryId>,
    /// The last entry both branches share.
    pub common_ancestor: Option<EntryId>,
    /// Entries that are left, oldest first.
    pub left: Vec<Arc<Entry>>,
    /// A summary of them is wanted.
    pub summarise: bool,
    /// What the summary is to look at in particular.
    pub focus: Option<String>,
    /// Text that replaces the default instructions.
    pub replace_instructions: bool,
    /// The mark that the new place gets.
    pub label: Option<String>,
}

/// What may happen to a move.
#[derive(Clone, Debug, PartialEq)]
pub enum BeforeMove {
    /// Make it, with these changes.
    GoOn(MoveChanges),
    /// The leaf stays.
    Cancel,
}

/// Changes to a move; `None` keeps a part.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MoveChanges {
    /// A summary in place of the model's, and its data; used only where one is wanted.
    pub summary: Option<(String, Option<Value>)>,
    /// Other words to look at.
    pub focus: Option<String>,
    /// Whether they replace the default instructions.
    pub replace_instructions: Option<bool>,
    /// Another mark.
    pub label: Option<String>,
}

/// A move that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedLeaf {
    /// Where the leaf is now; `None` before the first entry.
    pub new_leaf: Option<EntryId>,
    /// Where it was.
    pub old_leaf: Option<EntryId>,
    /// The entry with the summary of what was left.
    pub summary: Option<EntryId>,
    /// The summary came from the hook.
    pub from_hook: bool,
}
