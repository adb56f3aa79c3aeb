//! Keys are sent only to their provider and appear nowhere else.

use pinch_testing::server::{Gate, ServerReply};
use pinch_testing::wires::anthropic::AnthropicResponse;
use serde_json::{Value, json};

use crate::help::{CommandOutput, TestUser, files};
use crate::rpc::PinchClient;

/// Prefix of every key in these tests.
const MARK: &str = "sk-sentinel-";

/// Files that contain keys because the user put them there.
const OWN: [&str; 3] = ["agent/auth.json", "agent/models.json", "key.txt"];

/// Providers and the key each sends.
const SENT: [(&str, &str); 5] = [
    ("literal", "sk-sentinel-literal"),
    ("variable", "sk-sentinel-variable"),
    ("command", "sk-sentinel-command"),
    ("stored", "sk-sentinel-stored"),
    ("own", "sk-sentinel-own-environment"),
];

/// Creates a user with a key in every place where one can be.
async fn user() -> TestUser {
    let user = TestUser::new().await;
    let model = json!([{"id": "m1"}]);
    let provider = |key: Value| {
        let mut provider = json!({"baseUrl": user.server.url(), "api": "anthropic-messages", "models": model});
        if !key.is_null() {
            provider["apiKey"] = key;
        }
        provider
    };
    let mut literal = provider("sk-sentinel-literal".into());
    literal["headers"] = json!({"x-gateway": "Bearer sk-sentinel-header"});
    let models = json!({"providers": {
        "literal": literal,
        "variable": provider("$SENTINEL".into()),
        "command": provider("!cat key.txt".into()),
        "stored": provider(Value::Null),
        "own": provider(Value::Null),
    }});
    user.write("agent/models.json", &models.to_string());
    user.write("key.txt", "sk-sentinel-command\n");
    let own = json!({"OWN": "sk-sentinel-own-environment"});
    let login = json!({"type": "oauth", "access": "sk-sentinel-access", "refresh": "sk-sentinel-refresh", "expires": 4_000_000_000_000_i64});
    let auth = json!({
        "stored": {"type": "api_key", "key": "sk-sentinel-stored"},
        "own": {"type": "api_key", "key": "$OWN", "env": own},
        "anthropic": login,
    });
    user.write("agent/auth.json", &auth.to_string());
    user
}

fn environment(command: &mut tokio::process::Command) -> &mut tokio::process::Command {
    let variables = ["SENTINEL", "OPENAI_API_KEY", "GEMINI_API_KEY", "GITHUB_TOKEN"];
    command.env(variables[0], "sk-sentinel-variable");
    variables[1..].iter().fold(command, |command, name| command.env(name, format!("{MARK}{name}")))
}

async fn run(user: &TestUser, args: &[&str]) -> CommandOutput {
    user.ran(environment(&mut user.command(args)).output().await.unwrap())
}

/// Makes the server echo the key that it rejects, as some do.
fn refuse(user: &TestUser) {
    user.server.answer_with(|request| {
        let given = |name: &str| request.header(name).unwrap_or_default().to_owned();
        let text = format!("invalid x-api-key: {} (by {})", given("x-api-key"), given("x-gateway"));
        let error = json!({"type": "error", "error": {"type": "authentication_error", "message": text}});
        Some(ServerReply::json(401, &error))
    });
}

#[track_caller]
fn nothing_shows(ran: &CommandOutput, what: &str) {
    for text in [&ran.out, &ran.err] {
        assert!(!text.contains(MARK), "{what}: {text}");
    }
}

/// Checks that only the user's own files contain a key.
#[track_caller]
fn no_file_shows(user: &TestUser) {
    let own: Vec<_> = OWN.iter().map(|name| user.path(name)).collect();
    let others: Vec<_> = files(&user.path("")).into_iter().filter(|path| !own.contains(path)).collect();
    assert!(others.iter().any(|path| path.extension().is_some_and(|ending| ending == "jsonl")), "{others:?}");
    for path in others {
        let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
        assert!(!text.contains(MARK), "{}: {text}", path.display());
    }
}

