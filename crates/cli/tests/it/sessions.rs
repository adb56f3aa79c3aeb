//! The session that a conversation continues: flags and their error messages.

use std::path::Path;

use serde_json::{Value, json};

use crate::help::{CommandOutput, TestUser, files};

/// Sends a prompt to `local/m1` and gets an answer.
async fn ask(user: &TestUser, args: &[&str]) -> CommandOutput {
    user.answer("ok");
    let ran = user.run(&[&["--model", "local/m1"], args].concat()).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "ok\n"), "pinch {}: {}", args.join(" "), ran.err);
    ran
}

/// Checks an error in flags: nothing is sent and nothing is written.
async fn fails(user: &TestUser, args: &[&str], err: &str) {
    let before = files(&user.path("agent/sessions"));
    let ran = user.run(&[&["--model", "local/m1"], args, &["-p", "x"]].concat()).await;
    let wanted = CommandOutput { code: Some(1), out: String::new(), err: format!("{err}\n") };
    assert_eq!(ran, wanted, "pinch {}", args.join(" "));
    assert_eq!(files(&user.path("agent/sessions")), before);
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn sessions(user: &TestUser) -> Vec<Vec<Value>> {
    files(&user.path("agent/sessions")).iter().map(|path| lines(path)).collect()
}

/// Returns a session of a working directory with one question and one answer.
pub(crate) fn stored(id: &str, cwd: &str) -> String {
    let entry = |id: &str, parent: Value, message: Value| json!({"type": "message", "id": id, "parentId": parent, "timestamp": "2025-06-01T10:00:00.000Z", "message": message});
    let header =
        json!({"type": "session", "version": 3, "id": id, "timestamp": "2025-06-01T10:00:00.000Z", "cwd": cwd});
    let question = json!({"role": "user", "content": "stored question", "timestamp": 1_748_772_001_000_i64});
    let answer = json!({"role": "assistant", "content": [{"type": "text", "text": "stored answer"}],
        "api": "anthropic-messages", "provider": "local", "model": "m1", "stopReason": "stop", "timestamp": 1_748_772_002_000_i64,
        "usage": {"input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 2,
            "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}}});
    format!(
        "{header}\n{}\n{}\n",
        entry("a0000001", Value::Null, question),
        entry("a0000002", "a0000001".into(), answer)
    )
}

#[tokio::test]
async fn contradictory_flags_are_errors() {
    let user = TestUser::new().await;
    fails(&user, &["--continue", "--no-session"], "Error: --no-session cannot be combined with --continue").await;
    fails(&user, &["-c", "--session", "x"], "Error: --session cannot be combined with --continue").await;
    let fork = "Error: --fork cannot be combined with --session, --continue, --no-session";
    fails(&user, &["--no-session", "--fork", "abc", "-c", "--session", "x"], fork).await;
    let id = "Error: --session-id cannot be combined with --session, --continue";
    fails(&user, &["--session-id", "a", "-c", "--session", "x"], id).await;
    let bad = "Error: Session id must be non-empty, contain only alphanumeric characters, '-', '_', and '.', and start and \
         end with an alphanumeric character";
    for id in ["-x", "a/b", "../up", ""] {
        fails(&user, &["--session-id", id], bad).await;
    }
    fails(&user, &["--name", " \n"], "Error: --name requires a non-empty value").await;
}

#[tokio::test]
async fn missing_sessions_are_errors() {
    let user = TestUser::new().await;
    fails(&user, &["--session", "abc"], "No session found matching 'abc'").await;
    fails(&user, &["--fork", "abc"], "No session found matching 'abc'").await;
    let empty = "Error: Cannot fork: source session file is empty or invalid: HOME/none.jsonl";
    fails(&user, &["--fork", "./sub/../none.jsonl"], empty).await;
}

#[tokio::test]
async fn a_missing_directory_is_an_error_unless_the_session_is_copied() {
    let user = TestUser::new().await;
    user.write("s.jsonl", &stored("01900000-0000-7000-8000-0000000000aa", "/no/such/dir"));
    let gone = "Stored session working directory does not exist: /no/such/dir\nSession file: HOME/s.jsonl\n\
         Current working directory: HOME";
    fails(&user, &["--session", "s.jsonl"], gone).await;
    ask(&user, &["--fork", "sub/../s.jsonl", "--session-id", "copy", "-p", "more"]).await;
    let copy = &sessions(&user)[0];
    let home = user.path("s.jsonl").parent().unwrap().to_owned();
    assert_eq!((&copy[0]["id"], &copy[0]["cwd"]), (&json!("copy"), &json!(home)));
    assert_eq!(copy[0]["parentSession"], json!(user.path("s.jsonl")));
    assert_eq!(copy[2]["id"], "a0000002");
    fails(&user, &["--fork", "s.jsonl", "--session-id", "copy"], "Session already exists with id 'copy'").await;
}

#[tokio::test]
async fn ids_are_found_here_first_and_elsewhere_only_for_a_copy() {
    let user = TestUser::new().await;
    let root = user.path("agent").parent().unwrap().to_str().unwrap().to_owned();
    let here = pinch_embed::coding_agent::entry::names::dir_name(&root);
    user.write(&format!("agent/sessions/{here}/1.jsonl"), &stored("abcd-here", &root));
    user.write(&format!("agent/sessions/{here}/2.jsonl"), &stored("abc", &root));
    user.write("agent/sessions/--else--/3.jsonl", &stored("abcx-else", "/else"));
    ask(&user, &["--session", "abcd", "-p", "more"]).await;
    ask(&user, &["--session", "abc", "-p", "more"]).await;
    let n_lines = |name: &str| lines(&user.path("agent/sessions").join(name)).len();
    assert!(n_lines(&format!("{here}/1.jsonl")) > 3, "the only one that begins like this");
    assert!(n_lines(&format!("{here}/2.jsonl")) > 3, "the very id goes before a later one that begins with it");
    let elsewhere = "Error: Session found in different project: /else\nhint: to copy it into this one, use --fork abcx";
    fails(&user, &["--session", "abcx"], elsewhere).await;
    ask(&user, &["--fork", "abcx", "-p", "more"]).await;
    assert_eq!(n_lines("--else--/3.jsonl"), 3, "the source stays as it is");
    let copies = sessions(&user).into_iter().filter(|lines| lines[0]["parentSession"].is_string()).count();
    assert_eq!(copies, 1);
}

#[tokio::test]
async fn a_custom_id_names_a_session_permanently() {
    let user = TestUser::new().await;
    let new = "Warning: No project session found with id 'my.id-1'; creating a new session with that id.\n";
    assert_eq!(ask(&user, &["--session-id", "my.id-1", "--name", "a\nb", "-p", "one"]).await.err, new);
    assert_eq!(ask(&user, &["--session-id", "my.id-1", "-p", "two"]).await.err, "");
    let sessions = sessions(&user);
    assert_eq!(sessions.len(), 1);
    assert_eq!((&sessions[0][1]["type"], &sessions[0][1]["name"]), (&"session_info".into(), &"a b".into()));
    assert!(user.asked().unwrap().to_string().contains("one"));
    // Nothing is stored, and an id for the provider's cache is still the user's choice.
    let ran = ask(&user, &["--no-session", "--session-id", "my.id-2", "--mode", "text", "-p", "x"]).await;
    assert_eq!(ran.err, "");
    assert_eq!(files(&user.path("agent/sessions")).len(), 1);
}

#[tokio::test]
async fn continue_stays_in_the_working_directory() {
    let user = TestUser::new().await;
    user.write("all/other.jsonl", &stored("other", "/"));
    ask(&user, &["--session-dir", "all", "-c", "-p", "first"]).await;
    ask(&user, &["--session-dir", "all", "-c", "-p", "second"]).await;
    assert_eq!(files(&user.path("all")).len(), 2, "one of ours beside the other");
    assert_eq!(lines(&user.path("all/other.jsonl")).len(), 3);
    assert!(user.asked().unwrap().to_string().contains("first"));
}

#[tokio::test]
async fn a_deep_working_directory_can_have_sessions() {
    let user = TestUser::new().await;
    let deep = user.path(&["d".repeat(100), "e".repeat(100), "f".repeat(100)].join("/"));
    let beside = deep.with_file_name("g".repeat(100));
    for (cwd, args, text) in [
        (&deep, &["--session-id", "deep-1"][..], "first"),
        (&beside, &["-c"][..], "elsewhere"),
        (&deep, &["-c"][..], "second"),
        (&deep, &["--session", "deep"][..], "third"),
    ] {
        std::fs::create_dir_all(cwd).unwrap();
        user.answer("ok");
        let mut command = user.command(&[&["--model", "local/m1"], args, &["-p", text]].concat());
        let ran = user.ran(command.current_dir(cwd).output().await.unwrap());
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), "ok\n"), "{text}: {}", ran.err);
    }
    let asked = user.asked().unwrap().to_string();
    assert!(["first", "second", "third"].iter().all(|text| asked.contains(text)), "{asked}");
    assert!(!asked.contains("elsewhere"), "{asked}");
    assert_eq!(sessions(&user).len(), 2);
}

#[tokio::test]
async fn damaged_session_files_are_repaired() {
    let user = TestUser::new().await;
    let header = r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/"}"#;
    let damaged =
        user.write("s.jsonl", &format!("{header}\nx\n{{\"type\":\"message\",\"id\":\"a\",\"parentId\":\"b\"}}\n"));
    let path = damaged.to_str().unwrap();
    let done = user.run_program(&["sessions", "repair", path]).await;
    assert_eq!(done.code, Some(0), "{done:?}");
    let said = "HOME/s.jsonl: repaired, 1 line removed, 1 reattached; a copy is in HOME/s.jsonl.bak-";
    assert!(done.out.starts_with(said), "{done:?}");
    let text = std::fs::read_to_string(&damaged).unwrap();
    assert_eq!(text, format!("{header}\n{{\"type\":\"message\",\"id\":\"a\",\"parentId\":null}}\n"));
    let again = user.run_program(&["sessions", "repair", path, "missing.jsonl", "--json"]).await;
    let shown: Value = serde_json::from_str(&again.out).unwrap();
    assert_eq!(
        (again.code, &shown[0]["repaired"], &shown[1]["reason"]),
        (Some(1), &false.into(), &"missing session file".into())
    );
}

#[tokio::test]
async fn a_session_in_use_is_not_repaired() {
    let user = TestUser::new().await;
    let file = user.write("s.jsonl", "x\n");
    let lock = json!({"pid": std::process::id(), "createdAt": pinch_embed::stdx::host::Host::system().now_iso()});
    user.write("s.jsonl.lock", &lock.to_string());
    let refused = user.run_program(&["sessions", "repair", file.to_str().unwrap()]).await;
    assert!(refused.code == Some(1) && refused.out.contains("is in use by process"), "{refused:?}");
    let header = r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/"}"#;
    let damaged = user.write("t.jsonl", &format!("{header}\nx\n{{}}\n"));
    let files = [file.to_str().unwrap(), damaged.to_str().unwrap(), "missing.jsonl"];
    let all = user.run_program(&["sessions", "repair", files[0], files[1], files[2]]).await;
    assert_eq!(all.code, Some(1), "{all:?}");
    let lines: Vec<&str> = all.out.lines().collect();
    assert!(lines[0].starts_with("HOME/s.jsonl: not repaired: "), "{all:?}");
    assert!(lines[1].starts_with("HOME/t.jsonl: repaired, 1 line removed"), "{all:?}");
    assert_eq!(lines[2], "missing.jsonl: not repaired: missing session file", "{all:?}");
    let shown = user.run_program(&["sessions", "repair", files[0], "--json"]).await;
    assert!(shown.code == Some(1) && shown.out.contains("is in use by process"), "{shown:?}");
}
