//! The local computer without symbolic links.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use pinch_stdx::fs::{Access, open_regular, read_regular, write_pinned};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, mkdirat, openat, openat2};
use rustix::io::Errno;

use super::{
    CommandSpec, FindQuery, FoundPath, GrepLine, GrepQuery, LocalMachine, Machine, MachineError, Process, SearchError,
    SearchItem, Stat, blocking, lookup, names_in, pieces, remove_named, stat_of, writable,
};

/// Each open file of this process, under its number.
const OPEN_FILES: &str = "/proc/self/fd";

/// The local computer without symbolic links; see [`Machine::exact`].
///
/// What a path leads to is first opened without following links, which the kernel checks; everything else then uses the open file or
/// directory, which stays the same whatever happens to its name.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExactMachine(());

impl ExactMachine {
    /// Creates the machine, unless open files are not visible in `/proc`.
    pub(super) fn new() -> Option<Self> {
        Path::new(OPEN_FILES).is_dir().then_some(Self(()))
    }
}

/// An open file or directory.
#[derive(Debug)]
struct Pinned(OwnedFd);

impl Pinned {
    /// Opens what an absolute path leads to.
    fn open(path: &Path) -> io::Result<Self> {
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match openat2(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve) {
            // Before Linux 5.6, or forbidden by a filter that does not know it.
            Err(Errno::NOSYS | Errno::PERM) => Self::open_step_by_step(path),
            opened => Ok(Self(opened?)),
        }
    }

