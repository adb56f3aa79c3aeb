//! A store that fails now and then: refused entries do not exist, and accepted ones exist once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures::future::BoxFuture;
use pinch_session::entry::{BranchSummary, Entry, Header};
use pinch_session::session_log::{NewSession, SessionLog};
use pinch_session::store::{
    Appended, Fence, Journal, ListScope, MemoryStore, SessionRef, SessionStore, SessionSummary, StoreError,
};

use pinch_testing::logs::{answer, append, bash, host, result, shown, user};

/// A memory store whose appends fail while a counter is set.
#[derive(Clone, Default)]
struct Flaky {
    store: MemoryStore,
    failures: Arc<AtomicUsize>,
}

struct FlakyJournal(Box<dyn Journal>, Arc<AtomicUsize>);

impl Flaky {
    fn fail(&self, times: usize) {
        self.failures.store(times, Ordering::Relaxed);
    }
}

impl SessionStore for Flaky {
    fn list(&self, scope: ListScope) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>> {
        self.store.list(scope)
    }

    fn create(&self, header: &Header) -> BoxFuture<'_, Result<Box<dyn Journal>, StoreError>> {
        self.open(&SessionRef::Id(header.id.clone()))
    }

    fn open(&self, at: &SessionRef) -> BoxFuture<'_, Result<Box<dyn Journal>, StoreError>> {
        let at = at.clone();
        Box::pin(async move {
            let journal = self.store.open(&at).await?;
            Ok(Box::new(FlakyJournal(journal, Arc::clone(&self.failures))) as Box<dyn Journal>)
        })
    }

    fn remove(&self, at: &SessionRef) -> BoxFuture<'_, Result<(), StoreError>> {
        self.store.remove(at)
    }
}

impl Journal for FlakyJournal {
    fn set_fence(&mut self, fence: Arc<dyn Fence>) {
        self.0.set_fence(fence);
    }

    fn load(&mut self) -> BoxFuture<'_, Result<Bytes, StoreError>> {
        self.0.load()
    }

    fn append(&mut self, lines: Bytes, end: u64) -> BoxFuture<'_, Result<Appended, StoreError>> {
        let fails = self.1.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
        if fails {
            let source = io::Error::from(io::ErrorKind::StorageFull);
            let error = StoreError::Io { action: "write", path: "flaky".into(), source };
            return Box::pin(async { Err(error) });
        }
        self.0.append(lines, end)
    }

    fn replace<'a>(
        &'a mut self,
        lines: Bytes,
        end: u64,
        backup: &'a str,
    ) -> BoxFuture<'a, Result<Appended, StoreError>> {
        self.0.replace(lines, end, backup)
    }
}

async fn begin(store: &Flaky) -> SessionLog {
    SessionLog::create(&host(), Arc::new(store.clone()), NewSession::in_directory("/w")).await.unwrap()
}

fn all(log: &SessionLog) -> (Vec<Arc<Entry>>, Option<String>, usize) {
    (log.entries().collect(), log.leaf_id().map(ToString::to_string), log.awaited_calls().len())
}

#[tokio::test]
async fn a_refused_entry_does_not_exist_and_a_retry_appends_it_once() {
    let store = Flaky::default();
    let mut log = begin(&store).await;
    log.append_name("before the first prompt").await.unwrap();
    let steps = [user("q"), answer("a", &["c1", "c2"]), bash(), result("c1"), user("next"), answer("b", &[])];
    for step in steps {
        let before = all(&log);
        store.fail(1);
        if let Err(error) = log.append(step.clone()).await {
            assert_eq!(error.to_string(), "cannot write flaky");
            assert_eq!(all(&log), before);
            log.append(step).await.unwrap();
        }
        store.fail(0);
    }
    let expected =
        ["user q", "assistant a", "result c1", "result c2 missing", "bashExecution", "user next", "assistant b"];
    assert_eq!(shown(&log), expected);
    let again = SessionLog::open(&host(), Arc::new(store), &SessionRef::Id(log.id().to_owned()), "/w").await.unwrap();
    assert_eq!(again.entries().collect::<Vec<_>>(), log.entries().collect::<Vec<_>>());
}

#[tokio::test]
async fn a_refused_branch_leaves_the_leaf_unchanged() {
    let store = Flaky::default();
    let mut log = begin(&store).await;
    let ids = append(&mut log, [user("q"), answer("a", &["c1"])]).await;
    let before = all(&log);
    let summary =
        BranchSummary { from_id: String::new(), summary: "S".into(), details: None, from_hook: None, usage: None };
    store.fail(1);
    assert!(log.branch_with_summary(Some(&ids[0]), summary).await.is_err());
    assert_eq!(all(&log), before);
}

#[tokio::test]
async fn a_refused_branched_session_keeps_the_old_one() {
    let store = Flaky::default();
    let mut log = begin(&store).await;
    let ids = append(&mut log, [user("q"), answer("a", &[])]).await;
    let (before, id) = (all(&log), log.id().to_owned());
    store.fail(1);
    assert!(log.create_branched_session(&ids[0]).await.is_err());
    assert_eq!((all(&log), log.id()), (before, &id));
}
