use std::sync::Arc;

use futures::StreamExt;
use futures::future::BoxFuture;
use pinch_coding_agent::store::{MemoryStore, SessionRef};
use pinch_llm::model::Model;
use pinch_stdx::cancel::CancelReason;
use pinch_stdx::host::{Env, iso_from_ms};
use tempfile::TempDir;

use super::*;
use crate::config::Config;
use crate::engine::{Engine, EngineBuilder};
use crate::run::RunRequest;
use crate::run::scope::RunScope;
use crate::runner::RunEvent;
use crate::runtime::{AttemptRuntime, Attempts};

const NOW: i64 = 1_767_225_600_000;
const MINUTE: i64 = 60_000;
/// An id that no process has: above the kernel's maximum.
const DEAD_PID: u32 = 999_999_999;
/// A process that always runs: init.
const LIVE_PID: u32 = 1;

/// A directory for a session file that may be locked already.
struct Fixture {
    dir: TempDir,
    host: Host,
}

impl Fixture {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), host: Host::builder().clock(NOW, 0).build() }
    }

    /// A fixture with the lock of another process, written a moment ago.
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

    async fn acquire(&self, patience_ms: u64) -> Result<SessionLock, RunError> {
        let patience = Duration::from_millis(patience_ms);
        SessionLock::acquire(&self.session(), patience, &self.host, &Cancel::new()).await
    }

    fn files(&self) -> Vec<String> {
        let names = fs::read_dir(self.dir.path()).unwrap();
        let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[track_caller]
    fn check_busy(&self, gained: Result<SessionLock, RunError>, ms: u64, owner: &str) {
        let error = gained.unwrap_err();
        assert!(matches!(error, RunError::Busy(_)));
        let path = self.lock();
        assert_eq!(error.to_string(), format!("session file locked (timeout {ms}ms): {owner} {}", path.display()));
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

#[tokio::test(start_paused = true)]
async fn the_lock_names_its_owner_and_is_removed_on_drop() {
    let fixture = Fixture::new();
    let lock = fixture.acquire(0).await.unwrap();
    let own = std::process::id();
    let text = format!("{{\n  \"pid\": {own},\n  \"createdAt\": \"2026-01-01T00:00:00.000Z\"\n}}");
    assert_eq!(fs::read_to_string(fixture.lock()).unwrap(), text);
    assert_eq!(fixture.files(), ["s1.jsonl.lock"]);
    drop(lock);
    assert!(fixture.files().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_missing_directory_is_created() {
    let fixture = Fixture::new();
    let session = fixture.dir.path().join("agents/main/s1.jsonl");
    let lock = SessionLock::acquire(&session, PATIENCE, &fixture.host, &Cancel::new()).await.unwrap();
    assert!(lock.path.ends_with("agents/main/s1.jsonl.lock"));
}

#[tokio::test(start_paused = true)]
async fn a_lock_of_a_live_process_is_waited_for() {
    let fixture = Fixture::with(&lock_of(LIVE_PID, 1000));
    let began = Instant::now();
    fixture.check_busy(fixture.acquire(10_000).await, 10_000, &format!("pid={LIVE_PID}"));
    assert_eq!(began.elapsed(), Duration::from_secs(10));
    let (gained, ()) = tokio::join!(fixture.acquire(10_000), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        fs::remove_file(fixture.lock()).unwrap();
    });
    gained.unwrap();
}

#[tokio::test(start_paused = true)]
async fn abandoned_locks_are_taken_over_at_once() {
    let own = std::process::id();
    let mut texts = vec![lock_of(LIVE_PID, 31 * MINUTE)];
    if cfg!(unix) {
        texts.extend([lock_of(DEAD_PID, 1000), lock_of(own, 1000)]);
    }
    for text in texts {
        let fixture = Fixture::with(&text);
        let lock = fixture.acquire(0).await.unwrap();
        assert!(lock.is_ours(), "{text}");
        drop(lock);
        assert!(fixture.files().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_lock_without_content_is_taken_over_once_it_is_old() {
    let fixture = Fixture::with("{");
    fixture.check_busy(fixture.acquire(200).await, 200, "unknown");
    fixture.set_age(30 * MINUTE + 1);
    assert!(fixture.acquire(0).await.unwrap().is_ours());
}

#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn a_kernel_lock_is_respected_however_old() {
    let fixture = Fixture::new();
    let lock = fixture.acquire(0).await.unwrap();
    let later = Host::builder().clock(NOW + 60 * MINUTE, 0).build();
    let gained = SessionLock::acquire(&fixture.session(), Duration::ZERO, &later, &Cancel::new()).await;
    fixture.check_busy(gained, 0, &format!("pid={}", std::process::id()));
    drop(lock);
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_was_replaced_is_not_removed_on_drop() {
    let fixture = Fixture::new();
    let lock = fixture.acquire(0).await.unwrap();
    fs::remove_file(fixture.lock()).unwrap();
    let foreign = lock_of(LIVE_PID, 0);
    fs::write(fixture.lock(), &foreign).unwrap();
    drop(lock);
    assert_eq!(fs::read_to_string(fixture.lock()).unwrap(), foreign);
}

#[tokio::test(start_paused = true)]
async fn waiting_can_be_cancelled() {
    let fixture = Fixture::with(&lock_of(LIVE_PID, 1000));
    let (session, cancel) = (fixture.session(), Cancel::new());
    let (gained, ()) = tokio::join!(SessionLock::acquire(&session, PATIENCE, &fixture.host, &cancel), async {
        tokio::time::sleep(Duration::from_millis(60)).await;
        cancel.cancel(CancelReason::User);
    });
    assert!(matches!(gained, Err(RunError::Cancelled(CancelReason::User))));
}

/// Threads stand in for processes here.
#[test]
fn a_lock_has_one_holder_at_a_time() {
    let fixture = Fixture::with(&lock_of(if cfg!(unix) { DEAD_PID } else { LIVE_PID }, 31 * MINUTE));
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

/// A runtime that never makes an attempt: it hangs in `open`, or fails there.
struct Opening {
    is_stuck: bool,
}

impl AttemptRuntime for Opening {
    fn id(&self) -> &str {
        "opening"
    }

    fn session_file(&self, request: &RunRequest) -> Option<PathBuf> {
        match &request.session {
            SessionRef::Path(path) => Some(path.clone()),
            SessionRef::Id(_) => None,
        }
    }

    fn open<'a>(&'a self, _: &'a RunScope, _: Arc<Model>) -> BoxFuture<'a, Result<Box<dyn Attempts + 'a>, RunError>> {
        Box::pin(async move {
            if self.is_stuck {
                std::future::pending::<()>().await;
            }
            Err(RunError::Internal("opened".to_owned()))
        })
    }
}

fn builder(fixture: &Fixture) -> EngineBuilder {
    let document = json!({"agents": {"defaults": {"model": "anthropic/claude-opus-4-6"}}});
    let (config, problems) = Config::from_document(document.as_object().unwrap().clone(), Path::new("pinch.json"));
    assert!(problems.is_empty());
    let env = Env::from_iter([("ANTHROPIC_API_KEY", "key")]);
    let host = Host::builder().clock(NOW, 0).env(env).build();
    Engine::builder(fixture.dir.path()).host(host).config(config)
}

fn request(fixture: &Fixture) -> RunRequest {
    RunRequest::new("s1", SessionRef::Path(fixture.session()), "hello")
        .workspace_dir(fixture.dir.path().join("workspace"))
}

#[tokio::test(start_paused = true)]
async fn two_engines_take_turns_with_a_session_file() {
    let fixture = Fixture::new();
    let stuck = builder(&fixture).runtime("native", Arc::new(Opening { is_stuck: true })).build();
    let failing = builder(&fixture).runtime("native", Arc::new(Opening { is_stuck: false }));
    let failing = failing.lock_patience(Duration::from_millis(50)).build();

    let mut first = stuck.run(request(&fixture));
    while !matches!(first.next().await, Some(RunEvent::Model { .. })) {}
    let busy = failing.run(request(&fixture)).finish().await.unwrap_err();
    let (own, path) = (std::process::id(), fixture.lock());
    assert!(matches!(busy, RunError::Busy(_)));
    assert_eq!(busy.to_string(), format!("session file locked (timeout 50ms): pid={own} {}", path.display()));

    // A dropped run releases the lock, and so does a failed one.
    drop(first);
    assert!(!fixture.lock().exists());
    let opened = failing.run(request(&fixture)).finish().await.unwrap_err();
    assert_eq!(opened.to_string(), "opened");
    assert!(!fixture.lock().exists());
}

#[tokio::test(start_paused = true)]
async fn a_run_that_waits_for_a_lock_is_cancelled_with_its_request() {
    let fixture = Fixture::with(&lock_of(LIVE_PID, 1000));
    let engine = builder(&fixture).runtime("native", Arc::new(Opening { is_stuck: true })).build();
    let request = request(&fixture);
    let cancel = request.cancel.clone();
    let (ended, ()) = tokio::join!(engine.run(request).finish(), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        cancel.cancel(CancelReason::User);
    });
    assert!(matches!(ended, Err(RunError::Cancelled(CancelReason::User))));
}

#[test]
fn only_sessions_in_files_are_locked() {
    let fixture = Fixture::new();
    let file_of = |builder: EngineBuilder| builder.build().parts.runtimes["native"].session_file(&request(&fixture));
    assert_eq!(file_of(builder(&fixture)), Some(fixture.session()));
    assert_eq!(file_of(builder(&fixture).store(Arc::new(MemoryStore::default()))), None);
}
