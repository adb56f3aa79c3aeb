//! A full disk is reported as such, and the session stays readable.
//!
//! Simulated with a file size limit: writes fall short and then fail just as on a full disk. Without a `trap`, the system kills the process
//! in the middle of a line instead.
#![cfg(unix)]

use pinch_testing::child::TestChild;
use pinch_testing::logs::run;
use pinch_testing::logs::{append, open, user};

#[test]
fn a_full_disk_is_reported_and_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let mut child = TestChild::limited("fill", &path, "trap '' XFSZ;");
    let mut n_acknowledged = 0;
    let error = loop {
        let line = child.next_line().unwrap();
        match line.strip_prefix("full ") {
            Some(error) => break error.to_owned(),
            None => n_acknowledged += usize::from(line.starts_with("ack ")),
        }
    };
    assert!(error.starts_with(&format!("cannot write {}: ", path.display())), "{error}");
    assert!(error.contains("File too large"), "{error}");
    assert_eq!(child.wait_for("entries").unwrap(), n_acknowledged.to_string());
    assert!(child.ends_well());

    let mut log = run(open(&path)).unwrap();
    assert_eq!((log.entry_ids().len(), log.n_skipped()), (n_acknowledged, 0), "no half of a line is left");
    assert!(n_acknowledged > 5, "something was written first");
    let n_missing = log.awaited_calls().len();
    run(append(&mut log, [user("there is room again")]));
    let again = run(open(&path)).unwrap();
    assert_eq!((again.entry_ids().len(), again.n_skipped()), (n_acknowledged + n_missing + 1, 0));
}

#[test]
fn a_kill_in_the_middle_of_a_line_loses_only_that_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let mut child = TestChild::limited("fill", &path, "");
    let n_acknowledged = std::iter::from_fn(|| child.next_line()).filter(|line| line.starts_with("ack ")).count();
    assert!(!child.ends_well());
    let text = std::fs::read(&path).unwrap();
    assert_ne!(text.last(), Some(&b'\n'), "the line is torn");
    let mut log = run(open(&path)).unwrap();
    assert_eq!((log.entry_ids().len(), log.n_skipped()), (n_acknowledged, 1));
    let n_missing = log.awaited_calls().len();
    run(append(&mut log, [user("the next one")]));
    let again = run(open(&path)).unwrap();
    assert_eq!((again.entry_ids().len(), again.n_skipped()), (n_acknowledged + n_missing + 1, 1));
}

#[test]
fn a_copy_that_does_not_fit_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let long =
        format!("{{\"type\":\"session\",\"id\":\"s\"}}\n{{\"type\":\"x\",\"id\":\"{}\"}}\n", "x".repeat(200_000));
    std::fs::write(&path, long).unwrap();
    let mut child = TestChild::limited("import", &path, "trap '' XFSZ;");
    let folder = dir.path().join("sessions");
    assert_eq!(child.wait_for("full").unwrap(), format!("cannot write {}", folder.join("s.jsonl").display()));
    assert!(child.ends_well());
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0);
}

#[test]
fn a_session_that_does_not_fit_leaves_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = TestChild::limited("begin", &dir.path().join("s.jsonl"), "trap '' XFSZ;");
    assert!(child.wait_for("full").unwrap().contains("cannot write"));
    assert!(child.ends_well());
    assert_eq!(std::fs::read_dir(dir.path().join("sessions")).unwrap().count(), 0);
}
