//! Context of `pinch chat`: its initial session, files, credentials, screen-reader mode.
#![cfg(target_os = "linux")]

use pinch_testing::server::ServerReply;
use pinch_testing::wires::anthropic::AnthropicResponse;
use serde_json::json;

use crate::chat::{chat, user};
use crate::terminal_program::TerminalProgram;

#[tokio::test]
async fn the_next_chat_opens_the_last_session() {
    let user = user().await;
    let mut program = chat(&user, &["--session", "notes"]).await;
    user.answer("noted");
    program.keys("remember the milk\r").await;
    program.wait_for("noted").await;
    program.keys("\u{4}").await;
    assert_eq!(program.end().await, Some(0));
    let mut program = chat(&user, &[]).await;
    program.wait_for("session notes").await;
    program.wait_for("remember the milk").await;
    // The window's contents are known after a run of this chat.
    program.keys("/context\r").await;
    program.wait_for("known after the first message").await;
    user.answer("here");
    program.keys("still there?\r").await;
    program.wait_for("here").await;
    program.wait_for("local | idle").await;
    program.keys("/context\r").await;
    program.wait_for("Schemas of tools: about").await;
    program.keys("/agent ops\r").await;
    program.wait_for("agent ops - session main").await;
    program.keys("\u{4}").await;
    assert_eq!(program.end().await, Some(0));
    // A session without messages does not exist; the default agent still has its last session.
    let mut program = chat(&user, &[]).await;
    program.wait_for("agent main - session notes").await;
    program.keys("\u{4}").await;
    assert_eq!(program.end().await, Some(0));
    let mut program = chat(&user, &["--session", "main"]).await;
    program.wait_for("session main").await;
    program.keys("\u{4}").await;
    assert_eq!(program.end().await, Some(0));
}

#[tokio::test]
async fn files_are_completed_and_a_failed_tool_is_shown_once() {
    let user = user().await;
    user.write("deep/folder/kestrel.txt", "");
    let mut program = chat(&user, &[]).await;
    program.keys("@kestr").await;
    program.wait_for("kestrel.txt  deep/folder").await;
    program.keys("\u{3}\u{3}\u{4}").await;
    assert_eq!(program.end().await, Some(0));
    let mut program = chat(&user, &["--verbose-level", "on"]).await;
    let call = AnthropicResponse::new("msg_1").tool_call(
        "t1",
        "write",
        &json!({"path": "/proc/nope/x", "content": "y"}).to_string(),
    );
    user.server.reply(ServerReply::sse(call.stop("tool_use").concat()));
    user.answer("");
    program.keys("write it\r").await;
    program.wait_for("/proc/nope/x").await;
    program.wait_for("local | idle").await;
    let screen = program.contents();
    assert_eq!((screen.matches("/proc/nope").count(), screen.matches("ENOENT").count()), (2, 1), "{screen}");
    program.keys("\u{4}").await;
    assert_eq!(program.end().await, Some(0));
}

#[tokio::test]
async fn the_chat_writes_plain_lines_in_screen_reader_mode() {
    let user = user().await;
    let mut program = TerminalProgram::run_on(&user, "", &["chat", "--plain"], "dumb");
    program.wait_for("\n> ").await;
    user.answer("# Fine\n\nas ever\n");
    program.keys("how are you\n").await;
    program.wait_for("as ever").await;
    program.wait_until("the next prompt", |screen| screen.trim_end().ends_with("\n>")).await;
    program.keys("/settings\n").await;
    program.wait_for("? ").await;
    program.keys("/escape\n").await;
    program.keys("\u{4}").await;
    assert_eq!(program.end().await, Some(0));
    let text = String::from_utf8_lossy(&program.bytes).into_owned();
    assert!(text.contains("You:") && text.contains("Assistant:") && text.matches("as ever").count() == 1, "{text}");
    assert!(!text.contains('\u{1b}'), "no control sequence: {text:?}");
}

#[tokio::test]
async fn auth_profiles_are_shown_with_their_cooldowns() {
    let user = user().await;
    let far = 4_000_000_000_000_i64;
    let document = json!({
        "version": 1,
        "profiles": {
            "local:home": {"type": "api_key", "provider": "local", "key": "secret-1"},
            "local:work": {"type": "api_key", "provider": "local", "key": "secret-2"},
        },
        "usageStats": {"local:work": {"cooldownUntil": far, "cooldownReason": "rate_limit", "errorCount": 1}},
    });
    user.write(".pinch/agents/main/agent/auth-profiles.json", &document.to_string());
    let mut program = chat(&user, &[]).await;
    program.keys("/auth\r").await;
    program.wait_for("local:home (local, API key): ready").await;
    let screen = program.contents();
    assert!(screen.contains("local:work (local, API key): waits") && screen.contains("rate_limit"), "{screen}");
    assert!(!screen.contains("secret"), "{screen}");
    program.keys("/auth openai\r").await;
    program.wait_for("None. Keys of the environment").await;
    program.keys("\u{4}").await;
    assert_eq!(program.end().await, Some(0));
}
