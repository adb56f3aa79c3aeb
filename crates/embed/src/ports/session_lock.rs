//! Locks a session file against other programs while a run uses it.
//!
//! The lock is OpenClaw's: a file `<session file>.lock` that names its owner. That file is also locked in the kernel, which OpenClaw does
//! not know about. A kernel lock ends with its process, however it ends, so pinch engines never have to guess from process ids and times.
//! The session log needs neither lock; it locks each append and detects foreign ones.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use pinch_stdx::fs::lock::is_still;
use pinch_stdx::fs::{create_private_dir, creating_private};
use pinch_stdx::host::{Host, ms_from_iso};
use pinch_stdx::process;
use serde_json::{Value, json};

#[cfg(test)]
mod tests;

/// An older lock is considered abandoned, unless it is locked in the kernel.
const STALE_MS: i64 = 30 * 60 * 1000;
/// Number of times a lock that disappears during inspection is inspected again without a delay.
const MAX_INSPECTIONS: u32 = 4;
/// Size limit of lock files, in bytes.
const MAX_TEXT: u64 = 4096;

/// Exclusive access to a session file, released on drop.
#[derive(Debug)]
pub(super) struct SessionLock(Arc<LockFile>);

/// The lock file, locked in the kernel.
#[derive(Debug)]
pub(super) struct LockFile {
    path: PathBuf,
    file: File,
}

impl LockFile {
    /// Returns whether the file is still in place; a program that considers the lock stale may have replaced it.
    pub(super) fn is_ours(&self) -> bool {
        is_still(&self.file, &self.path).unwrap_or(false)
    }
}

impl SessionLock {
    /// Returns the lock file of a session file, which need not exist yet, and creates its directory. The result is the same for all paths
    /// to a session file.
    ///
    /// # Errors
    /// If the directory cannot be created or read.
    pub(super) fn path_for(session_file: &Path) -> io::Result<PathBuf> {
        lock_path(session_file)
    }

    /// Locks a session file unless another process has locked it.
    ///
    /// # Errors
    /// If the lock file cannot be created or read.
    pub(super) fn try_acquire(path: &Path, host: &Host) -> io::Result<LockAttempt> {
        for _ in 0..MAX_INSPECTIONS {
            match inspect(path, host)? {
                LockState::Missing => {
                    if let Some(file) = create(path, &text(host))? {
                        return Ok(LockAttempt::Held(Self(Arc::new(LockFile { path: path.to_owned(), file }))));
                    }
                }
                LockState::Abandoned => {}
                LockState::Held { owner } => return Ok(LockAttempt::Busy { owner }),
            }
        }
        Ok(LockAttempt::Busy { owner: None })
    }

    /// Returns the lock file.
    pub(super) fn file(&self) -> &Arc<LockFile> {
        &self.0
    }

    /// Writes the current time to the lock file, so that other programs do not consider it stale. Returns `false` if the lock was lost.
    pub(super) fn renew(&self, host: &Host) -> bool {
        if !self.0.is_ours() {
            return false;
        }
        // The length does not change, so that readers never see half of it.
        if let Err(error) = overwrite(&self.0.file, text(host).as_bytes()) {
            tracing::warn!(%error, lock = %self.0.path.display(), "could not renew a session lock");
        }
        true
    }
}

impl Drop for SessionLock {
    fn drop(&mut self) {
        if self.0.is_ours() {
            // A file that cannot be removed is recognised as abandoned later.
            drop(fs::remove_file(&self.0.path));
        }
        // Fences keep the file open.
        drop(self.0.file.unlock());
    }
}

pub(super) enum LockAttempt {
    Held(SessionLock),
    Busy { owner: Option<u32> },
}

fn overwrite(mut file: &File, text: &[u8]) -> io::Result<()> {
    file.seek(SeekFrom::Start(0))?;
    file.write_all(text)
}

/// Returns `<canonical directory>/<name>.lock`, which is the same for all paths to a session file.
fn lock_path(session_file: &Path) -> io::Result<PathBuf> {
    let name = session_file.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
    let dir = match session_file.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    };
    create_private_dir(dir)?;
    let mut name = name.to_owned();
    name.push(".lock");
    Ok(fs::canonicalize(dir)?.join(name))
}

fn text(host: &Host) -> String {
    format!("{:#}", json!({"pid": std::process::id(), "createdAt": host.now_iso()}))
}

/// Creates the lock file, complete and locked in the kernel from the start, because OpenClaw considers an empty one abandoned. `None` if
/// there already is one.
fn create(path: &Path, text: &str) -> io::Result<Option<File>> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".session-lock-").suffix(".tmp").tempfile_in(dir)?;
    file.write_all(text.as_bytes())?;
    kernel_lock(file.as_file())?;
    match file.persist_noclobber(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
        // The file system supports neither renaming without replacing nor hard links.
        Err(_) => create_in_place(path, text),
    }
}

