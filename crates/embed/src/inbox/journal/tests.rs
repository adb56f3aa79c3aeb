//! Tests of the message journal.

use super::super::InboundMessage;
use super::super::known::MAX_AGE_MS;
use super::*;

const NOW: i64 = 1_700_000_000_000;

fn id(key: &str) -> MessageId {
    MessageId::of("s", &InboundMessage::new("s", "text").idempotency_key(key)).unwrap()
}

fn known(run_id: &str) -> Result<(), MessageRefusal> {
    Err(MessageRefusal::Known { run_id: Some(run_id.into()) })
}

fn check(dir: &Path, key: &str, now: i64) -> Result<(), MessageRefusal> {
    let journal = MessageJournal::new(dir);
    journal.refresh(now).unwrap();
    let known = journal.known();
    known.check(&id(key))
}

#[test]
fn messages_are_forgotten_after_a_day_despite_wrong_clocks() {
    let dir = tempfile::tempdir().unwrap();
    let journal = MessageJournal::new(dir.path());
    journal.append(&id("ahead"), "run-1", NOW + 10 * MAX_AGE_MS).unwrap().unwrap();
    let journal = MessageJournal::new(dir.path());
    journal.append(&id("late"), "run-2", NOW).unwrap().unwrap();
    assert_eq!(check(dir.path(), "late", NOW + MAX_AGE_MS), known("run-2"));
    assert_eq!(check(dir.path(), "late", NOW - MAX_AGE_MS), known("run-2"));
    assert_eq!(check(dir.path(), "ahead", NOW), known("run-1"));
    journal.refresh(NOW + MAX_AGE_MS + 1).unwrap();
    assert_eq!(journal.known().check(&id("late")), Ok(()));
    assert_eq!(journal.known().check(&id("ahead")), Ok(()));
}

#[test]
fn the_file_is_bounded_and_other_processes_notice_its_replacement() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, other) = (MessageJournal::new(dir.path()), MessageJournal::new(dir.path()));
    let mut longest = 0;
    for n in 0..MAX_LINES + 10 {
        journal.append(&id(&n.to_string()), &format!("run-{n}"), NOW).unwrap().unwrap();
        if n % 500 == 0 {
            other.refresh(NOW).unwrap();
            assert_eq!(other.known().check(&id(&n.to_string())), known(&format!("run-{n}")));
        }
        longest = longest.max(journal.position().lines);
    }
    assert_eq!(longest, MAX_LINES);
    let text = std::fs::read_to_string(dir.path().join(FILE)).unwrap();
    assert_eq!(text.lines().count(), journal.position().lines);
    assert!(text.lines().count() < MAX_KNOWN + 10);
    let last = MAX_LINES + 9;
    for n in [last, last - MAX_KNOWN + 1] {
        assert_eq!(check(dir.path(), &n.to_string(), NOW), known(&format!("run-{n}")));
    }
    assert_eq!(check(dir.path(), &(last - MAX_KNOWN).to_string(), NOW), Ok(()));
    assert_eq!(other.append(&id(&last.to_string()), "again", NOW).unwrap(), known(&format!("run-{last}")));
}

#[test]
fn concurrent_processes_accept_each_message_once() {
    let dir = tempfile::tempdir().unwrap();
    let n_accepted: usize = std::thread::scope(|scope| {
        let append_all = |process: usize| {
            let journal = MessageJournal::new(dir.path());
            let run = format!("run-{process}");
            (0..200).filter(|n| journal.append(&id(&n.to_string()), &run, NOW).unwrap().is_ok()).count()
        };
        let threads: Vec<_> = (0..4).map(|process| scope.spawn(move || append_all(process))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(n_accepted, 200);
    assert_eq!(std::fs::read_to_string(dir.path().join(FILE)).unwrap().lines().count(), 200);
}

#[test]
fn an_oversized_file_is_read_from_near_its_end_and_shortened() {
    let dir = tempfile::tempdir().unwrap();
    MessageJournal::new(dir.path()).append(&id("old"), "run-1", NOW).unwrap().unwrap();
    let path = dir.path().join(FILE);
    let line = std::fs::read(&path).unwrap();
    std::fs::write(&path, [vec![b'x'; 2 * MAX_BYTES as usize], b"\n".to_vec(), line].concat()).unwrap();
    let journal = MessageJournal::new(dir.path());
    journal.append(&id("new"), "run-2", NOW).unwrap().unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 2);
    assert_eq!(check(dir.path(), "old", NOW), known("run-1"));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    assert_eq!(append_whole(&full, 0, b"text").unwrap_err().kind(), io::ErrorKind::StorageFull);
}

#[test]
fn hashes_round_trip_through_text_and_other_texts_are_rejected() {
    let hash = id("m").key;
    assert_eq!(from_hex(&to_hex(&hash)), Some(hash));
    for text in ["", "00", &"é".repeat(32), &"+1".repeat(32), &"0".repeat(66)] {
        assert_eq!(from_hex(text), None, "{text}");
    }
}
