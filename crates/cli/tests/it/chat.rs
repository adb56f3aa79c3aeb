//! `pinch chat` on a terminal.
#![cfg(target_os = "linux")]

use pinch_testing::server::{Gate, ServerReply};
use pinch_testing::wires::anthropic::AnthropicResponse;
use serde_json::{Value, json};

use crate::help::TestUser;
use crate::terminal_program::TerminalProgram;

const SESSIONS: &str = ".pinch/agents/main/sessions/sessions.json";

/// Creates a user whose configuration names the scripted server.
pub(crate) async fn user() -> TestUser {
    let user = TestUser::new().await;
    let document = json!({
        // Messages must not overtake the first files of the workspace.
        "agents": {
            "defaults": {"model": "local/m1", "skipBootstrap": true}, "list": [{"id": "main"}, {"id": "ops"}],
        },
        "models": {"providers": {"local": {
            "baseUrl": user.server.url(), "api": "anthropic-messages", "apiKey": "none",
            "models": [{"id": "m1", "reasoning": true, "contextWindow": 200_000, "maxTokens": 8_000}, {"id": "m2", "contextWindow": 200_000}],
        }}},
    });
    user.write(".pinch/pinch.json", &document.to_string());
    user
}

pub(crate) async fn chat(user: &TestUser, args: &[&str]) -> TerminalProgram {
    TerminalProgram::run(user, &[&["chat"], args].concat()).await
}

fn index(user: &TestUser) -> Value {
    serde_json::from_slice(&std::fs::read(user.path(SESSIONS)).unwrap()).unwrap()
}

/// Adds an answer whose chunks are sent when the gate is opened.
fn gated(user: &TestUser, gate: &Gate, text: &str) {
    let answer = AnthropicResponse::new("msg_1").text(text).stop("end_turn").concat();
    user.server.reply(ServerReply::sse("").gated(gate, [answer]));
}

#[tokio::test]
async fn messages_are_answered_and_the_history_survives_a_restart() {
    let user = user().await;
    user.answer("[[reply_to_current]] # Fine\n\n- one\n- two\n");
    let mut program = chat(&user, &["--message", "how are you"]).await;
    program.wait_for("- two").await;
    program.wait_for("local | idle").await;
    let screen = program.contents();
    assert!(screen.contains("agent main - session main"), "{screen}");
    assert!(screen.contains("how are you") && screen.contains("\n Fine\n"), "{screen}");
    assert!(!screen.contains("reply_to_current"), "{screen}");
    assert!(screen.contains("local/m1"), "{screen}");
    assert_eq!(screen.matches("- two").count(), 1, "the final reply is not shown again: {screen}");
    program.keys("\u{4}").await;
    assert_eq!(program.end().await, Some(0));
    let text = String::from_utf8_lossy(&program.bytes).into_owned();
    assert!(text.contains("continue with: pinch chat --session agent:main:main"), "{text:?}");

    let mut program = chat(&user, &[]).await;
    program.wait_for("- two").await;
    assert!(program.contents().contains("how are you") && !program.contents().contains("reply_to_current"));
    user.answer("still fine");
    program.keys("and now?\r").await;
    program.wait_for("still fine").await;
    program.keys("\u{4}").await;
    assert_eq!(program.end().await, Some(0));
    assert!(String::from_utf8_lossy(&user.server.requests().last().unwrap().body).contains("how are you"));
    let mut program = chat(&user, &["--history-limit", "1"]).await;
    program.wait_for("still fine").await;
    assert!(!program.contents().contains("and now?"), "{}", program.contents());
    program.keys("\u{4}").await;
    program.end().await;
}

