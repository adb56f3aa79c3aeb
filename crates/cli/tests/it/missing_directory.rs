//! Sessions whose working directory no longer exists, in the interactive mode.
#![cfg(target_os = "linux")]

use std::time::Duration;

use crate::help::{TestUser, files};
use crate::sessions::stored;
use crate::terminal_program::TerminalProgram;

const GONE: &str = "no longer exists: /no/such/dir";
const ID: &str = "01900000-0000-7000-8000-0000000000aa";

/// Starts the program; the first thing on the screen is this text.
async fn start(user: &TestUser, args: &[&str], first: &str) -> TerminalProgram {
    let agent_dir = user.path("agent");
    let args = [&["--agent-dir", agent_dir.to_str().unwrap(), "--model", "local/m1"], args].concat();
    let mut program = TerminalProgram::run_in(user, "", &args);
    program.wait_for(first).await;
    program
}

/// Answers a question, which ignores keys for a moment.
async fn answer(program: &mut TerminalProgram, keys: &str) {
    tokio::time::sleep(Duration::from_millis(700)).await;
    program.keys(keys).await;
}

#[tokio::test]
async fn a_session_named_on_the_command_line_asks_where_to_continue() {
    let user = TestUser::new().await;
    let path = user.write("s.jsonl", &stored(ID, "/no/such/dir"));
    let before = std::fs::read_to_string(&path).unwrap();

    let mut program = start(&user, &["--session", "s.jsonl"], GONE).await;
    assert!(program.contents().contains("Continue in ~ (asks again next time)"), "{}", program.contents());
    answer(&mut program, "\u{1b}").await;
    // Cancelling is not a failure.
    assert_eq!(program.end().await, Some(0));
    assert!(String::from_utf8_lossy(&program.bytes).contains("Aborted."));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), before);

    // A copy belongs to this directory.
    let mut program = start(&user, &["--session", "s.jsonl"], GONE).await;
    answer(&mut program, "2").await;
    program.wait_for("stored answer").await;
    program.keys("\u{4}").await;
    assert_eq!(program.end().await, Some(0));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), before);
    let copies = files(&user.path("agent/sessions"));
    assert_eq!(copies.len(), 1);
    let home = user.path("").canonicalize().unwrap();
    assert!(std::fs::read_to_string(&copies[0]).unwrap().contains(&format!("\"cwd\":{home:?}").replace("/\"", "\"")));

    // The session itself works here, but still records its own directory.
    let mut program = start(&user, &["--session", "s.jsonl"], GONE).await;
    answer(&mut program, "\r").await;
    program.wait_for("stored answer").await;
    program.keys("!pwd; echo so-$((40+2))\r").await;
    program.wait_for("so-42").await;
    assert!(program.contents().contains(home.to_str().unwrap()), "{}", program.contents());
    program.keys("\u{4}").await;
    assert_eq!(program.end().await, Some(0));
    let after = std::fs::read_to_string(&path).unwrap();
    assert!(after.starts_with(&before) && after.contains("so-42"), "{after}");
}

#[tokio::test]
async fn a_session_chosen_from_the_list_asks_where_to_continue() {
    let user = TestUser::new().await;
    let path = user.write("agent/sessions/--no-such-dir--/1.jsonl", &stored(ID, "/no/such/dir"));
    let before = std::fs::read_to_string(&path).unwrap();
    let mut program = start(&user, &["--resume"], "No sessions").await;
    program.keys("\t").await;
    program.wait_for("stored question").await;
    program.keys("\r").await;
    program.wait_for(GONE).await;
    answer(&mut program, "\u{1b}").await;
    program.wait_for("The session was not resumed").await;

    program.keys("/resume\r").await;
    program.wait_for("No sessions").await;
    program.keys("\t").await;
    program.wait_for("stored question").await;
    program.keys("\r").await;
    program.wait_for(GONE).await;
    answer(&mut program, "1").await;
    program.wait_for("stored answer").await;
    program.wait_for("Session resumed in this directory").await;
    user.answer("and a new one");
    program.keys("go on\r").await;
    program.wait_for("and a new one").await;
    program.keys("\u{4}").await;
    assert_eq!(program.end().await, Some(0));
    let after = std::fs::read_to_string(&path).unwrap();
    assert!(after.starts_with(&before) && after.contains("and a new one"), "{after}");
}
