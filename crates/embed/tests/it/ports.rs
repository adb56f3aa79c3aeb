//! The local defaults of the ports pass the conformance suites for all implementations.

use std::sync::Arc;

use pinch_embed::lanes::Lanes;
use pinch_embed::ports::{FileHealth, FileIndex, HealthStore, LocalLeases, MemoryHealth, SessionEntry, SessionIndex};
use pinch_embed::stdx::host::Host;
use pinch_testing::suites::ports::{health, index, leases};

#[test]
fn local_leases() {
    leases::check(|| Arc::new(LocalLeases::new(Lanes::default(), Host::system())));
}

#[test]
fn health_in_files() {
    health::check(|| {
        let dir = tempfile::tempdir().unwrap();
        move || Arc::new(FileHealth::new(dir.path().join("auth-profiles.json"), Host::system())) as Arc<dyn HealthStore>
    });
}

#[test]
fn health_in_memory() {
    health::check(|| {
        let store = Arc::new(MemoryHealth::default());
        move || Arc::clone(&store) as Arc<dyn HealthStore>
    });
}

#[test]
fn index_in_files() {
    index::check(|| {
        let dir = tempfile::tempdir().unwrap();
        move || Arc::new(FileIndex::new(dir.path(), Host::system())) as Arc<dyn SessionIndex>
    });
}

#[tokio::test(start_paused = true)]
async fn writers_of_one_process_do_not_poll_for_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let index = FileIndex::new(dir.path(), Host::system());
    let began = tokio::time::Instant::now();
    let keys: Vec<String> = (0..100).map(|n| format!("agent:main:s{n}")).collect();
    let writes = keys.iter().map(|key| {
        let change = move |_: Option<SessionEntry>| Some(SessionEntry::new("id", 1));
        index.update(key, None, Arc::new(change))
    });
    for written in futures::future::join_all(writes).await {
        assert!(written.is_ok(), "{written:?}");
    }
    assert_eq!(began.elapsed(), std::time::Duration::ZERO, "only other processes are polled for");
    assert_eq!(index.list("main").await.unwrap().len(), 100);
}
