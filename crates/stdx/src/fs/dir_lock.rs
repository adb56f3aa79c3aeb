//! Locks compatible with JavaScript programs: the protocol of npm's `proper-lockfile`.
//!
//! The process that creates the directory `<file>.lock` holds the lock. It keeps renewing the directory's modification time; a directory
//! that was not renewed for long is stale and may be taken over. A holder whose directory was taken over must not write any more.
//!
//! If the file exists and nothing can be created beside it, the kernel's lock on the file itself is used instead.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::lock::{FileLock, LockError, is_still};
use crate::host::Host;

/// Options of a lock: how long it lives without renewal, and how long to wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DirLockOptions {
    /// Time without renewal after which a lock counts as abandoned.
    pub stale: Duration,
    /// Number of retries after the first attempt.
    pub n_retries: u32,
    /// Delay before the second attempt.
    pub first_pause: Duration,
    /// Factor by which each delay exceeds the previous one.
    pub factor: u32,
    /// Maximum delay.
    pub longest_pause: Duration,
    /// Whether delays are randomly extended by up to their own length, so that waiting processes do not collide repeatedly.
    pub randomise: bool,
}

impl DirLockOptions {
    /// For a quick change of a file: ten attempts 20 ms apart, stale after 10 s.
    pub const QUICK: Self = Self {
        stale: Duration::from_secs(10),
        n_retries: 9,
        first_pause: Duration::from_millis(20),
        factor: 1,
        longest_pause: Duration::from_millis(20),
        randomise: false,
    };

    /// For work that uses the network, such as refreshing a token: ten retries from 100 ms to 10 s, stale after 30 s.
    pub const PATIENT: Self = Self {
        stale: Duration::from_secs(30),
        n_retries: 10,
        first_pause: Duration::from_millis(100),
        factor: 2,
        longest_pause: Duration::from_secs(10),
        randomise: true,
    };

    fn pause(&self, n_tries: u32, host: &Host) -> Duration {
        let pause = self.first_pause.saturating_mul(self.factor.saturating_pow(n_tries));
        let stretch = if self.randomise { 1.0 + host.ids().fraction() } else { 1.0 };
        pause.min(self.longest_pause).mul_f64(stretch).min(self.longest_pause)
    }
}

