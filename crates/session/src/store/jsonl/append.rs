//! Appending to a session file that others may append to as well.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use pinch_stdx::fs::{Access, create_private_dir, creating_private, make_private, write_atomic};

use super::super::{Appended, Durability, Fence, Journal, StoreError, StoredText, aside, check_fence};

/// Number of attempts to lock a file, and the delay between them: five seconds in total.
const LOCK_TRIES: u32 = 500;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// How often to reopen a file that others replace while we wait for its lock.
const OPEN_TRIES: u32 = 8;

/// One session file. Opened by the first append and kept open; locked only during an append.
pub(super) struct JsonlJournal {
    path: PathBuf,
    durability: Durability,
    disk: Disk,
    /// Whether the file existed when it was loaded.
    exists: bool,
    file: Option<Arc<File>>,
    /// Whether we created the file and its name may not be on disk yet.
    is_name_new: bool,
    /// The end of our last append, after a line break.
    line_end: Option<u64>,
    /// Length of the file with remains of a failed append that could not be cut off. The next append cuts them.
    left_over: Option<u64>,
    fence: Option<Arc<dyn Fence>>,
}

/// The calls that only fail on a bad disk, replaceable in tests.
#[derive(Clone, Copy)]
struct Disk {
    force: fn(&File) -> io::Result<()>,
    cut: fn(&File, u64) -> io::Result<()>,
}

impl Default for Disk {
    fn default() -> Self {
        Self { force: File::sync_data, cut: File::set_len }
    }
}

impl JsonlJournal {
    pub(super) fn new(path: PathBuf, durability: Durability) -> Self {
        Self {
            path,
            durability,
            disk: Disk::default(),
            exists: false,
            file: None,
            is_name_new: false,
            line_end: None,
            left_over: None,
            fence: None,
        }
    }

    /// Returns the open file. A new one is created exclusively, so that two sessions never share one by accident.
    fn file(&mut self) -> Result<Arc<File>, StoreError> {
        if let Some(file) = &self.file {
            return Ok(Arc::clone(file));
        }
        if !self.exists
            && let Some(folder) = self.path.parent()
        {
            create_private_dir(folder).map_err(StoreError::io("create", folder))?;
        }
        let mut options = OpenOptions::new();
        options.read(true).append(true).create_new(!self.exists);
        let opened = creating_private(&mut options).open(&self.path);
        let file = opened.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => StoreError::Exists { path: self.path.clone() },
            _ => StoreError::io(if self.exists { "open" } else { "create" }, &self.path)(error),
        })?;
        // A conversation is private, even in a file that another program left readable for others.
        make_private(&file);
        self.is_name_new = !self.exists;
        self.exists = true;
        Ok(Arc::clone(self.file.insert(Arc::new(file))))
    }

    async fn append_locked(&mut self, lines: &[u8], end: u64) -> Result<Appended, StoreError> {
        let file = self.file()?;
        let file = LockedFile::take(&file, &self.path).await?;
        check_fence(self.fence.as_ref(), || self.path.clone())?;
        let io = |action| StoreError::io(action, &self.path);
        let meta = file.0.metadata().map_err(io("read"))?;
        let mut now = meta.len();
        if !is_at(&meta, &self.path) || now < end {
            return Err(StoreError::Cut { path: self.path.clone() });
        }
        if now > end && self.left_over == Some(now) {
            (self.disk.cut)(file.0, end).map_err(io("cut"))?;
            now = end;
        }
        self.left_over = None;
        if now > end {
            let tail = read_from(file.0, end).map_err(io("read"))?;
            return Ok(Appended::Moved { tail: Bytes::from(tail) });
        }
        let is_glued = end > 0 && self.line_end != Some(end) && !ends_with_newline(file.0, end).map_err(io("read"))?;
        let wrote = match is_glued {
            true => self.write(file.0, &[b"\n", lines].concat()).await,
            false => self.write(file.0, lines).await,
        };
        if let Err(error) = wrote {
            // All or nothing: a partial write must not be mistaken for someone else's lines later.
            if (self.disk.cut)(file.0, end).is_err() {
                self.left_over = file.0.metadata().ok().map(|meta| meta.len());
            } else if end == 0 && self.is_name_new && fs::remove_file(&self.path).is_ok() {
                // An empty file that we created is not a session.
                (self.exists, self.file) = (false, None);
            }
            return Err(error);
        }
        self.is_name_new &= self.durability != Durability::Entry;
        let end = end + u64::from(is_glued) + lines.len() as u64;
        self.line_end = lines.ends_with(b"\n").then_some(end);
        Ok(Appended::At(end))
    }

    async fn write(&self, file: &Arc<File>, lines: &[u8]) -> Result<(), StoreError> {
        (&**file).write_all(lines).map_err(StoreError::io("write", &self.path))?;
        if self.durability == Durability::Entry { self.force(file).await } else { Ok(()) }
    }

    /// Waits until all data is on disk, including the name of a new file.
    async fn force(&self, file: &Arc<File>) -> Result<(), StoreError> {
        let (file, path, force, is_name_new) = (Arc::clone(file), self.path.clone(), self.disk.force, self.is_name_new);
        let done = aside(move || {
            force(&file).map_err(StoreError::io("sync", &path))?;
            if is_name_new { sync_folder(&path) } else { Ok(()) }
        });
        done.await.map_err(StoreError::io("sync", &self.path)).flatten()
    }

    /// Writes the new text next to the file and renames it over the file, under the lock so that no append is lost.
    async fn replace_locked(&mut self, lines: &Bytes, end: u64, backup: &str) -> Result<Appended, StoreError> {
        // Keep a symbolic link and replace its target.
        let path = fs::canonicalize(&self.path).map_err(StoreError::io("open", &self.path))?;
        for _ in 0..OPEN_TRIES {
            let file = self.file()?;
            let locked = LockedFile::take(&file, &path).await?;
            check_fence(self.fence.as_ref(), || path.clone())?;
            let meta = locked.0.metadata().map_err(StoreError::io("read", &path))?;
            if !is_at(&meta, &path) {
                self.file = None;
                continue;
            }
            if meta.len() != end {
                let tail = read_from(locked.0, end).map_err(StoreError::io("read", &path))?;
                return Ok(Appended::Moved { tail: Bytes::from(tail) });
            }
            let (target, kept, lines) = (path.clone(), beside(&path, backup), lines.clone());
            let end = lines.len() as u64;
            let replaced = aside(move || {
                keep_old(&target, &kept)?;
                write_atomic(&target, &lines, Access::Private).map_err(StoreError::io("write", &target))
            });
            replaced.await.map_err(StoreError::io("write", &path)).flatten()?;
            drop(locked);
            self.file = None;
            return Ok(Appended::At(end));
        }
        Err(StoreError::Contended)
    }
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(ending);
    path.with_file_name(name)
}

