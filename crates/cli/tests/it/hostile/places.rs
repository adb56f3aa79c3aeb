//! Names in lists, in the footer, in the title and in the output of commands; and the chat with agents.

use std::os::unix::ffi::OsStringExt as _;

use pinch_testing::server::ServerReply;
use pinch_testing::wires::anthropic::AnthropicResponse;
use serde_json::{Value, json};

use super::output::{AllowedOutput, check};
use super::texts::{names, paragraphs, texts};
use super::{FRAME, SIZE, begin, leave, pasted, press, submit};
use crate::chat;
use crate::help::TestUser;
use crate::terminal_program::TerminalProgram;

/// A user whose models, prompts, skills, themes, files and sessions have such names.
async fn surrounded() -> TestUser {
    let user = TestUser::new().await;
    let model = |name: &String| json!({"id": name, "name": name});
    let models: Vec<Value> = [json!({"id": "m1"})].into_iter().chain(names().iter().map(model)).collect();
    let provider = |models: &[Value]| json!({"baseUrl": user.server.url(), "api": "anthropic-messages", "apiKey": "none", "models": models});
    let mut providers = json!({"local": provider(&models)});
    for name in names().chunks(8) {
        providers[name.concat()] = provider(&[json!({"id": "m1"})]);
    }
    user.write("agent/models.json", &json!({"providers": providers}).to_string());
    for (n, name) in names().iter().enumerate() {
        user.write(&format!("work/@{name}"), "x");
        user.write(&format!("agent/prompts/p{name}.md"), &format!("---\ndescription: {}\n---\nx", json!(name)));
        let skill = format!("---\nname: s{n}\ndescription: {}\n---\nx", json!(name));
        user.write(&format!("agent/skills/s{n}/SKILL.md"), &skill);
        user.write(&format!("agent/skills/{name}/SKILL.md"), &skill);
        user.write(&format!("agent/themes/t{name}.json"), &json!({"name": name, "colors": {}}).to_string());
        user.write(&format!("agent/sessions/all/{n}.jsonl"), &session(n, name, user.path("work").to_str().unwrap()));
    }
    user
}

/// A session whose first message is a text, and for every other one also its name and the label of an entry.
fn session(n: usize, name: &str, cwd: &str) -> String {
    let entry = |id: usize, more: Value| {
        let parent = if id == 1 { Value::Null } else { format!("a{:07}", id - 1).into() };
        let mut entry = json!({"id": format!("a{id:07}"), "parentId": parent, "timestamp": "2025-06-01T10:00:00.000Z"});
        entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        format!("{entry}\n")
    };
    let id = format!("01900000-0000-7000-8000-{n:012}");
    let header =
        json!({"type": "session", "version": 3, "id": id, "timestamp": "2025-06-01T10:00:00.000Z", "cwd": cwd});
    let message = json!({"role": "user", "content": name, "timestamp": 1_748_772_001_000_i64});
    let mut text = format!("{header}\n{}", entry(1, json!({"type": "message", "message": message})));
    if n.is_multiple_of(2) {
        text.push_str(&entry(2, json!({"type": "session_info", "name": name})));
        text.push_str(&entry(3, json!({"type": "label", "targetId": "a0000001", "label": name})));
    }
    text
}

#[tokio::test]
async fn names_in_lists_and_completions() {
    let user = surrounded().await;
    let sessions = user.path("agent/sessions/all");
    let args = ["--model", "local/m1", "--session-dir", sessions.to_str().unwrap()];
    let mut program = begin(&user, "work", &args).await;
    for list in ["/model\r", "/scoped-models\r", "/theme\r", "/settings\r", "/login\r", "/resume\r"] {
        program.keys(list).await;
        tokio::time::sleep(FRAME).await;
        press(&mut program, "\u{1b}[6~", 45).await;
        press(&mut program, "\u{1b}", 3).await;
    }
    for text in ["/p", "/skill:", "@", "./"] {
        program.keys(text).await;
        tokio::time::sleep(FRAME).await;
        press(&mut program, "\t", 1).await;
        press(&mut program, "\u{1b}[B", 60).await;
        press(&mut program, "\u{1b}\u{3}", 1).await;
    }
    for command in ["/help\r", "/hotkeys\r", "/session\r", "/reload\r"] {
        program.keys(command).await;
        tokio::time::sleep(FRAME * 3).await;
    }
    leave(program, AllowedOutput::default()).await;
}

