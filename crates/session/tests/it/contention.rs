//! Several processes writing to one session at the same time.

use std::collections::HashMap;

use pinch_session::entry::EntryId;

use crate::child::TALK;
use pinch_testing::child::TestChild;
use pinch_testing::logs::run;
use pinch_testing::logs::{append, create, file, open, user};

const PROCESSES: usize = 3;

#[test]
fn parallel_processes_never_interleave_lines_or_fork_silently() {
    let dir = tempfile::tempdir().unwrap();
    let path = run(async {
        let mut log = create(dir.path()).await;
        append(&mut log, [user("begin")]).await;
        file(&log)
    });
    let mut children: Vec<TestChild> = (0..PROCESSES).map(|_| TestChild::start("talk", &path)).collect();
    for child in &mut children {
        child.wait_for("open").unwrap();
    }
    for child in &mut children {
        child.resume();
    }
    let mut acknowledged = Vec::new();
    let mut n_told = 0;
    for child in &mut children {
        while let Some(line) = child.next_line() {
            acknowledged.extend(line.strip_prefix("ack ").map(EntryId::new));
            if let Some(told) = line.strip_prefix("told ") {
                let (told, foreign) = told.split_once(" of ").unwrap();
                assert_eq!(told, foreign, "each foreign entry is told once");
                n_told += told.parse::<usize>().unwrap();
            }
        }
        assert!(child.ends_well());
    }
    assert!(n_told > 0, "they never met");

    let log = run(open(&path)).unwrap();
    let n_entries = 1 + PROCESSES * TALK;
    assert_eq!((log.entry_ids().len(), log.n_skipped()), (n_entries, 0), "every line is whole");
    let places: HashMap<&EntryId, usize> = log.entry_ids().enumerate().map(|(at, id)| (id, at)).collect();
    assert_eq!(places.len(), n_entries, "no id stands twice");
    assert!(acknowledged.iter().all(|id| places.contains_key(id)));
    assert_eq!(acknowledged.len(), PROCESSES * TALK);
    // Every process continued from the end, so there is one branch, in file order.
    let branch: Vec<&EntryId> = log.active_branch().ids().collect();
    assert_eq!(branch, log.entry_ids().collect::<Vec<_>>());
}
