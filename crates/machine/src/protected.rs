//! A machine on which tools cannot change certain files and directories.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;

use crate::rooted::resolved;
use crate::search::{FindQuery, FoundPath, GrepLine, GrepQuery, SearchError, SearchItem};
use crate::{CommandSpec, Machine, MachineError, Process, Stat};

/// Wraps a machine and refuses to write or remove certain files, and everything in certain directories, after resolving links. They
/// can be read, and commands are passed through unchanged. As with [`RootedMachine`](crate::RootedMachine), links that change during an
/// operation lead nowhere if the machine can be [exact](Machine::exact).
#[derive(Clone)]
pub struct ProtectedMachine {
    inner: Arc<dyn Machine>,
    /// The same machine, without links.
    exact: Option<Arc<dyn Machine>>,
    files: Vec<PathBuf>,
    open: Vec<PathBuf>,
}

impl ProtectedMachine {
    /// Protects these files and directories, which may be links and need not exist yet.
    pub fn new(inner: Arc<dyn Machine>, files: Vec<PathBuf>) -> Self {
        Self { exact: inner.exact(), inner, files, open: Vec::new() }
    }

    /// Leaves a directory open that is inside of a protected one.
    #[must_use]
    pub fn except(mut self, dir: &Path) -> Self {
        self.open.push(dir.to_owned());
        self
    }

    /// Returns the machine and the path for an operation. Fails for a path that leads to a protected file.
    async fn place<'a>(
        &'a self,
        path: &Path,
        operation: &'static str,
    ) -> Result<(&'a dyn Machine, PathBuf), MachineError> {
        let real = resolved(&*self.inner, path).await;
        let is_protected = match &real {
            Some(real) => self.files.iter().any(|file| file == path) || self.protects(real).await,
            None => true,
        };
        match real.filter(|_| !is_protected) {
            Some(real) => Ok(self.exact.as_deref().map_or((&*self.inner, path.to_owned()), |exact| (exact, real))),
            None => Err(refused(path, operation)),
        }
    }

    /// Returns whether a resolved path is protected.
    async fn protects(&self, real: &Path) -> bool {
        let mut open = Vec::with_capacity(self.open.len());
        for dir in &self.open {
            open.extend(resolved(&*self.inner, dir).await);
        }
        for file in &self.files {
            let Some(file) = resolved(&*self.inner, file).await else { continue };
            let is_open = |dir: &PathBuf| real.starts_with(dir) && dir.starts_with(&file) && *dir != file;
            if real.starts_with(&file) && !open.iter().any(is_open) {
                return true;
            }
        }
        false
    }

    /// Returns an error as it is shown: about the path that was given.
    fn shown(&self, mut error: MachineError, path: &Path) -> MachineError {
        if error.code == "ELOOP" && self.exact.is_some() {
            // A directory has become a link since it was checked.
            return refused(path, error.operation);
        }
        error.path = Some(path.to_owned());
        error
    }
}

fn refused(path: &Path, operation: &'static str) -> MachineError {
    MachineError {
        code: "EACCES",
        text: "permission denied, because it decides what the agent may do, or may lead to such a file".to_owned(),
        operation,
        path: Some(path.to_owned()),
        source: Some(io::ErrorKind::PermissionDenied.into()),
    }
}

impl Machine for ProtectedMachine {
    fn stat<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<Stat, MachineError>> {
        self.inner.stat(path)
    }

    fn read<'a>(&'a self, path: &'a Path, max: u64) -> BoxFuture<'a, Result<Bytes, MachineError>> {
        self.inner.read(path, max)
    }

    fn read_pieces<'a>(&'a self, path: &'a Path) -> BoxStream<'a, Result<Bytes, MachineError>> {
        self.inner.read_pieces(path)
    }

    fn write<'a>(&'a self, path: &'a Path, content: Bytes) -> BoxFuture<'a, Result<(), MachineError>> {
        Box::pin(async move {
            let (machine, real) = self.place(path, "open").await?;
            machine.write(&real, content).await.map_err(|error| self.shown(error, path))
        })
    }

