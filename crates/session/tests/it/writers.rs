//! Files that others write as well, and damaged files.

use std::fs::File;
use std::io::Write as _;
use std::sync::Arc;

use pinch_session::entry::EntryId;
use pinch_session::session_log::{NewSession, SessionLog};
use pinch_session::store::{JsonlStore, SessionStore, StoreError};

use pinch_testing::logs::{answer, append, create, file, host, open, shown, user};

fn write(path: &std::path::Path, text: &str) {
    File::options().append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

#[tokio::test]
async fn foreign_entries_after_our_leaf_are_followed() {
    let dir = tempfile::tempdir().unwrap();
    let mut ours = create(dir.path()).await;
    append(&mut ours, [user("q"), answer("a", &[])]).await;
    let mut theirs = open(&file(&ours)).await.unwrap();
    append(&mut theirs, [user("theirs")]).await;
    append(&mut ours, [user("ours")]).await;
    assert_eq!(shown(&ours), ["user q", "assistant a", "user theirs", "user ours"]);
    let conflict = ours.take_conflict().unwrap();
    assert_eq!((conflict.n_entries, conflict.followed), (1, true));
    assert_eq!(ours.take_conflict(), None);
    assert_eq!(shown(&open(&file(&ours)).await.unwrap()), shown(&ours));
}

#[tokio::test]
async fn foreign_entries_elsewhere_leave_our_leaf_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    let mut ours = create(dir.path()).await;
    let ids = append(&mut ours, [user("q"), answer("a", &[])]).await;
    let mut theirs = open(&file(&ours)).await.unwrap();
    theirs.move_to(&ids[0]).unwrap();
    append(&mut theirs, [user("theirs")]).await;
    append(&mut ours, [user("ours")]).await;
    assert_eq!(shown(&ours), ["user q", "assistant a", "user ours"]);
    assert!(!ours.take_conflict().unwrap().followed);
    assert_eq!(ours.entry_ids().len(), 4);
}

#[tokio::test]
async fn two_writers_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut a = create(dir.path()).await;
    append(&mut a, [user("q")]).await;
    let path = file(&a);
    let mut b = open(&path).await.unwrap();
    let (x, y) = tokio::join!(
        async {
            for n in 0..50 {
                append(&mut a, [user(&format!("a{n}"))]).await;
                tokio::task::yield_now().await;
            }
        },
        async {
            for n in 0..50 {
                append(&mut b, [user(&format!("b{n}"))]).await;
                tokio::task::yield_now().await;
            }
        }
    );
    let ((), ()) = (x, y);
    let all = open(&path).await.unwrap();
    assert_eq!((all.entry_ids().len(), all.n_skipped()), (101, 0));
    assert_eq!(all.tree().roots.len(), 1, "every entry has its parent");
}

#[tokio::test]
async fn a_truncated_line_loses_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = create(dir.path()).await;
    append(&mut log, [user("q")]).await;
    let path = file(&log);
    drop(log);
    write(&path, "{\"type\":\"message\",\"id\":\"to");
    let mut log = open(&path).await.unwrap();
    append(&mut log, [user("next")]).await;
    let log = open(&path).await.unwrap();
    assert_eq!((shown(&log), log.n_skipped()), (vec!["user q".to_owned(), "user next".to_owned()], 1));
}

#[tokio::test]
async fn a_file_that_is_not_a_session_is_rejected_and_untouched() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("notes.jsonl");
    for text in ["# notes\n", "{\"type\":\"message\",\"id\":\"a\"}\n", "{\"type\":\"session\",\"id\":7}\n"] {
        std::fs::write(&path, text).unwrap();
        let error = open(&path).await.unwrap_err();
        assert!(matches!(error, StoreError::NotASession { .. }), "{error}");
        assert!(error.to_string().starts_with("Session file is not a valid pi session: "));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
}

