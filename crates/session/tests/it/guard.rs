//! Tool calls and their results.

use pinch_session::entry::EntryBody;

use pinch_testing::logs::{answer, append, bash, create, file, open, result, shown, user};

#[tokio::test]
async fn a_message_before_the_results_gets_placeholders_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = create(dir.path()).await;
    append(&mut log, [user("q"), answer("a", &["1", "2", "3"]), result("2"), user("next")]).await;
    let expected = ["user q", "assistant a", "result 2", "result 1 missing", "result 3 missing", "user next"];
    assert_eq!(shown(&log), expected);
    assert_eq!(shown(&open(&file(&log)).await.unwrap()), expected, "the file says the same");
}

#[tokio::test]
async fn results_without_calls_are_ignored() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = create(dir.path()).await;
    append(&mut log, [user("q"), result("9"), answer("a", &["1"]), result("1"), result("1"), result("2")]).await;
    assert_eq!(shown(&log), ["user q", "assistant a", "result 1"]);
}

#[tokio::test]
async fn the_users_commands_wait_for_the_results() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = create(dir.path()).await;
    append(&mut log, [user("q"), answer("a", &["1", "2"]), bash(), result("1")]).await;
    assert_eq!(shown(&log), ["user q", "assistant a", "result 1"]);
    append(&mut log, [result("2"), user("next")]).await;
    assert_eq!(shown(&log), ["user q", "assistant a", "result 1", "result 2", "bashExecution", "user next"]);
}

#[tokio::test]
async fn other_entries_do_not_wait_for_results() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = create(dir.path()).await;
    let level = EntryBody::ThinkingLevelChange { thinking_level: "low".into() };
    append(&mut log, [user("q"), answer("a", &["1"]), level, result("1")]).await;
    assert_eq!(shown(&log), ["user q", "assistant a", "result 1"]);
    assert_eq!(log.context().thinking_level, "low");
}

#[tokio::test]
async fn opening_writes_nothing_and_the_next_message_heals() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = create(dir.path()).await;
    append(&mut log, [user("q"), answer("a", &["1", "2"]), result("1")]).await;
    let path = file(&log);
    drop(log);
    let before = std::fs::read(&path).unwrap();
    let mut log = open(&path).await.unwrap();
    assert_eq!(log.awaited_calls().len(), 1);
    assert_eq!(std::fs::read(&path).unwrap(), before);
    append(&mut log, [user("next")]).await;
    assert_eq!(shown(&log), ["user q", "assistant a", "result 1", "result 2 missing", "user next"]);
}

#[tokio::test]
async fn moving_the_leaf_recomputes_the_awaited_calls() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = create(dir.path()).await;
    let ids = append(&mut log, [user("q"), answer("a", &["1"])]).await;
    log.move_to(&ids[0]).unwrap();
    append(&mut log, [user("other")]).await;
    assert_eq!(shown(&log), ["user q", "user other"]);
    log.move_to(&ids[1]).unwrap();
    append(&mut log, [user("back")]).await;
    assert_eq!(shown(&log), ["user q", "assistant a", "result 1 missing", "user back"]);
}