#[tokio::test]
async fn names_of_sessions_and_entries() {
    let user = surrounded().await;
    let cwd = user.path("work").to_str().unwrap().to_owned();
    // One session with all texts as messages, and their labels.
    let mut lines: Vec<String> = Vec::new();
    for (n, name) in names().iter().enumerate() {
        let one = session(2, name, &cwd);
        let mut parts = one.lines().map(str::to_owned);
        let header = parts.next().unwrap();
        if n == 0 {
            lines.push(header);
        }
        for part in parts {
            let mut entry: Value = serde_json::from_str(&part).unwrap();
            let at = lines.len();
            entry["id"] = format!("b{at:07}").into();
            entry["parentId"] = if at == 1 { Value::Null } else { format!("b{:07}", at - 1).into() };
            if entry["type"] == "label" {
                entry["targetId"] = format!("b{:07}", at - 2).into();
            }
            lines.push(entry.to_string());
        }
    }
    let path = user.write("agent/sessions/one/s.jsonl", &(lines.join("\n") + "\n"));
    for mode in ["regular", "fullscreen"] {
        let args = ["--model", "local/m1", "--tui-mode", mode, "--session", path.to_str().unwrap()];
        let mut program = begin(&user, "work", &args).await;
        for list in ["/tree\r", "/fork\r"] {
            program.keys(list).await;
            tokio::time::sleep(FRAME).await;
            press(&mut program, "\u{1}", 1).await;
            press(&mut program, "\u{1b}[5~", 45).await;
            press(&mut program, "\u{1b}", 2).await;
        }
        press(&mut program, "\u{12}", 1).await;
        press(&mut program, "\u{1b}[5;2~", 40).await;
        press(&mut program, "\u{12}", 1).await;
        leave(program, AllowedOutput { fullscreen: true, ..AllowedOutput::default() }).await;
    }
}

#[tokio::test]
async fn directories_and_branches() {
    for some in names().chunks(6) {
        let user = TestUser::new().await;
        let mut name: Vec<u8> = some.concat().into_bytes();
        name.extend(b"\x9b2J");
        name.truncate(200);
        let name = String::from_utf8(name.clone()).unwrap_or_else(|_| String::from_utf8_lossy(&name).into_owned());
        let name = name.trim_matches('\'').replace('\'', "");
        user.write(&format!("{name}/.git/HEAD"), &format!("ref: refs/heads/{}\n", some.concat()));
        let program = begin(&user, &name, &["--model", "local/m1"]).await;
        leave(program, AllowedOutput::default()).await;
    }
}

