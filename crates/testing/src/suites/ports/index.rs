//! Conformance suite for [`SessionIndex`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::join_all;
use pinch_ports::{EntryChange, Fence, PortError, SessionEntry, SessionIndex};
use serde_json::json;

use super::{Scenario, ensure, equal, run, text};

/// Opens an index, once for each process that uses it.
type OpenIndexStore<'a> = &'a (dyn Fn() -> Arc<dyn SessionIndex> + Sync);

const KEY: &str = "agent:main:telegram:direct:42";

/// Runs all scenarios. `begin` creates an empty index and returns how to open it.
///
/// # Panics
/// Panics with every scenario that fails.
pub fn check<O: Fn() -> Arc<dyn SessionIndex> + Sync>(begin: impl Fn() -> O) {
    let (shared, kept, removed, agents, fenced, parallel) = (begin(), begin(), begin(), begin(), begin(), begin());
    let scenarios: Vec<Scenario<'_>> = vec![
        ("what one process writes, another reads", Box::pin(is_shared(&shared))),
        ("all members survive, unknown ones too", Box::pin(keeps_members(&kept))),
        ("an entry can be removed", Box::pin(removes(&removed))),
        ("each agent has its own keys", Box::pin(lists(&agents))),
        ("a stale lease changes nothing", Box::pin(is_fenced(&fenced))),
        ("parallel changes lose nothing", Box::pin(loses_nothing(&parallel))),
    ];
    run(scenarios);
}

fn put(entry: SessionEntry) -> EntryChange {
    Arc::new(move |_| Some(entry.clone()))
}

async fn is_shared(open: OpenIndexStore<'_>) -> Result<(), String> {
    let (one, two) = (open(), open());
    equal("an unknown key", one.get(KEY).await.map_err(text)?, None)?;
    let entry = SessionEntry::new("s1", 1_000);
    let written = one.update(KEY, None, put(entry.clone())).await.map_err(text)?;
    equal("what the update returns", written, Some(entry.clone()))?;
    equal("what the other reads", two.get(KEY).await.map_err(text)?, Some(entry))?;
    two.update(KEY, None, put(SessionEntry::new("s2", 2_000))).await.map_err(text)?;
    let seen = one.get(KEY).await.map_err(text)?;
    equal("what the first reads then", seen.map(|entry| entry.session_id), Some("s2".into()))
}

async fn keeps_members(open: OpenIndexStore<'_>) -> Result<(), String> {
    let entry: SessionEntry = serde_json::from_value(json!({
        "sessionId": "s1", "updatedAt": 5, "modelOverride": "m", "authProfileOverrideSource": "user",
        "deliveryContext": {"channel": "telegram", "to": "42", "threadId": 7, "new": true},
        "future": {"deep": [1, 2.5, null]},
    }))
    .map_err(text)?;
    open().update(KEY, None, put(entry.clone())).await.map_err(text)?;
    equal("the entry", open().get(KEY).await.map_err(text)?, Some(entry))
}

async fn removes(open: OpenIndexStore<'_>) -> Result<(), String> {
    let index = open();
    index.update(KEY, None, put(SessionEntry::new("s1", 1))).await.map_err(text)?;
    equal("what the update returns", index.update(KEY, None, Arc::new(|_| None)).await.map_err(text)?, None)?;
    equal("the entry", open().get(KEY).await.map_err(text)?, None)
}

async fn lists(open: OpenIndexStore<'_>) -> Result<(), String> {
    let index = open();
    for key in ["agent:main:main", KEY, "agent:ops:main"] {
        index.update(key, None, put(SessionEntry::new(key, 1))).await.map_err(text)?;
    }
    let keys = |agent| {
        let index = open();
        async move { index.list(agent).await.map(|entries| entries.into_keys().collect::<Vec<_>>()).map_err(text) }
    };
    equal("the keys of main", keys("main").await?, vec!["agent:main:main".into(), KEY.into()])?;
    equal("the keys of ops", keys("ops").await?, vec!["agent:ops:main".into()])?;
    equal("the keys of another", keys("other").await?, Vec::new())
}

/// A lease that can be lost.
#[derive(Debug)]
struct TestFence(AtomicBool);

impl Fence for TestFence {
    fn epoch(&self) -> u64 {
        7
    }

    fn is_current(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

async fn is_fenced(open: OpenIndexStore<'_>) -> Result<(), String> {
    let index = open();
    let fence = Arc::new(TestFence(AtomicBool::new(true)));
    let before = SessionEntry::new("s1", 1);
    index.update(KEY, Some(fence.clone()), put(before.clone())).await.map_err(text)?;
    fence.0.store(false, Ordering::SeqCst);
    let refused = index.update(KEY, Some(fence), put(SessionEntry::new("s2", 2))).await;
    ensure(matches!(refused, Err(PortError::Fenced { epoch: 7 })), "a stale lease is accepted")?;
    equal("the entry", open().get(KEY).await.map_err(text)?, Some(before))
}

async fn loses_nothing(open: OpenIndexStore<'_>) -> Result<(), String> {
    let increment: EntryChange = Arc::new(|entry| {
        let mut entry = entry.unwrap_or_else(|| SessionEntry::new("s1", 1));
        entry.input_tokens = Some(entry.input_tokens.unwrap_or(0) + 1);
        Some(entry)
    });
    let writers = (0..8).map(|n| {
        let (index, increment) = (open(), Arc::clone(&increment));
        async move {
            let own = format!("agent:main:direct:{n}");
            for _ in 0..5 {
                index.update(KEY, None, Arc::clone(&increment)).await.map_err(text)?;
                index.update(&own, None, Arc::clone(&increment)).await.map_err(text)?;
            }
            Ok::<(), String>(())
        }
    });
    join_all(writers).await.into_iter().collect::<Result<(), String>>()?;
    let entries = open().list("main").await.map_err(text)?;
    let counts: Vec<Option<u64>> = entries.values().map(|entry| entry.input_tokens).collect();
    let mut expected = vec![Some(5); 8];
    expected.push(Some(40));
    equal("the counts", counts, expected)
}