#[tokio::test]
async fn a_key_is_sent_and_shown_nowhere() {
    let user = user().await;
    for (provider, key) in SENT {
        let model = format!("{provider}/m1");
        user.answer("Good.");
        let ran = run(&user, &["--model", &model, "--verbose", "-p", "x"]).await;
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Good.\n"), "{provider}: {}", ran.err);
        assert_eq!(
            user.server.requests().last().unwrap().header("x-api-key"),
            Some(key),
            "the key reaches its provider"
        );
        nothing_shows(&ran, provider);
        user.answer("Good.");
        nothing_shows(&run(&user, &["--model", &model, "--mode", "json", "x"]).await, provider);
    }
    no_file_shows(&user);
}

#[tokio::test]
async fn a_key_that_a_refusal_repeats_is_hidden() {
    let user = user().await;
    refuse(&user);
    for (provider, _) in SENT {
        let model = format!("{provider}/m1");
        let gateway = if provider == "literal" { "Bearer [hidden]" } else { "" };
        let text = format!("invalid x-api-key: [hidden] (by {gateway})");
        let ran = run(&user, &["--model", &model, "--verbose", "-p", "x"]).await;
        assert!(ran.code == Some(3) && ran.err.contains(&text), "{ran:?}");
        nothing_shows(&ran, provider);
        let ran = run(&user, &["--model", &model, "--mode", "json", "x"]).await;
        assert!(ran.out.contains(&text), "{ran:?}");
        nothing_shows(&ran, provider);
    }
    let given = run(&user, &["--model", "literal/m1", "--api-key", "sk-sentinel-given", "-p", "x"]).await;
    assert!(given.err.contains("invalid x-api-key: [hidden]"), "{given:?}");
    nothing_shows(&given, "--api-key");
    no_file_shows(&user);
}

