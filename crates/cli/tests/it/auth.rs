//! `pinch auth …`: exit codes and output that scripts rely on.

use std::process::Stdio;

use pinch_testing::server::ServerReply;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

use crate::help::{CommandOutput, TestUser};

/// Runs `pinch auth` with the user's agent directory.
async fn auth(user: &TestUser, command: &str, args: &[&str]) -> CommandOutput {
    let agent_dir = user.path("agent");
    user.run_program(&[&["auth", command, "--agent-dir", agent_dir.to_str().unwrap()], args].concat()).await
}

async fn user() -> TestUser {
    let user = TestUser::new().await;
    let models = json!({"providers": {
        "x": {"baseUrl": "http://x", "api": "openai-completions", "apiKey": "!echo run >> ran; echo from-command",
              "headers": {"x-h": "v"}, "models": [{"id": "m-of-x"}]},
        "bad": {"baseUrl": "http://x", "api": "openai-completions", "apiKey": "$NOPE", "models": [{"id": "m-of-bad"}]},
    }});
    user.write("agent/models.json", &models.to_string());
    let far = 4_102_444_800_000_u64;
    let stored = json!({
        "groq": {"type": "api_key", "key": "HOME"},
        "anthropic": {"type": "oauth", "access": "A0", "refresh": "R0", "expires": far},
        "openai-codex": {"type": "oauth", "access": "A1", "refresh": "R1", "expires": 1},
    });
    user.write("agent/auth.json", &stored.to_string());
    user
}

fn shown(ran: &CommandOutput) -> (Option<i32>, Value) {
    (ran.code, serde_json::from_str(&ran.out).unwrap())
}

#[tokio::test]
async fn check_reports_configured_credentials() {
    let user = user().await;
    let check = async |args: &[&str]| shown(&auth(&user, "check", &[args, &["--json"]].concat()).await);
    let ready =
        |provider: &str, kind: &str| (Some(0), json!({"status": "ready", "provider": provider, "authType": kind}));
    let not_ready = |provider: &str, reason: &str| {
        (Some(1), json!({"status": "not_ready", "provider": provider, "reason": reason}))
    };
    let invalid =
        |provider: &str| (Some(2), json!({"status": "invalid", "provider": provider, "reason": "invalid_state"}));
    assert_eq!(check(&["--provider", "groq"]).await, ready("groq", "api_key"));
    assert_eq!(check(&["--provider", "anthropic"]).await, ready("anthropic", "oauth"));
    assert_eq!(check(&["--model", "m-of-x"]).await, ready("x", "api_key"));
    assert_eq!(check(&["--provider", "openai"]).await, not_ready("openai", "credentials_not_configured"));
    assert_eq!(check(&["--provider", "nobody"]).await, not_ready("nobody", "provider_not_found"));
    assert_eq!(check(&["--model", "no-such"]).await, invalid("no-such"));
    assert_eq!(check(&["--provider", "bad"]).await, not_ready("bad", "credentials_not_configured"));
    // An expired login still counts.
    assert_eq!(check(&["--provider", "openai-codex", "--no-refresh"]).await, ready("openai-codex", "oauth"));
    assert_eq!(check(&["--provider", "x", "--model", "m-of-x"]).await, ready("x", "api_key"));
    let (code, shown) = check(&["--provider", "x", "--credentials"]).await;
    assert_eq!((code, &shown["credentials"]), (Some(0), &json!("from-command")));
    assert!(auth(&user, "check", &[]).await.code != Some(0));
}

#[tokio::test]
async fn check_prints_one_word_or_the_credential() {
    let user = user().await;
    let says = |code: i32, word: &str| CommandOutput { code: Some(code), out: format!("{word}\n"), err: String::new() };
    for (args, wanted) in [
        (&["--provider", "groq"][..], says(0, "ready")),
        (&["--provider", "x", "--credentials"], says(0, "from-command")),
        (&["--provider", "anthropic", "--credentials"], says(0, "A0")),
        (&["--provider", "openai-codex", "--no-refresh", "--credentials"], says(0, "A1")),
        (&["--provider", "bad"], says(1, "not_ready")),
        (&["--provider", "openai", "--credentials"], says(1, "not_ready")),
        (&["--provider", "nobody"], says(1, "not_ready")),
        (&["--model", "no-such"], says(2, "invalid")),
    ] {
        assert_eq!(auth(&user, "check", args).await, wanted, "{args:?}");
    }
    user.write("agent/auth.json", "{broken");
    // An unreadable document may contain them.
    assert_eq!(auth(&user, "check", &["--provider", "anthropic"]).await, says(2, "invalid"));
    let ran = auth(&user, "check", &[]).await;
    let text = "Error: Auth checks require --provider <provider> or --model <model>\n";
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(2), "", text));
}

