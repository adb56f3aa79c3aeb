//! Slow disk work runs on the blocking thread pool, never on the threads that drive the runtime.

use std::pin::pin;
use std::sync::mpsc;

use bytes::Bytes;
use futures::FutureExt as _;
use pinch_session::entry::Header;
use pinch_session::store::{Durability, JsonlStore, ListScope, SessionRef, SessionStore as _};
use tokio::runtime::Builder;

const HEADER: &str = r#"{"type":"session","version":3,"id":"0198a000-0000-7000-8000-000000000001","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}"#;

/// Polls a future while the only blocking thread is busy: it must wait for that thread. Then lets it finish.
async fn waits_for_the_pool<T>(what: &str, work: impl Future<Output = T>) -> T {
    let (release, gate) = mpsc::sync_channel::<()>(1);
    let taken = tokio::task::spawn_blocking(move || gate.recv());
    let mut work = pin!(work);
    for _ in 0..20 {
        assert!(work.as_mut().now_or_never().is_none(), "{what} was done on the reactor");
        tokio::task::yield_now().await;
    }
    release.send(()).unwrap();
    taken.await.unwrap().unwrap();
    work.await
}

#[test]
fn loads_listings_lookups_replacements_and_syncs_leave_the_reactor_free() {
    let runtime = Builder::new_current_thread().enable_all().max_blocking_threads(1).build().unwrap();
    runtime.block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let store = JsonlStore::flat(folder.path()).durability(Durability::Entry);
        let header: Header = Header::parse(HEADER.as_bytes()).unwrap();
        let mut journal = store.create(&header).await.unwrap();
        let lines = Bytes::from(format!("{HEADER}\n"));
        let end = lines.len() as u64;
        waits_for_the_pool("an append that is forced to the disk", journal.append(lines.clone(), 0)).await.unwrap();
        waits_for_the_pool("a sync", journal.sync()).await.unwrap();
        let loaded = waits_for_the_pool("a load", journal.load()).await.unwrap();
        assert_eq!(loaded, lines);
        waits_for_the_pool("a replacement", journal.replace(lines, end, "backup")).await.unwrap();
        let listed = waits_for_the_pool("a listing", store.list(ListScope::All)).await.unwrap();
        assert_eq!(listed.len(), 1);
        waits_for_the_pool("the newest", store.most_recent("/w")).await.unwrap();
        waits_for_the_pool("a lookup by id", store.open(&SessionRef::Id(header.id.clone()))).await.unwrap();
    });
}