    fn remove<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<(), MachineError>> {
        Box::pin(async move {
            // A link that leads nowhere can be removed.
            if self.inner.stat(path).await.is_ok() {
                self.place(path, "unlink").await?;
            }
            // The link itself is removed, not what it leads to.
            let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
                return Err(refused(path, "unlink"));
            };
            let (machine, real) = self.place(parent, "unlink").await?;
            let real = real.join(name);
            if self.protects(&real).await {
                return Err(refused(path, "unlink"));
            }
            machine.remove(&real).await.map_err(|error| self.shown(error, path))
        })
    }

    fn list<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<Vec<String>, MachineError>> {
        self.inner.list(path)
    }

    fn find(&self, query: FindQuery) -> BoxStream<'_, Result<SearchItem<FoundPath>, SearchError>> {
        self.inner.find(query)
    }

    fn grep(&self, query: GrepQuery) -> BoxStream<'_, Result<SearchItem<GrepLine>, SearchError>> {
        self.inner.grep(query)
    }

    fn real_path<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<PathBuf, MachineError>> {
        self.inner.real_path(path)
    }

    fn temp_dir(&self) -> Option<&Path> {
        self.inner.temp_dir()
    }

    fn exact(&self) -> Option<Arc<dyn Machine>> {
        let exact = self.exact.clone()?;
        Some(Arc::new(Self { inner: exact, ..self.clone() }))
    }

    fn spawn<'a>(&'a self, command: CommandSpec) -> BoxFuture<'a, Result<Box<dyn Process>, MachineError>> {
        self.inner.spawn(command)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::LocalMachine;

    #[tokio::test]
    async fn protected_files_are_read_but_not_changed_under_any_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::create_dir_all(path("state/sub")).unwrap();
        std::fs::write(path("state/rules.json"), "rules").unwrap();
        symlink(path("state"), path("dir")).unwrap();
        symlink(path("state/rules.json"), path("link")).unwrap();
        symlink(path("state/missing.json"), path("dangling")).unwrap();
        let files = vec![path("dir/rules.json"), path("state/missing.json"), path("dir/skills"), path("state/own")];
        let machine = ProtectedMachine::new(Arc::new(LocalMachine), files).except(&path("dir/own/work"));
        for name in [
            "state/rules.json",
            "dir/rules.json",
            "link",
            "state/sub/../rules.json",
            "state/missing.json",
            "dir/missing.json",
            "dangling",
            "state/skills",
            "state/skills/a/SKILL.md",
            "dir/skills/SKILL.md",
            "state/own/a.txt",
        ] {
            let error = machine.write(&path(name), "x".into()).await.unwrap_err();
            assert_eq!(error.code, "EACCES", "{name}: {error}");
        }
        for name in ["state/rules.json", "dir/rules.json"] {
            assert_eq!(machine.remove(&path(name)).await.unwrap_err().code, "EACCES", "{name}");
        }
        assert_eq!(machine.read(&path("link"), 10).await.unwrap(), "rules");
        assert!(!path("state/missing.json").exists());
        for name in ["state/other.json", "new/deep/a.txt", "state/skills.md", "state/own/work/a.txt"] {
            machine.write(&path(name), "x".into()).await.unwrap();
            machine.remove(&path(name)).await.unwrap();
        }
        machine.remove(&path("dangling")).await.unwrap();
    }
    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn directories_swapped_for_links_do_not_lead_to_protected_files() {
        use crate::rooted::tests::SwappedDirectory;
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::create_dir(path("state")).unwrap();
        std::fs::create_dir(path("work")).unwrap();
        std::fs::write(path("state/rules.json"), "rules").unwrap();
        let machine = ProtectedMachine::new(Arc::new(LocalMachine), vec![path("state")]);
        let swapped = SwappedDirectory::start(path("work"), &path("state"));
        let mut n_done = 0;
        for _ in 0..1_000 {
            n_done += usize::from(machine.write(&path("work/rules.json"), "mine".into()).await.is_ok());
            n_done += usize::from(machine.write(&path("work/new.json"), "mine".into()).await.is_ok());
            n_done += usize::from(machine.remove(&path("work/rules.json")).await.is_ok());
        }
        drop(swapped);
        assert_eq!(std::fs::read(path("state/rules.json")).unwrap(), b"rules");
        assert!(!path("state/new.json").exists() && n_done > 0);
    }
}