#[tokio::test]
async fn a_running_answer_is_stopped_and_queued_messages_come_back() {
    let user = user().await;
    let mut program = chat(&user, &[]).await;
    let gate = Gate::new();
    gated(&user, &gate, "working on it");
    program.keys("begin\r").await;
    program.wait_for("waiting •").await;
    // Stopped earlier, it would leave its answer to the next request.
    user.server.wait_for_requests(1).await;
    program.keys("turn left\r").await;
    program.wait_for("Queued: turn left").await;
    program.keys("\u{1b}").await;
    program.wait_for("The run was stopped").await;
    program.wait_until("an idle chat", |screen| screen.contains("local | idle") && !screen.contains("Queued:")).await;
    assert!(program.contents().contains("turn left"), "{}", program.contents());
    gate.open();
    user.answer("to the left");
    program.keys("\r").await;
    program.wait_for("to the left").await;
    program.wait_for("local | idle").await;
    program.keys("\u{3}").await;
    program.wait_for("again to exit").await;
    program.keys("\u{3}").await;
    assert_eq!(program.end().await, Some(0));
    user.server.take_unexpected();
}

/// Adds an answer whose first part is sent immediately, and the rest when the gate is opened.
fn half_gated(user: &TestUser, gate: &Gate) {
    let frames = AnthropicResponse::new("msg_1").with_chunks_of(8).text("one two three four five six").stop("end_turn");
    let (first, rest) = frames.split_at(5);
    user.server.reply(ServerReply::sse(first.concat()).gated(gate, [rest.concat()]));
}

#[tokio::test]
async fn an_answer_streams_and_its_partial_text_survives_a_stop() {
    let user = user().await;
    let mut program = chat(&user, &[]).await;
    let gate = Gate::new();
    half_gated(&user, &gate);
    program.keys("count\r").await;
    program.wait_for("streaming •").await;
    program.wait_for("one two").await;
    program.keys("\u{3}").await;
    program.wait_for("The run was stopped").await;
    program.wait_for("local | idle").await;
    let screen = program.contents();
    assert!(!screen.contains(" six") && screen.matches("one two").count() == 1, "{screen}");
    gate.open();
    program.keys("\u{4}").await;
    assert_eq!(program.end().await, Some(0));
    user.server.take_unexpected();
}

#[tokio::test]
async fn a_signal_ends_the_chat_and_its_run_and_restores_the_terminal() {
    let user = user().await;
    let mut program = chat(&user, &[]).await;
    let gate = Gate::new();
    half_gated(&user, &gate);
    program.keys("count\r").await;
    program.wait_for("streaming •").await;
    program.terminate().await;
    assert_eq!(program.end().await, Some(143));
    let text = String::from_utf8_lossy(&program.bytes);
    assert!(text.contains("\u{1b}[?2004l") && text.contains("\u{1b}[?25h"), "{text:?}");
    gate.open();
    user.server.take_unexpected();
    user.answer("still here");
    let mut program = chat(&user, &["--message", "and now?"]).await;
    program.wait_for("still here").await;
    assert!(program.contents().contains("count"), "{}", program.contents());
    program.keys("\u{4}").await;
    assert_eq!(program.end().await, Some(0));
}

#[tokio::test]
async fn a_message_to_a_busy_session_gets_the_next_run() {
    let user = user().await;
    let mut program = chat(&user, &[]).await;
    let gate = Gate::new();
    gated(&user, &gate, "first answer");
    program.keys("first\r").await;
    program.wait_for("waiting •").await;
    program.keys("/queue followup\r").await;
    program.wait_for("queue followup").await;
    program.keys("second\r").await;
    program.wait_for("Queued: second").await;
    user.answer("second answer");
    gate.open();
    program.wait_for("second answer").await;
    program.wait_until("no queue", |screen| !screen.contains("Queued:") && screen.contains("local | idle")).await;
    let screen = program.contents();
    let places = ["first answer", " second  ", "second answer"].map(|text| screen.find(text));
    assert!(places.is_sorted() && places[0].is_some(), "{screen}");
    program.keys("\u{4}").await;
    assert_eq!(program.end().await, Some(0));
    assert_eq!(index(&user)["agent:main:main"]["queueMode"], "followup");
}

