//! The tables pass the same suites as pinch's own stores, and two hosts using them share sessions.

use std::sync::Arc;

use pinch_embed::ports::{HealthStore, SessionIndex};
use pinch_fork::ports::SharedTables;
use pinch_testing::suites::ports::{health, index};

#[test]
fn the_tables_pass_the_suites() {
    health::check(|| {
        let tables = SharedTables::default();
        move || Arc::new(tables.clone()) as Arc<dyn HealthStore>
    });
    index::check(|| {
        let tables = SharedTables::default();
        move || Arc::new(tables.clone()) as Arc<dyn SessionIndex>
    });
}

#[tokio::test]
async fn two_hosts_mean_the_same_session_by_a_key() {
    let (tables, one, two) = (SharedTables::default(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let first = tables.engine(one.path()).message("chat", "hello").await.unwrap();
    let second = tables.engine(two.path()).message("agent:main:chat", "again").await.unwrap();
    assert_eq!(first.session_id, second.session_id);
}
