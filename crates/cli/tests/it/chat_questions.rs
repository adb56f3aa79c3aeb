//! Questions of agents to the user of `pinch chat`, and commands that leave the sandbox.
#![cfg(target_os = "linux")]

use std::time::Duration;

use pinch_testing::server::ServerReply;
use pinch_testing::wires::anthropic::AnthropicResponse;
use serde_json::{Value, json};

use crate::chat::{chat, user};
use crate::help::TestUser;
use crate::terminal_program::TerminalProgram;

/// Makes the model ask questions, and answer once it has the replies.
fn asks(user: &TestUser, questions: &[&str], text: &str) {
    let options = json!([{"label": "Staging", "description": "Only we see it"}, {"label": "Production"}]);
    let question =
        |question: &&str| json!({"id": question, "header": "Deploy", "question": question, "options": options});
    let questions: Vec<Value> = questions.iter().map(question).collect();
    let arguments = json!({"questions": questions, "timeoutSeconds": 600}).to_string();
    let call = AnthropicResponse::new("m1").tool_call("c1", "ask_user", &arguments).stop("tool_use");
    user.server.reply(ServerReply::sse(call.concat()));
    user.answer(text);
}

/// Returns the result that the model gets for its call.
fn result(user: &TestUser) -> Value {
    let asked = user.asked().unwrap();
    let block = &asked.as_array().unwrap().last().unwrap()["content"][0];
    let text = block["content"].as_str().map_or_else(|| block["content"][0]["text"].clone(), Value::from);
    serde_json::from_str(text.as_str().unwrap()).unwrap()
}

/// Waits, because keys typed right after a question appears do not answer it.
async fn read() {
    tokio::time::sleep(Duration::from_millis(700)).await;
}

#[tokio::test]
async fn questions_of_the_agent_are_answered_in_the_chat() {
    let user = user().await;
    let mut program = chat(&user, &[]).await;
    asks(&user, &["Where to?", "And then?"], "Deployed.");
    program.keys("deploy it\r").await;
    program.wait_for("The agent asks: Deploy (1 of 2)").await;
    program.wait_for("8m 59s left").await;
    let screen = program.contents();
    assert!(screen.contains("Where to?") && screen.contains("Only we see it"), "{screen}");
    program.keys("2").await;
    program.wait_for("(2 of 2)").await;
    read().await;
    program.keys("3").await;
    program.wait_for("Your answer:").await;
    program.keys("go home\r").await;
    program.wait_for("Deployed.").await;
    let answers = json!({"Where to?": ["Production"], "And then?": ["go home"]});
    assert_eq!(result(&user), json!({"status": "answered", "answers": {"answers": answers}}));
    program.wait_for("Answered: And then? go home").await;
    asks(&user, &["Really?"], "As you like.");
    program.keys("again\r").await;
    program.wait_for("Really?").await;
    read().await;
    program.keys("\u{1b}").await;
    program.wait_for("As you like.").await;
    assert_eq!(result(&user), json!({"status": "no_answer"}));
    program.wait_for("local | idle").await;
    program.keys("\u{4}").await;
    assert_eq!(program.end().await, Some(0));
}

#[tokio::test]
async fn questions_of_the_agent_are_plain_lines_in_screen_reader_mode() {
    let user = user().await;
    let mut program = TerminalProgram::run_on(&user, "", &["chat", "--plain"], "dumb");
    program.wait_for("\n> ").await;
    asks(&user, &["Where to?"], "Deployed.");
    program.keys("deploy it\n").await;
    program.wait_for("answer within 9m").await;
    program.wait_for("\n? ").await;
    read().await;
    program.keys("12 canaries\n").await;
    program.wait_for("Type the number of an option").await;
    program.keys("other\n").await;
    program.wait_for("Your answer:").await;
    program.keys("12 canaries\n").await;
    program.wait_for("Deployed.").await;
    let answers = json!({"Where to?": ["12 canaries"]});
    assert_eq!(result(&user), json!({"status": "answered", "answers": {"answers": answers}}));
    program.wait_until("the next prompt", |screen| screen.trim_end().ends_with("\n>")).await;
    program.keys("\u{4}").await;
    assert_eq!(program.end().await, Some(0));
    let text = String::from_utf8_lossy(&program.bytes).into_owned();
    assert_eq!(text.matches("answer within").count(), 1, "nothing is said again and again: {text}");
    assert!(!text.contains('\u{1b}'), "no control sequence: {text:?}");
}

#[tokio::test]
async fn elevated_commands_follow_the_session_if_the_configuration_allows_them() {
    let user = user().await;
    let path = user.path(".pinch/pinch.json");
    let mut document: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let mut configure = |elevated: Value| {
        document["tools"] = json!({"exec": {"mode": "full"}, "elevated": elevated});
        user.write(".pinch/pinch.json", &document.to_string());
    };
    for (elevated, expect) in [
        (json!({}), "tools.elevated.allowFrom.webchat must contain"),
        (json!({"enabled": false, "allowFrom": {"webchat": ["*"]}}), "tools.elevated.enabled is false"),
    ] {
        configure(elevated);
        let mut program = chat(&user, &[]).await;
        program.keys("/elevated full\r").await;
        program.wait_for("Elevated commands are").await;
        program.wait_until(expect, |screen| screen.replace("\n ", " ").contains(expect)).await;
        program.keys("/elevated off\r").await;
        program.wait_for("Elevated: off").await;
        program.keys("\u{4}").await;
        assert_eq!(program.end().await, Some(0));
    }
    configure(json!({"allowFrom": {"webchat": ["*"]}}));
    let mut program = chat(&user, &[]).await;
    let call = |name: &str| {
        let arguments = json!({"command": format!("touch {}", user.path(name).display())}).to_string();
        let call = AnthropicResponse::new("m1").tool_call("c1", "exec", &arguments).stop("tool_use");
        user.server.reply(ServerReply::sse(call.concat()));
    };
    call("first");
    user.answer("It ran.");
    program.keys("go\r").await;
    program.wait_for("It ran.").await;
    assert!(user.path("first").exists());
    program.wait_for("local | idle").await;
    program.keys("/elevated ask\r").await;
    program.wait_for("elevated ask").await;
    call("second");
    user.answer("It was denied.");
    program.keys("again\r").await;
    program.wait_for("May this command run?").await;
    program.keys("n").await;
    program.wait_for("It was denied.").await;
    assert!(!user.path("second").exists());
    program.wait_for("local | idle").await;
    program.keys("\u{4}").await;
    assert_eq!(program.end().await, Some(0));
}
