//! Branches and the tree they make.

use std::collections::HashMap;
use std::sync::Arc;

use super::SessionLog;
use super::circles;
use super::index::{Index, Label};
use crate::entry::scan::Kind;
use crate::entry::{Entry, EntryId};
use crate::store::StoreError;

/// The way from a root to one entry. Entries are parsed when asked for.
#[derive(Debug)]
pub struct Branch<'a> {
    index: &'a Index,
    path: Vec<usize>,
}

impl<'a> Branch<'a> {
    pub(super) fn new(index: &'a Index, leaf: Option<usize>) -> Self {
        Self { index, path: index.path(leaf) }
    }

    /// How many entries it has.
    pub fn len(&self) -> usize {
        self.path.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.path.is_empty()
    }

    /// The ids, root first.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = &'a EntryId> + ExactSizeIterator {
        let slots = self.index.slots();
        self.path.iter().map(|at| &slots[*at].id)
    }

    /// The entries, root first.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = Arc<Entry>> + ExactSizeIterator {
        self.path.iter().map(|at| self.index.entry(*at))
    }

    /// Whether any of its entries sets the thinking level.
    pub fn has_level(&self) -> bool {
        self.path.iter().any(|at| self.index.slots()[*at].kind == Kind::ThinkingLevelChange)
    }

    pub(crate) fn path(&self) -> &[usize] {
        &self.path
    }

    pub(crate) fn index(&self) -> &'a Index {
        self.index
    }
}

/// All entries as trees: flat, because branches can be very deep.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tree {
    /// The nodes in file order.
    pub nodes: Vec<Node>,
    /// Places of the roots in `nodes`.
    pub roots: Vec<usize>,
}

/// One entry in a tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The entry.
    pub id: EntryId,
    /// Its type.
    pub type_name: String,
    /// Places of its children, oldest first.
    pub children: Vec<usize>,
    /// Its mark.
    pub label: Option<Label>,
}

impl SessionLog {
    /// The branch that ends in an entry.
    ///
    /// # Errors
    /// When there is no such entry.
    pub fn branch(&self, leaf: &EntryId) -> Result<Branch<'_>, StoreError> {
        Ok(Branch::new(&self.index, Some(self.find(leaf)?)))
    }

    /// The branch that ends in the leaf.
    pub fn active_branch(&self) -> Branch<'_> {
        Branch::new(&self.index, self.leaf)
    }

    /// All entries as trees. Roots stand in file order, children by time. Of entries with the same id the last one stands in the tree. Every entry
    /// stands in it once at most, whatever the file says: where parents lead in a cycle, its first entry is a root.
    pub fn tree(&self) -> Tree {
        let slots = self.index.slots();
        let last_of = |at: usize| self.index.find(slots[at].id.as_str()).unwrap_or(at);
        let mut parents: Vec<Option<usize>> =
            (0..slots.len()).map(|at| self.index.parent(at).map(last_of).filter(|parent| *parent != at)).collect();
        if self.index.n_duplicates() > 0 {
            // An entry that was appended later can take the place of another's parent.
            for at in circles::cuts(parents.len(), |at| parents[at]) {
                parents[at] = None;
            }
        }
        let mut tree = Tree::default();
        let mut children: HashMap<usize, Vec<usize>> = HashMap::new();
        for (at, slot) in slots.iter().enumerate() {
            let type_name = match slot.kind {
                Kind::Message => "message".to_owned(),
                _ => self.index.entry(at).body.type_name().to_owned(),
            };
            let label = self.index.label(&slot.id).cloned();
            tree.nodes.push(Node { id: slot.id.clone(), type_name, children: Vec::new(), label });
            if last_of(at) != at {
                continue;
            }
            match parents[at] {
                Some(parent) => children.entry(parent).or_default().push(at),
                None => tree.roots.push(at),
            }
        }
        for (parent, mut list) in children {
            if list.len() > 1 {
                list.sort_by_cached_key(|at| self.index.entry(*at).timestamp_ms().unwrap_or_default());
            }
            tree.nodes[parent].children = list;
        }
        tree
    }

    /// The children of an entry in file order.
    pub fn children(&self, id: &EntryId) -> Vec<EntryId> {
        let parent = self.index.find(id.as_str());
        let slots = self.index.slots();
        let is_child = |at: &usize| parent.is_some() && self.index.parent(*at) == parent;
        (0..slots.len()).filter(is_child).map(|at| slots[at].id.clone()).collect()
    }
}
