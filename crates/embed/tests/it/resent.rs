//! Messages with an idempotency key that are resent to another engine on the same state directory.

use std::os::unix::fs::PermissionsExt as _;

use pinch_embed::run::{RunError, RunRequest};
use pinch_embed::{Engine, InboundMessage, Turn};

use crate::world::{World, within};

const FILE: &str = "state/seen-messages.jsonl";

fn once(key: &str, text: &str) -> InboundMessage {
    InboundMessage::new("agent:main:chat", text).idempotency_key(key)
}

async fn send(engine: &Engine, key: &str, text: &str) -> Result<Turn, RunError> {
    within(engine.send(once(key, text))).await
}

#[track_caller]
fn request(turn: Result<Turn, RunError>) -> RunRequest {
    match turn {
        Ok(Turn::Run(request)) => *request,
        other => panic!("not a turn of its own: {other:?}"),
    }
}

#[track_caller]
fn assert_duplicate(turn: &Result<Turn, RunError>, expected: &str) {
    assert!(matches!(turn, Ok(Turn::Duplicate { run_id: Some(of) }) if of == expected), "{turn:?}");
}

#[tokio::test]
async fn a_message_resent_after_a_restart_gets_no_second_run() {
    let world = World::new().await;
    let run_id = request(send(&world.engine, "m1", "a private text").await).run_id;
    let restarted = world.restarted();
    assert_duplicate(&send(&restarted, "m1", "a private text").await, &run_id);
    let other = send(&restarted, "m1", "another").await;
    assert!(matches!(other, Err(RunError::Config(text)) if text.contains("idempotency key")));
    request(send(&restarted, "m2", "a private text").await);
    let file = world.path(FILE);
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!((text.lines().count(), text.contains("private"), text.contains("m1")), (2, false, false), "{text}");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn a_message_that_reached_no_run_before_a_restart_gets_one() {
    let world = World::new().await;
    let first = request(send(&world.engine, "m1", "one").await);
    let mut waiting = Box::pin(world.engine.send(once("m2", "two")));
    assert!(tokio::time::timeout(std::time::Duration::from_millis(50), &mut waiting).await.is_err());
    drop((waiting, first));
    request(send(&world.restarted(), "m2", "two").await);
}

#[tokio::test]
async fn two_concurrent_engines_give_a_message_one_run() {
    let world = World::new().await;
    let other = world.restarted();
    for n in 0..20 {
        let key = format!("m{n}");
        let (one, two) = tokio::join!(send(&world.engine, &key, "hello"), send(&other, &key, "hello"));
        let (run, duplicate) = if matches!(one, Ok(Turn::Run(_))) { (one, two) } else { (two, one) };
        assert_duplicate(&duplicate, &request(run).run_id);
    }
    assert_eq!(std::fs::read_to_string(world.path(FILE)).unwrap().lines().count(), 20);
}

#[tokio::test]
async fn damaged_lines_do_not_affect_other_messages() {
    let world = World::new().await;
    let first = request(send(&world.engine, "m1", "one").await).run_id;
    let path = world.path(FILE);
    let mut text = b"\xff\xfe no line\n{\"key\": 1}\n\n".to_vec();
    text.extend(std::fs::read(&path).unwrap());
    // An incomplete write.
    text.extend(b"{\"key\":\"00");
    std::fs::write(&path, text).unwrap();
    let restarted = world.restarted();
    assert_duplicate(&send(&restarted, "m1", "one").await, &first);
    let second = request(send(&restarted, "m2", "two").await).run_id;
    let again = world.restarted();
    assert_duplicate(&send(&again, "m1", "one").await, &first);
    assert_duplicate(&send(&again, "m2", "two").await, &second);
}

#[tokio::test]
async fn messages_are_answered_when_the_file_cannot_be_written() {
    let world = World::new().await;
    std::fs::create_dir_all(world.path(FILE)).unwrap();
    let run_id = request(send(&world.engine, "m1", "one").await).run_id;
    assert_duplicate(&send(&world.engine, "m1", "one").await, &run_id);
    request(send(&world.restarted(), "m1", "one").await);
}
