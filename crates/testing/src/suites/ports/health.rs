//! Conformance suite for [`HealthStore`].

use std::sync::Arc;

use futures::future::join_all;
use pinch_ports::{HealthRecords, HealthStore};
use serde_json::{Map, Value, json};

use super::{Scenario, ensure, equal, run, text};

/// Opens a store, once for each process that uses it.
type OpenHealthStore<'a> = &'a (dyn Fn() -> Arc<dyn HealthStore> + Sync);

/// Runs all scenarios. `begin` creates an empty store and returns how to open it.
///
/// # Panics
/// Panics with every scenario that fails.
pub fn check<O: Fn() -> Arc<dyn HealthStore> + Sync>(begin: impl Fn() -> O) {
    let (empty, shared, kept, parallel) = (begin(), begin(), begin(), begin());
    let scenarios: Vec<Scenario<'_>> = vec![
        ("an empty store has no records", Box::pin(is_empty(&empty))),
        ("what one process writes, another reads", Box::pin(is_shared(&shared))),
        ("unknown members and removals survive", Box::pin(keeps_members(&kept))),
        ("parallel changes lose nothing", Box::pin(loses_nothing(&parallel))),
    ];
    run(scenarios);
}

fn count(records: &HealthRecords, id: &str) -> u64 {
    records.profiles.get(id).and_then(|entry| entry.get("errorCount")).and_then(Value::as_u64).unwrap_or(0)
}

fn increment(records: &mut HealthRecords, id: &str) {
    let next = count(records, id) + 1;
    records.profiles.entry(id.to_owned()).or_default().insert("errorCount".to_owned(), next.into());
}

async fn is_empty(open: OpenHealthStore<'_>) -> Result<(), String> {
    equal("the records", open().load().await.map_err(text)?, HealthRecords::default())
}

async fn is_shared(open: OpenHealthStore<'_>) -> Result<(), String> {
    let (one, two) = (open(), open());
    let written = one.update(Arc::new(|records| increment(records, "a"))).await.map_err(text)?;
    equal("what the update returns", count(&written, "a"), 1)?;
    equal("what the other reads", two.load().await.map_err(text)?, written)?;
    let written = two.update(Arc::new(|records| increment(records, "a"))).await.map_err(text)?;
    equal("after a change of the other", count(&written, "a"), 2)?;
    equal("what the first reads then", count(&one.load().await.map_err(text)?, "a"), 2)
}

async fn keeps_members(open: OpenHealthStore<'_>) -> Result<(), String> {
    let store = open();
    let entry: Map<String, Value> =
        json!({"errorCount": 1, "future": {"deep": [1, 2.5, null]}}).as_object().cloned().unwrap_or_default();
    let expected = entry.clone();
    let change = move |records: &mut HealthRecords| {
        records.profiles.insert("a".to_owned(), entry.clone());
        records.profiles.insert("b".to_owned(), Map::new());
        records.last_good.insert("openai".to_owned(), "a".to_owned());
    };
    store.update(Arc::new(change)).await.map_err(text)?;
    let remove = |records: &mut HealthRecords| drop(records.profiles.remove("b"));
    store.update(Arc::new(remove)).await.map_err(text)?;
    let records = open().load().await.map_err(text)?;
    equal("the entry", records.profiles.get("a"), Some(&expected))?;
    ensure(!records.profiles.contains_key("b"), "a removed entry is still there")?;
    equal("the last good profile", records.last_good.get("openai").map(String::as_str), Some("a"))
}

async fn loses_nothing(open: OpenHealthStore<'_>) -> Result<(), String> {
    let writers = (0..8).map(|n| {
        let store = open();
        async move {
            for _ in 0..5 {
                let id = format!("p{n}");
                let change = move |records: &mut HealthRecords| {
                    increment(records, &id);
                    increment(records, "all");
                };
                store.update(Arc::new(change)).await.map_err(text)?;
            }
            Ok::<(), String>(())
        }
    });
    join_all(writers).await.into_iter().collect::<Result<(), String>>()?;
    let records = open().load().await.map_err(text)?;
    equal("the changes of all", count(&records, "all"), 40)?;
    (0..8).try_for_each(|n| equal("the changes of one", count(&records, &format!("p{n}")), 5))
}
