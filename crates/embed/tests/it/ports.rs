//! The local defaults of the ports pass the suites that every implementation must pass.

use std::sync::Arc;

use pinch_embed::lanes::Lanes;
use pinch_embed::ports::{FileHealth, FileIndex, HealthStore, LocalLeases, MemoryHealth, SessionIndex};
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
