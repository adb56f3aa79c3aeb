//! A machine whose files are confined to one directory.

use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use futures::{FutureExt as _, StreamExt as _};

use crate::search::{FindQuery, FoundPath, GrepLine, GrepQuery, SearchError, SearchItem};
use crate::{CommandSpec, Machine, MachineError, Process, Stat};

/// Wraps a machine and confines its file operations to one directory, after resolving links.
///
/// Each path is resolved right before it is used, so a program that changes links at that moment can still lead outside. Commands are
/// passed through unchanged. To confine programs, use a sandbox.
pub struct RootedMachine {
    inner: Arc<dyn Machine>,
    root: PathBuf,
}

impl RootedMachine {
    /// Confines a machine's files to this directory, which may be a link and need not exist yet.
    pub fn new(inner: Arc<dyn Machine>, root: impl Into<PathBuf>) -> Self {
        Self { inner, root: root.into() }
    }

    /// Fails for a path that leads out of the directory.
    async fn check(&self, path: &Path, operation: &'static str) -> Result<(), MachineError> {
        let root = self.inner.real_path(&self.root).await?;
        match resolved(&*self.inner, path).await {
            Some(real) if real.starts_with(&root) => Ok(()),
            _ => Err(MachineError {
                code: "EACCES",
                text: format!("permission denied, because it is outside of {}", self.root.display()),
                operation,
                path: Some(path.to_owned()),
                source: Some(io::ErrorKind::PermissionDenied.into()),
            }),
        }
    }
}

/// Resolves a path whose end need not exist; returns `None` if that is impossible.
pub(crate) async fn resolved(machine: &dyn Machine, path: &Path) -> Option<PathBuf> {
    let mut missing = Vec::new();
    let mut existing = path;
    loop {
        match machine.real_path(existing).await {
            Ok(real) => return Some(missing.into_iter().rev().fold(real, |real, name| real.join(name))),
            // Something that cannot be inspected may be a link.
            Err(error) if error.code != "ENOENT" => return None,
            Err(_) => {}
        }
        // `..` after something that does not exist could lead anywhere.
        let Some(Component::Normal(name)) = existing.components().next_back() else { return None };
        let parent = existing.parent()?;
        // A dangling link is still listed in its directory; writing through it would create its target.
        let siblings = machine.list(parent).await.unwrap_or_default();
        if siblings.iter().any(|sibling| Path::new(sibling) == Path::new(name)) {
            return None;
        }
        missing.push(name.to_owned());
        existing = parent;
    }
}

impl Machine for RootedMachine {
    fn stat<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<Stat, MachineError>> {
        Box::pin(async move {
            self.check(path, "stat").await?;
            self.inner.stat(path).await
        })
    }

    fn read<'a>(&'a self, path: &'a Path, max: u64) -> BoxFuture<'a, Result<Bytes, MachineError>> {
        Box::pin(async move {
            self.check(path, "open").await?;
            self.inner.read(path, max).await
        })
    }

    fn read_pieces<'a>(&'a self, path: &'a Path) -> BoxStream<'a, Result<Bytes, MachineError>> {
        let pieces = async move {
            match self.check(path, "open").await {
                Ok(()) => self.inner.read_pieces(path),
                Err(error) => stream::iter([Err(error)]).boxed(),
            }
        };
        pieces.flatten_stream().boxed()
    }

    fn write<'a>(&'a self, path: &'a Path, content: Bytes) -> BoxFuture<'a, Result<(), MachineError>> {
        Box::pin(async move {
            self.check(path, "open").await?;
            self.inner.write(path, content).await
        })
    }

    /// Removes the link itself, so only its directory must be inside.
    fn remove<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<(), MachineError>> {
        Box::pin(async move {
            self.check(path.parent().unwrap_or(path), "unlink").await?;
            self.inner.remove(path).await
        })
    }

    fn list<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<Vec<String>, MachineError>> {
        Box::pin(async move {
            self.check(path, "scandir").await?;
            self.inner.list(path).await
        })
    }

