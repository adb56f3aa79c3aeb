//! Appending to a session file that others may append to as well.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use futures::future::{BoxFuture, ready};

use super::super::{Appended, Durability, Journal, StoreError};

/// How often, and how long after the last time, a file held by somebody else is tried again: five seconds in all.
const LOCK_TRIES: u32 = 500;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// One session file. It is opened at the first append and stays open; the kernel's lock is held for an append only.
pub(super) struct JsonlJournal {
    path: PathBuf,
    durability: Durability,
    /// The file existed when it was loaded.
    exists: bool,
    file: Option<File>,
}

impl JsonlJournal {
    pub(super) fn new(path: PathBuf, durability: Durability) -> Self {
        Self { path, durability, exists: false, file: None }
    }

    /// The open file; a new one is created exclusively, so that two sessions never share one by accident.
    fn file(&mut self) -> Result<&File, StoreError> {
        let file = match self.file.take() {
            Some(file) => file,
            None => {
                if !self.exists
                    && let Some(folder) = self.path.parent()
                {
                    fs::create_dir_all(folder).map_err(StoreError::io("create", folder))?;
                }
                OpenOptions::new()
                    .read(true)
                    .append(true)
                    .create_new(!self.exists)
                    .open(&self.path)
                    .map_err(StoreError::io(if self.exists { "open" } else { "create" }, &self.path))?
            }
        };
        self.exists = true;
        Ok(self.file.insert(file))
    }

    async fn append_locked(&mut self, lines: &[u8], end: u64) -> Result<Appended, StoreError> {
        let (path, durability) = (self.path.clone(), self.durability);
        let file = self.file()?;
        let file = Locked::take(file, &path).await?;
        let meta = file.0.metadata().map_err(StoreError::io("read", &path))?;
        if is_gone(&meta) || meta.len() < end {
            return Err(StoreError::Cut { path });
        }
        if meta.len() > end {
            let tail = read_from(file.0, end).map_err(StoreError::io("read", &path))?;
            return Ok(Appended::Moved { tail: Bytes::from(tail) });
        }
        let glued = end > 0 && !ends_with_newline(file.0, end).map_err(StoreError::io("read", &path))?;
        let wrote = if glued { file.write(&[b"\n", lines].concat(), end) } else { file.write(lines, end) };
        let end = wrote.map_err(StoreError::io("write", &path))?;
        if durability == Durability::Entry {
            file.0.sync_data().map_err(StoreError::io("sync", &path))?;
        }
        Ok(Appended::At(end))
    }

    /// Writes the new text beside the file and renames it over it; under the lock, so that no append is lost.
    async fn replace_locked(&mut self, lines: &[u8], backup: &str) -> Result<u64, StoreError> {
        let path = self.path.clone();
        let locked = Locked::take(self.file()?, &path).await?;
        let kept = beside(&path, backup);
        if !kept.exists() {
            fs::copy(&path, &kept).map_err(StoreError::io("write", &kept))?;
        }
        let temporary = beside(&path, &format!("tmp{}", std::process::id()));
        let written = write_new(&temporary, lines, &locked.0.metadata().map_err(StoreError::io("read", &path))?)
            .map_err(StoreError::io("write", &temporary))
            .and_then(|()| fs::rename(&temporary, &path).map_err(StoreError::io("rename", &path)));
        if written.is_err() {
            // The file is as it was; what is left of the attempt is of no use to anybody.
            drop(fs::remove_file(&temporary));
        }
        drop(locked);
        written?;
        self.file = None;
        Ok(lines.len() as u64)
    }
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(ending);
    path.with_file_name(name)
}

fn write_new(path: &Path, text: &[u8], like: &fs::Metadata) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
    file.set_permissions(like.permissions())?;
    file.write_all(text)?;
    file.sync_all()
}

#[cfg(unix)]
fn is_gone(meta: &fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::nlink(meta) == 0
}

#[cfg(not(unix))]
fn is_gone(_meta: &fs::Metadata) -> bool {
    false
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

/// A file whose lock we hold; dropping it lets go.
struct Locked<'a>(&'a File);

impl<'a> Locked<'a> {
    async fn take(file: &'a File, path: &Path) -> Result<Self, StoreError> {
        for attempt in 0..LOCK_TRIES {
            match file.try_lock() {
                Ok(()) => return Ok(Self(file)),
                Err(TryLockError::WouldBlock) if attempt + 1 < LOCK_TRIES => tokio::time::sleep(LOCK_PAUSE).await,
                Err(TryLockError::WouldBlock) => break,
                // Some network file systems know no locks: better unlocked than not at all.
                Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => return Ok(Self(file)),
                Err(TryLockError::Error(error)) => return Err(StoreError::io("lock", path)(error)),
            }
        }
        Err(StoreError::Locked { path: path.to_owned() })
    }

    /// Appends all or nothing: what a failed write left behind is cut off again while the lock is held.
    fn write(&self, lines: &[u8], end: u64) -> io::Result<u64> {
        let mut file = self.0;
        match file.write_all(lines) {
            Ok(()) => Ok(end + lines.len() as u64),
            Err(error) => {
                drop(file.set_len(end));
                Err(error)
            }
        }
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        drop(self.0.unlock());
    }
}

impl Journal for JsonlJournal {
    fn load(&mut self) -> BoxFuture<'_, Result<Bytes, StoreError>> {
        let text = super::read(&self.path);
        self.exists = text.is_ok();
        Box::pin(ready(text))
    }

    fn append(&mut self, lines: Bytes, end: u64) -> BoxFuture<'_, Result<Appended, StoreError>> {
        Box::pin(async move { self.append_locked(&lines, end).await })
    }

    fn replace<'a>(&'a mut self, lines: Bytes, backup: &'a str) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(async move { self.replace_locked(&lines, backup).await })
    }

    fn sync(&mut self) -> BoxFuture<'_, Result<(), StoreError>> {
        let done = match &self.file {
            Some(file) if self.durability != Durability::Os => {
                file.sync_data().map_err(StoreError::io("sync", &self.path))
            }
            _ => Ok(()),
        };
        Box::pin(ready(done))
    }

    fn path(&self) -> Option<&Path> {
        Some(&self.path)
    }
}
