//! The store suite, run on our stores, and on faulty ones that it must detect.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use pinch_session::entry::Header;
use pinch_session::store::{
    Appended, Fence, Journal, JsonlStore, ListScope, MemoryStore, SessionRef, SessionStore, SessionSummary, StoreError,
};
use pinch_testing::suites::store::{StorePlace, StoreScenario};

/// Session files in a separate directory.
struct FileStores {
    dir: tempfile::TempDir,
    store: fn(PathBuf) -> JsonlStore,
}

impl FileStores {
    fn flat() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), store: |folder| JsonlStore::flat(folder) }
    }

    fn by_cwd() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), store: |folder| JsonlStore::by_cwd(folder) }
    }

    fn open(&self) -> JsonlStore {
        (self.store)(self.dir.path().join("sessions"))
    }
}

impl StorePlace for FileStores {
    fn store(&self) -> Arc<dyn SessionStore> {
        Arc::new(self.open())
    }

    fn put<'a>(&'a self, id: &'a str, text: &'a [u8]) -> BoxFuture<'a, SessionRef> {
        let path = self.open().file_of(&SessionRef::Id(id.into())).unwrap_or_else(|| {
            let folder = self.open().dir_for("/work/here");
            std::fs::create_dir_all(&folder).unwrap();
            folder.join(format!("{id}.jsonl"))
        });
        std::fs::write(&path, text).unwrap();
        Box::pin(async { SessionRef::Path(path) })
    }
}

/// Sessions in memory; `wrap` may introduce a fault.
struct MemoryStores {
    store: MemoryStore,
    wrap: fn(MemoryStore) -> Arc<dyn SessionStore>,
}

impl MemoryStores {
    fn new() -> Self {
        Self { store: MemoryStore::new(), wrap: |store| Arc::new(store) }
    }
}

impl StorePlace for MemoryStores {
    fn store(&self) -> Arc<dyn SessionStore> {
        (self.wrap)(self.store.clone())
    }

    fn put<'a>(&'a self, id: &'a str, text: &'a [u8]) -> BoxFuture<'a, SessionRef> {
        Box::pin(async move {
            let (at, text) = (SessionRef::Id(id.into()), Bytes::copy_from_slice(text));
            let mut journal = self.store.open(&at).await.unwrap();
            let put = match journal.load().await {
                Ok(old) => journal.replace(text, old.len() as u64, "bak").await,
                Err(_) => journal.append(text, 0).await,
            };
            put.unwrap();
            at
        })
    }
}

pinch_testing::store_suite! {
    flat => FileStores::flat(), gaps: [];
    by_cwd => FileStores::by_cwd(), gaps: [];
    memory => MemoryStores::new(), gaps: [];
}

/// A fault of a store.
#[derive(Clone, Copy)]
enum StoreFault {
    /// The last writer wins: foreign lines are not reported.
    Overwrites,
    /// Lines are parsed and written anew.
    Normalises,
    /// Appends directly to a line without a line break.
    Glues,
    /// Reports removal but removes nothing.
    KeepsRemoved,
    /// Loses half of the lines of an append.
    Halves,
}

/// A memory store with a fault.
struct Faulty(MemoryStore, StoreFault);

struct FaultyJournal(Box<dyn Journal>, StoreFault);

impl SessionStore for Faulty {
    fn list(&self, scope: ListScope) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>> {
        self.0.list(scope)
    }

    fn create(&self, header: &Header) -> BoxFuture<'_, Result<Box<dyn Journal>, StoreError>> {
        let header = header.clone();
        Box::pin(async move { Ok(Box::new(FaultyJournal(self.0.create(&header).await?, self.1)) as Box<dyn Journal>) })
    }

    fn open(&self, at: &SessionRef) -> BoxFuture<'_, Result<Box<dyn Journal>, StoreError>> {
        let at = at.clone();
        Box::pin(async move { Ok(Box::new(FaultyJournal(self.0.open(&at).await?, self.1)) as Box<dyn Journal>) })
    }

    fn remove(&self, at: &SessionRef) -> BoxFuture<'_, Result<(), StoreError>> {
        match self.1 {
            StoreFault::KeepsRemoved => Box::pin(async { Ok(()) }),
            _ => self.0.remove(at),
        }
    }
}

