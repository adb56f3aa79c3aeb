use std::time::Duration;

use pinch_stdx::host::iso_from_ms;
use tempfile::TempDir;

use super::*;

const NOW: i64 = 1_767_225_600_000;
const MINUTE: i64 = 60_000;
/// An id above the kernel's maximum, which no process has.
const DEAD_PID: u32 = 999_999_999;
/// A process that always runs: init.
const LIVE_PID: u32 = 1;

/// A directory with a session file that may already be locked.
struct LockFixture {
    dir: TempDir,
    host: Host,
}

impl LockFixture {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), host: Host::builder().clock(NOW, 0).build() }
    }

    /// Creates a fixture with a lock of another process, written a moment ago.
    fn with(text: &str) -> Self {
        let fixture = Self::new();
        fs::write(fixture.lock(), text).unwrap();
        fixture.set_age(10);
        fixture
    }

    fn session(&self) -> PathBuf {
        self.dir.path().join("s1.jsonl")
    }

    fn lock(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join("s1.jsonl.lock")
    }

    fn set_age(&self, ms: i64) {
        let at = UNIX_EPOCH + Duration::from_millis(u64::try_from(NOW - ms).unwrap());
        File::options().write(true).open(self.lock()).unwrap().set_modified(at).unwrap();
    }

    fn try_acquire(&self) -> LockAttempt {
        SessionLock::try_acquire(&lock_path(&self.session()).unwrap(), &self.host).unwrap()
    }

    #[track_caller]
    fn acquire(&self) -> SessionLock {
        match self.try_acquire() {
            LockAttempt::Held(lock) => lock,
            LockAttempt::Busy { owner } => panic!("locked by {owner:?}"),
        }
    }

    fn files(&self) -> Vec<String> {
        let names = fs::read_dir(self.dir.path()).unwrap();
        let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[track_caller]
    fn check_busy(&self, expected: Option<u32>) {
        match self.try_acquire() {
            LockAttempt::Held(_) => panic!("the lock was acquired"),
            LockAttempt::Busy { owner } => assert_eq!(owner, expected),
        }
    }
}

fn lock_of(pid: u32, age_ms: i64) -> String {
    format!("{:#}", json!({"pid": pid, "createdAt": iso_from_ms(NOW - age_ms)}))
}

