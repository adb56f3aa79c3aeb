//! The shape of a session's tree: the order of entries in the page and in the sidebar. Nothing here recurses, because branches can be very
//! deep.

use pinch_session::session_log::SessionLog;

/// Maximum indentation levels in the sidebar.
pub(super) const MAX_INDENT: usize = 12;

/// The tree of a session.
pub(super) struct EntryOutline {
    roots: Vec<usize>,
    children: Vec<Vec<usize>>,
    parents: Vec<Option<usize>>,
    active: Vec<bool>,
}

/// An entry in the sidebar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OutlineRow {
    pub(super) at: usize,
    pub(super) indent: usize,
}

impl EntryOutline {
    pub(super) fn of(log: &SessionLog) -> Self {
        let tree = log.tree();
        let branch = log.active_branch();
        let mut active = vec![false; tree.nodes.len()];
        for at in branch.path() {
            active[*at] = true;
        }
        let children: Vec<Vec<usize>> = tree.nodes.into_iter().map(|node| node.children).collect();
        let mut parents = vec![None; children.len()];
        for (at, children) in children.iter().enumerate() {
            children.iter().for_each(|child| parents[*child] = Some(at));
        }
        Self { roots: tree.roots, children, parents, active }
    }

    /// Returns whether an entry is on the active branch.
    pub(super) fn is_active(&self, at: usize) -> bool {
        self.active[at]
    }

    pub(super) fn parent(&self, at: usize) -> Option<usize> {
        self.parents[at]
    }

    /// Returns the child of an entry that has exactly one.
    pub(super) fn only_child(&self, at: usize) -> Option<usize> {
        match self.children[at][..] {
            [only] => Some(only),
            _ => None,
        }
    }

    /// Returns all entries, parents first: the active branch, then the others, each contiguous.
    pub(super) fn reading_order(&self) -> Vec<usize> {
        // A stack: the entry pushed last is visited first.
        self.walk(|main, others| others.rev().chain(main).collect()).into_iter().map(|row| row.at).collect()
    }

    /// Returns all entries, parents first: at a fork, the indented side branches precede the rest of the branch.
    pub(super) fn rows(&self) -> Vec<OutlineRow> {
        self.walk(|main, others| main.into_iter().chain(others.rev()).collect())
    }

    fn walk(
        &self,
        push: impl Fn(Option<OutlineRow>, std::vec::IntoIter<OutlineRow>) -> Vec<OutlineRow>,
    ) -> Vec<OutlineRow> {
        let mut seen = vec![false; self.children.len()];
        let mut rows = Vec::with_capacity(seen.len());
        let mut waiting = self.fork(&self.roots, 0, false, &push);
        // Entries that are their own ancestors are below no root.
        let mut rest = 0..seen.len();
        loop {
            let row = match waiting.pop() {
                Some(row) => row,
                None => match rest.find(|at| !seen[*at]) {
                    Some(at) => OutlineRow { at, indent: 0 },
                    None => return rows,
                },
            };
            if std::mem::replace(&mut seen[row.at], true) {
                continue;
            }
            rows.push(row);
            waiting.extend(self.fork(&self.children[row.at], row.indent, true, &push));
        }
    }

    /// Splits the children of an entry into the one that continues the branch and the others, in stack order.
    fn fork(
        &self,
        children: &[usize],
        indent: usize,
        indents: bool,
        push: impl Fn(Option<OutlineRow>, std::vec::IntoIter<OutlineRow>) -> Vec<OutlineRow>,
    ) -> Vec<OutlineRow> {
        let main = children.iter().find(|at| self.active[**at]).or(children.last());
        let beside = (indent + usize::from(indents)).min(MAX_INDENT);
        let others: Vec<OutlineRow> =
            children.iter().filter(|at| Some(*at) != main).map(|at| OutlineRow { at: *at, indent: beside }).collect();
        push(main.map(|at| OutlineRow { at: *at, indent }), others.into_iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a tree from parents; the active branch ends in `leaf`.
    fn outline(parents: &[Option<usize>], leaf: usize) -> EntryOutline {
        let mut children = vec![Vec::new(); parents.len()];
        let mut roots = Vec::new();
        for (at, parent) in parents.iter().enumerate() {
            match parent {
                Some(parent) => children[*parent].push(at),
                None => roots.push(at),
            }
        }
        let mut active = vec![false; parents.len()];
        let mut next = Some(leaf);
        while let Some(at) = next.filter(|at| !active[*at]) {
            active[at] = true;
            next = parents[at];
        }
        EntryOutline { roots, children, parents: parents.to_vec(), active }
    }

    fn rows(outline: &EntryOutline) -> Vec<(usize, usize)> {
        outline.rows().into_iter().map(|row| (row.at, row.indent)).collect()
    }

    #[test]
    fn side_branches_are_listed_at_their_fork() {
        // 0 ─ 1 ─ 2 (active), 1 ─ 3 ─ 4, 0 ─ 5, and a second root.
        let tree = outline(&[None, Some(0), Some(1), Some(1), Some(3), Some(0), None], 2);
        assert_eq!(rows(&tree), [(6, 0), (0, 0), (5, 1), (1, 0), (3, 1), (4, 1), (2, 0)]);
        assert_eq!(tree.reading_order(), [0, 1, 2, 3, 4, 5, 6]);
        let tree = outline(&[None, Some(0), Some(1), Some(1), Some(3), Some(0), None], 4);
        assert_eq!(tree.reading_order(), [0, 1, 3, 4, 2, 5, 6]);
        assert!(
            tree.is_active(3) && !tree.is_active(2) && tree.only_child(3) == Some(4) && tree.only_child(1).is_none()
        );
    }

    #[test]
    fn deep_trees_and_cycles_are_walked() {
        let chain: Vec<Option<usize>> = (0..200_000_usize).map(|at| at.checked_sub(1)).collect();
        let tree = outline(&chain, 199_999);
        assert_eq!(tree.reading_order(), (0..200_000).collect::<Vec<_>>());
        assert!(tree.rows().iter().all(|row| row.indent == 0));
        // A fork in every side branch.
        let parent = |at: usize| at.checked_sub(if at.is_multiple_of(2) { 3 } else { 2 }).or((at > 0).then_some(0));
        let comb: Vec<Option<usize>> = (0..2001).map(parent).collect();
        assert_eq!(outline(&comb, 2).rows().iter().map(|row| row.indent).max(), Some(MAX_INDENT));
        let circle = outline(&[Some(1), Some(0), None], 0);
        assert_eq!(rows(&circle), [(2, 0), (0, 0), (1, 0)]);
    }
}
