//! Serializing changes to each file.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use futures::future;
use tokio::sync::OwnedMutexGuard;

use crate::machine::Machine;

/// Serializes changes to each file. Share one value among all tools that act on a machine; clones share it.
#[derive(Clone, Debug, Default)]
pub struct FileQueue {
    entrance: Arc<tokio::sync::Mutex<()>>,
    files: Arc<Mutex<HashMap<PathBuf, Weak<tokio::sync::Mutex<()>>>>>,
}

/// A place in the queue, from which to request turns. Until it is dropped or has its turns, nobody behind it gets any.
#[derive(Debug)]
pub struct FilePlace {
    queue: FileQueue,
    entrance: OwnedMutexGuard<()>,
}

/// The right to change a file, until dropped.
#[derive(Debug)]
pub struct FileTurn {
    key: PathBuf,
    queue: FileQueue,
    guard: Option<OwnedMutexGuard<()>>,
}

impl FileQueue {
    /// Waits for a place in the queue. Places are granted in the order in which these futures are first polled, so a tool whose first step
    /// this is changes files in the order of its calls. Find out only then which files those are: that takes an unpredictable time.
    pub async fn enter(&self) -> FilePlace {
        let entrance = Arc::clone(&self.entrance).lock_owned().await;
        FilePlace { queue: self.clone(), entrance }
    }

    fn lock_of(&self, key: &Path) -> Arc<tokio::sync::Mutex<()>> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lock) = files.get(key).and_then(Weak::upgrade) {
            return lock;
        }
        let lock = Arc::new(tokio::sync::Mutex::new(()));
        files.insert(key.to_owned(), Arc::downgrade(&lock));
        lock
    }
}

impl FilePlace {
    /// Waits for the turns to change these files; they are granted in the order of the places. Different files do not wait for each other.
    pub async fn turns(self, paths: &[&Path], machine: &dyn Machine) -> Vec<FileTurn> {
        let mut keys = Vec::with_capacity(paths.len());
        for path in paths {
            keys.push(key_of(path, machine).await);
        }
        // Links may lead to the same file.
        keys.sort_unstable();
        keys.dedup();
        let Self { queue, entrance } = self;
        let waits = keys.into_iter().map(|key| {
            let lock = queue.lock_of(&key);
            let queue = queue.clone();
            async move { FileTurn { key, queue, guard: Some(lock.lock_owned().await) } }
        });
        let mut all = std::pin::pin!(future::join_all(waits));
        // The first poll queues for every file, all of them before anyone else, so that two places cannot wait for each other.
        let granted = futures::poll!(all.as_mut());
        drop(entrance);
        match granted {
            std::task::Poll::Ready(turns) => turns,
            std::task::Poll::Pending => all.await,
        }
    }
}

impl Drop for FileTurn {
    fn drop(&mut self) {
        let mut files = self.queue.files.lock().unwrap_or_else(PoisonError::into_inner);
        self.guard = None;
        if files.get(&self.key).is_some_and(|lock| lock.strong_count() == 0) {
            files.remove(&self.key);
        }
    }
}

/// Returns the real path; for a missing file, the real path of its directory with its name.
async fn key_of(path: &Path, machine: &dyn Machine) -> PathBuf {
    if let Ok(real) = machine.real_path(path).await {
        return real;
    }
    match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) => match machine.real_path(folder).await {
            Ok(real) => real.join(name),
            Err(_) => path.to_owned(),
        },
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::LocalMachine;

    async fn turn(queue: &FileQueue, path: &Path) -> Vec<FileTurn> {
        queue.enter().await.turns(&[path], &LocalMachine).await
    }

    #[tokio::test]
    async fn changes_to_one_file_wait_but_not_for_other_files() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        let queue = FileQueue::default();
        let first = turn(&queue, &a).await;
        let _other = turn(&queue, &b).await;
        let mut second = std::pin::pin!(turn(&queue, &a));
        for _ in 0..20 {
            assert!(futures::poll!(second.as_mut()).is_pending());
            tokio::task::yield_now().await;
        }
        drop(first);
        drop(second.await);
        assert_eq!(queue.files.lock().unwrap().len(), 1, "only the file that is still held");
    }

    #[tokio::test]
    async fn turns_are_granted_in_order_of_the_first_poll() {
        let dir = tempfile::tempdir().unwrap();
        let path = &dir.path().join("a");
        let queue = FileQueue::default();
        let order = Mutex::new(Vec::new());
        let one = async |n| {
            let turn = turn(&queue, path).await;
            order.lock().unwrap().push(n);
            drop(turn);
        };
        future::join_all((0..100).map(one)).await;
        assert!(order.into_inner().unwrap().is_sorted());
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn places_with_several_files_do_not_wait_for_each_other() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b, link) = (dir.path().join("a"), dir.path().join("b"), dir.path().join("link"));
        std::fs::write(&a, "").unwrap();
        std::os::unix::fs::symlink(&a, &link).unwrap();
        let queue = FileQueue::default();
        let both = |paths: [PathBuf; 3]| {
            let queue = queue.clone();
            async move {
                let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
                queue.enter().await.turns(&paths, &LocalMachine).await.len()
            }
        };
        let there_and_back = [
            both([a.clone(), b.clone(), link.clone()]),
            both([link.clone(), b.clone(), a.clone()]),
            both([b, a, link]),
        ];
        assert_eq!(future::join_all(there_and_back).await, [2, 2, 2], "a link is its file");
    }
}