#[tokio::test]
async fn an_entry_that_could_not_be_written_does_not_exist() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = create(dir.path()).await;
    let ids = append(&mut log, [user("q"), answer("a", &[])]).await;
    std::fs::remove_file(file(&log)).unwrap();
    assert!(log.append(user("lost")).await.is_err());
    assert_eq!(log.leaf_id(), Some(&ids[1]));
    assert_eq!(log.entry_ids().len(), 2);
    assert_eq!(shown(&log), ["user q", "assistant a"]);
}

#[tokio::test]
async fn a_new_session_never_takes_over_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = create(dir.path()).await;
    std::fs::write(file(&log), "somebody else's\n").unwrap();
    assert!(log.append(user("q")).await.is_err());
    assert_eq!(std::fs::read_to_string(file(&log)).unwrap(), "somebody else's\n");
    assert_eq!(log.leaf_id(), None);
}

#[tokio::test]
async fn the_first_prompt_creates_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = create(dir.path()).await;
    log.append_name("  two\nlines ").await.unwrap();
    assert!(!file(&log).exists());
    append(&mut log, [user("q")]).await;
    let lines = std::fs::read_to_string(file(&log)).unwrap();
    assert_eq!(lines.lines().count(), 3);
    assert_eq!(open(&file(&log)).await.unwrap().name().as_deref(), Some("two lines"));
}

#[tokio::test]
async fn version_1_is_migrated_once_and_backed_up() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("old.jsonl");
    let old = "{\"type\":\"session\",\"id\":\"s\",\"timestamp\":\"t\",\"branchedFrom\":\"x\"}\n{\"type\":\"message\",\"timestamp\":\"t\",\"message\":{\"role\":\"user\",\"content\":\"q\",\"timestamp\":1}}\n";
    std::fs::write(&path, old).unwrap();
    let log = open(&path).await.unwrap();
    assert_eq!(shown(&log), ["user q"]);
    let new = std::fs::read_to_string(&path).unwrap();
    assert!(new.contains("\"version\":3") && new.contains("\"branchedFrom\":\"x\""));
    assert_eq!(std::fs::read_to_string(dir.path().join("old.jsonl.v1.bak")).unwrap(), old);
    let mut again = open(&path).await.unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), new);
    append(&mut again, [user("next")]).await;
    assert_eq!(shown(&open(&path).await.unwrap()), ["user q", "user next"]);
}

#[tokio::test]
async fn a_branched_session_continues_across_labels() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = create(dir.path()).await;
    let ids = append(&mut log, [user("q"), answer("a", &[])]).await;
    log.append_label(&ids[0], Some("mark")).await.unwrap();
    let next = append(&mut log, [user("next")]).await;
    let parent = file(&log);
    log.create_branched_session(&next[0]).await.unwrap();
    assert_ne!(file(&log), parent);
    assert_eq!(shown(&log), ["user q", "assistant a", "user next"]);
    let copy = open(&file(&log)).await.unwrap();
    assert_eq!(shown(&copy), shown(&log));
    assert_eq!(copy.label(&ids[0]).map(|label| label.text.as_str()), Some("mark"));
    assert_eq!(copy.header().parent_session.as_deref(), parent.to_str());
    assert!(matches!(log.create_branched_session(&EntryId::new("none")).await, Err(StoreError::NoEntry { .. })));
}

#[tokio::test]
async fn the_newest_session_of_the_directory_is_continued() {
    let dir = tempfile::tempdir().unwrap();
    let by_cwd: Arc<dyn SessionStore> = Arc::new(JsonlStore::by_cwd(dir.path()));
    let host = host();
    // Both share a directory.
    for cwd in ["/a/b", "/a-b"] {
        let mut log = SessionLog::create(&host, by_cwd.clone(), NewSession::in_directory(cwd)).await.unwrap();
        append(&mut log, [user(cwd)]).await;
    }
    for cwd in ["/a/b", "/a-b"] {
        let log = SessionLog::continue_recent(&host, by_cwd.clone(), cwd).await.unwrap();
        assert_eq!(shown(&log), [format!("user {cwd}")]);
    }
}
