//! A machine whose files are confined to one directory.

use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use futures::{FutureExt as _, StreamExt as _};
use pinch_stdx::pull::pulled;

use crate::search::{FindQuery, FoundPath, GrepLine, GrepQuery, SearchError, SearchItem};
use crate::{CommandSpec, Machine, MachineError, Process, Stat};

/// Wraps a machine and confines its file operations to one directory, after resolving links.
///
/// If the machine can be [exact](Machine::exact), as [`LocalMachine`](crate::LocalMachine) on Linux, an operation uses exactly the file that
/// was checked: programs that replace directories by links at that moment make it fail. Otherwise it can still lead outside then. Commands
/// are passed through unchanged. To confine programs, use a sandbox.
pub struct RootedMachine {
    inner: Arc<dyn Machine>,
    /// The same machine, without links.
    exact: Option<Arc<dyn Machine>>,
    root: PathBuf,
    /// Where the root was when it was first used.
    real_root: OnceLock<PathBuf>,
}

impl RootedMachine {
    /// Confines a machine's files to this directory, which may be a link and need not exist yet.
    pub fn new(inner: Arc<dyn Machine>, root: impl Into<PathBuf>) -> Self {
        Self { exact: inner.exact(), inner, root: root.into(), real_root: OnceLock::new() }
    }