#[test]
fn a_lock_is_abandoned_by_age_owner_and_start_time() {
    #[track_caller]
    fn check(text: &str, owner: Option<LockOwner>, modified_age: i64, expected: bool) {
        let facts = LockFacts { now_ms: NOW, modified_ms: NOW - modified_age, owner };
        assert_eq!(LockRecord::read(text.as_bytes()).is_abandoned(&facts), expected, "{text}");
    }
    let alive = |ticks| Some(LockOwner::Alive { start_ticks: ticks });
    let old = 30 * MINUTE + 1;
    check(&lock_of(4242, 1000), alive(None), 10, false);
    check(&lock_of(4242, 30 * MINUTE), alive(None), 10, false);
    check(&lock_of(4242, -MINUTE), alive(None), 10, false);
    check(&lock_of(4242, old), alive(None), 10, true);
    check(&lock_of(4242, 1000), Some(LockOwner::Dead), 10, true);
    check(&lock_of(4242, 1000), Some(LockOwner::Reused), 10, true);
    let timed = format!(r#"{{"pid":4242,"createdAt":"{}","starttime":10}}"#, iso_from_ms(NOW - 1000));
    check(&timed, alive(Some(10)), 10, false);
    check(&timed, alive(None), 10, false);
    check(&timed, alive(Some(99)), 10, true);
    for unfinished in ["", "{", "[]", r#"{"pid":0}"#, r#"{"pid":"7","createdAt":"2026-01-01T00:00:00.000Z"}"#] {
        check(unfinished, None, 10, false);
        check(unfinished, None, old, true);
    }
    check(r#"{"pid":4242,"createdAt":"soon"}"#, alive(None), 10, false);
    check(r#"{"pid":4242,"createdAt":"soon"}"#, alive(None), old, true);
}

#[test]
fn the_lock_names_its_owner_and_is_removed_on_drop() {
    let fixture = LockFixture::new();
    let lock = fixture.acquire();
    let own = std::process::id();
    let text = format!("{{\n  \"pid\": {own},\n  \"createdAt\": \"2026-01-01T00:00:00.000Z\"\n}}");
    assert_eq!(fs::read_to_string(fixture.lock()).unwrap(), text);
    assert_eq!(fixture.files(), ["s1.jsonl.lock"]);
    drop(lock);
    assert!(fixture.files().is_empty());
}

#[test]
fn a_missing_directory_is_created() {
    let fixture = LockFixture::new();
    let path = SessionLock::path_for(&fixture.dir.path().join("agents/main/s1.jsonl")).unwrap();
    assert!(path.ends_with("agents/main/s1.jsonl.lock"));
    assert!(matches!(SessionLock::try_acquire(&path, &fixture.host), Ok(LockAttempt::Held(_))));
}

#[test]
fn a_lock_of_a_live_process_is_respected() {
    LockFixture::with(&lock_of(LIVE_PID, 1000)).check_busy(Some(LIVE_PID));
}

#[test]
fn abandoned_locks_are_taken_over_immediately() {
    let own = std::process::id();
    let mut texts = vec![lock_of(LIVE_PID, 31 * MINUTE)];
    if cfg!(unix) {
        texts.extend([lock_of(DEAD_PID, 1000), lock_of(own, 1000)]);
    }
    for text in texts {
        let fixture = LockFixture::with(&text);
        let lock = fixture.acquire();
        assert!(lock.file().is_ours(), "{text}");
        drop(lock);
        assert!(fixture.files().is_empty());
    }
}

#[test]
fn a_lock_without_content_is_taken_over_once_it_is_old() {
    let fixture = LockFixture::with("{");
    fixture.check_busy(None);
    fixture.set_age(30 * MINUTE + 1);
    assert!(fixture.acquire().file().is_ours());
}

#[cfg(unix)]
#[test]
fn a_kernel_lock_is_respected_however_old() {
    let fixture = LockFixture::new();
    let lock = fixture.acquire();
    let later = Host::builder().clock(NOW + 60 * MINUTE, 0).build();
    let attempt = SessionLock::try_acquire(&fixture.lock(), &later).unwrap();
    assert!(matches!(attempt, LockAttempt::Busy { owner: Some(pid) } if pid == std::process::id()));
    drop(lock);
}

#[test]
fn a_lock_that_was_replaced_is_not_removed_on_drop() {
    let fixture = LockFixture::new();
    let lock = fixture.acquire();
    fs::remove_file(fixture.lock()).unwrap();
    let foreign = lock_of(LIVE_PID, 0);
    fs::write(fixture.lock(), &foreign).unwrap();
    drop(lock);
    assert_eq!(fs::read_to_string(fixture.lock()).unwrap(), foreign);
}

#[test]
fn a_renewed_lock_names_the_current_time() {
    let fixture = LockFixture::new();
    let lock = fixture.acquire();
    let before = fs::read_to_string(fixture.lock()).unwrap();
    assert!(lock.renew(&Host::builder().clock(NOW + 20 * MINUTE, 0).build()));
    let after = fs::read_to_string(fixture.lock()).unwrap();
    assert_eq!(after, before.replace("00:00:00", "00:20:00"));
    fs::remove_file(fixture.lock()).unwrap();
    assert!(!lock.renew(&fixture.host), "a lost lock cannot be renewed");
    assert!(!fixture.lock().exists());
}

/// Threads stand in for processes here.
#[test]
fn a_lock_has_one_holder_at_a_time() {
    let fixture = LockFixture::with(&lock_of(if cfg!(unix) { DEAD_PID } else { LIVE_PID }, 31 * MINUTE));
    let path = lock_path(&fixture.session()).unwrap();
    let inside = std::sync::atomic::AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut n_held = 0;
                while n_held < 50 {
                    if let LockAttempt::Held(lock) = SessionLock::try_acquire(&path, &fixture.host).unwrap() {
                        assert_eq!(inside.fetch_add(1, std::sync::atomic::Ordering::SeqCst), 0);
                        n_held += 1;
                        inside.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                        drop(lock);
                    }
                    std::thread::yield_now();
                }
            });
        }
    });
    assert!(fixture.files().is_empty());
}
