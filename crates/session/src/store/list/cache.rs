//! A cache of summaries for unchanged files.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{SessionFile, SessionSummary, Stamp};

/// Maximum bytes of cached text.
const MAX_BYTES: usize = 64 << 20;

/// Summaries by file. Files whose length or time changed are read again.
#[derive(Debug)]
pub(in crate::store) struct ListCache {
    kept: Mutex<CachedSummary>,
    max_bytes: usize,
}

#[derive(Debug, Default)]
struct CachedSummary {
    /// `None` for files that are not sessions.
    files: HashMap<PathBuf, (Stamp, Option<SessionSummary>)>,
    n_bytes: usize,
}

impl Default for ListCache {
    fn default() -> Self {
        Self { kept: Mutex::default(), max_bytes: MAX_BYTES }
    }
}

impl ListCache {
    fn kept(&self) -> MutexGuard<'_, CachedSummary> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the cached result; the inner `None` means that the file is not a session.
    pub(super) fn get(&self, file: &SessionFile) -> Option<Option<SessionSummary>> {
        let kept = self.kept();
        let (stamp, summary) = kept.files.get(&file.path)?;
        (*stamp == file.stamp).then(|| summary.clone())
    }

    /// Caches a result if there is room.
    pub(super) fn put(&self, file: &SessionFile, summary: Option<SessionSummary>) {
        let mut kept = self.kept();
        kept.remove(&file.path);
        let n_bytes = size(&file.path, summary.as_ref());
        if kept.n_bytes + n_bytes <= self.max_bytes {
            kept.n_bytes += n_bytes;
            kept.files.insert(file.path.clone(), (file.stamp, summary));
        }
    }

    /// Drops the files of a directory that no longer exist.
    pub(in crate::store) fn forget_removed(&self, folder: &Path, there: &[SessionFile]) {
        let mut kept = self.kept();
        let is_removed = |path: &Path| {
            path.parent() == Some(folder) && there.binary_search_by(|file| file.path.as_path().cmp(path)).is_err()
        };
        let removed: Vec<PathBuf> = kept.files.keys().filter(|path| is_removed(path)).cloned().collect();
        for path in removed {
            kept.remove(&path);
        }
    }
}

impl CachedSummary {
    fn remove(&mut self, path: &Path) {
        if let Some((_, summary)) = self.files.remove(path) {
            self.n_bytes -= size(path, summary.as_ref());
        }
    }
}

/// Estimates how much memory one entry takes.
fn size(path: &Path, summary: Option<&SessionSummary>) -> usize {
    let texts = summary.map_or(0, |summary| summary.search_text.len() + summary.first_message.len());
    512 + 2 * path.as_os_str().len() + texts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, n_bytes: u64) -> SessionFile {
        SessionFile { path: name.into(), stamp: Stamp { modified: 1, n_bytes } }
    }

    #[test]
    fn a_changed_file_misses_the_cache() {
        let cache = ListCache::default();
        cache.put(&file("/s/a", 1), None);
        assert_eq!(cache.get(&file("/s/a", 1)), Some(None));
        assert_eq!(cache.get(&file("/s/a", 2)), None);
        cache.put(&file("/s/a", 2), None);
        assert_eq!(cache.get(&file("/s/a", 1)), None);
    }

    #[test]
    fn the_cache_is_bounded_and_frees_room() {
        let cache = ListCache { max_bytes: 1200, ..ListCache::default() };
        for name in ["/s/a", "/s/b", "/t/c"] {
            cache.put(&file(name, 1), None);
        }
        assert_eq!(cache.kept().files.len(), 2);
        cache.forget_removed(Path::new("/s"), &[file("/s/b", 1)]);
        assert_eq!((cache.get(&file("/s/a", 1)), cache.get(&file("/s/b", 1))), (None, Some(None)));
        cache.put(&file("/t/c", 1), None);
        assert_eq!(cache.get(&file("/t/c", 1)), Some(None));
        cache.forget_removed(Path::new("/s"), &[]);
        cache.forget_removed(Path::new("/t"), &[]);
        assert_eq!(cache.kept().n_bytes, 0);
    }
}