#[tokio::test]
async fn output_of_commands() {
    let user = surrounded().await;
    let invalid = std::ffi::OsString::from_vec(b"bytes\x9b2J\xffx".to_vec());
    std::fs::write(user.path("work").join(invalid), "x").unwrap();
    user.write("agent/keybindings.json", &json!({names()[..40].concat(): names()[40..80].concat()}).to_string());
    user.write(
        "agent/settings.json",
        &json!({"theme": names()[..40].concat(), "packages": names(), "retry": {"enabled": false}}).to_string(),
    );
    let sessions = user.path("agent/sessions/all");
    let sessions = sessions.to_str().unwrap();
    let agent_dir = user.path("agent");
    let variable = format!("PINCH_AGENT_DIR={}", agent_dir.display());
    let agent_dir = ["--agent-dir", agent_dir.to_str().unwrap()];
    let all = texts().concat().replace(['\0', '\''], "");
    let commands: [&[&str]; 8] = [
        &["--list-models"],
        &["--list-models", &all],
        &["--session-dir", sessions, "--session", &all, "-p", "x"],
        &["--model", &all, "-p", "x"],
        &["--export", &all],
        &[&format!("--{all}"), "-p", "x"],
        &["--model", "local/m1", "--verbose", "-p", "x"],
        &["--model", "local/m1", "--mode", "json", "-p", "x"],
    ];
    let others: [&[&str]; 6] = [
        &["doctor"],
        &["list"],
        &["skills", "list"],
        &["install", &all],
        &["agent", "--agent", &all, "-m", "x"],
        &[&all, &all, "-p"],
    ];
    for (args, dir) in commands.iter().map(|args| (*args, true)).chain(others.iter().map(|args| (*args, false))) {
        user.answer(&paragraphs());
        let args = if dir { [&agent_dir, args].concat() } else { args.to_vec() };
        let mut program = TerminalProgram::run_sized(&user, "work", &[&variable], &args, SIZE);
        program.keys("\u{4}").await;
        program.end().await;
        assert!(!program.bytes.contains(&0x1b), "{args:?}");
        let shown = String::from_utf8_lossy(&program.bytes)
            .replace(super::texts::PAYLOAD, "")
            .replace("\u{8}\u{8}", "")
            .replace('\t', " ");
        check(shown.replace("^D", "").as_bytes(), AllowedOutput::default());
    }
    user.server.take_unexpected();
}

#[tokio::test]
async fn repaired_sessions() {
    let user = surrounded().await;
    let damaged: Vec<String> = names()
        .chunks(30)
        .enumerate()
        .map(|(n, some)| {
            let name = format!("work/{}.jsonl", some[n % some.len()].replace('\'', ""));
            user.write(&name, &format!("{}{}\n", session(n, &some[0], &some[1]), some.concat()));
            user.path(&name).to_str().unwrap().to_owned()
        })
        .collect();
    let missing = texts().concat().replace(['\0', '\''], "");
    for json in [false, true] {
        let mut args = vec!["sessions", "repair"];
        args.extend(json.then_some("--json"));
        args.extend(damaged.iter().map(String::as_str));
        args.push(&missing);
        let mut program = TerminalProgram::run_sized(&user, "work", &[], &args, SIZE);
        assert_eq!(program.end().await, Some(1));
        let shown = String::from_utf8_lossy(&program.bytes).into_owned();
        assert!(
            !shown.contains('\u{1b}') && shown.contains(if json { "droppedLines" } else { "repaired, 1 line" }),
            "{shown}"
        );
        check(shown.replace('\t', " ").replace(super::texts::PAYLOAD, "").as_bytes(), AllowedOutput::default());
    }
}

#[tokio::test]
async fn the_choice_of_resources() {
    let user = surrounded().await;
    let agent_dir = format!("PINCH_AGENT_DIR={}", user.path("agent").display());
    let mut program = TerminalProgram::run_sized(&user, "work", &[&agent_dir], &["config"], SIZE);
    program.wait_for("Skills").await;
    press(&mut program, "\u{1b}[6~", 80).await;
    program.keys(&pasted(&texts().concat())).await;
    tokio::time::sleep(FRAME).await;
    press(&mut program, "\u{1b}", 3).await;
    program.end().await;
    check(&program.bytes, AllowedOutput { fullscreen: true, ..AllowedOutput::default() });
}

