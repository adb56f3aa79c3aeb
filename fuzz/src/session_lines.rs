//! Session files: any file opens or is refused unchanged, whatever its entries say about each other, and stays readable.
//!
//! Options: none; the content is the file. A first line without a session header gets one, so that most inputs are sessions.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use pinch_session::entry::EntryId;
use pinch_session::llm::message::Message;
use pinch_session::session_log::{SessionLog, convert_to_llm};
use pinch_session::store::{JsonlStore, SessionRef, StoreError};
use pinch_stdx::host::Host;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::input::options;

const HEADER: &str =
    r#"{"type":"session","version":3,"id":"s1","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/work/place"}"#;

/// A directory and a runtime that all inputs of a thread share.
struct SessionDir {
    dir: TempDir,
    runtime: Runtime,
    host: Host,
}

thread_local! {
    static PLACE: RefCell<Option<SessionDir>> = const { RefCell::new(None) };
}

/// Panics if an input breaks a law.
pub fn check(data: &[u8]) {
    PLACE.with_borrow_mut(|place| {
        let place = place.get_or_insert_with(|| SessionDir {
            dir: tempfile::tempdir().expect("a temporary directory"),
            runtime: tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime"),
            host: Host::builder().clock(1_800_000_000_000, 1_000).seed(1).build(),
        });
        place.check(data);
    });
}

impl SessionDir {
    fn check(&self, data: &[u8]) {
        let ([flags], content) = options(data);
        let file = self.dir.path().join("s1.jsonl");
        let mut text = if flags & 1 == 1 { format!("{HEADER}\n").into_bytes() } else { Vec::new() };
        text.extend_from_slice(content);
        std::fs::write(&file, &text).expect("the file can be written");
        let mut log = match self.open(&file) {
            Ok(log) => log,
            Err(_) => {
                assert_eq!(std::fs::read(&file).expect("the file is still there"), text, "a refused file was changed");
                return;
            }
        };
        let n_lines = text.split(|byte| *byte == b'\n').count();
        walk(&log, n_lines);
        let before = ids(&log);
        assert_eq!(ids(&self.open(&file).expect("an opened file opens again")), before);
        // Any session can be continued, and keeps what it had.
        let added =
            self.runtime.block_on(log.append_message(Message::user("more", 1))).expect("a message can be appended");
        let again = self.open(&file).expect("a continued file opens again");
        walk(&again, n_lines + 2);
        let after = ids(&again);
        assert_eq!(after[..before.len()], before, "an entry was lost");
        assert_eq!(after.last(), Some(&added));
        assert_eq!(again.leaf_id(), Some(&added));
        assert_eq!(again.context().messages.len(), log.context().messages.len());
        self.check_export(&again);
    }

    /// An exported branch opens with the same context.
    fn check_export(&self, log: &SessionLog) {
        let Ok(exported) = log.export_jsonl() else { return };
        let copy = self.dir.path().join("copy.jsonl");
        std::fs::write(&copy, exported).expect("the copy can be written");
        let copy = self.open(&copy).expect("an exported session opens");
        assert_eq!(convert_to_llm(&copy.context().messages), convert_to_llm(&log.context().messages));
    }

    fn open(&self, file: &Path) -> Result<SessionLog, StoreError> {
        let store = Arc::new(JsonlStore::flat(self.dir.path()));
        let at = SessionRef::Path(file.to_owned());
        self.runtime.block_on(SessionLog::open(&self.host, store, &at, "/work/place"))
    }
}

fn ids(log: &SessionLog) -> Vec<EntryId> {
    log.entry_ids().cloned().collect()
}

/// Reads everything that a session offers. `n_lines` limits how much there can be of it.
fn walk(log: &SessionLog, n_lines: usize) {
    let ids: BTreeSet<EntryId> = log.entry_ids().cloned().collect();
    assert!(log.entry_ids().len() <= n_lines, "more entries than lines");
    assert_eq!(log.entries().count(), log.entry_ids().len());
    _ = (log.problems(), log.name(), log.labels().count(), log.awaited_calls());
    assert!(log.n_skipped() <= n_lines);
    let mut n_children = 0;
    for id in &ids {
        assert!(log.entry(id).is_some());
        let branch = log.branch(id).expect("an entry has a branch");
        assert!(branch.len() <= n_lines, "a branch is longer than the session");
        n_children += log.children(id).len();
    }
    assert!(n_children <= n_lines, "an entry has two parents");
    let active: Vec<&EntryId> = log.active_branch().ids().collect();
    assert_eq!(active.iter().collect::<BTreeSet<_>>().len(), active.len(), "an entry is twice on the branch");
    assert_eq!(active.last().copied(), log.leaf_id());
    let tree = format!("{:?}", log.tree());
    assert!(tree.len() <= 4_096 * n_lines + 64 * log.entries().map(|entry| format!("{entry:?}").len()).sum::<usize>());
    let context = log.context();
    assert!(context.messages.len() <= 2 * n_lines + 2, "more messages than entries");
    _ = convert_to_llm(&context.messages);
}