    fn open_step_by_step(path: &Path) -> io::Result<Self> {
        let mut at = Self(openat(CWD, "/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?);
        for part in path.components().skip(1) {
            at = at.entry(part.as_os_str())?;
        }
        Ok(at)
    }

    /// Opens an entry of this directory.
    fn entry(&self, name: &OsStr) -> io::Result<Self> {
        let entry = openat(&self.0, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
        match FileType::from_raw_mode(fstat(&entry)?.st_mode) {
            FileType::Symlink => Err(Errno::LOOP.into()),
            _ => Ok(Self(entry)),
        }
    }

    /// Opens a directory, and creates it with its parents if it does not exist.
    fn create(path: &Path) -> io::Result<Self> {
        let missing = match Self::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => error,
            opened => return opened,
        };
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Err(missing) };
        let parent = Self::create(parent)?;
        match mkdirat(&parent.0, name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => parent.entry(name),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns a path that leads to it.
    fn path(&self) -> PathBuf {
        Path::new(OPEN_FILES).join(self.0.as_raw_fd().to_string())
    }
}

/// Splits a path into its open directory and its last component.
fn place(path: &Path, open: fn(&Path) -> io::Result<Pinned>) -> io::Result<(Pinned, &OsStr)> {
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => Ok((open(parent)?, name)),
        _ => Err(io::ErrorKind::IsADirectory.into()),
    }
}

fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let (parent, name) = place(path, Pinned::create)?;
    let existing = match parent.entry(name) {
        Ok(existing) => Some(existing),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let existing_path = existing.as_ref().map(Pinned::path);
    // A file that may be replaced but not written is left unchanged.
    if let Some(path) = &existing_path
        && path.is_file()
        && !writable(path)
    {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    write_pinned(&parent.path().join(name), existing_path.as_deref(), content, Access::Keep)
}

fn open(path: &Path) -> io::Result<File> {
    open_regular(&Pinned::open(path)?.path())
}

/// Returns whether something has this name, in a directory that no link leads to.
fn is_there(path: &Path) -> bool {
    place(path, Pinned::open).is_ok_and(|(parent, name)| parent.path().join(name).symlink_metadata().is_ok())
}

impl Machine for ExactMachine {
    fn stat<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<Stat, MachineError>> {
        Box::pin(blocking("access", path, |path| stat_of(&Pinned::open(path)?.path())))
    }

    fn read<'a>(&'a self, path: &'a Path, max: u64) -> BoxFuture<'a, Result<Bytes, MachineError>> {
        let read = move |path: &Path| read_regular(&Pinned::open(path)?.path(), max).map(Bytes::from);
        Box::pin(blocking("open", path, read))
    }

    fn read_pieces<'a>(&'a self, path: &'a Path) -> BoxStream<'a, Result<Bytes, MachineError>> {
        pieces(path, open)
    }

    fn write<'a>(&'a self, path: &'a Path, content: Bytes) -> BoxFuture<'a, Result<(), MachineError>> {
        Box::pin(blocking("open", path, move |path| write(path, &content)))
    }

    fn remove<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<(), MachineError>> {
        let remove = |path: &Path| {
            let (parent, name) = place(path, Pinned::open)?;
            remove_named(&parent.path().join(name))
        };
        Box::pin(blocking("unlink", path, remove))
    }

    fn list<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<Vec<String>, MachineError>> {
        Box::pin(blocking("scandir", path, |path| names_in(&Pinned::open(path)?.path())))
    }

    fn find(&self, query: FindQuery) -> BoxStream<'_, Result<SearchItem<FoundPath>, SearchError>> {
        lookup::find(query, is_there)
    }

    fn grep(&self, query: GrepQuery) -> BoxStream<'_, Result<SearchItem<GrepLine>, SearchError>> {
        lookup::grep(query, open)
    }

    fn real_path<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<PathBuf, MachineError>> {
        LocalMachine.real_path(path)
    }

    fn exact(&self) -> Option<Arc<dyn Machine>> {
        Some(Arc::new(*self))
    }

    fn spawn<'a>(&'a self, command: CommandSpec) -> BoxFuture<'a, Result<Box<dyn Process>, MachineError>> {
        LocalMachine.spawn(command)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[tokio::test]
    async fn no_operation_follows_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let path = |name: &str| root.join(name);
        std::fs::create_dir(path("real")).unwrap();
        std::fs::write(path("real/file"), "old").unwrap();
        symlink("real", path("dir")).unwrap();
        symlink("real/file", path("file")).unwrap();
        symlink("real/new", path("dangling")).unwrap();
        let machine = ExactMachine::new().unwrap();
        for name in ["dir/file", "file", "dangling", "dir/new/file", "dir"] {
            let errors = [
                machine.stat(&path(name)).await.unwrap_err(),
                machine.read(&path(name), 10).await.unwrap_err(),
                machine.write(&path(name), "new".into()).await.unwrap_err(),
                machine.list(&path(name)).await.unwrap_err(),
            ];
            assert!(errors.iter().all(|error| error.code == "ELOOP"), "{name}: {errors:?}");
        }
        assert_eq!(machine.remove(&path("dir/file")).await.unwrap_err().code, "ELOOP");
        machine.remove(&path("file")).await.unwrap();
        assert_eq!(std::fs::read(path("real/file")).unwrap(), b"old");
        machine.write(&path("real/file"), "new".into()).await.unwrap();
        machine.write(&path("real/deep/er/file"), "new".into()).await.unwrap();
        assert_eq!(machine.read(&path("real/file"), 10).await.unwrap(), "new");
        let mut names = machine.list(&path("real")).await.unwrap();
        names.sort_unstable();
        assert_eq!(names, ["deep", "file"]);
        assert_eq!(machine.read(&path("real/none"), 10).await.unwrap_err().code, "ENOENT");
        assert_eq!(machine.write(&path("real"), "new".into()).await.unwrap_err().code, "EISDIR");
    }

    #[test]
    fn without_openat2_a_path_is_opened_step_by_step() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("real")).unwrap();
        std::fs::write(root.join("real/file"), "text").unwrap();
        symlink("real", root.join("dir")).unwrap();
        let found = |name: &str| Pinned::open_step_by_step(&root.join(name)).map(|pinned| std::fs::read(pinned.path()));
        assert_eq!(found("real/file").unwrap().unwrap(), b"text");
        for name in ["dir", "dir/file", "real/file/x", "none"] {
            let (stepped, at_once) = (found(name).unwrap_err(), Pinned::open(&root.join(name)).unwrap_err());
            assert_eq!(stepped.kind(), at_once.kind(), "{name}");
        }
    }
}
