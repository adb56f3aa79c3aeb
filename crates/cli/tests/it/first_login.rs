//! The guide for a user without a model, on a terminal.
#![cfg(target_os = "linux")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pinch_testing::server::ServerReply;
use pinch_testing::wires::completions::CompletionsResponse;
use serde_json::json;

use crate::help::TestUser;
use crate::terminal_program::TerminalProgram;

/// Creates a user without models. Requests to this machine go to the scripted server, as a proxy, which answers for the local servers: Ollama
/// only once it has been started, LM Studio late.
async fn user(ollama: &Arc<AtomicBool>, lm_studio_answers: bool) -> TestUser {
    let user = TestUser::new().await;
    user.write("agent/models.json", r#"{"providers": {}}"#);
    let ollama = Arc::clone(ollama);
    user.server.answer_with(move |request| {
        let models = |ids: &[&str]| {
            let data: Vec<_> = ids.iter().map(|id| json!({"id": id})).collect();
            ServerReply::json(200, &json!({"data": data}))
        };
        Some(match &*request.path {
            "http://127.0.0.1:11434/v1/models" if ollama.load(Ordering::Relaxed) => models(&["small", "large"]),
            "http://127.0.0.1:1234/v1/models" if lm_studio_answers => {
                ServerReply::status(200).pause(Duration::from_millis(1_200)).send(r#"{"data": [{"id": "late"}]}"#)
            }
            path if path.ends_with("/chat/completions") => ServerReply::sse(
                CompletionsResponse::new("c1", "m").text(&format!("from {path}")).finish("stop").done().concat(),
            ),
            _ => ServerReply::status(503),
        })
    });
    user
}

fn start(user: &TestUser, more: &[&str]) -> TerminalProgram {
    let agent_dir = user.path("agent");
    let args = [&["--agent-dir", agent_dir.to_str().unwrap()], more].concat();
    let proxy = format!("HTTP_PROXY={}", user.server.url());
    TerminalProgram::run_with(user, "", &["TERM=xterm-256color", &proxy], &args)
}

#[tokio::test]
async fn a_server_that_starts_while_the_guide_is_open_can_be_chosen() {
    let ollama = Arc::new(AtomicBool::new(false));
    let user = user(&ollama, false).await;
    let mut program = start(&user, &[]);
    program.wait_for("use a model on this machine").await;
    assert!(!program.contents().contains("Ollama on this machine"));
    // The selection stays where it is.
    program.keys("\u{1b}[B").await;
    ollama.store(true, Ordering::Relaxed);
    program.wait_for("Ollama on this machine").await;
    assert!(program.contents().contains("2 models"), "{}", program.contents());
    assert!(!program.contents().contains("→ Ollama"), "{}", program.contents());
    program.keys("ollama on\r").await;
    program.wait_for("(auto)").await;
    assert!(program.contents().contains("small"), "{}", program.contents());
    program.keys("hello\r").await;
    program.wait_for("from http://127.0.0.1:11434/v1/chat/completions").await;
    program.keys("\u{4}").await;
    assert_eq!(program.end().await, Some(0));
}

#[tokio::test]
async fn a_server_that_answers_late_is_used_although_another_one_is_first() {
    let ollama = Arc::new(AtomicBool::new(false));
    let user = user(&ollama, true).await;
    let mut program = start(&user, &[]);
    program.wait_for("LM Studio on this machine").await;
    assert!(program.contents().contains("1 model"), "{}", program.contents());
    ollama.store(true, Ordering::Relaxed);
    program.wait_for("Ollama on this machine").await;
    program.keys("studio\r").await;
    program.wait_for("(auto)").await;
    program.keys("hello\r").await;
    program.wait_for("from http://127.0.0.1:1234/v1/chat/completions").await;
    program.keys("\u{4}").await;
    assert_eq!(program.end().await, Some(0));
}

#[tokio::test]
async fn no_server_is_asked_offline() {
    let ollama = Arc::new(AtomicBool::new(true));
    let user = user(&ollama, true).await;
    let mut program = start(&user, &["--offline"]);
    program.wait_for("use a model on this machine").await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(user.server.requests().is_empty());
    program.keys("\u{1b}").await;
    assert_eq!(program.end().await, Some(2));
}
