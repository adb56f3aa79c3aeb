//! `pinch doctor`: its findings on a prepared machine.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::help::{CommandOutput, TestUser};

async fn doctor(user: &TestUser, args: &[&str]) -> CommandOutput {
    let agent_dir = user.path("agent");
    user.run_program(&[&["doctor", "--agent-dir", agent_dir.to_str().unwrap()], args].concat()).await
}

/// Returns the findings of a section: status, name and text.
fn section(ran: &CommandOutput, title: &str) -> Vec<String> {
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    let sections = report["sections"].as_array().unwrap();
    let section = sections.iter().find(|section| section["title"] == title).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let findings = section["findings"].as_array().unwrap().iter();
    findings.map(|one| ["mark", "name", "text"].map(|member| text(&one[member])).join(" | ")).collect()
}

#[tokio::test]
async fn problems_are_reported_without_secrets() {
    let user = TestUser::new().await;
    let secrets = ["sk-secret-1", "sk-secret-2", "sk-secret-3", "sk-secret-4"];
    let models = json!({"providers": {
        "mine": {"baseUrl": "http://u:sk-secret-1@127.0.0.1:1/v1?key=sk-secret-2", "api": "openai-completions",
                 "apiKey": "sk-secret-3", "models": [{"id": "m"}, {"id": 7}]},
        "unset": {"baseUrl": "https://models.example.com", "api": "openai-completions", "apiKey": "$NOPE", "models": [{"id": "m"}]},
    }});
    user.write("agent/models.json", &models.to_string());
    let auth = json!({"groq": {"type": "api_key", "key": "HOME"}, "openai": {"type": "api_key", "key": "sk-secret-4"}});
    let auth = user.write("agent/auth.json", &auth.to_string());
    user.write("agent/settings.json", "{broken");
    user.write("agent/keybindings.json", r#"{"app.exit": "ctrl+d", "app.clear": 7}"#);
    user.write("agent/extensions/x.js", "");
    user.write("agent/sessions/w/bad.jsonl", "no session\n");
    user.write("agent/sessions/w/good.jsonl", "{\"type\":\"session\",\"id\":\"a\",\"timestamp\":\"\",\"cwd\":\"/\"}\n");
    user.write(
        ".pinch/agents/main/sessions/cut.jsonl",
        "{\"type\":\"session\",\"id\":\"b\",\"timestamp\":\"\",\"cwd\":\"/\"}\n{\"type\":\"mess\n",
    );
    user.write(".pinch/agents/main/sessions/s.jsonl.lock", r#"{"pid": 4294967294, "createdAt": ""}"#);
    std::fs::create_dir(user.path("agent/auth.json.lock")).unwrap();
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    std::fs::File::open(user.path("agent/auth.json.lock")).unwrap().set_modified(long_ago).unwrap();
    #[cfg(unix)]
    std::fs::set_permissions(&auth, std::os::unix::fs::PermissionsExt::from_mode(0o640)).unwrap();

    let ran = doctor(&user, &["--offline", "--json"]).await;
    assert_eq!((ran.code, ran.err.as_str()), (Some(2), ""));
    #[cfg(unix)]
    assert_eq!(
        section(&ran, "Directories"),
        [
            "ok | agent directory | HOME/agent",
            "ok | sessions | HOME/agent/sessions",
            "ok | state directory | HOME/.pinch",
            "- | project | none in this directory",
            "warn | auth.json | accessible to other users (mode 640). Run chmod 600 HOME/agent/auth.json",
        ]
    );
    assert_eq!(
        section(&ran, "Configuration files"),
        [
            "fail | settings.json | HOME/agent/settings.json:1:2: is not valid JSON: key must be a string. Fix it there; \
             the file is left unchanged",
            "warn | models.json | HOME/agent/models.json:providers.mine.models.1.id: must be string. The model is ignored",
            &format!("ok | auth.json | {} bytes", std::fs::metadata(&auth).unwrap().len()),
            "- | trust.json | not present",
            "warn | keybindings.json | HOME/agent/keybindings.json:app.clear: must be a key or a list of keys. It is ignored",
        ]
    );
    let hint = "warn | groq | The key of groq is the literal text \"HOME\", but a variable of that name is set. Write \"$HOME\" to use it";
    let unset = "warn | unset | Failed to resolve API key for provider \"unset\" from environment variable: NOPE";
    assert_eq!(
        section(&ran, "Keys"),
        ["ok | groq | auth.json", hint, "ok | openai | auth.json", "ok | mine | models.json", unset]
    );
    assert_eq!(section(&ran, "Servers"), ["- | servers | not checked: offline"]);
    assert_eq!(section(&ran, "Extensions"), ["ok | x.js | HOME/agent/extensions/x.js (auto)"]);
    let sessions = section(&ran, "Sessions and locks");
    assert_eq!(
        sessions[..2],
        [
            "warn | session | HOME/agent/sessions/w/bad.jsonl is not a session file and is ignored",
            "ok | sessions | 1 readable",
        ]
    );
    assert!(sessions[2].starts_with("warn | stale lock | HOME/agent/auth.json.lock is "), "{sessions:?}");
    let lock =
        "warn | stale lock | HOME/.pinch/agents/main/sessions/s.jsonl.lock has no owner. The next run removes it";
    let damaged = "warn | session | HOME/.pinch/agents/main/sessions/cut.jsonl has 1 damaged line, which is skipped. Run pinch sessions \
                   repair HOME/.pinch/agents/main/sessions/cut.jsonl to remove it";
    assert_eq!(sessions[3..], [damaged, lock]);

    let ran = doctor(&user, &[]).await;
    assert_eq!(ran.code, Some(2));
    assert!(ran.out.contains("  warn  mine                    http://127.0.0.1:1 does not respond: "), "{}", ran.out);
    assert!(ran.out.lines().last().unwrap().starts_with("1 error, "), "{}", ran.out);
    for secret in secrets {
        assert!(!ran.out.contains(secret) && !ran.err.contains(secret), "{secret}");
    }
}

#[tokio::test]
async fn a_good_machine_has_no_problems() {
    let user = TestUser::new().await;
    user.answer("a server that answers anything");
    let ran = doctor(&user, &["--json"]).await;
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let servers = section(&ran, "Servers");
    let local = format!("ok | local | {} responds", user.server.url().trim_end_matches('/'));
    assert!(servers.contains(&local), "{local}: {servers:?}");
    assert!(
        servers.iter().any(|one| one.starts_with("warn | nowhere | http://127.0.0.1:1 does not respond")),
        "{servers:?}"
    );
    assert!(section(&ran, "Configuration files").iter().all(|one| !one.starts_with("fail")), "{}", ran.out);
    let left = crate::help::files(&user.path("agent"));
    assert_eq!(left, [user.path("agent/models.json"), user.path("agent/settings.json")], "it changes nothing");
}

#[tokio::test]
async fn the_state_directory_of_openclaw_is_named_and_not_touched() {
    let user = TestUser::new().await;
    user.answer("a server that answers anything");
    let config = user.write(".openclaw/openclaw.json", r#"{"agents": {"defaults": {"model": "a/b"}}}"#);
    let dir = config.parent().unwrap();
    let ran = doctor(&user, &["--json"]).await;
    let note = "- | OpenClaw | HOME/.openclaw is not used. To share it, set PINCH_STATE_DIR=HOME/.openclaw";
    let found = section(&ran, "Directories");
    assert!(found.iter().any(|one| one == note), "{found:?}");
    assert!(
        found.iter().any(|one| one.starts_with("ok | state directory | ") && one.ends_with(".pinch, not created yet"))
    );
    assert_eq!(crate::help::files(dir), [config]);
}

#[cfg(unix)]
#[tokio::test]
async fn a_directory_that_cannot_be_created_is_a_failure() {
    let user = TestUser::new().await;
    let file = user.write("file", "");
    let agent_dir = file.join("agent");
    let ran = user.run_program(&["doctor", "--offline", "--agent-dir", agent_dir.to_str().unwrap()]).await;
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.out.contains("  fail  agent directory         HOME/file is not a directory. Move it away\n"),
        "{}",
        ran.out
    );
    assert!(ran.out.contains("  warn  keys                    none. Set an environment variable"), "{}", ran.out);
}

#[tokio::test]
async fn the_sandbox_in_the_settings_is_reported() {
    let user = TestUser::new().await;
    let in_use = async || section(&doctor(&user, &["--offline", "--json"]).await, "Sandbox").pop().unwrap();
    assert!(in_use().await.starts_with("- | in use | none, unless --sandbox"));
    user.write("agent/settings.json", r#"{"sandbox": {"backend": "landlock"}}"#);
    assert_eq!(in_use().await, "ok | in use | landlock, as the settings say");
}

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
#[tokio::test]
async fn an_unavailable_sandbox_in_the_settings_is_a_failure() {
    let user = TestUser::new().await;
    let ran = async || {
        let ran = doctor(&user, &["--offline", "--json"]).await;
        let found = section(&ran, "Sandbox");
        (ran.code, found.into_iter().filter(|line| line.starts_with("fail")).collect::<Vec<_>>())
    };
    user.write("agent/settings.json", r#"{"sandbox": {"backend": "runc", "rootfs": "/nowhere/rootfs"}}"#);
    let (code, failed) = ran().await;
    assert_eq!((code, failed.len()), (Some(2), 1), "{failed:?}");
    assert!(failed[0].starts_with("fail | in use | sandbox runc is not available: "), "{failed:?}");
    user.write("agent/settings.json", r#"{"sandbox": {"backend": "none"}}"#);
    assert!(ran().await.1.is_empty());
    // Sandboxes of embedded runs, of which each is entered once.
    let config = |mode: &str| {
        let sandbox = json!({"mode": mode, "backend": "docker", "docker": {"image": "no/such-image"}});
        let document = json!({"agents": {"defaults": {"sandbox": sandbox}, "list": [
            {"id": "main"}, {"id": "other"}, {"id": "open", "sandbox": {"mode": "off"}},
        ]}});
        user.write(".pinch/pinch.json", &document.to_string());
    };
    config("all");
    let (code, failed) = ran().await;
    assert_eq!((code, failed.len()), (Some(2), 1), "{failed:?}");
    assert!(failed[0].starts_with("fail | agent main | sandbox docker is not available: "), "{failed:?}");
    assert!(failed[0].contains("; "), "it has a remedy: {failed:?}");
    config("off");
    assert!(ran().await.1.is_empty());
}
