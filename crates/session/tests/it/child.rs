//! The work of the child processes in these tests.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use pinch_session::entry::EntryBody;
use pinch_session::session_log::{NewSession, SessionLog};
use pinch_session::store::{Durability, JsonlStore, SessionRef};
use pinch_stdx::host::Host;
use pinch_testing::child::{report, task, wait_for_parent};
use pinch_testing::logs::{answer, result, run, user};

/// Environment variable with the durability that a child uses.
pub(crate) const DURABILITY: &str = "PINCH_TEST_DURABILITY";

/// Appends per child in `talk`.
pub(crate) const TALK: usize = 400;

async fn open(file: &Path) -> SessionLog {
    let durability = std::env::var(DURABILITY).ok().and_then(|word| Durability::parse(&word)).unwrap_or_default();
    let store = JsonlStore::flat(file.parent().unwrap()).durability(durability);
    SessionLog::open(&Host::system(), Arc::new(store), &SessionRef::Path(file.to_owned()), "/w").await.unwrap()
}

/// Not a test: the entry point of child processes. Does nothing in the parent's test run.
#[test]
fn child() {
    let Some((task, file)) = task() else { return };
    run(async {
        match &*task {
            "append" => append(&file).await,
            "talk" => talk(&file).await,
            "fill" => fill(&file).await,
            "hold" => hold(&file),
            "import" => import(&file),
            "begin" => begin(&file).await,
            other => panic!("no such task: {other}"),
        }
    });
}

/// Returns one step of a conversation with tools.
fn body(step: usize) -> EntryBody {
    let text = format!("step {step} {}", "x".repeat(step * 37 % 5000));
    match step % 7 {
        0 => user(&text),
        1 => answer(&text, &["c1", "c2"]),
        2 => result("c1"),
        3 => result("c2"),
        4 => EntryBody::ThinkingLevelChange { thinking_level: text },
        5 => answer(&text, &[]),
        _ => EntryBody::Custom { custom_type: text, data: None },
    }
}

/// Appends forever, acknowledging each entry.
async fn append(file: &Path) {
    let mut log = open(file).await;
    report("open");
    for step in 0.. {
        if !report("next") {
            return;
        }
        let id = log.append(body(step)).await.unwrap();
        // Entries before the first prompt wait in memory; this starts with one, so everything is in the file.
        if !report(&format!("ack {id}")) {
            return;
        }
    }
}

/// Keeps appending to a session that others write as well and prints the conflicts it sees.
async fn talk(file: &Path) {
    let mut log = open(file).await;
    let n_known = log.entry_ids().len();
    report("open");
    wait_for_parent();
    let mut n_told = 0;
    for turn in 0..TALK {
        let long = if turn % 10 == 0 { 100_000 } else { 10 };
        let id = log.append(user(&format!("{} {turn} {}", std::process::id(), "y".repeat(long)))).await.unwrap();
        while let Some(conflict) = log.take_conflict() {
            assert!(conflict.followed);
            n_told += conflict.n_entries;
        }
        report(&format!("ack {id}"));
    }
    report(&format!("told {n_told} of {}", log.entry_ids().len() - TALK - n_known));
}

/// Appends until the disk is full, twice, and prints the state of the log.
async fn fill(file: &Path) {
    let mut log = open(file).await;
    for step in 0.. {
        match log.append(body(step)).await {
            Ok(id) => report(&format!("ack {id}")),
            Err(error) => {
                let before = (log.leaf_id().cloned(), log.entry_ids().len(), log.awaited_calls().len());
                let source = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
                report(&format!("full {error}: {source}"));
                assert!(log.append(body(step)).await.is_err(), "there is still no room");
                let after = (log.leaf_id().cloned(), log.entry_ids().len(), log.awaited_calls().len());
                assert_eq!(after, before, "an entry that was not written does not exist");
                report(&format!("entries {}", after.1));
                return;
            }
        };
    }
}

/// Holds the lock of the file.
fn hold(file: &Path) {
    let held = File::open(file).unwrap();
    held.lock().unwrap();
    report("held");
    wait_for_parent();
}

/// Imports the file into a directory next to it.
fn import(file: &Path) {
    let store = JsonlStore::flat(file.parent().unwrap().join("sessions"));
    let error = store.import(file, "/w").unwrap_err();
    report(&format!("full {error}"));
}

/// Starts a session next to the file whose first message does not fit on the disk.
async fn begin(file: &Path) {
    let store = Arc::new(JsonlStore::flat(file.parent().unwrap().join("sessions")));
    let mut log = SessionLog::create(&Host::system(), store, NewSession::in_directory("/w")).await.unwrap();
    let error = log.append(user(&"x".repeat(100_000))).await.unwrap_err();
    report(&format!("full {error}"));
}
