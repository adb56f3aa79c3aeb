//! Sessions that are opened again soon after they were closed.

use std::fs;
use std::path::Path;
use std::time::Duration;

use pinch_session::session_log::{NewSession, RecentSessions, SessionLog};
use pinch_session::store::SessionRef;
use pinch_testing::logs::{append, change_unseen, create, file, host, run, store, user};

async fn reopen(path: &Path, recent: &RecentSessions) -> SessionLog {
    let at = SessionRef::Path(path.to_owned());
    let new = NewSession::in_directory("/w");
    SessionLog::reopen_or_create(&host(), store(path.parent().unwrap()), &at, new, recent).await.unwrap()
}

fn lines(log: &SessionLog) -> Vec<Vec<u8>> {
    (0..log.entry_ids().len()).map(|at| log.line_at(at).unwrap().into_owned()).collect()
}

fn minute() -> RecentSessions {
    RecentSessions::new(Duration::from_secs(60))
}

#[test]
fn an_unchanged_session_is_not_read_again() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut log = create(folder.path()).await;
        append(&mut log, [user("first")]).await;
        let (path, before) = (file(&log), lines(&log));
        let recent = minute();
        recent.keep(&log);
        drop(log);
        change_unseen(&path, "first", "other");
        let mut log = reopen(&path, &recent).await;
        assert_eq!(lines(&log), before, "the file was read");
        // What is appended goes to the file all the same.
        append(&mut log, [user("second")]).await;
        assert!(fs::read_to_string(&path).unwrap().contains("second"));
        // While it is open, nobody else gets the same.
        assert!(String::from_utf8_lossy(&reopen(&path, &recent).await.line_at(0).unwrap()).contains("other"));
    });
}

#[test]
fn a_changed_session_is_read_again() {
    run(async {
        for replaces in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let mut log = create(folder.path()).await;
            append(&mut log, [user("first")]).await;
            let path = file(&log);
            let recent = minute();
            recent.keep(&log);
            drop(log);
            let mut other = reopen(&path, &minute()).await;
            if replaces {
                let copy = folder.path().join("copy");
                fs::copy(&path, &copy).unwrap();
                change_unseen(&copy, "first", "other");
                fs::rename(&copy, &path).unwrap();
                assert!(String::from_utf8_lossy(&reopen(&path, &recent).await.line_at(0).unwrap()).contains("other"));
            } else {
                append(&mut other, [user("of another process")]).await;
                assert_eq!(lines(&reopen(&path, &recent).await), lines(&other));
            }
        }
    });
}

#[test]
fn sessions_are_kept_for_a_time_and_only_when_they_are_whole() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut log = create(folder.path()).await;
        append(&mut log, [user("first")]).await;
        let path = file(&log);
        let is_kept = async |recent: &RecentSessions, log: &SessionLog| {
            recent.keep(log);
            change_unseen(&path, "first", "other");
            let kept = String::from_utf8_lossy(&reopen(&path, recent).await.line_at(0).unwrap()).contains("first");
            change_unseen(&path, "other", "first");
            kept
        };
        assert!(is_kept(&minute(), &log).await);
        assert!(!is_kept(&RecentSessions::new(Duration::ZERO), &log).await);
        let recent = RecentSessions::new(Duration::from_millis(1));
        recent.keep(&log);
        std::thread::sleep(Duration::from_millis(5));
        change_unseen(&path, "first", "other");
        assert!(String::from_utf8_lossy(&reopen(&path, &recent).await.line_at(0).unwrap()).contains("other"));
        change_unseen(&path, "other", "first");
        // The log does not know what another process has appended.
        append(&mut reopen(&path, &minute()).await, [user("foreign")]).await;
        let recent = minute();
        recent.keep(&log);
        assert_eq!(reopen(&path, &recent).await.entry_ids().len(), log.entry_ids().len() + 1);
    });
}

#[test]
fn the_oldest_sessions_make_room() {
    run(async {
        let folders: Vec<_> = (0..33).map(|_| tempfile::tempdir().unwrap()).collect();
        let recent = minute();
        let mut paths = Vec::new();
        for folder in &folders {
            let mut log = create(folder.path()).await;
            append(&mut log, [user("first")]).await;
            paths.push(file(&log));
            recent.keep(&log);
        }
        let mut n_kept = 0;
        for path in &paths {
            change_unseen(path, "first", "other");
            let log = reopen(path, &recent).await;
            n_kept += usize::from(String::from_utf8_lossy(&log.line_at(0).unwrap()).contains("first"));
        }
        assert_eq!(n_kept, 32);
    });
}