fn create_in_place(path: &Path, text: &str) -> io::Result<Option<File>> {
    let mut file = match creating_private(OpenOptions::new().read(true).write(true).create_new(true)).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
        opened => opened?,
    };
    // If this fails, another process is inspecting the file. It finds the file too young to be abandoned, so the kernel lock is not needed.
    kernel_lock(&file)?;
    match file.write_all(text.as_bytes()) {
        Ok(()) => Ok(Some(file)),
        Err(error) => {
            drop(fs::remove_file(path));
            Err(error)
        }
    }
}

enum LockState {
    /// There is no lock file.
    Missing,
    /// The lock was abandoned and has been removed.
    Abandoned,
    /// Another process holds the lock.
    Held { owner: Option<u32> },
}

/// Inspects the lock file and removes it if it is abandoned.
fn inspect(path: &Path, host: &Host) -> io::Result<LockState> {
    let mut file = match OpenOptions::new().read(true).write(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(LockState::Missing),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(LockState::Held { owner: None }),
        Err(error) => return Err(error),
    };
    let kernel = kernel_lock(&file)?;
    let mut bytes = Vec::new();
    (&mut file).take(MAX_TEXT).read_to_end(&mut bytes)?;
    let record = LockRecord::read(&bytes);
    if kernel == KernelLock::Theirs {
        return Ok(LockState::Held { owner: record.pid });
    }
    let now_ms = host.now_ms();
    let modified = file.metadata()?.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    let facts = LockFacts {
        now_ms,
        modified_ms: i64::try_from(modified.as_millis()).unwrap_or(i64::MAX),
        owner: record.pid.map(|pid| LockOwner::of(pid, kernel)),
    };
    if !record.is_abandoned(&facts) {
        return Ok(LockState::Held { owner: record.pid });
    }
    // Under the kernel lock, only one of several engines removes the file, and none removes the lock that replaces it.
    if is_still(&file, path)? {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => tracing::debug!(pid = record.pid, "an abandoned lock of a session file was removed"),
        }
    }
    Ok(LockState::Abandoned)
}

/// The content of a lock file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct LockRecord {
    pid: Option<u32>,
    created_ms: Option<i64>,
    /// Start time of the process; only written by later versions of OpenClaw.
    start_ticks: Option<u64>,
}

/// Facts about a lock besides its content.
#[derive(Clone, Debug)]
struct LockFacts {
    now_ms: i64,
    modified_ms: i64,
    owner: Option<LockOwner>,
}

/// The state of the process that a lock names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LockOwner {
    /// It has ended.
    Dead,
    /// It is running.
    Alive { start_ticks: Option<u64> },
    /// It has our own id, but we do not hold the lock: an earlier process had the same id.
    Reused,
}

impl LockOwner {
    fn of(pid: u32, kernel: KernelLock) -> Self {
        if pid == std::process::id() && kernel == KernelLock::Ours {
            Self::Reused
        } else if process::is_alive(pid) {
            Self::Alive { start_ticks: process::start_ticks(pid) }
        } else {
            Self::Dead
        }
    }
}

impl LockRecord {
    fn read(text: &[u8]) -> Self {
        let Ok(value) = serde_json::from_slice::<Value>(text) else { return Self::default() };
        Self {
            pid: value["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid > 0),
            created_ms: value["createdAt"].as_str().and_then(ms_from_iso),
            start_ticks: value["starttime"].as_u64(),
        }
    }

    /// Returns whether the holder of the lock is gone.
    fn is_abandoned(&self, facts: &LockFacts) -> bool {
        let is_old = |since_ms: i64| facts.now_ms.saturating_sub(since_ms) > STALE_MS;
        match facts.owner {
            Some(LockOwner::Dead | LockOwner::Reused) => return true,
            Some(LockOwner::Alive { start_ticks: Some(now) }) if self.start_ticks.is_some_and(|then| then != now) => {
                return true;
            }
            _ => {}
        }
        match (self.pid, self.created_ms) {
            (Some(_), Some(created_ms)) => is_old(created_ms),
            // The content may be about to be written.
            _ => is_old(facts.modified_ms),
        }
    }
}

/// Who holds the kernel lock of a lock file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(unix), expect(dead_code, reason = "only `Unknown` is used there"))]
enum KernelLock {
    /// This process, through the open file.
    Ours,
    /// Another process or file handle.
    Theirs,
    /// Kernel locks are not supported.
    Unknown,
}

#[cfg(unix)]
fn kernel_lock(file: &File) -> io::Result<KernelLock> {
    use std::fs::TryLockError;
    match file.try_lock() {
        Ok(()) => Ok(KernelLock::Ours),
        Err(TryLockError::WouldBlock) => Ok(KernelLock::Theirs),
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => Ok(KernelLock::Unknown),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// On other systems a locked file cannot be read, and OpenClaw would consider the lock abandoned.
#[cfg(not(unix))]
fn kernel_lock(_: &File) -> io::Result<KernelLock> {
    Ok(KernelLock::Unknown)
}