/// Copies a file before it is replaced; an existing copy is left unchanged. Not a hard link: a file with two names would be overwritten in
/// place under both.
fn keep_old(path: &Path, kept: &Path) -> Result<(), StoreError> {
    if kept.exists() {
        return Ok(());
    }
    let old = fs::read(path).map_err(StoreError::io("read", path))?;
    write_atomic(kept, &old, Access::Private).map_err(StoreError::io("write", kept))
}

/// Flushes the directory of a file to disk. Only Unix can open directories; other systems do not need this.
fn sync_folder(path: &Path) -> Result<(), StoreError> {
    match path.parent() {
        Some(folder) if cfg!(unix) => {
            File::open(folder).and_then(|folder| folder.sync_all()).map_err(StoreError::io("sync", folder))
        }
        _ => Ok(()),
    }
}

/// Returns whether an open file is still the one at a path: it may have been removed or replaced.
#[cfg(unix)]
fn is_at(meta: &fs::Metadata, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata(path).is_ok_and(|there| (there.dev(), there.ino()) == (meta.dev(), meta.ino()))
}

#[cfg(not(unix))]
fn is_at(_meta: &fs::Metadata, path: &Path) -> bool {
    path.exists()
}

fn read_from(mut file: &File, at: u64) -> io::Result<Vec<u8>> {
    let mut tail = Vec::new();
    file.seek(SeekFrom::Start(at))?;
    file.read_to_end(&mut tail)?;
    Ok(tail)
}

fn ends_with_newline(mut file: &File, end: u64) -> io::Result<bool> {
    let mut last = [0];
    file.seek(SeekFrom::Start(end - 1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

/// A locked file; unlocked on drop.
struct LockedFile<'a>(&'a Arc<File>);

impl<'a> LockedFile<'a> {
    async fn take(file: &'a Arc<File>, path: &Path) -> Result<Self, StoreError> {
        for attempt in 0..LOCK_TRIES {
            match file.try_lock() {
                Ok(()) => return Ok(Self(file)),
                Err(TryLockError::WouldBlock) if attempt + 1 < LOCK_TRIES => tokio::time::sleep(LOCK_PAUSE).await,
                Err(TryLockError::WouldBlock) => break,
                // Some network file systems do not support locks: better to write without one than not at all.
                Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => return Ok(Self(file)),
                Err(TryLockError::Error(error)) => return Err(StoreError::io("lock", path)(error)),
            }
        }
        Err(StoreError::Locked { path: path.to_owned() })
    }
}

impl Drop for LockedFile<'_> {
    fn drop(&mut self) {
        drop(self.0.unlock());
    }
}

impl Journal for JsonlJournal {
    fn set_fence(&mut self, fence: Arc<dyn Fence>) {
        self.fence = Some(fence);
    }

    fn stored(&mut self) -> Option<Arc<dyn StoredText>> {
        let stored = super::long_file::LongFile::open(&self.path)?;
        self.exists = true;
        Some(Arc::new(stored))
    }

    fn load(&mut self) -> BoxFuture<'_, Result<Bytes, StoreError>> {
        Box::pin(async move {
            let path = self.path.clone();
            let text = aside(move || super::read(&path)).await.map_err(StoreError::io("read", &self.path)).flatten();
            self.exists = text.is_ok();
            text
        })
    }

    fn resume(&mut self) {
        self.exists = true;
    }

    fn append(&mut self, lines: Bytes, end: u64) -> BoxFuture<'_, Result<Appended, StoreError>> {
        Box::pin(async move { self.append_locked(&lines, end).await })
    }

    fn replace<'a>(
        &'a mut self,
        lines: Bytes,
        end: u64,
        backup: &'a str,
    ) -> BoxFuture<'a, Result<Appended, StoreError>> {
        Box::pin(async move { self.replace_locked(&lines, end, backup).await })
    }

    fn sync(&mut self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let done = match &self.file {
                Some(file) if self.durability != Durability::Os => self.force(file).await,
                _ => Ok(()),
            };
            self.is_name_new &= self.durability == Durability::Os || done.is_err();
            done
        })
    }

    fn path(&self) -> Option<&Path> {
        Some(&self.path)
    }
}

#[cfg(test)]
mod tests;
