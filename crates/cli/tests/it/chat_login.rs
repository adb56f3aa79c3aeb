//! Logging in from `pinch chat`.
#![cfg(target_os = "linux")]

use serde_json::json;

use crate::help::TestUser;
use crate::terminal_program::TerminalProgram;

#[tokio::test]
async fn a_login_in_the_chat_gets_the_terminal_and_the_next_run_uses_the_key() {
    let user = TestUser::new().await;
    let models = json!({"providers": {"local": {
        "baseUrl": user.server.url(), "api": "anthropic-messages", "models": [{"id": "m1"}],
    }}});
    user.write(".pinch/agent/models.json", &models.to_string());
    user.write(".pinch/pinch.json", r#"{"agents": {"defaults": {"model": "local/m1"}}}"#);
    let mut program = TerminalProgram::run(&user, &["chat"]).await;
    // Ctrl+C cancels the login, not the chat.
    program.keys("/login local\r").await;
    program.wait_for("API key").await;
    program.keys("\u{3}").await;
    program.wait_for("the login was not completed").await;
    program.keys("/login local\r").await;
    program.wait_until("the second question", |screen| screen.trim_end().ends_with(':')).await;
    user.answer("checked");
    program.keys("sk-from-the-chat\r").await;
    program.wait_for("Logged in; the next run").await;
    user.answer("good morning");
    program.keys("hello\r").await;
    program.wait_for("good morning").await;
    assert_eq!(user.server.requests().last().unwrap().header("x-api-key"), Some("sk-from-the-chat"));
    assert!(!String::from_utf8_lossy(&program.bytes).contains("sk-from-the-chat"));
    program.keys("\u{4}").await;
    assert_eq!(program.end().await, Some(0));
}
