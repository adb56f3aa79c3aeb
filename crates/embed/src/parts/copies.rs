//! Copies of workspaces that sandboxed sessions work in. Those that have not been used for long are removed.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pinch_stdx::fs::{Access, FileLock, create_private_dir, read_regular, write_atomic};
use serde::{Deserialize, Serialize};

/// Directory of the registry in the state directory.
const DIR: &str = "sandbox";
const FILE: &str = "workspaces.json";
const LOCK: &str = "workspaces.lock";
/// Maximum bytes of the registry.
const MAX_BYTES: u64 = 8 << 20;
/// How long to wait for another process that uses the registry.
const PATIENCE: Duration = Duration::from_secs(5);
/// How precisely the last use is recorded, so that not every run writes the registry.
const PRECISION_MS: i64 = 60 * 60 * 1000;
const DAY_MS: f64 = 86_400_000.0;

/// A copy that is about to be used.
pub(crate) struct WorkspaceCopy {
    pub(crate) workspace: PathBuf,
    /// Directory of all copies.
    pub(crate) root: PathBuf,
    /// Days after which a copy that is not used is removed; 0 means never.
    pub(crate) max_age_days: f64,
    pub(crate) now_ms: i64,
}

#[derive(Default, Deserialize, Serialize)]
struct CopyRegistry {
    entries: Vec<CopyEntry>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct CopyEntry {
    workspace: PathBuf,
    last_used_at_ms: i64,
}

impl WorkspaceCopy {
    /// Records that the copy is used, and removes copies that have not been used for long. A copy of all agents (`scope: "shared"`) is
    /// never removed, because it is the directory of the others. Blocks.
    ///
    /// # Errors
    /// Fails if the registry cannot be read or written; nothing is removed then.
    pub(crate) fn record(self, state_dir: &Path) -> io::Result<()> {
        let dir = state_dir.join(DIR);
        create_private_dir(&dir)?;
        let _lock = FileLock::acquire(&dir.join(LOCK), PATIENCE).map_err(io::Error::other)?;
        let path = dir.join(FILE);
        let mut registry: CopyRegistry = match read_regular(&path, MAX_BYTES) {
            Ok(text) => serde_json::from_slice(&text)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => CopyRegistry::default(),
            Err(error) => return Err(error),
        };
        let n_known = registry.entries.len();
        registry
            .entries
            .retain(|entry| entry.workspace == self.workspace || !(self.is_due(entry) && remove(&entry.workspace)));
        let mut is_changed = registry.entries.len() < n_known;
        match registry.entries.iter_mut().find(|entry| entry.workspace == self.workspace) {
            Some(entry) if self.now_ms - entry.last_used_at_ms < PRECISION_MS => {}
            Some(entry) => {
                entry.last_used_at_ms = self.now_ms;
                is_changed = true;
            }
            None => {
                registry.entries.push(CopyEntry { workspace: self.workspace, last_used_at_ms: self.now_ms });
                is_changed = true;
            }
        }
        match is_changed {
            true => write_atomic(&path, &serde_json::to_vec_pretty(&registry)?, Access::Private),
            false => Ok(()),
        }
    }

    fn is_due(&self, entry: &CopyEntry) -> bool {
        let days = (self.now_ms - entry.last_used_at_ms - PRECISION_MS) as f64 / DAY_MS;
        self.max_age_days > 0.0 && days > self.max_age_days && entry.workspace.parent() == Some(&*self.root)
    }
}

/// Removes a copy; returns whether it is gone.
fn remove(workspace: &Path) -> bool {
    match std::fs::symlink_metadata(workspace) {
        Ok(meta) if meta.is_dir() => {
            tracing::info!(workspace = %workspace.display(), "removing the workspace of a sandbox that was not used for long");
            std::fs::remove_dir_all(workspace).is_ok()
        }
        Ok(_) => false,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_removed_when_they_have_not_been_used_for_long() {
        let dir = tempfile::tempdir().unwrap();
        let (state, root) = (dir.path().join("state"), dir.path().join("copies"));
        let used = |name: &str, days: f64, max_age_days: f64| {
            let workspace = root.join(name);
            std::fs::create_dir_all(&workspace).unwrap();
            let now_ms = (days * DAY_MS) as i64;
            let copy = WorkspaceCopy { workspace, root: root.clone(), max_age_days, now_ms };
            copy.record(&state)
        };
        let names = || {
            let found =
                std::fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
            let mut names: Vec<String> = found.collect();
            names.sort_unstable();
            names.join(" ")
        };
        used("a", 0.0, 7.0).unwrap();
        used("b", 0.0, 7.0).unwrap();
        std::fs::create_dir(root.join("foreign")).unwrap();
        used("b", 6.0, 7.0).unwrap();
        assert_eq!(names(), "a b foreign");
        used("c", 8.0, 0.0).unwrap();
        assert_eq!(names(), "a b c foreign", "0 means never");
        used("c", 8.0, 7.0).unwrap();
        assert_eq!(names(), "b c foreign");
        used("c", 20.0, 7.0).unwrap();
        assert_eq!(names(), "c foreign");
        std::fs::write(state.join("sandbox/workspaces.json"), "{").unwrap();
        used("d", 40.0, 7.0).unwrap_err();
        assert_eq!(names(), "c d foreign", "an unreadable registry removes nothing");
    }

    #[test]
    fn only_copies_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let (state, root) = (dir.path().join("state"), dir.path().join("copies"));
        let precious = dir.path().join("precious");
        std::fs::create_dir_all(&precious).unwrap();
        std::fs::create_dir_all(root.join("own")).unwrap();
        let record = |workspace: &Path, now_ms: i64| {
            let (workspace, root) = (workspace.to_owned(), root.clone());
            let copy = WorkspaceCopy { workspace, root, max_age_days: 1.0, now_ms };
            copy.record(&state).unwrap();
        };
        // A directory elsewhere, and the shared copy.
        record(&precious, 0);
        record(&root, 0);
        record(&root.join("own"), 10 * DAY_MS as i64);
        assert!(precious.exists() && root.join("own").exists());
    }
}
