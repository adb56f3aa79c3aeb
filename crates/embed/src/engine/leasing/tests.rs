use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use pinch_coding_agent::store::{MemoryStore, SessionRef};
use pinch_stdx::host::{Env, Host, iso_from_ms};
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::config::Config;
use crate::engine::{Engine, EngineBuilder};
use crate::run::scope::RunScope;
use crate::runtime::Attempts;

const NOW: i64 = 1_767_225_600_000;

/// A directory with a session file that may already be locked.
struct LeasingFixture {
    dir: TempDir,
}

impl LeasingFixture {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn session(&self) -> PathBuf {
        self.dir.path().join("s1.jsonl")
    }

    fn lock(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join("s1.jsonl.lock")
    }
}

/// A runtime that never makes an attempt: it hangs or fails in `open`.
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

fn builder(fixture: &LeasingFixture) -> EngineBuilder {
    let document = json!({"agents": {"defaults": {"model": "anthropic/claude-opus-4-6"}}});
    let (config, problems) = Config::from_document(document.as_object().unwrap().clone(), Path::new("pinch.json"));
    assert!(problems.is_empty());
    let env = Env::from_iter([("ANTHROPIC_API_KEY", "key")]);
    let host = Host::builder().clock(NOW, 0).env(env).build();
    Engine::builder(fixture.dir.path()).host(host).config(config)
}

fn request(fixture: &LeasingFixture) -> RunRequest {
    RunRequest::new("s1", SessionRef::Path(fixture.session()), "hello")
        .workspace_dir(fixture.dir.path().join("workspace"))
}

#[tokio::test(start_paused = true)]
async fn two_engines_take_turns_with_a_session_file() {
    let fixture = LeasingFixture::new();
    let stuck = builder(&fixture).runtime("native", Arc::new(Opening { is_stuck: true })).build();
    let failing = builder(&fixture).runtime("native", Arc::new(Opening { is_stuck: false }));
    let failing = failing.wait_limit(Duration::from_millis(50)).build();

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
    let fixture = LeasingFixture::new();
    fs::write(fixture.lock(), format!(r#"{{"pid":1,"createdAt":"{}"}}"#, iso_from_ms(NOW - 1000))).unwrap();
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
    let fixture = LeasingFixture::new();
    let file_of = |builder: EngineBuilder| builder.build().parts().runtimes["native"].session_file(&request(&fixture));
    assert_eq!(file_of(builder(&fixture)), Some(fixture.session()));
    assert_eq!(file_of(builder(&fixture).store(Arc::new(MemoryStore::default()))), None);
}

#[tokio::test(start_paused = true)]
async fn a_run_waits_for_another_process_as_long_as_its_own_time_limit_and_reports_it() {
    let fixture = LeasingFixture::new();
    fs::write(fixture.lock(), format!(r#"{{"pid":1,"createdAt":"{}"}}"#, iso_from_ms(NOW - 1000))).unwrap();
    let engine = builder(&fixture).runtime("native", Arc::new(Opening { is_stuck: false })).build();
    let mut run = engine.run(request(&fixture).timeout(Some(Duration::from_secs(90))));
    let waiting = run.next().await;
    assert!(matches!(waiting, Some(RunEvent::Waiting(LeaseWait::Process { owner: Some(1), .. }))), "{waiting:?}");
    let began = tokio::time::Instant::now();
    let busy = run.finish().await.unwrap_err();
    assert_eq!(began.elapsed(), Duration::from_secs(90));
    assert!(busy.to_string().starts_with("session file locked (timeout 90000ms): pid=1 "), "{busy}");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_loses_its_lease_is_stopped() {
    let fixture = LeasingFixture::new();
    let engine = builder(&fixture).runtime("native", Arc::new(Opening { is_stuck: true })).build();
    let mut run = engine.run(request(&fixture));
    while !matches!(run.next().await, Some(RunEvent::Model { .. })) {}
    fs::remove_file(fixture.lock()).unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(120), run.finish()).await;
    let busy = ended.expect("the run ends").unwrap_err();
    assert_eq!(busy.to_string(), "another process took over the session");
}