/// Reasons why a lock could not be acquired or kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DirLockError {
    /// Another process held it for the whole time.
    #[error("lock file is already being held: {}", path.display())]
    Busy {
        /// The locked file.
        path: PathBuf,
    },
    /// Another process took it over: the locked file must not be written.
    #[error("the lock of {} was taken over", path.display())]
    Compromised {
        /// The locked file.
        path: PathBuf,
    },
    /// The lock's directory cannot be created or renewed.
    #[error("cannot lock {}", path.display())]
    Io {
        /// The locked file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

/// A held lock. Dropping it removes the directory, if it is still ours.
#[derive(Debug)]
pub struct DirLock {
    path: PathBuf,
    folder: PathBuf,
    stale: Duration,
    /// The directory's modification time as last set by us.
    renewed: SystemTime,
    /// The kernel's lock on the file itself, if no directory can be created beside it.
    kernel: Option<FileLock>,
}

impl DirLock {
    /// Locks a file, which need not exist; its directory must. Blocks the thread while waiting.
    ///
    /// # Errors
    /// Returns [`DirLockError::Busy`] or [`DirLockError::Io`].
    pub fn acquire(path: &Path, terms: &DirLockOptions, host: &Host) -> Result<Self, DirLockError> {
        for n_tries in 0..=terms.n_retries {
            if let Some(lock) = Self::try_acquire(path, terms.stale, host)? {
                return Ok(lock);
            }
            if n_tries < terms.n_retries {
                std::thread::sleep(terms.pause(n_tries, host));
            }
        }
        Err(DirLockError::Busy { path: path.to_owned() })
    }

    /// Locks a file like [`DirLock::acquire`], without blocking the thread. Cancel by dropping the future.
    ///
    /// # Errors
    /// Returns [`DirLockError::Busy`] or [`DirLockError::Io`].
    pub async fn acquire_async(path: &Path, terms: &DirLockOptions, host: &Host) -> Result<Self, DirLockError> {
        for n_tries in 0..=terms.n_retries {
            if let Some(lock) = Self::try_acquire(path, terms.stale, host)? {
                return Ok(lock);
            }
            if n_tries < terms.n_retries {
                tokio::time::sleep(terms.pause(n_tries, host)).await;
            }
        }
        Err(DirLockError::Busy { path: path.to_owned() })
    }

    /// Locks a file unless it is locked; returns `None` if another live process holds the lock.
    ///
    /// # Errors
    /// Returns [`DirLockError::Io`].
    pub fn try_acquire(path: &Path, stale: Duration, host: &Host) -> Result<Option<Self>, DirLockError> {
        let folder = folder_of(path);
        // Two attempts, the second after removing a stale lock. The faster process then holds it.
        for may_clear in [true, false] {
            match create_private(&folder) {
                Ok(()) => {
                    let mut lock = Self { path: path.to_owned(), folder, stale, renewed: UNIX_EPOCH, kernel: None };
                    lock.set_time(host)?;
                    return Ok(Some(lock));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    if !may_clear || !is_stale(&folder, stale, host) {
                        return Ok(None);
                    }
                    if !clear(&folder, || is_stale(&folder, stale, host)).map_err(|source| fail(path, source))? {
                        return Ok(None);
                    }
                }
                Err(source) if takes_nothing_new(&source) && path.exists() => {
                    return Self::in_kernel(path, folder, stale);
                }
                Err(source) => return Err(fail(path, source)),
            }
        }
        Ok(None)
    }

    /// Locks the file itself: JavaScript programs cannot create the directory here either.
    fn in_kernel(path: &Path, folder: PathBuf, stale: Duration) -> Result<Option<Self>, DirLockError> {
        match FileLock::try_acquire(path) {
            Ok(None) => Ok(None),
            Ok(kernel) => Ok(Some(Self { path: path.to_owned(), folder, stale, renewed: UNIX_EPOCH, kernel })),
            Err(LockError::Io { source, .. }) => Err(fail(path, source)),
            Err(LockError::Busy { .. }) => Ok(None),
        }
    }

    /// Fails if the lock was lost. Call it right before writing.
    ///
    /// # Errors
    /// Returns [`DirLockError::Compromised`].
    pub fn check(&self) -> Result<(), DirLockError> {
        if self.is_ours() { Ok(()) } else { Err(DirLockError::Compromised { path: self.path.clone() }) }
    }

    /// Renews the lock, so that it does not become stale.
    ///
    /// # Errors
    /// Returns [`DirLockError::Compromised`] if the lock was lost.
    pub fn renew(&mut self, host: &Host) -> Result<(), DirLockError> {
        self.check()?;
        self.set_time(host)
    }

    /// Runs `work` while renewing the lock.
    ///
    /// # Errors
    /// Returns [`DirLockError::Compromised`] if the lock is lost; `work` is dropped then.
    pub async fn renewing<T>(&mut self, host: &Host, work: impl Future<Output = T>) -> Result<T, DirLockError> {
        let mut work = std::pin::pin!(work);
        let pause = self.stale / 2;
        loop {
            let done = tokio::time::timeout(pause, work.as_mut()).await;
            match done {
                Ok(done) => return Ok(done),
                Err(_) => self.renew(host)?,
            }
        }
    }

    fn set_time(&mut self, host: &Host) -> Result<(), DirLockError> {
        if self.kernel.is_some() {
            return Ok(());
        }
        let now = UNIX_EPOCH + Duration::from_millis(u64::try_from(host.now_ms()).unwrap_or(0));
        let set = File::open(&self.folder).and_then(|folder| {
            folder.set_modified(now)?;
            // File systems round times, so use the time that can be read back.
            folder.metadata()?.modified()
        });
        self.renewed = set.map_err(|source| fail(&self.path, source))?;
        Ok(())
    }

    fn is_ours(&self) -> bool {
        match &self.kernel {
            Some(kernel) => is_still(kernel.file(), &self.path).unwrap_or(false),
            None => modified(&self.folder).is_ok_and(|at| at == self.renewed),
        }
    }
}

impl Drop for DirLock {
    fn drop(&mut self) {
        if self.kernel.is_some() {
            return;
        }
        // A directory that cannot be removed becomes stale.
        drop(clear(&self.folder, || self.is_ours()));
    }
}

/// Removes a lock's directory if `may` still allows it; returns false if it does not, or if another process is about to remove it.
///
/// Two processes that find the same stale directory must not remove it one after the other, or the second would remove the new lock of the
/// first. So our programs remove a directory only while they hold the kernel's lock on it.
fn clear(folder: &Path, may: impl Fn() -> bool) -> io::Result<bool> {
    let is_gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    #[cfg(unix)]
    let _alone = match File::open(folder) {
        Err(error) if is_gone(&error) => return Ok(true),
        // A directory created by another user, which may be removable anyway.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => None,
        Err(error) => return Err(error),
        Ok(open) => match open.try_lock() {
            Err(std::fs::TryLockError::WouldBlock) => return Ok(false),
            // A file system without such locks.
            Err(std::fs::TryLockError::Error(_)) => None,
            Ok(()) if is_still(&open, folder)? => Some(open),
            Ok(()) => return Ok(false),
        },
    };
    if !may() {
        return Ok(false);
    }
    match fs::remove_dir(folder) {
        Err(error) if !is_gone(&error) => Err(error),
        _ => Ok(true),
    }
}

fn create_private(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Returns whether an error means that the directory accepts no new file.
fn takes_nothing_new(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

/// Returns the lock directory of a file.
fn folder_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

fn modified(folder: &Path) -> io::Result<SystemTime> {
    fs::symlink_metadata(folder)?.modified()
}

fn is_stale(folder: &Path, stale: Duration, host: &Host) -> bool {
    let Ok(renewed) = modified(folder) else { return true };
    let now = UNIX_EPOCH + Duration::from_millis(u64::try_from(host.now_ms()).unwrap_or(0));
    now.duration_since(renewed).is_ok_and(|age| age > stale)
}

fn fail(path: &Path, source: io::Error) -> DirLockError {
    DirLockError::Io { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_700_000_000_000;

    fn host(at: i64) -> Host {
        Host::builder().clock(at, 0).build()
    }

    #[test]
    fn the_directory_is_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("auth.json");
        let lock = DirLock::acquire(&path, &DirLockOptions::QUICK, &host(NOW)).unwrap();
        assert!(dir.path().join("auth.json.lock").is_dir());
        assert!(DirLock::try_acquire(&path, DirLockOptions::QUICK.stale, &host(NOW + 9_000)).unwrap().is_none());
        lock.check().unwrap();
        drop(lock);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_stale_lock_is_taken_over_and_its_holder_notices() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("auth.json");
        let mut old = DirLock::acquire(&path, &DirLockOptions::QUICK, &host(NOW)).unwrap();
        let new = DirLock::acquire(&path, &DirLockOptions::QUICK, &host(NOW + 10_001)).unwrap();
        assert!(matches!(old.renew(&host(NOW + 10_002)), Err(DirLockError::Compromised { .. })));
        drop(old);
        new.check().unwrap();
    }

    #[test]
    fn a_dead_holders_lock_is_taken_over_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("auth.json");
        for _ in 0..200 {
            fs::create_dir(dir.path().join("auth.json.lock")).unwrap();
            let old = UNIX_EPOCH + Duration::from_millis(NOW as u64);
            File::open(dir.path().join("auth.json.lock")).unwrap().set_modified(old).unwrap();
            let start = std::sync::Barrier::new(4);
            let n_held: usize = std::thread::scope(|scope| {
                let take = || {
                    let host = host(NOW + 20_000);
                    start.wait();
                    let held = DirLock::try_acquire(&path, DirLockOptions::QUICK.stale, &host).unwrap();
                    start.wait();
                    let is_ours = held.as_ref().is_some_and(|lock| lock.check().is_ok());
                    start.wait();
                    usize::from(is_ours)
                };
                let tasks: Vec<_> = (0..4).map(|_| scope.spawn(take)).collect();
                let held: Vec<usize> = tasks.into_iter().map(|task| task.join().unwrap()).collect();
                held.iter().sum()
            });
            assert_eq!(n_held, 1);
            assert!(!dir.path().join("auth.json.lock").exists());
        }
    }

    #[test]
    fn the_file_itself_is_locked_if_no_directory_can_be_created() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("auth.json");
        fs::write(&path, "{}").unwrap();
        let take = || DirLock::in_kernel(&path, folder_of(&path), DirLockOptions::QUICK.stale).unwrap();
        let mut held = take().unwrap();
        assert!(take().is_none(), "one holder at a time");
        held.check().unwrap();
        held.renew(&host(NOW)).unwrap();
        drop(held);
        drop(take().unwrap());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        assert!(takes_nothing_new(&io::ErrorKind::PermissionDenied.into()));
    }

    #[test]
    fn quick_terms_give_up() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("auth.json");
        let _held = DirLock::acquire(&path, &DirLockOptions::QUICK, &host(NOW)).unwrap();
        assert!(matches!(DirLock::acquire(&path, &DirLockOptions::QUICK, &host(NOW)), Err(DirLockError::Busy { .. })));
    }

    #[tokio::test(start_paused = true)]
    async fn long_work_renews_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("auth.json");
        let host = Host::builder().clock(NOW, 1_000).build();
        let mut lock = DirLock::acquire_async(&path, &DirLockOptions::PATIENT, &host).await.unwrap();
        let before = lock.renewed;
        lock.renewing(&host, tokio::time::sleep(Duration::from_secs(40))).await.unwrap();
        assert_eq!(lock.renewed.duration_since(before).unwrap(), Duration::from_secs(2));
        fs::remove_dir(&lock.folder).unwrap();
        let lost = lock.renewing(&host, std::future::pending::<()>()).await;
        assert!(matches!(lost, Err(DirLockError::Compromised { .. })));
    }
}
