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

#[tokio::test]
async fn changes_that_wait_are_written_together_and_fail_alone() {
    let dir = tempfile::tempdir().unwrap();
    let index = FileIndex::new(dir.path(), Host::system());
    let sessions = dir.path().join("agents/main/sessions");
    std::fs::create_dir_all(&sessions).unwrap();
    std::fs::write(sessions.join("sessions.json"), r#"{"agent:main:broken": {"sessionId": 7}}"#).unwrap();
    let put = |id: &'static str| {
        index.update(id, None, Arc::new(move |_: Option<SessionEntry>| Some(SessionEntry::new(id, 1))))
    };
    let panics = index.update("agent:main:panics", None, Arc::new(|_| panic!("a change that panics")));
    let mut gone = put("agent:main:gone");
    assert!(futures::poll!(&mut gone).is_pending(), "it has the turn, and nothing is written yet");
    let waiting = async {
        let broken = put("agent:main:broken");
        futures::join!(put("agent:main:a"), broken, panics, put("agent:main:b"), async { drop(gone) })
    };
    let (a, broken, panics, b, ()) = waiting.await;
    assert_eq!(a.unwrap().unwrap().session_id, "agent:main:a");
    assert_eq!(b.unwrap().unwrap().session_id, "agent:main:b");
    assert!(broken.unwrap_err().to_string().contains("read \"agent:main:broken\" of the session index"));
    assert!(panics.unwrap_err().to_string().contains("the change to the entry panicked"));
    let text = std::fs::read_to_string(sessions.join("sessions.json")).unwrap();
    let entries: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&text).unwrap();
    let keys: Vec<&str> = entries.keys().map(String::as_str).filter(|key| *key != "agent:main:gone").collect();
    assert_eq!(keys, ["agent:main:broken", "agent:main:a", "agent:main:b"]);
    assert_eq!(entries["agent:main:broken"], serde_json::json!({"sessionId": 7}), "what cannot be read stays");
}

#[tokio::test(start_paused = true)]
async fn a_hundred_changes_at_once_need_few_writes() {
    let dir = tempfile::tempdir().unwrap();
    let index = FileIndex::new(dir.path(), Host::system());
    let path = dir.path().join("agents/main/sessions/sessions.json");
    let versions = std::sync::Mutex::new(std::collections::BTreeSet::new());
    let writes = (0..100).map(|n| {
        let (index, versions, path) = (&index, &versions, &path);
        async move {
            let change = move |_: Option<SessionEntry>| Some(SessionEntry::new("id", 1));
            index.update(&format!("agent:main:s{n}"), None, Arc::new(change)).await.unwrap();
            versions.lock().unwrap().insert(std::fs::metadata(path).unwrap().modified().unwrap());
        }
    });
    futures::future::join_all(writes).await;
    // The first may be written before the others have come; those then wait for it together.
    assert!(versions.lock().unwrap().len() <= 3, "{versions:?}");
}
