//! State shared by engines on several hosts: profile health and the sessions of keys, in tables like those of a database.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::{BoxFuture, ready};
use pinch_embed::Engine;
use pinch_embed::ports::{
    EntryChange, Fence, HealthChange, HealthRecords, HealthStore, PortError, SessionEntry, SessionIndex, SessionKey,
};

/// The tables. Cloning shares them.
#[derive(Clone, Debug, Default)]
pub struct SharedTables(Arc<Mutex<SharedRows>>);

#[derive(Debug, Default)]
struct SharedRows {
    health: HealthRecords,
    sessions: BTreeMap<String, SessionEntry>,
}

impl SharedTables {
    fn with<T>(&self, work: impl FnOnce(&mut SharedRows) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// An engine of one host that uses these tables.
    pub fn engine(&self, state_dir: &std::path::Path) -> Engine {
        let tables = Arc::new(self.clone());
        Engine::builder(state_dir).health_store(tables.clone()).session_index(tables).build()
    }
}

impl HealthStore for SharedTables {
    fn load(&self) -> BoxFuture<'_, Result<HealthRecords, PortError>> {
        Box::pin(ready(Ok(self.with(|rows| rows.health.clone()))))
    }

    fn update(&self, change: HealthChange) -> BoxFuture<'_, Result<HealthRecords, PortError>> {
        let written = self.with(|rows| {
            change(&mut rows.health);
            rows.health.clone()
        });
        Box::pin(ready(Ok(written)))
    }
}

impl SessionIndex for SharedTables {
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<SessionEntry>, PortError>> {
        Box::pin(ready(Ok(self.with(|rows| rows.sessions.get(key).cloned()))))
    }

    fn list<'a>(&'a self, agent: &'a str) -> BoxFuture<'a, Result<BTreeMap<SessionKey, SessionEntry>, PortError>> {
        let start = format!("agent:{agent}:");
        let of_agent = |rows: &mut SharedRows| {
            let entries = rows.sessions.iter().filter(|(key, _)| key.starts_with(&start));
            entries.map(|(key, entry)| (SessionKey::from(key), entry.clone())).collect()
        };
        Box::pin(ready(Ok(self.with(of_agent))))
    }

    fn update<'a>(
        &'a self,
        key: &'a str,
        fence: Option<Arc<dyn Fence>>,
        change: EntryChange,
    ) -> BoxFuture<'a, Result<Option<SessionEntry>, PortError>> {
        let written = self.with(|rows| {
            PortError::check(fence.as_deref())?;
            let after = change(rows.sessions.get(key).cloned());
            match &after {
                Some(entry) => drop(rows.sessions.insert(key.to_owned(), entry.clone())),
                None => drop(rows.sessions.remove(key)),
            }
            Ok(after)
        });
        Box::pin(ready(written))
    }
}