#[tokio::test]
async fn unknown_commands_are_errors_that_list_the_known_ones() {
    let user = user().await;
    let ran = user.run_program(&["auth", "frob"]).await;
    let text = "Error: Unknown auth command \"frob\". Use \"pinch auth login\", \"pinch auth logout\", \"pinch auth print-api-key\", \
         \"pinch auth print-bearer-token\", or \"pinch auth check\".\n";
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(1), "", text));
    for args in [&["auth"][..], &["auth", "help"], &["auth", "--help"]] {
        let ran = user.run_program(args).await;
        assert!(ran.code == Some(0) && ran.out.contains("print-bearer-token"), "{ran:?}");
    }
    let err = async |command: &str, args: &[&str]| auth(&user, command, args).await.err;
    let none = "Error: Credential printing requires --provider <provider> or --model <model>\n";
    assert_eq!(err("print-api-key", &[]).await, none);
    assert_eq!(err("print-bearer-token", &[]).await, none);
    assert_eq!(err("print-api-key", &["--provider", "openai"]).await, "Error: No usable API key is configured\n");
    let login = "Error: Provider \"anthropic\" is configured with OAuth, not an API key\n";
    assert_eq!(err("print-api-key", &["--provider", "anthropic"]).await, login);
}

#[tokio::test]
async fn keys_and_tokens_are_printed_alone() {
    let user = user().await;
    let print = async |command: &str, args: &[&str]| {
        let ran = auth(&user, command, args).await;
        (ran.code, ran.out)
    };
    assert_eq!(print("print-api-key", &["--provider", "x"]).await, (Some(0), "from-command\n".into()));
    assert_eq!(print("print-api-key", &["--provider", "openai"]).await, (Some(1), String::new()));
    assert_eq!(print("print-api-key", &["--provider", "anthropic"]).await, (Some(1), String::new()));
    assert_eq!(print("print-bearer-token", &["--provider", "anthropic"]).await, (Some(0), "A0\n".into()));
    let long = ["--provider", "anthropic", "--min-expiry", "30m"];
    assert_eq!(print("print-bearer-token", &long).await, (Some(0), "A0\n".into()));
    assert_eq!(print("print-bearer-token", &["--provider", "groq"]).await, (Some(1), String::new()));
}

#[tokio::test]
async fn logout_removes_one_entry() {
    let user = user().await;
    let logout = async |provider: &str| {
        let ran = auth(&user, "logout", &[provider]).await;
        (ran.code, ran.out, ran.err)
    };
    let unchanged = "Environment variables and models.json config are unchanged.\n";
    let removed = (Some(0), format!("Removed stored API key for Groq. {unchanged}"), String::new());
    assert_eq!(logout("groq").await, removed);
    let nothing = (Some(0), format!("No stored credentials for Groq. {unchanged}"), String::new());
    assert_eq!(logout("groq").await, nothing);
    let unknown = "Unknown provider \"nobody\".\nStored credentials: anthropic, openai-codex\n";
    assert_eq!(logout("nobody").await, (Some(1), String::new(), unknown.to_owned()));
    let left: Value = serde_json::from_slice(&std::fs::read(user.path("agent/auth.json")).unwrap()).unwrap();
    assert_eq!(left.as_object().unwrap().keys().collect::<Vec<_>>(), ["anthropic", "openai-codex"]);
    assert_eq!(logout("anthropic").await, (Some(0), "Logged out of Anthropic.\n".to_owned(), String::new()));
    user.write("agent/auth.json", "{broken");
    let (code, out, err) = logout("anthropic").await;
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(err.starts_with("Could not read stored credentials: "), "{err}");
    assert_eq!(std::fs::read_to_string(user.path("agent/auth.json")).unwrap(), "{broken");
}

/// A command that prints a key runs for its request, and not before.
#[tokio::test]
async fn a_key_command_runs_once_per_request() {
    let user = TestUser::new().await;
    let models = json!({"providers": {"local": {
        "baseUrl": user.server.url(), "api": "anthropic-messages", "models": [{"id": "m1"}],
        "apiKey": "!echo run >> ran; echo k",
    }}});
    user.write("agent/models.json", &models.to_string());
    user.answer("hi");
    let ran = user.run(&["--model", "local/m1", "-p", "hello"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "hi\n"), "{}", ran.err);
    assert_eq!(std::fs::read_to_string(user.path("ran")).unwrap(), "run\n");
}

/// Runs `pinch auth login` with this text on stdin.
async fn login(user: &TestUser, args: &[&str], stdin: &str) -> CommandOutput {
    let agent_dir = user.path("agent");
    let all = [&["auth", "login", "--agent-dir", agent_dir.to_str().unwrap()], args].concat();
    let mut command = user.program(&all);
    command.env("HTTPS_PROXY", user.server.url());
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut to = child.stdin.take().unwrap();
    // A command that reads nothing exits before the text is written.
    let _unread = to.write_all(stdin.as_bytes()).await;
    drop(to);
    user.ran(child.wait_with_output().await.unwrap())
}

