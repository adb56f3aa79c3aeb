//! How a terminal shows foreign text.
#![cfg(target_os = "linux")]

use pinch_testing::server::ServerReply;
use serde_json::json;

use crate::help::{CommandOutput, TestUser};

/// Sets the clipboard, a title and a colour, and changes the direction of text.
const HOSTILE: &str = "a\u{1b}]52;c;eA==\u{7}\u{9b}31m\u{202e}z";
const SHOWN: &str = "a␛]52;c;eA==␇<U+009B>31m<U+202E>z";

/// Runs the program in a terminal; returns both outputs combined.
async fn in_terminal(user: &TestUser, args: &[&str]) -> CommandOutput {
    let quoted = |arg: &&str| format!("'{}'", arg.replace('\'', "'\\''"));
    let agent_dir = user.path("agent");
    let all = [&[env!("CARGO_BIN_EXE_pinch"), "--agent-dir", agent_dir.to_str().unwrap()], args].concat();
    let line = all.iter().map(quoted).collect::<Vec<_>>().join(" ");
    let mut command = tokio::process::Command::new("script");
    command.current_dir(user.path("")).env_clear().env("HOME", user.path("")).env("PATH", "/usr/bin:/bin");
    command.args(["-qec", &line, "/dev/null"]).stdin(std::process::Stdio::null());
    user.ran(command.output().await.unwrap())
}

#[tokio::test]
async fn foreign_text_is_harmless_on_a_terminal_and_exact_in_a_pipe() {
    let user = TestUser::new().await;
    let ask = ["--model", "local/m1", "-p", "x"];
    user.answer(HOSTILE);
    assert_eq!(user.run(&ask).await.out, format!("{HOSTILE}\n"));
    user.answer(HOSTILE);
    let shown = in_terminal(&user, &ask).await;
    assert_eq!((shown.code, shown.out), (Some(0), format!("{SHOWN}\r\n")));

    let refused = json!({"type": "error", "error": {"type": "invalid_request_error", "message": HOSTILE}});
    user.server.reply(ServerReply::json(400, &refused));
    let exact = user.run(&ask).await;
    assert!(exact.err.contains("\u{202e}"), "{}", exact.err);
    user.server.reply(ServerReply::json(400, &refused));
    let shown = in_terminal(&user, &ask).await;
    assert_eq!(shown.code, Some(3));
    assert!(
        shown.out.contains("<U+202E>") && !shown.out.contains(['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}']),
        "{:?}",
        shown.out
    );

    let file = format!("@{HOSTILE}");
    let missing = in_terminal(&user, &["--model", "local/m1", "-p", "x", &file]).await;
    assert!(missing.out.contains(SHOWN), "{:?}", missing.out);
    for command in
        [&["--list-models", HOSTILE][..], &["--mode", "json", "--no-session", "--model", "local/m1", "-p", "x"]]
    {
        user.answer(HOSTILE);
        let ran = in_terminal(&user, command).await;
        assert!(
            ran.out.contains("<U+202E>") && !ran.out.contains(['\u{1b}', '\u{9b}', '\u{202e}']),
            "{command:?}: {:?}",
            ran.out
        );
        user.server.take_unexpected();
    }
}