    fn find(&self, query: FindQuery) -> BoxStream<'_, Result<SearchItem<FoundPath>, SearchError>> {
        let found = async move {
            match self.check(&query.root, "scandir").await {
                Ok(()) => self.inner.find(query),
                Err(error) => stream::iter([Err(error.into())]).boxed(),
            }
        };
        found.flatten_stream().boxed()
    }

    fn grep(&self, query: GrepQuery) -> BoxStream<'_, Result<SearchItem<GrepLine>, SearchError>> {
        let found = async move {
            match self.check(&query.root, "open").await {
                Ok(()) => self.inner.grep(query),
                Err(error) => stream::iter([Err(error.into())]).boxed(),
            }
        };
        found.flatten_stream().boxed()
    }

    fn real_path<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<PathBuf, MachineError>> {
        self.inner.real_path(path)
    }

    fn temp_dir(&self) -> Option<&Path> {
        self.inner.temp_dir()
    }

    fn spawn<'a>(&'a self, command: CommandSpec) -> BoxFuture<'a, Result<Box<dyn Process>, MachineError>> {
        self.inner.spawn(command)
    }
}

#[cfg(all(test, unix))]
#[expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::LocalMachine;

    struct RootedFixture {
        dir: tempfile::TempDir,
        machine: RootedMachine,
    }

    impl RootedFixture {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let root = dir.path().join("work");
            std::fs::create_dir_all(root.join("sub")).unwrap();
            std::fs::create_dir_all(dir.path().join("work-2")).unwrap();
            std::fs::write(root.join("in.txt"), "in").unwrap();
            std::fs::write(dir.path().join("out.txt"), "out").unwrap();
            std::fs::write(dir.path().join("work-2/out.txt"), "out").unwrap();
            symlink(dir.path().join("out.txt"), root.join("link")).unwrap();
            symlink(dir.path(), root.join("up")).unwrap();
            symlink(dir.path().join("new.txt"), root.join("dangling")).unwrap();
            symlink(root.join("in.txt"), root.join("alias")).unwrap();
            let machine = RootedMachine::new(Arc::new(LocalMachine), root);
            Self { dir, machine }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.dir.path().join(name)
        }
    }

    #[tokio::test]
    async fn files_inside_are_read_and_written() {
        let place = RootedFixture::new();
        for name in ["work/in.txt", "work/alias", "work/sub/../in.txt", "work/up/work/in.txt"] {
            assert_eq!(place.machine.read(&place.path(name), 10).await.unwrap(), "in", "{name}");
        }
        for name in ["work/new", "work/sub/deep/er/new", "work/up/work/other"] {
            place.machine.write(&place.path(name), "x".into()).await.unwrap();
            assert_eq!(std::fs::read(place.path(name)).unwrap(), b"x", "{name}");
        }
        assert!(place.machine.list(&place.path("work")).await.unwrap().contains(&"in.txt".to_owned()));
        assert_eq!(place.machine.stat(&place.path("work/none")).await.unwrap_err().code, "ENOENT");
        place.machine.remove(&place.path("work/link")).await.unwrap();
        assert!(place.path("out.txt").exists() && !place.path("work/link").exists());
    }

    #[tokio::test]
    async fn no_path_leads_outside() {
        let place = RootedFixture::new();
        let outside = [
            "out.txt",
            "work/../out.txt",
            "work/link",
            "work/up/out.txt",
            "work-2/out.txt",
            "work/up",
            "work/dangling",
            "work/none/../../out.txt",
            "work/up/new",
            "work/sub/../../new",
        ];
        for name in outside {
            let path = place.path(name);
            let refused = |error: MachineError| assert_eq!(error.code, "EACCES", "{name}: {error}");
            refused(place.machine.read(&path, 10).await.unwrap_err());
            refused(place.machine.write(&path, "x".into()).await.unwrap_err());
            refused(place.machine.stat(&path).await.unwrap_err());
            refused(place.machine.list(&path).await.unwrap_err());
            refused(place.machine.read_pieces(&path).next().await.unwrap().unwrap_err());
            let found = place.machine.find(FindQuery::new(path.clone(), "*")).next().await.unwrap();
            assert!(matches!(found, Err(SearchError::Machine(error)) if error.code == "EACCES"), "{name}");
        }
        assert!(!place.path("new.txt").exists() && !place.path("new").exists());
        assert_eq!(std::fs::read(place.path("out.txt")).unwrap(), b"out");
        let error = place.machine.remove(&place.path("out.txt")).await.unwrap_err();
        assert_eq!(error.code, "EACCES");
        let text = place.machine.read(Path::new("/etc/passwd"), 10).await.unwrap_err().to_string();
        assert!(
            text.starts_with("EACCES: permission denied, because it is outside of ")
                && text.ends_with("open '/etc/passwd'"),
            "{text}"
        );
    }
}