fn stored(user: &TestUser, provider: &str) -> Value {
    let text = std::fs::read(user.path("agent/auth.json")).unwrap_or_else(|_| b"{}".to_vec());
    serde_json::from_slice::<Value>(&text).unwrap()[provider].clone()
}

#[tokio::test]
async fn an_api_key_is_checked_with_the_provider_and_stored() {
    let user = TestUser::new().await;
    user.answer("H");
    let done = login(&user, &["local", "--api-key-stdin"], " sk-good\n").await;
    let saved = "Saved API key for local. Credentials saved to HOME/agent/auth.json\n";
    assert_eq!((done.code, done.out.as_str()), (Some(0), saved), "{}", done.err);
    assert_eq!(user.server.requests()[0].header("x-api-key"), Some("sk-good"));
    assert_eq!(stored(&user, "local"), json!({"type": "api_key", "key": "sk-good"}));
    let refusal = json!({"type": "error", "error": {"type": "authentication_error", "message": "no sk-bad-0123456789abcdef here"}});
    user.server.reply(ServerReply::json(401, &refusal));
    let refused = login(&user, &["local", "--api-key-stdin"], "sk-bad-0123456789abcdef").await;
    assert_eq!((refused.code, refused.out.as_str()), (Some(3), ""), "{}", refused.err);
    assert!(refused.err.contains("rejected the API key") && refused.err.contains("--no-check"), "{}", refused.err);
    assert!(!refused.err.contains("sk-bad-0123456789abcdef"), "{}", refused.err);
    assert_eq!(stored(&user, "local")["key"], "sk-good");
    let unchecked = login(&user, &["local", "--api-key-stdin", "--no-check"], "sk-bad-0123456789abcdef").await;
    assert_eq!((unchecked.code, &stored(&user, "local")["key"]), (Some(0), &json!("sk-bad-0123456789abcdef")));
    assert_eq!(user.server.requests().len(), 2);
}

#[tokio::test]
async fn unsupported_logins_are_errors_with_a_remedy() {
    let user = TestUser::new().await;
    for (args, stdin, code, words) in [
        (&["nobody"][..], "", 1, "Unknown provider \"nobody\""),
        (&["local"], "sk-1\n", 1, "--api-key-stdin"),
        (&["local", "--api-key-stdin"], "sk 1", 1, "spaces"),
        (&["local", "--method", "subscription"], "", 1, "has no subscription login"),
        (&["amazon-bedrock"], "", 1, "has no login"),
        (&["local", "--method", "subscription", "--api-key-stdin"], "", 1, "cannot be used with"),
        (&[], "", 1, "hint: name one"),
    ] {
        let done = login(&user, args, stdin).await;
        assert!(done.code == Some(code) && done.err.contains(words), "{args:?}: {done:?}");
    }
    assert_eq!(stored(&user, "local"), Value::Null);
    assert!(user.server.requests().is_empty());
}

#[tokio::test]
async fn a_sign_in_shows_its_page_accepts_a_pasted_code_and_reports_failures() {
    let user = TestUser::new().await;
    user.server.reply(ServerReply::status(502)).repeat_last();
    let done = login(&user, &["anthropic", "--method", "subscription", "--no-browser"], "the-code-of-mine\n").await;
    assert!(done.err.contains("Open this URL to sign in:\n\n  https://claude.ai/oauth/authorize?"), "{}", done.err);
    // The server in place of a proxy forwards nothing.
    assert_eq!(done.code, Some(3), "{}", done.err);
    let failure = done.err.lines().last().unwrap();
    assert!(failure.contains("Failed to log in to Anthropic") && failure.contains("exchange failed"), "{failure}");
    assert!(!failure.contains("the-code-of-mine"), "{failure}");
    assert_eq!(stored(&user, "anthropic"), Value::Null);
    let gone = login(&user, &["anthropic", "--method", "subscription", "--no-browser"], "").await;
    assert_ne!(gone.code, Some(0), "{}", gone.err);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_typed_key_is_not_echoed() {
    let user = TestUser::new().await;
    user.answer("H");
    let line = format!("'{}' login local --agent-dir '{}'", env!("CARGO_BIN_EXE_pinch"), user.path("agent").display());
    let mut command = Command::new("script");
    command.current_dir(user.path("")).env_clear().env("HOME", user.path("")).env("PATH", "/usr/bin:/bin");
    command.args(["-qec", &line, "/dev/null"]).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    let (mut keys, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains("API key for local: ") {
        assert_ne!(output.read_buf(&mut seen).await.unwrap(), 0, "{}", String::from_utf8_lossy(&seen));
    }
    keys.write_all(b"sk-typed\r").await.unwrap();
    output.read_to_end(&mut seen).await.unwrap();
    assert_eq!(child.wait().await.unwrap().code(), Some(0), "{}", String::from_utf8_lossy(&seen));
    assert!(!String::from_utf8_lossy(&seen).contains("sk-typed"), "{}", String::from_utf8_lossy(&seen));
    assert_eq!(stored(&user, "local")["key"], "sk-typed");
}
