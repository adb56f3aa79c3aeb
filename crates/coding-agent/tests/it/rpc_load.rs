//! RPC mode under load: slow exports, and clients that send more than can be answered.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use pinch_coding_agent::modes::rpc::RpcError;
use pinch_coding_agent::runtime::SessionTarget;
use pinch_llm::provider::scripted::ScriptedReply;
use pinch_stdx::cancel::CancelReason;
use serde_json::json;

use crate::rpc::{AsksAlways, RpcTestClient, gated, yes_until};

/// More than fits into a pipe.
fn long_question() -> String {
    "a question ".repeat(100_000)
}

/// Creates a named pipe open for reading; reading starts on a signal, or after a while.
fn pipe(folder: &Path) -> (PathBuf, mpsc::SyncSender<()>, JoinHandle<String>) {
    let path = folder.join("page.html");
    let done = std::process::Command::new("mkfifo").arg(&path).current_dir(folder).status().unwrap();
    assert!(done.success());
    // Opening it only for reading would block until there is a writer.
    let both = File::options().read(true).write(true).open(&path).unwrap();
    let mut from = File::open(&path).unwrap();
    let (begin, may_begin) = mpsc::sync_channel(1);
    let reader = std::thread::spawn(move || {
        let signal = may_begin.recv_timeout(Duration::from_secs(3));
        assert_ne!(signal, Err(RecvTimeoutError::Disconnected));
        let mut page = vec![0];
        from.read_exact(&mut page).unwrap();
        // From here on the end of the page is the end of the pipe.
        drop(both);
        from.read_to_end(&mut page).unwrap();
        String::from_utf8(page).unwrap()
    });
    (path, begin, reader)
}

#[tokio::test]
async fn a_slow_export_does_not_block_anything() {
    let mut client = RpcTestClient::new([ScriptedReply::text("an answer")]).await;
    client.ask(json!({"id": 1, "type": "prompt", "message": long_question()})).await;
    client.event("agent_settled").await;

    let (path, begin, page) = pipe(client.folder.path());
    client.say(json!({"id": 2, "type": "export_html", "outputPath": path})).await;
    client.ask(json!({"id": 3, "type": "get_state"})).await;
    let early = client.received.iter().find(|line| line["id"] == 2);
    assert_eq!(early, None, "the answer comes when the page is written");
    begin.send(()).unwrap();
    let exported = client.until(|line| line["id"] == 2).await;
    assert_eq!(exported["data"], json!({"path": path}), "{exported}");
    let page = page.join().unwrap();
    assert!(page.contains("a question") && page.contains("an answer"));
}

#[tokio::test]
async fn a_slow_export_of_a_busy_session_shows_the_moment_of_the_request() {
    let mut client = RpcTestClient::new([]).await;
    let open = gated(&client.model, "an answer");
    client.ask(json!({"id": 1, "type": "prompt", "message": long_question()})).await;
    client.until(|line| line["type"] == "message_end").await;

    let (path, begin, page) = pipe(client.folder.path());
    client.say(json!({"id": 2, "type": "export_html", "outputPath": path})).await;
    client.ask(json!({"id": 3, "type": "get_state"})).await;
    open.send(()).unwrap();
    client.event("agent_settled").await;
    let early = client.received.iter().find(|line| line["id"] == 2);
    assert_eq!(early, None, "the answer comes when the page is written");
    begin.send(()).unwrap();
    assert_eq!(client.until(|line| line["id"] == 2).await["success"], true);
    let page = page.join().unwrap();
    assert!(page.contains("a question") && !page.contains("an answer"));
}

#[tokio::test]
async fn commands_waiting_for_a_session_are_bounded() {
    let mut client = RpcTestClient::with([], SessionTarget::InMemory, vec![Arc::new(AsksAlways)]).await;
    client.say(json!({"id": "ready", "type": "get_state"})).await;
    yes_until(&mut client, "ready").await;
    client.say(json!({"id": "new", "type": "new_session"})).await;
    let leave = client.event("extension_ui_request").await;
    for id in 0..1024 + 10 {
        client.say(json!({"id": id, "type": "get_last_assistant_text"})).await;
    }
    for id in 1024..1024 + 10 {
        let refused = client.until(|line| line["type"] == "response").await;
        let error = "1024 commands are waiting already. Wait for their answers before you send more, or send abort";
        let expected = json!({
            "id": id, "type": "response", "command": "get_last_assistant_text", "success": false, "error": error,
        });
        assert_eq!(refused, expected);
    }
    client.say(json!({"type": "extension_ui_response", "id": leave["id"], "cancelled": true})).await;
    for id in 0..1024 {
        assert_eq!(client.until(|line| line["id"] == id).await["success"], true);
    }
    assert!(client.leave().await.0.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_hangs_up_without_reading_is_dropped() {
    let mut client = RpcTestClient::new([]).await;
    // As many as fit into the buffers of both directions.
    for id in 0..40 {
        client.say(json!({"id": id, "type": "get_state"})).await;
    }
    client.hung_up.cancel(CancelReason::Shutdown);
    let done = tokio::time::timeout(Duration::from_secs(60), client.served.join_next()).await;
    assert!(matches!(done.unwrap().unwrap().unwrap(), Err(RpcError::NobodyReads)));
}