#[tokio::test]
async fn the_chat_with_agents() {
    let user = chat::user().await;
    let entries: serde_json::Map<String, Value> = names().iter().enumerate().map(|(n, name)| {
        (format!("agent:main:k{name}"), json!({"sessionId": format!("s{n}"), "updatedAt": 4_102_444_800_000_i64 + n as i64, "label": name, "displayName": name}))
    }).collect();
    user.write(".pinch/agents/main/sessions/sessions.json", &Value::Object(entries).to_string());
    let mut program = TerminalProgram::run_sized(&user, "", &[], &["chat", "--session", "main"], SIZE);
    program.wait_for("/ for commands").await;
    program.keys("/verbose full\r/reasoning stream\r").await;
    tokio::time::sleep(FRAME).await;
    for (n, text) in
        [paragraphs(), texts().iter().map(|text| format!("- `{text}` [{text}]({text})\n")).collect()].iter().enumerate()
    {
        let answer = AnthropicResponse::new("msg_1")
            .with_chunks_of(3)
            .thinking(text, "s")
            .text(text)
            .text(&format!("\n\nthe end {n}"));
        user.server.reply(ServerReply::sse(answer.stop("end_turn").concat()));
        program.keys("go\r").await;
        program.wait_for(&format!("the end {n}")).await;
        program.wait_for("local | idle").await;
    }
    let arguments = json!({"command": "echo", "path": paragraphs()}).to_string();
    let mut answer = AnthropicResponse::new("msg_1").tool_call("c0", "read", &arguments);
    for (n, some) in texts().chunks(3).enumerate() {
        answer = answer.tool_call(&format!("d{n}"), &some.concat(), &json!({"x": some}).to_string());
    }
    user.server.reply(ServerReply::sse(answer.stop("tool_use").concat()));
    let question = json!({"questions": [{"id": "q", "header": texts()[..9].concat(), "question": paragraphs(),
        "options": [{"label": texts()[9..18].concat(), "description": texts()[18..27].concat()}, {"label": "b"}]}]});
    let asks = AnthropicResponse::new("msg_1").tool_call("e1", "ask_user", &question.to_string()).stop("tool_use");
    user.server.reply(ServerReply::sse(asks.concat()));
    user.answer("all is over");
    program.keys("tools\r").await;
    program.wait_for("The agent asks").await;
    tokio::time::sleep(FRAME * 12).await;
    program.keys("\u{1b}").await;
    program.wait_for("all is over").await;
    let refused = json!({"type": "error", "error": {"type": "invalid_request_error", "message": texts().concat()}});
    user.server.reply(ServerReply::json(400, &refused));
    program.keys("once more\r").await;
    program.wait_for("Error:").await;
    program.wait_for("local | idle").await;
    program.keys("\u{10}").await;
    program.wait_for("Session of main").await;
    press(&mut program, "\u{1b}[6~", 45).await;
    program.keys("\r").await;
    tokio::time::sleep(FRAME * 4).await;
    submit(&mut program, &format!("/session {}", texts()[..20].concat().replace('\r', ""))).await;
    tokio::time::sleep(FRAME * 4).await;
    leave(program, AllowedOutput::default()).await;
    user.server.take_unexpected();
}

#[tokio::test]
async fn plain_lines_for_screen_readers() {
    let user = TestUser::new().await;
    let agent_dir = user.path("agent");
    let args = ["--agent-dir", agent_dir.to_str().unwrap(), "--plain", "--model", "local/m1"];
    let mut program = TerminalProgram::run_sized(&user, "", &[], &args, SIZE);
    program.wait_for(">").await;
    let answer = AnthropicResponse::new("msg_1")
        .with_chunks_of(3)
        .thinking(&paragraphs(), "s")
        .text(&paragraphs())
        .text("\n\nthe end");
    user.server.reply(ServerReply::sse(answer.stop("end_turn").concat()));
    program.keys("go\n").await;
    program.wait_for("the end").await;
    let refused = json!({"type": "error", "error": {"type": "invalid_request_error", "message": paragraphs()}});
    user.server.reply(ServerReply::json(400, &refused));
    program.keys("once more\n").await;
    program.wait_for("Error:").await;
    program.keys("/quit\n").await;
    program.end().await;
    assert!(!program.bytes.contains(&0x1b));
    check(&program.bytes, AllowedOutput::default());
    user.server.take_unexpected();
}
