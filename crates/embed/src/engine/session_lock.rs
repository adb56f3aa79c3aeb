//! Keeps other programs from a session file while a run works on it.
//!
//! The lock is OpenClaw's: a file `<session file>.lock` that says whose it is. On top of it lies a lock of the kernel, which OpenClaw does not
//! know: it ends with the process, however it ends, so that between engines of pinch nothing has to be guessed from ids and times. The log
//! itself needs neither; it locks each append and notices foreign ones.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use pinch_stdx::cancel::Cancel;
use pinch_stdx::fs::lock::is_still;
use pinch_stdx::fs::{create_private_dir, creating_private};
use pinch_stdx::host::{Host, ms_from_iso};
use pinch_stdx::process;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::run::RunError;

#[cfg(test)]
mod tests;

/// How long a lock is waited for unless the engine says otherwise.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// A lock that is older is abandoned, unless the kernel says that it is held.
const STALE_MS: i64 = 30 * 60 * 1000;
/// The first pause between two tries; each is longer by as much, up to [`LONGEST_PAUSE`].
const PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// How often a lock that vanishes under our eyes is looked at again without a pause.
const MAX_INSPECTIONS: u32 = 4;
/// No lock says more.
const MAX_TEXT: u64 = 4096;

/// A session file nobody else works on. Dropping it lets go.
#[derive(Debug)]
pub(super) struct SessionLock {
    path: PathBuf,
    text: String,
    /// Holds the kernel's lock.
    file: File,
}

impl SessionLock {
    /// Locks a session file, which need not be there yet; its dir is made.
    ///
    /// # Errors
    /// [`RunError::Busy`] when others held it all the time, [`RunError::Cancelled`], and [`RunError::Internal`] when there can be no lock.
    pub(super) async fn acquire(
        session_file: &Path,
        patience: Duration,
        host: &Host,
        cancel: &Cancel,
    ) -> Result<Self, RunError> {
        let failed = |error: io::Error| {
            RunError::Internal(format!("cannot lock the session file {}: {error}", session_file.display()))
        };
        let path = lock_path(session_file).map_err(failed)?;
        let began = Instant::now();
        let mut pause = Duration::ZERO;
        loop {
            let owner = match Self::try_acquire(&path, host).map_err(failed)? {
                LockAttempt::Held(lock) => return Ok(lock),
                LockAttempt::Busy { owner } => owner,
            };
            let left = patience.saturating_sub(began.elapsed());
            if left.is_zero() {
                let owner = owner.map_or_else(|| "unknown".to_owned(), |pid| format!("pid={pid}"));
                let (ms, path) = (patience.as_millis(), path.display());
                return Err(RunError::Busy(format!("session file locked (timeout {ms}ms): {owner} {path}")));
            }
            pause = (pause + PAUSE).min(LONGEST_PAUSE);
            let waited = cancel.run(tokio::time::sleep(pause.min(left))).await;
            waited.map_err(|cancelled| RunError::Cancelled(cancelled.reason))?;
        }
    }

    fn try_acquire(path: &Path, host: &Host) -> io::Result<LockAttempt> {
        for _ in 0..MAX_INSPECTIONS {
            match inspect(path, host)? {
                LockState::Missing => {
                    let text = text(host);
                    if let Some(file) = create(path, &text)? {
                        return Ok(LockAttempt::Held(Self { path: path.to_owned(), text, file }));
                    }
                }
                LockState::Abandoned => {}
                LockState::Held { owner } => return Ok(LockAttempt::Busy { owner }),
            }
        }
        Ok(LockAttempt::Busy { owner: None })
    }

    /// Nobody took the lock away from us, as a program does that finds it stale.
    fn is_ours(&self) -> bool {
        is_still(&self.file, &self.path).unwrap_or(false)
            && fs::read_to_string(&self.path).is_ok_and(|text| text == self.text)
    }
}

impl Drop for SessionLock {
    fn drop(&mut self) {
        if self.is_ours() {
            // Nothing can be done about a file that cannot be removed: it is recognised as abandoned.
            drop(fs::remove_file(&self.path));
        }
    }
}

enum LockAttempt {
    Held(SessionLock),
    Busy { owner: Option<u32> },
}

/// `<realpath of the dir>/<name>.lock`: the same for all ways to name a session file.
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

/// Makes the lock file, complete and locked by the kernel from its first moment: OpenClaw takes one without text for abandoned. `None` when
/// there is one.
fn create(path: &Path, text: &str) -> io::Result<Option<File>> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".session-lock-").suffix(".tmp").tempfile_in(dir)?;
    file.write_all(text.as_bytes())?;
    kernel_lock(file.as_file())?;
    match file.persist_noclobber(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
        // The file system can neither rename without replacing nor link.
        Err(_) => create_in_place(path, text),
    }
}

fn create_in_place(path: &Path, text: &str) -> io::Result<Option<File>> {
    let mut file = match creating_private(OpenOptions::new().read(true).write(true).create_new(true)).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
        opened => opened?,
    };
    // Whoever looks at the file just now has the kernel's lock. They find it too young to be abandoned; so let them, and be without.
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
    /// No lock.
    Missing,
    /// A lock whose holder is gone; it is removed.
    Abandoned,
    /// Somebody's lock.
    Held { owner: Option<u32> },
}

/// Looks at the lock file and clears it away when nobody holds it.
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
    // Under the kernel's lock: of several engines that look at it one clears it away, and none clears away the lock that follows it.
    if is_still(&file, path)? {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => tracing::debug!(pid = record.pid, "an abandoned lock of a session file was removed"),
        }
    }
    Ok(LockState::Abandoned)
}

/// What a lock file says of its holder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct LockRecord {
    pid: Option<u32>,
    created_ms: Option<i64>,
    /// Later versions of OpenClaw write when the process started.
    start_ticks: Option<u64>,
}

/// What can be facts of a lock apart from its text.
#[derive(Clone, Debug)]
struct LockFacts {
    now_ms: i64,
    modified_ms: i64,
    owner: Option<LockOwner>,
}

/// The process a lock names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LockOwner {
    /// It ended.
    Dead,
    /// It runs.
    Alive { start_ticks: Option<u64> },
    /// It is this one, which does not hold the lock: the name is that of a process before it.
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

    /// Whether nobody holds the lock any more.
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
            // Perhaps it is being written right now.
            _ => is_old(facts.modified_ms),
        }
    }
}

/// Who has the kernel's lock on a lock file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(unix), expect(dead_code, reason = "only the last one there"))]
enum KernelLock {
    /// This open file.
    Ours,
    /// Another one.
    Theirs,
    /// There are no such locks here.
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

/// Elsewhere a locked file cannot be read, and OpenClaw would take the lock for abandoned.
#[cfg(not(unix))]
fn kernel_lock(_: &File) -> io::Result<KernelLock> {
    Ok(KernelLock::Unknown)
}
