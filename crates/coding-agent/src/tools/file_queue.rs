//! Serializing changes to each file.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::OwnedMutexGuard;

use crate::machine::Machine;

/// Serializes changes to each file. Share one value among all tools that act on a machine; clones share it.
#[derive(Clone, Debug, Default)]
pub struct FileQueue(Arc<Mutex<HashMap<PathBuf, Weak<tokio::sync::Mutex<()>>>>>);

/// The right to change a file, until dropped.
#[derive(Debug)]
pub struct FileTurn {
    key: PathBuf,
    queue: FileQueue,
    guard: Option<OwnedMutexGuard<()>>,
}

impl FileQueue {
    /// Waits for the turn to change a file. Turns are granted in order of request; different files do not wait for each other.
    pub async fn turn(&self, path: &Path, machine: &dyn Machine) -> FileTurn {
        let key = key_of(path, machine).await;
        let lock = {
            let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match files.get(&key).and_then(Weak::upgrade) {
                Some(lock) => lock,
                None => {
                    let lock = Arc::new(tokio::sync::Mutex::new(()));
                    files.insert(key.clone(), Arc::downgrade(&lock));
                    lock
                }
            }
        };
        FileTurn { key, queue: self.clone(), guard: Some(lock.lock_owned().await) }
    }
}

impl Drop for FileTurn {
    fn drop(&mut self) {
        let mut files = self.queue.0.lock().unwrap_or_else(PoisonError::into_inner);
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

    #[tokio::test]
    async fn changes_to_one_file_wait_but_not_for_other_files() {
        let dir = tempfile::tempdir().unwrap();
        let queue = FileQueue::default();
        let first = queue.turn(&dir.path().join("a"), &LocalMachine).await;
        let _other = queue.turn(&dir.path().join("b"), &LocalMachine).await;
        let path = dir.path().join("a");
        let second = queue.turn(&path, &LocalMachine);
        let mut second = std::pin::pin!(second);
        for _ in 0..20 {
            assert!(futures::poll!(second.as_mut()).is_pending());
            tokio::task::yield_now().await;
        }
        drop(first);
        drop(second.await);
        assert_eq!(queue.0.lock().unwrap().len(), 1, "only the file that is still held");
    }
}
