//! Signals that end the program.

use std::time::Duration;

use pinch_testing::server::{Gate, ServerReply};
use pinch_testing::wires::anthropic::AnthropicResponse;
use tokio::io::AsyncReadExt as _;
use tokio::process::Child;

use crate::help::TestUser;

/// Sends a signal to the program.
async fn send(signal: &str, child: &Child) {
    let (signal, pid) = (format!("-{signal}"), child.id().unwrap().to_string());
    let sent = tokio::process::Command::new("kill").args([&signal, &pid]).current_dir("/").status().await;
    assert!(sent.unwrap().success());
}

#[tokio::test]
async fn a_run_ended_by_a_signal_is_reported_as_aborted() {
    let user = TestUser::new().await;
    user.server.reply(ServerReply::events().gate(&Gate::new()));
    let child = user.command(&["--model", "local/m1", "-p", "x"]).spawn().unwrap();
    while user.server.requests().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    send("TERM", &child).await;
    let ran = child.wait_with_output().await.unwrap();
    assert_eq!(ran.status.code(), Some(143));
    assert_eq!(String::from_utf8(ran.stderr).unwrap(), "Request was aborted\n");
}

/// Whoever should read the output has stopped, but is still there.
#[tokio::test]
async fn a_program_whose_output_nobody_reads_is_ended_by_a_signal() {
    for (mode, signal, code) in [("text", "TERM", 143), ("json", "INT", 130), ("text", "HUP", 129)] {
        let user = TestUser::new().await;
        // More than a pipe holds.
        let answer = AnthropicResponse::new("m").with_chunks(2).text(&"x".repeat(1 << 20)).stop("end_turn");
        user.server.reply(ServerReply::sse(answer.concat()));
        let mut child = user.command(&["--model", "local/m1", "-p", "--mode", mode, "x"]).spawn().unwrap();
        let mut output = child.stdout.take().unwrap();
        // The first byte is there, and the rest does not fit.
        output.read_u8().await.unwrap();
        tokio::time::sleep(Duration::from_millis(300)).await;
        send(signal, &child).await;
        let ended = tokio::time::timeout(Duration::from_secs(20), child.wait()).await;
        assert_eq!(ended.expect(signal).unwrap().code(), Some(code), "{mode} {signal}");
    }
}
