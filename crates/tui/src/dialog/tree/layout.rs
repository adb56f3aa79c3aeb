//! Lays out a tree as rows: which entries are shown where, and the lines that connect them.

use std::collections::HashSet;

/// One row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TreeRow {
    pub(super) node: usize,
    /// Lines to the left of the entry.
    pub(super) prefix: String,
    /// Whether it has a connector and something below it.
    pub(super) can_fold: bool,
    /// Whether it is a root or the first entry of a branch.
    pub(super) begins_segment: bool,
}

/// A node waiting for its row.
struct WaitingNode {
    node: usize,
    indent: usize,
    /// Whether its parent branches.
    is_branch: bool,
    is_last: bool,
    /// Indents at which a line continues downwards.
    gutters: Vec<bool>,
}

/// Returns the rows of the visible nodes. Parents come before their children in `parents`; a node whose parent is hidden is attached to the
/// nearest visible ancestor. Of several children, the one on the path comes first. Only branches are indented; a chain of single children
/// keeps its indent.
pub(super) fn lay_out(
    parents: &[Option<usize>],
    is_shown: &[bool],
    path: &HashSet<usize>,
    folded: &HashSet<usize>,
) -> Vec<TreeRow> {
    let mut shown_ancestor: Vec<Option<usize>> = vec![None; parents.len()];
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); parents.len()];
    let mut roots = Vec::new();
    let mut on_path = path.clone();
    let order = top_down(parents);
    for &node in &order {
        let above =
            parents[node].and_then(|parent| if is_shown[parent] { Some(parent) } else { shown_ancestor[parent] });
        shown_ancestor[node] = above;
        if is_shown[node] {
            match above {
                Some(above) => children[above].push(node),
                None => roots.push(node),
            }
        }
    }
    // A hidden entry passes its position on the path to the visible ones below it.
    for &node in order.iter().rev() {
        if on_path.contains(&node)
            && let Some(above) = shown_ancestor[node]
        {
            on_path.insert(above);
        }
    }
    let active_first = |nodes: &mut Vec<usize>| nodes.sort_by_key(|node| !on_path.contains(node));
    let mut rows = Vec::new();
    let mut waiting = Vec::new();
    let push_all = |waiting: &mut Vec<WaitingNode>, mut nodes: Vec<usize>, indent: usize, gutters: &[bool]| {
        active_first(&mut nodes);
        let (n, is_branch) = (nodes.len(), nodes.len() > 1);
        for (at, node) in nodes.into_iter().enumerate().rev() {
            waiting.push(WaitingNode { node, indent, is_branch, is_last: at + 1 == n, gutters: gutters.to_vec() });
        }
    };
    push_all(&mut waiting, roots, 0, &[]);
    while let Some(WaitingNode { node, indent, is_branch, is_last, gutters }) = waiting.pop() {
        let below = std::mem::take(&mut children[node]);
        let can_fold = is_branch && !below.is_empty();
        let is_folded = can_fold && folded.contains(&node);
        let mut prefix: String = gutters.iter().map(|continues| if *continues { "│  " } else { "   " }).collect();
        if is_branch {
            prefix.push(if is_last { '└' } else { '├' });
            prefix.push_str(match (can_fold, is_folded) {
                (_, true) => "⊞ ",
                (true, false) => "⊟ ",
                (false, false) => "─ ",
            });
        } else {
            // What follows the first entry of a branch is aligned with its text.
            prefix.push_str(&"   ".repeat(indent.saturating_sub(gutters.len())));
        }
        rows.push(TreeRow { node, prefix, can_fold, begins_segment: is_branch || parents[node].is_none() });
        if is_folded {
            continue;
        }
        let mut gutters = gutters;
        let mut indent = indent;
        if is_branch {
            gutters.push(!is_last);
            indent += 1;
        }
        push_all(&mut waiting, below, indent, &gutters);
    }
    rows
}

/// Returns all nodes, each after its parent. Nodes in a cycle are left out; logs have none.
fn top_down(parents: &[Option<usize>]) -> Vec<usize> {
    let mut below: Vec<Vec<usize>> = vec![Vec::new(); parents.len()];
    let mut order: Vec<usize> = Vec::with_capacity(parents.len());
    for (node, parent) in parents.iter().enumerate() {
        match parent {
            Some(parent) => below[*parent].push(node),
            None => order.push(node),
        }
    }
    let mut at = 0;
    while at < order.len() {
        let children = std::mem::take(&mut below[order[at]]);
        order.extend(children);
        at += 1;
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lays out a tree given as `name parent` pairs.
    fn shown(nodes: &[(&str, &str)], hidden: &str, path: &str, folded: &str) -> String {
        let place = |name: &str| nodes.iter().position(|(node, _)| *node == name);
        let parents: Vec<_> = nodes.iter().map(|(_, parent)| place(parent)).collect();
        let is_shown: Vec<_> = nodes.iter().map(|(name, _)| !hidden.contains(name)).collect();
        let set = |names: &str| names.chars().filter_map(|name| place(&name.to_string())).collect::<HashSet<_>>();
        let rows = lay_out(&parents, &is_shown, &set(path), &set(folded));
        rows.iter().map(|row| format!("{}{}\n", row.prefix, nodes[row.node].0)).collect()
    }

    const TREE: [(&str, &str); 8] =
        [("a", ""), ("b", "a"), ("c", "b"), ("d", "b"), ("e", "d"), ("f", "e"), ("g", "e"), ("h", "c")];

    #[test]
    fn chains_keep_their_indent_and_the_active_branch_comes_first() {
        insta::assert_snapshot!(shown(&TREE, "", "abdeg", ""));
    }

    #[test]
    fn a_folded_branch_hides_what_is_below_it() {
        insta::assert_snapshot!(shown(&TREE, "", "abdeg", "c"));
    }

    #[test]
    fn children_of_hidden_entries_attach_to_the_nearest_visible_ancestor() {
        insta::assert_snapshot!(shown(&TREE, "bd", "abdeg", ""));
    }

    #[test]
    fn several_roots_are_branches() {
        insta::assert_snapshot!(shown(&[("a", ""), ("b", "a"), ("c", "")], "", "c", ""));
    }
}