impl FaultyJournal {
    async fn append_wrongly(&mut self, lines: Bytes, end: u64) -> Result<Appended, StoreError> {
        match self.1 {
            StoreFault::Overwrites => match self.0.append(lines.clone(), end).await? {
                Appended::Moved { tail } => {
                    let all = self.0.load().await?;
                    let kept = all.slice(..all.len() - tail.len());
                    self.0.replace([&kept[..], &lines].concat().into(), all.len() as u64, "bak").await
                }
                at => Ok(at),
            },
            StoreFault::Normalises => {
                let text = String::from_utf8_lossy(&lines).into_owned();
                let anew = |line: &str| match serde_json::from_str::<serde_json::Value>(line) {
                    Ok(value) => format!("{value}\n"),
                    Err(_) => format!("{line}\n"),
                };
                self.0.append(text.lines().map(anew).collect::<String>().into(), end).await
            }
            StoreFault::Glues => {
                let all = self.0.load().await.unwrap_or_default();
                if all.is_empty() || all.ends_with(b"\n") || all.len() as u64 != end {
                    return self.0.append(lines, end).await;
                }
                self.0.replace([&all[..], &lines].concat().into(), end, "bak").await
            }
            StoreFault::Halves => {
                let first = memchr::memchr(b'\n', &lines).map_or(lines.len(), |at| at + 1);
                self.0.append(lines.slice(..first), end).await
            }
            StoreFault::KeepsRemoved => self.0.append(lines, end).await,
        }
    }
}

impl Journal for FaultyJournal {
    fn set_fence(&mut self, fence: Arc<dyn Fence>) {
        self.0.set_fence(fence);
    }

    fn load(&mut self) -> BoxFuture<'_, Result<Bytes, StoreError>> {
        self.0.load()
    }

    fn append(&mut self, lines: Bytes, end: u64) -> BoxFuture<'_, Result<Appended, StoreError>> {
        Box::pin(self.append_wrongly(lines, end))
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

/// Returns the scenarios that detect a faulty store.
fn found_by(wrap: fn(MemoryStore) -> Arc<dyn SessionStore>) -> Vec<StoreScenario> {
    let fails = |scenario: &StoreScenario| {
        let place = MemoryStores { store: MemoryStore::new(), wrap };
        // A faulty store may well make a scenario panic.
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| scenario.run(&place))).map_or(true, |ran| ran.is_err())
    };
    StoreScenario::ALL.iter().copied().filter(fails).collect()
}

#[track_caller]
fn check(wrap: fn(MemoryStore) -> Arc<dyn SessionStore>, expected: &[StoreScenario]) {
    let found = found_by(wrap);
    for scenario in expected {
        assert!(found.contains(scenario), "{scenario:?} does not find it; only {found:?} do");
    }
    assert!(found.len() < StoreScenario::ALL.len() / 2, "scenarios are about one thing each: {found:?}");
}

#[test]
fn a_store_that_overwrites_is_detected() {
    let expected =
        [StoreScenario::Moved, StoreScenario::Parallel, StoreScenario::Followed, StoreScenario::ParallelLogs];
    check(|store| Arc::new(Faulty(store, StoreFault::Overwrites)), &expected);
}

#[test]
fn a_store_that_rewrites_lines_is_detected() {
    check(|store| Arc::new(Faulty(store, StoreFault::Normalises)), &[StoreScenario::Bytes]);
}

#[test]
fn a_store_that_joins_lines_is_detected() {
    check(
        |store| Arc::new(Faulty(store, StoreFault::Glues)),
        &[StoreScenario::MissingNewline, StoreScenario::TornTail],
    );
}

#[test]
fn a_store_that_keeps_removed_sessions_is_detected() {
    check(
        |store| Arc::new(Faulty(store, StoreFault::KeepsRemoved)),
        &[StoreScenario::Missing, StoreScenario::Removed, StoreScenario::Fresh],
    );
}

#[test]
fn a_store_that_writes_half_is_detected() {
    check(|store| Arc::new(Faulty(store, StoreFault::Halves)), &[StoreScenario::Order, StoreScenario::Reopen]);
}