#[tokio::test]
async fn commands_change_the_session_and_are_never_sent_to_the_model() {
    let user = user().await;
    let mut program = chat(&user, &[]).await;
    program.wait_for("local/m1").await;
    program.keys("/think zzz\r").await;
    program.wait_for("Invalid level \"zzz\". Valid values: off").await;
    program.keys("/think low\r").await;
    program.wait_for("| think low").await;
    program.keys("/verbose full\r").await;
    program.wait_for("| verbose full").await;
    program.keys("/permissions guarded\r").await;
    program.wait_for("Permissions: guarded").await;
    program.keys("/frobnicate\r").await;
    program.wait_for("Unknown command /frobnicate").await;
    program.keys("\u{3}").await;
    program.keys("\u{c}").await;
    program.wait_for("Model of the session").await;
    program.keys("m2\r").await;
    program.wait_for("| local/m2").await;
    let entry = &index(&user)["agent:main:main"];
    assert_eq!((&entry["thinkingLevel"], &entry["verboseLevel"]), (&json!("low"), &json!("full")));
    assert_eq!(entry["permissionMode"], "guarded");
    assert_eq!((&entry["providerOverride"], &entry["modelOverride"]), (&json!("local"), &json!("m2")));
    program.keys("/model nope\r").await;
    program.wait_for("Error:").await;
    program.keys("/model default\r").await;
    program.wait_for("| local/m1").await;
    program.keys("\u{7}").await;
    program.wait_for("ops").await;
    program.keys("ops\r").await;
    program.wait_for("agent ops | session main").await;
    program.keys("/session notes\r").await;
    program.wait_for("agent ops | session notes").await;
    program.keys("/status\r").await;
    program.wait_for("agent:ops:notes").await;
    user.answer("a note");
    program.keys("/new hello\r").await;
    program.wait_for("a note").await;
    program.wait_for("session chat-").await;
    program.keys("\u{10}").await;
    program.wait_for("Session of ops").await;
    program.keys("\u{1b}").await;
    program.wait_until("no dialog", |screen| !screen.contains("Session of ops")).await;
    program.keys("/agent nobody\r").await;
    program.wait_for("There is no agent \"nobody\". Agents: main, ops").await;
    program.keys("/quit\r").await;
    assert_eq!(program.end().await, Some(0));
    assert_eq!(user.server.requests().len(), 1, "only the message was sent");
}

