//! The store passes the suite.

use std::sync::Arc;

use futures::future::{BoxFuture, ready};
use pinch_fork::store::StoreTable;
use pinch_session::store::{SessionRef, SessionStore};
use pinch_testing::suites::store::StorePlace;

/// Creates a separate table for each scenario.
#[derive(Default)]
struct Fresh(StoreTable);

impl StorePlace for Fresh {
    fn store(&self) -> Arc<dyn SessionStore> {
        Arc::new(self.0.clone())
    }

    fn put<'a>(&'a self, id: &'a str, text: &'a [u8]) -> BoxFuture<'a, SessionRef> {
        self.0.put(id, text);
        Box::pin(ready(SessionRef::Id(id.into())))
    }
}

pinch_testing::store_suite! {
    table => Fresh::default(), gaps: [];
}
