//! The program inside tmux, whose answers come from a script in its place.
#![cfg(target_os = "linux")]

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use crate::chat;
use crate::help::TestUser;
use crate::terminal_program::TerminalProgram;

/// Runs the program in a tmux whose options `extended-keys` and, if it has that, `extended-keys-format` have these values.
fn run(user: &TestUser, (keys, format): (&str, Option<&str>), args: &[&str]) -> TerminalProgram {
    let ask = "-S /tmp/sock show-options -gv";
    let format = format.map_or_else(String::new, |format| format!("\"{ask} extended-keys-format\") echo {format};;\n"));
    let script =
        format!("#!/bin/sh\ncase \"$*\" in\n\"{ask} extended-keys\") echo {keys};;\n{format}*) exit 1;;\nesac\n");
    let tmux = user.write("bin/tmux", &script);
    std::fs::set_permissions(tmux, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("PATH={}:/usr/bin:/bin", user.path("bin").display());
    let agent_dir = format!("PINCH_AGENT_DIR={}", user.path("agent").display());
    let vars = ["TERM=tmux-256color", "TMUX=/tmp/sock,42,0", &path, &agent_dir];
    TerminalProgram::run_with(user, "", &vars, args)
}

/// Starts the interactive mode.
async fn start(user: &TestUser, keys: &str, format: Option<&str>) -> TerminalProgram {
    let mut program = run(user, (keys, format), &["--model", "local/m1"]);
    program.wait_for("/ for commands").await;
    program
}

async fn exit(mut program: TerminalProgram) -> String {
    program.keys("\u{3}\u{4}").await;
    assert_eq!(program.end().await, Some(0));
    String::from_utf8_lossy(&program.bytes).into_owned()
}

#[tokio::test]
async fn a_tmux_without_extended_keys_is_reported_once_and_in_the_list_of_keys() {
    let user = TestUser::new().await;
    let mut program = start(&user, "off", None).await;
    program.wait_for("tmux passes shift+enter on as enter").await;
    // The keys that remain.
    program.keys("one\ntwo\\\rthree").await;
    program.wait_until("three lines", |screen| screen.contains("one\ntwo\nthree")).await;
    let bytes = exit(program).await;
    assert!(!bytes.contains("\u{1b}[>4;1m"));

    let mut program = start(&user, "off", None).await;
    // tmux is asked in the background.
    tokio::time::sleep(Duration::from_secs(1)).await;
    program.keys("/hotkeys\r").await;
    program.wait_for("tmux passes shift+enter on as enter").await;
    let bytes = exit(program).await;
    assert_eq!(bytes.matches("Warning").count(), 0, "{bytes}");
}

#[tokio::test]
async fn a_tmux_with_extended_keys_is_asked_for_them() {
    let user = TestUser::new().await;
    let mut program = start(&user, "on", None).await;
    program.wait_for_bytes("\u{1b}[>4;1m").await;
    program.keys("one\u{1b}[13;2utwo").await;
    program.wait_until("two lines", |screen| screen.contains("one\ntwo")).await;
    assert!(!program.contents().contains("tmux passes"));
    let bytes = exit(program).await;
    assert!(bytes.contains("\u{1b}[>4;0m"), "{bytes:?}");
}

#[tokio::test]
async fn keys_in_xterms_format_are_understood() {
    let user = TestUser::new().await;
    let mut program = start(&user, "on", Some("xterm")).await;
    program.wait_for_bytes("\u{1b}[>4;1m").await;
    program.keys("one\u{1b}[27;2;13~two\u{1b}[27;5;106~three").await;
    program.wait_until("three lines", |screen| screen.contains("one\ntwo\nthree")).await;
    // A key arrives in two pieces.
    program.keys("\u{1b}[27;5;9").await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    program.keys("9~").await;
    program.wait_until("an empty editor", |screen| !screen.contains("three")).await;
    program.keys("\u{1b}[200~a [27;5;99~ b\u{1b}[201~").await;
    program.wait_for("a [27;5;99~ b").await;
    assert!(!program.contents().contains("tmux passes"), "{}", program.contents());
    program.keys("\u{1b}[27;5;99~\u{1b}[27;5;100~").await;
    assert_eq!(program.end().await, Some(0));
}

#[tokio::test]
async fn a_chat_says_once_what_to_set_in_tmux_and_asks_it_for_modifiers() {
    let user = chat::user().await;
    let mut program = run(&user, ("off", None), &["chat"]);
    program.wait_for("tmux passes shift+enter on as enter").await;
    exit(program).await;

    let mut program = run(&user, ("off", None), &["chat"]);
    program.wait_for("local | idle").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    program.keys("/help\r").await;
    program.wait_for("tmux passes shift+enter on as enter").await;
    let bytes = exit(program).await;
    assert_eq!(bytes.matches("Warning").count(), 0, "{bytes}");

    let mut program = run(&user, ("on", Some("xterm")), &["chat"]);
    program.wait_for_bytes("\u{1b}[>4;1m").await;
    program.wait_for("local | idle").await;
    program.keys("one\u{1b}[27;2;13~two").await;
    program.wait_until("two lines", |screen| screen.contains("one\ntwo")).await;
    let bytes = exit(program).await;
    assert!(bytes.contains("\u{1b}[>4;0m"), "{bytes:?}");
}

#[tokio::test]
async fn the_list_of_resources_says_once_what_to_set_in_tmux_and_asks_it_for_modifiers() {
    let user = TestUser::new().await;
    let config = ["config"];
    let mut program = run(&user, ("off", None), &config);
    program.wait_for("Add `set -g extended-keys on` to").await;
    // It stays while the list is used.
    program.keys("\u{1b}[B").await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(program.contents().contains("extended-keys"), "{}", program.contents());
    program.keys("\u{1b}").await;
    assert_eq!(program.end().await, Some(0));

    let mut program = run(&user, ("off", None), &config);
    program.wait_for("Global resources").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!program.contents().contains("extended-keys"), "{}", program.contents());
    program.keys("\u{1b}").await;
    assert_eq!(program.end().await, Some(0));

    // The notice of another program is not used up.
    let mut program = start(&user, "off", None).await;
    program.wait_for("tmux passes shift+enter on as enter").await;
    exit(program).await;

    let mut program = run(&user, ("on", None), &config);
    program.wait_for_bytes("\u{1b}[>4;1m").await;
    program.wait_for("Global resources").await;
    program.keys("\u{1b}[27;5;99~").await;
    assert_eq!(program.end().await, Some(0));
    assert!(String::from_utf8_lossy(&program.bytes).contains("\u{1b}[>4;0m"));
}