    /// Returns the machine and the path for an operation. Fails for a path that leads out of the directory.
    async fn place<'a>(
        &'a self,
        path: &Path,
        operation: &'static str,
    ) -> Result<(&'a dyn Machine, PathBuf), MachineError> {
        if self.real_root.get().is_none() {
            let root = self.inner.real_path(&self.root).await?;
            self.real_root.get_or_init(|| root);
        }
        let real = resolved(&*self.inner, path).await;
        match real.filter(|real| self.real_root.get().is_some_and(|root| real.starts_with(root))) {
            Some(real) => Ok(self.exact.as_deref().map_or((&*self.inner, path.to_owned()), |exact| (exact, real))),
            None => Err(self.refused(path, operation)),
        }
    }

    fn refused(&self, path: &Path, operation: &'static str) -> MachineError {
        MachineError {
            code: "EACCES",
            text: format!("permission denied, because it is outside of {}", self.root.display()),
            operation,
            path: Some(path.to_owned()),
            source: Some(io::ErrorKind::PermissionDenied.into()),
        }
    }

    /// Returns an error as it is shown: about the path that was given.
    fn shown(&self, mut error: MachineError, path: &Path) -> MachineError {
        if error.code == "ELOOP" && self.exact.is_some() {
            // A directory has become a link since it was checked.
            return self.refused(path, error.operation);
        }
        error.path = Some(path.to_owned());
        error
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

/// Returns a pattern for whole paths below a directory as one for the directory's real path.
fn moved(pattern: &str, root: &Path, real: &Path) -> String {
    match root.to_str().and_then(|root| pattern.strip_prefix(root)) {
        Some(rest) if rest.starts_with('/') => format!("{}{rest}", real.display()),
        _ => pattern.to_owned(),
    }
}

impl Machine for RootedMachine {
    fn stat<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<Stat, MachineError>> {
        Box::pin(async move {
            let (machine, real) = self.place(path, "stat").await?;
            machine.stat(&real).await.map_err(|error| self.shown(error, path))
        })
    }

    fn read<'a>(&'a self, path: &'a Path, max: u64) -> BoxFuture<'a, Result<Bytes, MachineError>> {
        Box::pin(async move {
            let (machine, real) = self.place(path, "open").await?;
            machine.read(&real, max).await.map_err(|error| self.shown(error, path))
        })
    }

    fn read_pieces<'a>(&'a self, path: &'a Path) -> BoxStream<'a, Result<Bytes, MachineError>> {
        Box::pin(pulled(move |emitter| async move {
            let (machine, real) = match self.place(path, "open").await {
                Ok(place) => place,
                Err(error) => return emitter.emit(Err(error)).await,
            };
            let mut pieces = machine.read_pieces(&real);
            while let Some(piece) = pieces.next().await {
                emitter.emit(piece.map_err(|error| self.shown(error, path))).await;
            }
        }))
    }

    fn write<'a>(&'a self, path: &'a Path, content: Bytes) -> BoxFuture<'a, Result<(), MachineError>> {
        Box::pin(async move {
            let (machine, real) = self.place(path, "open").await?;
            machine.write(&real, content).await.map_err(|error| self.shown(error, path))
        })
    }

    /// Removes the link itself, so only its directory must be inside.
    fn remove<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<(), MachineError>> {
        Box::pin(async move {
            let (machine, real) = match (path.parent(), path.file_name()) {
                (Some(parent), Some(name)) => {
                    let (machine, real) = self.place(parent, "unlink").await?;
                    (machine, real.join(name))
                }
                _ => return Err(self.refused(path, "unlink")),
            };
            machine.remove(&real).await.map_err(|error| self.shown(error, path))
        })
    }

    fn list<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<Vec<String>, MachineError>> {
        Box::pin(async move {
            let (machine, real) = self.place(path, "scandir").await?;
            machine.list(&real).await.map_err(|error| self.shown(error, path))
        })
    }

    fn find(&self, mut query: FindQuery) -> BoxStream<'_, Result<SearchItem<FoundPath>, SearchError>> {
        let found = async move {
            match self.place(&query.root, "scandir").await {
                Ok((machine, real)) => {
                    query.pattern = moved(&query.pattern, &query.root, &real);
                    query.root = real;
                    machine.find(query)
                }
                Err(error) => stream::iter([Err(error.into())]).boxed(),
            }
        };
        found.flatten_stream().boxed()
    }

    fn grep(&self, mut query: GrepQuery) -> BoxStream<'_, Result<SearchItem<GrepLine>, SearchError>> {
        let found = async move {
            match self.place(&query.root, "open").await {
                Ok((machine, real)) => {
                    query.root = real;
                    machine.grep(query)
                }
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
pub(crate) mod tests {
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
    /// Replaces a directory by a link that leads outside, and back again, until it is dropped.
    #[cfg(target_os = "linux")]
    pub(crate) struct SwappedDirectory(Arc<std::sync::atomic::AtomicBool>, Option<std::thread::JoinHandle<()>>);

    #[cfg(target_os = "linux")]
    impl SwappedDirectory {
        pub(crate) fn start(dir: PathBuf, outside: &Path) -> Self {
            use rustix::fs::{CWD, RenameFlags, renameat_with};
            let ends = Arc::new(std::sync::atomic::AtomicBool::new(false));
            let link = dir.with_extension("link");
            symlink(outside, &link).unwrap();
            let until = Arc::clone(&ends);
            let work = move || {
                while !until.load(std::sync::atomic::Ordering::Relaxed) {
                    renameat_with(CWD, &dir, CWD, &link, RenameFlags::EXCHANGE).unwrap();
                }
            };
            Self(ends, Some(std::thread::spawn(work)))
        }
    }

    #[cfg(target_os = "linux")]
    impl Drop for SwappedDirectory {
        fn drop(&mut self) {
            self.0.store(true, std::sync::atomic::Ordering::Relaxed);
            drop(self.1.take().map(std::thread::JoinHandle::join));
        }
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn directories_swapped_for_links_during_an_operation_lead_nowhere() {
        let place = RootedFixture::new();
        std::fs::create_dir(place.path("out")).unwrap();
        std::fs::write(place.path("out/secret"), "secret").unwrap();
        std::fs::write(place.path("out/kept"), "kept").unwrap();
        std::fs::write(place.path("work/sub/secret"), "open").unwrap();
        let swapped = SwappedDirectory::start(place.path("work/sub"), &place.path("out"));
        let path = |name: &str| place.path("work/sub").join(name);
        let mut n_done = 0;
        for n_try in 0..1_000 {
            let name = format!("new-{n_try}");
            let done = [
                place.machine.write(&path(&name), "x".into()).await.is_ok(),
                place.machine.write(&path("secret"), "open".into()).await.is_ok(),
                place.machine.write(&path("deep/er").join(&name), "x".into()).await.is_ok(),
                place.machine.remove(&path("kept")).await.is_ok(),
            ];
            n_done += done.iter().filter(|done| **done).count();
            if let Ok(text) = place.machine.read(&path("secret"), 10).await {
                assert_eq!(text, "open");
            }
            if let Some(Ok(text)) = place.machine.read_pieces(&path("secret")).next().await {
                assert_eq!(text, "open");
            }
            let names = place.machine.list(&path("")).await.unwrap_or_default();
            assert!(!names.contains(&"kept".to_owned()), "{names:?}");
        }
        drop(swapped);
        let mut left: Vec<_> =
            std::fs::read_dir(place.path("out")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort_unstable();
        assert_eq!(left, ["kept", "secret"], "nothing was written or removed outside");
        assert_eq!(std::fs::read(place.path("out/secret")).unwrap(), b"secret");
        assert!(n_done > 0, "some operations succeed");
    }

    #[cfg(all(target_os = "linux", feature = "search"))]
    #[tokio::test]
    async fn directories_swapped_for_links_during_a_search_lead_nowhere() {
        let place = RootedFixture::new();
        std::fs::create_dir(place.path("out")).unwrap();
        std::fs::write(place.path("out/secret"), "secret").unwrap();
        std::fs::write(place.path("work/sub/open"), "secret").unwrap();
        let swapped = SwappedDirectory::start(place.path("work/sub"), &place.path("out"));
        for root in ["work", "work/sub"] {
            for _ in 0..200 {
                let paths: Vec<_> = place.machine.find(FindQuery::new(place.path(root), "secret")).collect().await;
                assert!(!paths.iter().any(|item| matches!(item, Ok(SearchItem::Hit(_)))), "{paths:?}");
                let lines: Vec<_> = place.machine.grep(GrepQuery::new(place.path(root), "secret")).collect().await;
                let is_outside =
                    |item: &_| matches!(item, Ok(SearchItem::Hit(GrepLine { path, .. })) if path.ends_with("secret"));
                assert!(!lines.iter().any(is_outside), "{lines:?}");
            }
        }
        drop(swapped);
    }
}
