//! Scanning long sessions with several threads; short ones are not worth one.

/// Bytes that justify another thread.
const PART: usize = 2 << 20;
/// Maximum number of threads.
const MAX_THREADS: usize = 4;

/// Returns how many threads a text of this length justifies on this machine.
pub(super) fn worth(n_bytes: usize) -> usize {
    let wanted = (n_bytes / PART).min(MAX_THREADS);
    // Query the machine only if it matters.
    if wanted < 2 { 1 } else { std::thread::available_parallelism().map_or(1, usize::from).min(wanted) }
}

/// Maps items in order on `n_threads` threads, including the caller's.
pub(super) fn map<T: Sync, R: Send>(items: &[T], n_threads: usize, each: impl Fn(&T) -> R + Sync) -> Vec<R> {
    in_chunks(items, n_threads, |chunk| chunk.iter().map(&each).collect())
}

/// Like [`map`], for chunks of neighbouring items that share work.
pub(super) fn in_chunks<T: Sync, R: Send>(
    items: &[T],
    n_threads: usize,
    work: impl Fn(&[T]) -> Vec<R> + Sync,
) -> Vec<R> {
    if n_threads < 2 {
        return work(items);
    }
    let work = &work;
    let mut chunks = items.chunks(items.len().div_ceil(n_threads).max(1));
    let own = chunks.next().unwrap_or_default();
    std::thread::scope(|threads| {
        let others: Vec<_> = chunks.map(|chunk| threads.spawn(move || work(chunk))).collect();
        let mut done = work(own);
        for other in others {
            done.extend(other.join().unwrap_or_else(|why| std::panic::resume_unwind(why)));
        }
        done
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_kept() {
        let items: Vec<usize> = (0..1003).collect();
        for n_threads in 0..6 {
            assert_eq!(map(&items, n_threads, |n| n * 2), items.iter().map(|n| n * 2).collect::<Vec<_>>());
            assert!(map(&items[..0], n_threads, |n| n * 2).is_empty());
        }
    }
}
