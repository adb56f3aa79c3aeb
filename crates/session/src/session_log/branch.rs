//! Branches, and the tree they form.

use std::collections::HashMap;
use std::sync::Arc;

use super::SessionLog;
use super::circles;
use super::index::{Index, Label};
use crate::entry::scan::EntryType;
use crate::entry::{Entry, EntryId};
use crate::store::StoreError;

/// The path from a root to one entry. Entries are parsed on demand.
#[derive(Debug)]
pub struct Branch<'a> {
    index: &'a Index,
    path: Vec<usize>,
}

impl<'a> Branch<'a> {
    pub(super) fn new(index: &'a Index, leaf: Option<usize>) -> Self {
        Self { index, path: index.path(leaf) }
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.path.len()
    }

    /// Returns whether the branch has no entries.
    pub fn is_empty(&self) -> bool {
        self.path.is_empty()
    }

    /// Returns the ids, root first.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = &'a EntryId> + ExactSizeIterator {
        let slots = self.index.slots();
        self.path.iter().map(|at| &slots[*at].id)
    }

    /// Returns the entries, root first.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = Arc<Entry>> + ExactSizeIterator {
        self.path.iter().map(|at| self.index.entry(*at))
    }

    /// Returns whether any entry sets the thinking level.
    pub fn has_level(&self) -> bool {
        self.path.iter().any(|at| self.index.slots()[*at].kind == EntryType::ThinkingLevelChange)
    }

    /// Returns the indices of its entries in file order, root first, for [`SessionLog::try_entry`].
    pub fn path(&self) -> &[usize] {
        &self.path
    }

    pub(crate) fn index(&self) -> &'a Index {
        self.index
    }
}

/// All entries as trees, stored flat because branches can be very deep.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct EntryTree {
    /// The nodes in file order.
    pub nodes: Vec<TreeNode>,
    /// Indices of the roots in `nodes`.
    pub roots: Vec<usize>,
}

/// A node of an [`EntryTree`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TreeNode {
    /// Id of the entry.
    pub id: EntryId,
    /// Type of the entry.
    pub type_name: String,
    /// Indices of its children, oldest first.
    pub children: Vec<usize>,
    /// Label of the entry.
    pub label: Option<Label>,
}

impl EntryTree {
    /// Returns whether a walk from the roots visits at most `max` nodes.
    fn has_at_most(&self, max: usize) -> bool {
        let mut waiting: Vec<usize> = self.roots.clone();
        for _ in 0..max {
            let Some(at) = waiting.pop() else { return true };
            waiting.extend(&self.nodes[at].children);
            if waiting.len() > max {
                return false;
            }
        }
        waiting.is_empty()
    }
}

impl SessionLog {
    /// Returns the branch that ends in an entry.
    ///
    /// # Errors
    /// Fails if the entry does not exist.
    pub fn branch(&self, leaf: &EntryId) -> Result<Branch<'_>, StoreError> {
        Ok(Branch::new(&self.index, Some(self.find(leaf)?)))
    }

    /// Returns the branch that ends in the leaf.
    pub fn active_branch(&self) -> Branch<'_> {
        Branch::new(&self.index, self.leaf)
    }

    /// Returns all entries as trees. Roots are in file order, children in order of time. Of entries with the same id, the last one is
    /// included.
    ///
    /// Every entry appears once, even in malformed files: where parents form a cycle, its first entry becomes a root. One exception: an
    /// older program could write the same lines twice. Such copies appear beside the original, as in pi, as long as the trees have at most
    /// twice as many nodes as the file has entries.
    pub fn tree(&self) -> EntryTree {
        let slots = self.index.slots();
        let last_of = |at: usize| self.index.find(slots[at].id.as_str()).unwrap_or(at);
        let mut parents: Vec<Option<usize>> =
            (0..slots.len()).map(|at| self.index.parent(at).map(last_of).filter(|parent| *parent != at)).collect();
        let mut with_copies = false;
        if self.index.n_duplicates() > 0 {
            // A duplicate appended later can replace another entry's parent.
            let cuts = circles::cuts(parents.len(), |at| parents[at]);
            let is_copy = |at: usize| last_of(at) == at || self.index.line(at) == self.index.line(last_of(at));
            with_copies = cuts.is_empty() && self.index.n_cycles == 0 && (0..slots.len()).all(is_copy);
            cuts.into_iter().for_each(|at| parents[at] = None);
        }
        let mut tree = EntryTree::default();
        for (at, slot) in slots.iter().enumerate() {
            let type_name = match slot.kind {
                EntryType::Message => "message".to_owned(),
                _ => self.index.entry(at).body.type_name().to_owned(),
            };
            let label = self.index.label(&slot.id).cloned();
            tree.nodes.push(TreeNode { id: slot.id.clone(), type_name, children: Vec::new(), label });
        }
        self.connect(&mut tree, &parents, with_copies);
        if with_copies && !tree.has_at_most(2 * slots.len()) {
            self.connect(&mut tree, &parents, false);
        }
        tree
    }

    /// Attaches the nodes of a tree to their parents. Of entries with the same id, only the last is attached, or every one with
    /// `with_copies`.
    fn connect(&self, tree: &mut EntryTree, parents: &[Option<usize>], with_copies: bool) {
        tree.roots.clear();
        let mut children: HashMap<usize, Vec<usize>> = HashMap::new();
        for (at, parent) in parents.iter().enumerate() {
            let node = self.index.find(self.index.slots()[at].id.as_str()).unwrap_or(at);
            if node != at && !with_copies {
                continue;
            }
            match parent {
                Some(parent) => children.entry(*parent).or_default().push(node),
                None => tree.roots.push(node),
            }
        }
        for (at, node) in tree.nodes.iter_mut().enumerate() {
            node.children = children.remove(&at).unwrap_or_default();
            if node.children.len() > 1 {
                node.children.sort_by_cached_key(|at| self.index.entry(*at).timestamp_ms().unwrap_or_default());
            }
        }
    }

    /// Returns the children of an entry in file order.
    pub fn children(&self, id: &EntryId) -> Vec<EntryId> {
        let parent = self.index.find(id.as_str());
        let slots = self.index.slots();
        let is_child = |at: &usize| parent.is_some() && self.index.parent(*at) == parent;
        (0..slots.len()).filter(is_child).map(|at| slots[at].id.clone()).collect()
    }
}
