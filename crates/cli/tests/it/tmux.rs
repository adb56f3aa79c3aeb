//! The interactive mode inside tmux, whose answers come from a script in its place.
#![cfg(target_os = "linux")]

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use crate::help::TestUser;
use crate::terminal_program::TerminalProgram;

/// Starts the program in a tmux whose option `extended-keys` has this value, and which has no `extended-keys-format`.
async fn start(user: &TestUser, keys: &str) -> TerminalProgram {
    let script = format!("#!/bin/sh\n[ \"$*\" = \"-S /tmp/sock show-options -gv extended-keys\" ] && echo {keys}\n");
    let tmux = user.write("bin/tmux", &script);
    std::fs::set_permissions(tmux, std::fs::Permissions::from_mode(0o755)).unwrap();
    let agent_dir = user.path("agent");
    let args = ["--agent-dir", agent_dir.to_str().unwrap(), "--model", "local/m1"];
    let path = format!("PATH={}:/usr/bin:/bin", user.path("bin").display());
    let vars = ["TERM=tmux-256color", "TMUX=/tmp/sock,42,0", &path];
    let mut program = TerminalProgram::run_with(user, "", &vars, &args);
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
    let mut program = start(&user, "off").await;
    program.wait_for("tmux passes shift+enter on as enter").await;
    // The keys that remain.
    program.keys("one\ntwo\\\rthree").await;
    program.wait_until("three lines", |screen| screen.contains("one\ntwo\nthree")).await;
    let bytes = exit(program).await;
    assert!(!bytes.contains("\u{1b}[>4;1m"));

    let mut program = start(&user, "off").await;
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
    let mut program = start(&user, "on").await;
    program.wait_for_bytes("\u{1b}[>4;1m").await;
    program.keys("one\u{1b}[13;2utwo").await;
    program.wait_until("two lines", |screen| screen.contains("one\ntwo")).await;
    assert!(!program.contents().contains("tmux passes"));
    let bytes = exit(program).await;
    assert!(bytes.contains("\u{1b}[>4;0m"), "{bytes:?}");
}
