//! Processes killed while they write: acknowledged entries are never lost, and the next process continues.
//!
//! `PINCH_TEST_KILLS` sets the number of kills; `cargo xtask test --full` sets it to a thousand.

use std::collections::HashSet;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::child::DURABILITY;
use crate::properties::is_paired;
use pinch_testing::child::TestChild;
use pinch_testing::logs::run;
use pinch_testing::logs::{append, create, file, open, user};

/// Default interval between kills, in seconds.
const KILLS: u64 = 60;
/// Kills per session before starting the next one.
const KILLS_A_SESSION: u64 = 20;

fn kills() -> u64 {
    std::env::var("PINCH_TEST_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(KILLS)
}

/// Reads the entries a child acknowledged until it was killed.
fn acknowledged(child: &mut TestChild) -> Vec<String> {
    std::iter::from_fn(|| child.next_line()).filter_map(|line| line.strip_prefix("ack ").map(str::to_owned)).collect()
}

/// Checks the session that a killed process left. Returns the number of entries.
async fn check(path: &Path, acknowledged: &[String], n_before: usize, heals: bool) -> usize {
    if !path.exists() {
        assert_eq!(acknowledged.len(), 0, "acknowledged, and not even a file");
        return 0;
    }
    let mut log = open(path).await.unwrap();
    let ids: HashSet<String> = log.entry_ids().map(ToString::to_string).collect();
    assert_eq!(ids.len(), log.entry_ids().len(), "no id stands twice");
    for id in acknowledged {
        assert!(ids.contains(id), "{id} was acknowledged and is lost");
    }
    // One more entry may have been written without being acknowledged; before the first one, up to two results of the last run.
    let n_new = ids.len() - n_before;
    assert!((acknowledged.len()..=acknowledged.len() + 3).contains(&n_new), "{n_new} for {}", acknowledged.len());
    assert_eq!(log.tree().roots.len(), usize::from(!ids.is_empty()), "every entry has its parent");
    if heals {
        log.heal().await.unwrap();
        assert_eq!(log.awaited_calls().len(), 0);
        let again = open(path).await.unwrap();
        assert_eq!((again.leaf_id(), again.awaited_calls().len()), (log.leaf_id(), 0));
    }
    let path: Vec<_> = log.active_branch().entries().collect();
    assert_eq!(is_paired(&path), Ok(()));
    log.entry_ids().len()
}

#[test]
fn acknowledged_entries_survive_a_kill_at_any_moment() {
    let dir = tempfile::tempdir().unwrap();
    let (mut n_entries, mut n_acknowledged) = (0, 0);
    for kill in 0..kills() {
        let path = dir.path().join(format!("{}.jsonl", kill / KILLS_A_SESSION));
        if kill % KILLS_A_SESSION == 0 {
            n_entries = 0;
        }
        let acknowledged = match kill % 5 {
            // Exactly between two of its steps.
            0 => {
                let mut child = TestChild::stepped("append", &path);
                let mut seen = Vec::new();
                for _ in 0..1 + kill * 7 % 31 {
                    let line = child.next_line().expect("it goes on until it is killed");
                    seen.extend(line.strip_prefix("ack ").map(str::to_owned));
                    child.resume();
                }
                let line = child.next_line().unwrap();
                seen.extend(line.strip_prefix("ack ").map(str::to_owned));
                child.kill();
                seen.extend(acknowledged(&mut child));
                seen
            }
            // At a random moment.
            n => {
                let mut child = if n == 1 {
                    TestChild::with_env("append", &path, DURABILITY, "entry")
                } else {
                    TestChild::start("append", &path)
                };
                child.wait_for("open").unwrap();
                std::thread::sleep(Duration::from_micros(kill * 7919 % 9000));
                child.kill();
                acknowledged(&mut child)
            }
        };
        n_acknowledged += acknowledged.len();
        n_entries = run(check(&path, &acknowledged, n_entries, kill % 2 == 0));
    }
    assert!(n_acknowledged as u64 > kills(), "only {n_acknowledged} appends in all: nothing was tried");
}

#[test]
fn a_killed_lock_holder_does_not_block_others() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = run(async {
        let mut log = create(dir.path()).await;
        append(&mut log, [user("q")]).await;
        log
    });
    let mut holder = TestChild::start("hold", &file(&log));
    holder.wait_for("held").unwrap();
    let mine = std::fs::File::open(file(&log)).unwrap();
    assert!(mine.try_lock().is_err(), "it is held");
    holder.kill();
    let began = Instant::now();
    run(append(&mut log, [user("next")]));
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
}