#[tokio::test]
async fn tools_are_shown_according_to_the_session() {
    let user = user().await;
    let call = |id: &str| {
        let response = AnthropicResponse::new("m1");
        ServerReply::sse(
            response.tool_call(id, "bash", r#"{"command": "echo to''ol output"}"#).stop("tool_use").concat(),
        )
    };
    let mut program = chat(&user, &["--verbose-level", "on"]).await;
    user.server.reply(call("call_1"));
    user.answer("done once");
    program.keys("go\r").await;
    program.wait_for("done once").await;
    let screen = program.contents();
    assert!(screen.contains("$ echo to''ol output") && !screen.contains("tool output"), "{screen}");
    program.keys("/verbose full\r").await;
    program.wait_for("Verbose: full").await;
    user.server.reply(call("call_2"));
    user.answer("done twice");
    program.keys("again\r").await;
    program.wait_for("done twice").await;
    assert!(program.contents().contains("tool output"), "{}", program.contents());
    program.keys("/verbose off\r").await;
    program.wait_for("Verbose: off").await;
    program.wait_for("local | idle").await;
    program.keys("\u{4}").await;
    assert_eq!(program.end().await, Some(0));
    let mut program = chat(&user, &[]).await;
    program.wait_for("done twice").await;
    assert!(!program.contents().contains("$ echo"), "{}", program.contents());
    program.keys("\u{4}").await;
    program.end().await;
}

#[tokio::test]
async fn commands_that_are_not_allowed_need_approval() {
    let user = user().await;
    let path = user.path(".pinch/pinch.json");
    let mut document: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    document["tools"] = json!({"exec": {"mode": "ask"}});
    user.write(".pinch/pinch.json", &document.to_string());
    let mut program = chat(&user, &["--verbose-level", "on"]).await;
    let mut call = async |answer: &str, text: &str| {
        let made = user.path("made");
        let arguments = json!({"command": format!("touch {}", made.display())}).to_string();
        let call = AnthropicResponse::new("m1").tool_call("c1", "exec", &arguments).stop("tool_use");
        user.server.reply(ServerReply::sse(call.concat()));
        user.answer(text);
        program.keys("go\r").await;
        program.wait_for("May this command run?").await;
        assert!(!made.exists());
        // Nothing can be allowed at the moment when the prompt appears.
        program.wait_for("running exec • 1s").await;
        program.keys(answer).await;
        program.wait_for(text).await;
        program.wait_for("local | idle").await;
        assert!(!program.contents().contains("May this command run?"));
        made.exists()
    };
    assert!(!call("n", "It was denied.").await);
    assert!(call("y", "It was allowed.").await);
    program.keys("\u{4}").await;
    assert_eq!(program.end().await, Some(0));
}

#[tokio::test]
async fn shell_commands_run_only_after_confirmation() {
    let user = user().await;
    let mut program = chat(&user, &[]).await;
    program.keys("!echo $OPENCLAW_SHELL from the shell").await;
    program.wait_for("from the shell").await;
    program.keys("\r").await;
    program.wait_for("Run shell commands").await;
    assert!(!program.contents().contains("tui-local"));
    program.keys("\u{1b}[B\r").await;
    program.wait_for("tui-local from the shell").await;
    program.keys("!exit 3\r").await;
    program.wait_for("(exit 3)").await;
    program.keys("\u{4}").await;
    assert_eq!(program.end().await, Some(0));
    let mut program = chat(&user, &[]).await;
    program.keys("!echo no\r").await;
    program.wait_for("Run shell commands").await;
    program.keys("\r").await;
    program.wait_for("Shell commands are off").await;
    program.keys("\u{4}").await;
    program.end().await;
    assert!(user.server.requests().is_empty());
}

#[tokio::test]
async fn a_running_answer_is_steered() {
    let user = user().await;
    let mut program = chat(&user, &["--verbose-level", "on"]).await;
    program.keys("/queue steer\r").await;
    program.wait_for("queue steer").await;
    let gate = Gate::new();
    let call = AnthropicResponse::new("m1").text("Let me look.").tool_call("c1", "bash", r#"{"command": "true"}"#);
    user.server.reply(ServerReply::sse("").gated(&gate, [call.stop("tool_use").concat()]));
    user.answer("turned left");
    program.keys("go\r").await;
    program.wait_for("waiting •").await;
    program.keys("turn left\r").await;
    program.wait_for("Queued: turn left").await;
    gate.open();
    program.wait_for("turned left").await;
    program.wait_until("no queue", |screen| !screen.contains("Queued:") && screen.contains("local | idle")).await;
    let screen = program.contents();
    let places = ["Let me look.", "$ true", " turn left ", "turned left"].map(|text| screen.find(text));
    assert!(places.is_sorted() && places[0].is_some(), "{screen}");
    assert_eq!(user.server.requests().len(), 2, "one run reads both messages");
    program.keys("\u{4}").await;
    assert_eq!(program.end().await, Some(0));
}

#[tokio::test]
async fn switches_of_profile_and_model_are_reported() {
    let user = TestUser::new().await;
    let provider =
        |id: &str| json!({"baseUrl": user.server.url(), "api": "anthropic-messages", "models": [{"id": id}]});
    let mut fallback = provider("m2");
    fallback["apiKey"] = "none".into();
    let document = json!({
        "agents": {"defaults": {"model": {"primary": "first/m1", "fallbacks": ["second/m2"]}}},
        "models": {"providers": {"first": provider("m1"), "second": fallback}},
        "auth": {"profiles": [
            {"id": "work", "provider": "first", "apiKey": "key-1"},
            {"id": "home", "provider": "first", "apiKey": "key-2"},
        ]},
    });
    user.write(".pinch/pinch.json", &document.to_string());
    let mut program = chat(&user, &[]).await;
    let refused = json!({"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}});
    user.server.reply(ServerReply::json(401, &refused));
    user.answer("from home");
    program.keys("hello\r").await;
    program.wait_for("from home").await;
    program.wait_for("local | idle").await;
    let screen = program.contents();
    assert!(screen.contains("work failed (auth), trying home"), "{screen}");
    user.server.reply(ServerReply::json(401, &refused));
    user.answer("from the other model");
    program.keys("again\r").await;
    program.wait_for("from the other model").await;
    assert!(program.contents().contains("trying second/m2"), "{}", program.contents());
    program.keys("\u{4}").await;
    assert_eq!(program.end().await, Some(0));
}

#[tokio::test]
async fn mistakes_in_the_configuration_and_a_missing_model_are_shown() {
    let user = TestUser::new().await;
    user.write(".pinch/pinch.json", &json!({"agents": {"defaults": {"maxConcurrent": "many"}}}).to_string());
    let mut program = chat(&user, &[]).await;
    program.wait_for("Warning:").await;
    assert!(program.contents().contains("maxConcurrent"), "{}", program.contents());
    program.wait_for("| no model |").await;
    program.keys("hello\r").await;
    program.wait_for("Error: no model is configured").await;
    program.wait_for("local | idle").await;
    program.keys("\u{4}").await;
    assert_eq!(program.end().await, Some(0));
}

#[tokio::test]
async fn failures_are_shown() {
    let user = user().await;
    let mut program = chat(&user, &[]).await;
    let refused = json!({"type": "error", "error": {"type": "invalid_request_error", "message": "no such thing"}});
    user.server.reply(ServerReply::json(400, &refused));
    program.keys("hello\r").await;
    program.wait_for("Error:").await;
    program.wait_for("local | idle").await;
    assert!(program.contents().contains("no such thing"), "{}", program.contents());
    user.answer("all is well");
    program.keys("again\r").await;
    program.wait_for("all is well").await;
    program.keys("\u{4}").await;
    assert_eq!(program.end().await, Some(0));
    user.server.take_unexpected();
}

#[tokio::test]
async fn foreign_text_never_reaches_the_terminal_as_control_sequences() {
    const HOSTILE: &str = "a\u{1b}]52;c;eA==\u{7}b\u{1b}[2Jc\u{9b}31md\u{202e}e";
    let user = user().await;
    let key = "agent:main:x\u{1b}]52;c;eA==\u{7}\u{202e}";
    let entry = json!({key: {"sessionId": "s1", "updatedAt": 4_102_444_800_000_i64, "label": HOSTILE}});
    user.write(SESSIONS, &entry.to_string());
    let mut program = chat(&user, &[]).await;
    user.answer(HOSTILE);
    program.keys("attack\r").await;
    program.wait_for("abcde").await;
    let refused = json!({"type": "error", "error": {"type": "invalid_request_error", "message": HOSTILE}});
    user.server.reply(ServerReply::json(400, &refused));
    program.keys("once more\r").await;
    program.wait_for("Error:").await;
    program.keys("\u{10}").await;
    program.wait_for("Session of main").await;
    program.keys("x\r").await;
    program.wait_until("the session", |screen| screen.contains("idle") && screen.contains("session x")).await;
    program.keys("\u{4}").await;
    program.end().await;
    let text = String::from_utf8_lossy(&program.bytes);
    assert!(
        !text.contains("]52;") && !text.contains("\u{1b}[2J") && !text.contains(['\u{9b}', '\u{202e}']),
        "{text:?}"
    );
}

#[tokio::test]
async fn a_chat_needs_a_terminal_and_valid_options() {
    let user = user().await;
    let fails = async |args: &[&str], err: &str| {
        let ran = user.run_program(&[&["chat"], args].concat()).await;
        assert_eq!((ran.code, ran.err.lines().next()), (Some(1), Some(err)), "{args:?}");
    };
    fails(&[], "Error: the chat needs a terminal as standard input and output").await;
    let levels = "off, minimal, low, medium, adaptive, high, xhigh, max, ultra";
    fails(&["--thinking", "x"], &format!("Error: Invalid thinking level \"x\". Valid values: {levels}")).await;
    fails(&["--verbose-level", "x"], "Error: Invalid verbose level \"x\". Valid values: on, full, off").await;
    let ran = user.run_program(&["terminal", "--help"]).await;
    assert!(ran.out.contains("--session-key"), "{}", ran.out);
}
