//! `pinch auth …`: exit codes and output that scripts rely on.

use serde_json::{Value, json};

use crate::help::{CommandOutput, TestUser};

/// Runs `pinch auth` in the user's agent folder.
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
async fn check_says_what_there_is() {
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
    // A login that is over is there all the same.
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
    // What cannot be read may hold them.
    assert_eq!(auth(&user, "check", &["--provider", "anthropic"]).await, says(2, "invalid"));
    let ran = auth(&user, "check", &[]).await;
    let text = "Error: Auth checks require --provider <provider> or --model <model>\n";
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(2), "", text));
}

#[tokio::test]
async fn refused_commands_name_those_there_are() {
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

/// A command that gives a key runs for the request it is for, and not before.
#[tokio::test]
async fn a_command_runs_once_a_request() {
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