#[tokio::test]
async fn rpc_shows_models_and_sessions_without_keys() {
    let user = user().await;
    refuse(&user);
    for (provider, _) in SENT {
        let model = format!("{provider}/m1");
        let mut client = PinchClient::start(std::mem::replace(
            environment(&mut user.command(&["--mode", "rpc", "--model", &model])),
            user.command(&[]),
        ));
        let mut said = client.ask(&json!({"type": "prompt", "message": "x"})).await;
        said.extend(client.until(|line| line["type"] == "agent_settled").await);
        let page = user.path(&format!("{provider}.html"));
        for command in
            ["get_state", "get_available_models", "get_messages", "get_session_stats", "export_html", "get_commands"]
        {
            said.extend(client.ask(&json!({"type": command, "outputPath": page})).await);
            assert_eq!(said.last().unwrap()["success"], true, "{command}: {:?}", said.last());
        }
        let said = Value::from(said).to_string();
        assert!(said.contains("[hidden]") && said.contains(r#""id":"m1""#), "{said}");
        assert!(!said.contains(MARK), "{said}");
        assert!(std::fs::read_to_string(page).unwrap().contains("</html>"));
    }
    no_file_shows(&user);
}

#[tokio::test]
async fn a_password_in_an_address_is_used_and_not_shown() {
    let user = TestUser::new().await;
    let url = user.server.url();
    let address = url.replace("://", "://user:sk-sentinel-password@");
    let far = json!({"baseUrl": address, "api": "anthropic-messages", "apiKey": "none", "models": [{"id": "m1"}, {"id": "m2"}]});
    user.write("agent/models.json", &json!({"providers": {"far": far}}).to_string());
    let mut client = PinchClient::start(user.command(&["--mode", "rpc", "--model", "far/m1"]));
    user.answer("Good.");
    let mut said = client.ask(&json!({"type": "prompt", "message": "x"})).await;
    said.extend(client.until(|line| line["type"] == "agent_settled").await);
    let request = user.server.requests().remove(0);
    assert_eq!(request.header("authorization"), Some("Basic dXNlcjpzay1zZW50aW5lbC1wYXNzd29yZA=="));
    let shown = async |client: &mut PinchClient, command: &Value| {
        let said = client.ask(command).await;
        let data = said.last().unwrap()["data"].clone();
        let text = Value::from(said).to_string();
        assert!(!text.contains(MARK), "{command}: {text}");
        data
    };
    let state = shown(&mut client, &json!({"type": "get_state"})).await;
    let models = shown(&mut client, &json!({"type": "get_available_models"})).await;
    let far = models["models"].as_array().unwrap().iter().find(|model| model["provider"] == "far").unwrap();
    let set = shown(&mut client, &json!({"type": "set_model", "provider": "far", "modelId": "m2"})).await;
    let next = shown(&mut client, &json!({"type": "cycle_model"})).await;
    for model in [&state["model"], far, &set, &next["model"]] {
        assert_eq!(model["baseUrl"], url);
    }
    // Also during a run.
    let gate = Gate::new();
    user.server
        .reply(ServerReply::events().gated(&gate, AnthropicResponse::new("msg_1").text("Good.").stop("end_turn")));
    client.ask(&json!({"type": "prompt", "message": "y"})).await;
    for command in [json!({"type": "set_model", "provider": "far", "modelId": "m1"}), json!({"type": "cycle_model"})] {
        let model = shown(&mut client, &command).await;
        assert!(model.to_string().contains(&url), "{model}");
    }
    gate.open_times(usize::from(u8::MAX));
    said.extend(client.until(|line| line["type"] == "agent_settled").await);
    let said = Value::from(said).to_string();
    assert!(!said.contains(MARK), "{said}");
    no_file_shows(&user);
}

#[tokio::test]
async fn commands_that_look_at_configuration_show_no_key() {
    let user = user().await;
    user.answer("Good.");
    run(&user, &["--model", "stored/m1", "--session", "s.jsonl", "-p", "x"]).await;
    refuse(&user);
    let agent_dir = user.path("agent");
    let agent_dir = agent_dir.to_str().unwrap();
    let ask = async |args: &[&str]| user.ran(environment(&mut user.program(args)).output().await.unwrap());
    for args in [
        &["doctor", "--offline", "--agent-dir", agent_dir][..],
        &["doctor", "--json", "--agent-dir", agent_dir],
        &["auth", "check", "--provider", "stored", "--json", "--agent-dir", agent_dir],
        &["auth", "check", "--provider", "anthropic", "--no-refresh", "--agent-dir", agent_dir],
        &["export", "s.jsonl", "page.html", "--agent-dir", agent_dir],
        &["--agent-dir", agent_dir, "--list-models"],
        &["--agent-dir", agent_dir, "--model", "literal/none", "-p", "x"],
    ] {
        let ran = ask(args).await;
        assert!(!ran.out.is_empty() || !ran.err.is_empty() || args[0] == "export", "pinch {}: {ran:?}", args.join(" "));
        nothing_shows(&ran, args[0]);
    }
    no_file_shows(&user);
    // A URL is not meant for a key, but errors omit it anyway.
    let far = json!({"baseUrl": "http://user:sk-sentinel-password@127.0.0.1:1/?key=sk-sentinel-query",
        "api": "anthropic-messages", "apiKey": "sk-sentinel-far", "models": [{"id": "m1"}]});
    user.write("agent/models.json", &json!({"providers": {"far": far}}).to_string());
    let ran = run(&user, &["--model", "far/m1", "-p", "x"]).await;
    assert!(ran.err.contains("Connection error: ") && ran.err.contains("(http://127.0.0.1:1/"), "{}", ran.err);
    nothing_shows(&ran, "a server that is not there");
    nothing_shows(&ask(&["doctor", "--agent-dir", agent_dir]).await, "doctor");
    // Documents that are broken next to a key.
    let model = r#""api": "anthropic-messages", "baseUrl": "http://127.0.0.1:1", "models": [{"id": "m1"}]"#;
    for broken in [
        r#"{"providers": {"x": {"apiKey": "sk-sentinel-x" "models": []}}}"#.to_owned(),
        r#"{"providers": {"x": {"apiKey": ["sk-sentinel-x"], "models": {"sk-sentinel-y": 1}}}}"#.to_owned(),
        r#"{"providers": "sk-sentinel-x"}"#.to_owned(),
        format!(
            r#"{{"providers": {{"x": {{"apiKey": "${{sk-sentinel-x", "headers": {{"x-y": "sk-sentinel-y\\n"}}, {model}}}}}}}"#
        ),
    ] {
        user.write("agent/models.json", &broken);
        for args in [&["--list-models"][..], &["--model", "x/m1", "-p", "x"]] {
            nothing_shows(&run(&user, args).await, &broken);
        }
        nothing_shows(&ask(&["doctor", "--offline", "--agent-dir", agent_dir]).await, &broken);
    }
    for broken in [
        r#"{"x": {"type": "api_key", "key": "sk-sentinel-x" }"#,
        r#"{"x": "sk-sentinel-x"}"#,
        r#"{"x": {"type": "sk-sentinel-x", "key": 7}}"#,
    ] {
        user.write("agent/auth.json", broken);
        nothing_shows(&run(&user, &["--model", "x/m1", "-p", "x"]).await, broken);
        nothing_shows(&ask(&["auth", "check", "--provider", "x", "--agent-dir", agent_dir]).await, broken);
        nothing_shows(&ask(&["doctor", "--offline", "--agent-dir", agent_dir]).await, broken);
    }
}

/// Root can read everything, so a test run by root starts the program as another user.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn commands_cannot_read_the_environment_of_the_program() {
    const NOBODY: u32 = 65534;
    let user = TestUser::new().await;
    let call = AnthropicResponse::new("m1").tool_call(
        "toolu_1",
        "bash",
        &json!({"command": "id -u; tr '\\0' '\\n' < /proc/$PPID/environ || echo refused"}).to_string(),
    );
    user.server.reply(ServerReply::sse(call.stop("tool_use").concat()));
    user.answer("done");
    let args = ["-p", "--model", "local/m1", "look"];
    let program = user.path("program");
    std::fs::copy(env!("CARGO_BIN_EXE_pinch"), &program).unwrap();
    let mut command = user.command(&args);
    if rustix::process::geteuid().is_root() {
        for path in files(&user.path("")).iter().chain([&user.path(""), &user.path("agent")]) {
            std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let agent_dir = user.path("agent");
        command = tokio::process::Command::new(&program);
        command.current_dir(user.path("")).env_clear().env("HOME", user.path("")).env("PATH", "/usr/bin:/bin");
        command.arg("--agent-dir").arg(agent_dir).args(args).uid(NOBODY).gid(NOBODY).stdin(std::process::Stdio::null());
    }
    let ran = user.ran(environment(&mut command).output().await.unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let told = user.asked().unwrap().to_string();
    assert!(told.contains("refused") && !told.contains(MARK), "{told}");
}

#[tokio::test]
async fn a_key_can_come_from_a_file_instead_of_the_list_of_processes() {
    let user = TestUser::new().await;
    user.write("key", "  sk-from-file\n");
    user.answer("one");
    let args = ["-p", "hi", "--model", "local/m1", "--api-key-file"];
    let with = async |rest: &[&str]| user.run(&[&args[..], rest].concat()).await;
    assert_eq!(with(&["~/key"]).await, CommandOutput { code: Some(0), out: "one\n".into(), err: String::new() });
    let sent = user.server.requests();
    assert_eq!(sent.last().unwrap().header("x-api-key"), Some("sk-from-file"));
    user.write("empty", " \n");
    for (rest, err) in [
        (&["empty"][..], "cannot read the API key in empty: the file is empty"),
        (&["missing"], "cannot read the API key in missing: No such file or directory (os error 2)"),
        (&["key", "--api-key", "k"], "--api-key and --api-key-file cannot be used together"),
    ] {
        let failed = with(rest).await;
        assert_eq!((failed.code, failed.err.as_str()), (Some(1), format!("Error: {err}\n").as_str()));
    }
    assert_eq!(user.server.requests().len(), 1);
}
