//! Cycles among parents: a damaged or forged file can make an entry its own ancestor.

/// Returns where to cut the chains of parents so that each one ends: the first entry of every cycle, in file order. Takes linear time.
pub(super) fn cuts(n_entries: usize, parent: impl Fn(usize) -> Option<usize>) -> Vec<usize> {
    const NEW: usize = 0;
    const DONE: usize = usize::MAX;
    // NEW, DONE, or the number of the current walk.
    let mut state = vec![NEW; n_entries];
    let mut cuts = Vec::new();
    for start in 0..n_entries {
        let walk = start + 1;
        let mut next = Some(start);
        while let Some(at) = next.filter(|at| state[*at] == NEW) {
            state[at] = walk;
            next = parent(at);
        }
        if let Some(closed) = next.filter(|at| state[*at] == walk) {
            let (mut first, mut at) = (closed, closed);
            while let Some(next) = parent(at).filter(|next| *next != closed) {
                first = first.min(next);
                at = next;
            }
            cuts.push(first);
        }
        next = Some(start);
        while let Some(at) = next.filter(|at| state[*at] == walk) {
            state[at] = DONE;
            next = parent(at);
        }
    }
    cuts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(parents: &[Option<usize>], expected: &[usize]) {
        assert_eq!(cuts(parents.len(), |at| parents[at]), expected);
    }

    #[test]
    fn each_cycle_is_cut_once_at_its_first_entry() {
        check(&[None, Some(0), Some(1)], &[]);
        check(&[Some(0)], &[0]);
        check(&[Some(1), Some(0), Some(1)], &[0]);
        // 0 and 1 lead into the cycle 2, 3, 4.
        check(&[Some(1), Some(3), Some(4), Some(2), Some(3), None], &[2]);
        check(&[Some(1), Some(0), Some(3), Some(2)], &[0, 2]);
        let chain: Vec<Option<usize>> = (0..100_000).map(|at| Some((at + 1) % 100_000)).collect();
        check(&chain, &[0]);
    }
}
