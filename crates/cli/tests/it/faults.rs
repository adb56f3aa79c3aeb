//! Bad input: a clear message and the right exit code, without damage to the user's files.

use std::time::Duration;

use pinch_testing::server::{Gate, ServerReply};
use pinch_testing::wires::anthropic::AnthropicResponse;
use serde_json::json;

use crate::help::{CommandOutput, TestUser, files};

/// Checks that the failure prints `err`, no output, and exits with `code`.
async fn fails(user: &TestUser, args: &[&str], code: i32, err: &str) {
    let wanted = CommandOutput { code: Some(code), out: String::new(), err: format!("{err}\n") };
    assert_eq!(user.run(args).await, wanted, "pinch {}", args.join(" "));
}

/// Like [`fails`], for messages worded by clap: checks only the first line.
async fn fails_beginning(user: &TestUser, args: &[&str], code: i32, first_line: &str) {
    let ran = user.run(args).await;
    assert_eq!((ran.code, ran.out.as_str(), ran.err.lines().next()), (Some(code), "", Some(first_line)), "{}", ran.err);
}

#[tokio::test]
async fn invalid_flags_are_usage_errors() {
    let user = TestUser::new().await;
    fails_beginning(&user, &["-z"], 1, "Error: Unknown option: -z").await;
    fails(&user, &["--model", "local/m1", "--frob", "-p", "x"], 1, "Error: Unknown option: --frob").await;
    let two = "Error: Unknown options: --frob, --nicate";
    fails(&user, &["--model", "local/m1", "--nicate=1", "--frob", "-p", "x"], 1, two).await;
    fails(&user, &["--model", "local/m1", "--modle", "x"], 1, "Error: Unknown option: --modle").await;
    fails(&user, &["--model"], 1, "Error: --model requires a value").await;
    let extension = "Error: Extension path does not exist: /nowhere/x.js";
    fails(&user, &["--model", "local/m1", "--extension", "/nowhere/x.js", "-p", "x"], 1, extension).await;
    let resume = "Error: --resume needs a terminal, because it lets you choose a session\n\
         hint: continue the most recent session with --continue, or name one with --session";
    fails(&user, &["--resume", "-p", "x"], 1, resume).await;
    let mode = "Error: Invalid mode \"xml\". Valid values: text, json, rpc";
    fails(&user, &["--mode", "xml", "-p", "x"], 1, mode).await;
    fails(&user, &["--provider", "local", "-p", "x"], 1, "Error: --provider requires --model").await;
    let tool = "Error: Unknown tool name: frob. Available tools: read, bash, edit, write, grep, find, ls";
    fails(&user, &["--model", "local/m1", "--tools", "frob", "-p", "x"], 1, tool).await;
    let nothing = "Error: no message\nhint: write one after -p, or pipe it in";
    fails(&user, &["--model", "local/m1", "-p"], 1, nothing).await;
    assert_eq!(user.server.requests().len(), 0);
    assert!(files(&user.path("agent/sessions")).is_empty(), "no session is begun for a mistake");
}

#[tokio::test]
async fn a_failed_prompt_does_not_stop_the_others() {
    let user = TestUser::new().await;
    let refused = json!({"type": "error", "error": {"type": "invalid_request_error", "message": "bad thing"}});
    user.server.reply(ServerReply::json(400, &refused));
    user.answer("two");
    let ran = user.run(&["--model", "local/m1", "-p", "one", "two"]).await;
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(0), "two\n", ""));
}

#[tokio::test]
async fn verbose_lists_the_loaded_resources() {
    let user = TestUser::new().await;
    user.write("agent/skills/good/SKILL.md", "---\nname: good\ndescription: Good\n---\nBody");
    user.write("AGENTS.md", "RULE");
    user.answer("yes");
    let ran = user.run(&["--model", "local/m1", "--no-session", "--verbose", "-p", "x"]).await;
    let loaded =
        "model: local/m1, thinking off\ncontext file: HOME/AGENTS.md\nskill: good (HOME/agent/skills/good/SKILL.md)\n";
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(0), "yes\n", loaded));
}

#[tokio::test]
async fn unknown_models_and_missing_keys_are_errors() {
    let user = TestUser::new().await;
    let unknown = "Error: Model \"zz\" not found. Use --list-models to see available models.";
    fails(&user, &["--model", "zz", "-p", "x"], 1, unknown).await;
    let no_key = "Error: No API key found for anthropic\nhint: set ANTHROPIC_API_KEY, add one to HOME/agent/auth.json, or use --api-key";
    fails(&user, &["--model", "anthropic/claude-sonnet-4-5", "-p", "x"], 2, no_key).await;
    let lab = r#"{"providers": {"lab": {"baseUrl": "http://127.0.0.1:1", "api": "anthropic-messages", "apiKey": "$LAB_KEY", "models": [{"id": "m"}]}}}"#;
    user.write("agent/models.json", lab);
    let no_key = "Error: No API key found for lab\nhint: set the variable that \"apiKey\" in HOME/agent/models.json names, \
                  add a key to HOME/agent/auth.json, or use --api-key";
    fails(&user, &["--model", "lab/m", "-p", "x"], 2, no_key).await;
    let bare = r#"{"providers": {"lab": {"baseUrl": "http://127.0.0.1:1", "api": "anthropic-messages", "models": [{"id": "m"}]}}}"#;
    user.write("agent/models.json", bare);
    let no_key = "Error: No API key found for lab\nhint: set \"apiKey\" of lab in HOME/agent/models.json, \
                  add a key to HOME/agent/auth.json, or use --api-key";
    fails(&user, &["--model", "lab/m", "-p", "x"], 2, no_key).await;
}

#[tokio::test]
async fn a_file_given_as_session_directory_is_named_as_such() {
    let user = TestUser::new().await;
    let text = "Error: cannot create /dev/null: /dev/null exists and is not a directory";
    fails(&user, &["--session-dir", "/dev/null", "--model", "local/m1", "-p", "x"], 4, text).await;
}

#[tokio::test]
async fn a_connection_error_does_not_name_a_proxy_that_the_host_is_exempt_from() {
    let user = TestUser::new().await;
    let settings = r#"{"httpProxy": "http://127.0.0.1:2", "retry": {"enabled": false}}"#;
    user.write("agent/settings.json", settings);
    let mut command = user.command(&["--model", "nowhere/m1", "-p", "x"]);
    let ran = user.ran(command.env("NO_PROXY", "127.0.0.1").output().await.unwrap());
    assert!(ran.err.contains("Connection refused") && !ran.err.contains("proxy"), "{}", ran.err);
}

#[tokio::test]
async fn a_connection_error_names_the_proxy_without_its_password() {
    let user = TestUser::new().await;
    let settings = r#"{"httpProxy": "http://me:secret@127.0.0.1:1", "retry": {"enabled": false}}"#;
    user.write("agent/settings.json", settings);
    let ran = user.run(&["--model", "local/m1", "-p", "x"]).await;
    assert!(ran.err.contains("Connection refused") && ran.err.contains("; a proxy is set: http://"), "{}", ran.err);
    assert!(ran.err.contains("127.0.0.1:1") && !ran.err.contains("secret"), "{}", ran.err);
}

#[tokio::test]
async fn a_base_url_without_a_scheme_is_named() {
    let user = TestUser::new().await;
    for (url, cause, shown) in [
        ("127.0.0.1:1", "relative URL without a base", "127.0.0.1:1"),
        ("htp://me:secret@127.0.0.1:1", "URL scheme is not allowed", "htp://127.0.0.1:1"),
    ] {
        let lab = json!({"baseUrl": url, "api": "anthropic-messages", "apiKey": "k", "models": [{"id": "m"}]});
        user.write("agent/models.json", &json!({"providers": {"lab": lab}}).to_string());
        let text = format!(
            "Invalid base URL \"{shown}\" of provider lab: {cause}. Set baseUrl of the provider in models.json to a URL that begins \
             with http:// or https://."
        );
        fails(&user, &["--model", "lab/m", "-p", "x"], 3, &text).await;
    }
}

#[tokio::test]
async fn an_unreachable_provider_is_a_provider_error() {
    let user = TestUser::new().await;
    let text = "Connection error: Connection refused (os error 111) (http://127.0.0.1:1/v1/messages)";
    fails(&user, &["--model", "nowhere/m1", "-p", "x"], 3, text).await;
}

#[tokio::test]
async fn broken_documents_are_reported_and_not_changed() {
    let user = TestUser::new().await;
    let broken = "{nope";
    let path = user.write("agent/models.json", broken);
    let text = "Warning: HOME/agent/models.json:1:2: is not valid JSON: key must be a string. Fix it there; the \
         file is left unchanged\nError: Model \"local/m1\" not found. Use --list-models to see available \
         models.";
    fails(&user, &["--model", "local/m1", "-p", "x"], 2, text).await;
    assert_eq!(std::fs::read_to_string(path).unwrap(), broken);

    user.write("agent/models.json", r#"{"providers": {"local": {"baseUrl": 5}}}"#);
    let text = "Warning: HOME/agent/models.json:providers.local.baseUrl: must be string. The provider is ignored\n\
         Error: Model \"local/m1\" not found. Use --list-models to see available models.";
    fails(&user, &["--model", "local/m1", "-p", "x"], 2, text).await;
}

#[tokio::test]
async fn broken_settings_and_credentials_do_not_matter_if_unused() {
    let user = TestUser::new().await;
    user.write("agent/settings.json", "{nope");
    user.write("agent/auth.json", "{nope");
    user.answer("all the same");
    let ran = user.run(&["--model", "local/m1", "-p", "x"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "all the same\n"), "{}", ran.err);
    assert_eq!(ran.err.lines().count(), 2, "{}", ran.err);
    assert_eq!(std::fs::read_to_string(user.path("agent/auth.json")).unwrap(), "{nope");
}

#[tokio::test]
async fn unusable_files_on_the_command_line_are_errors() {
    let user = TestUser::new().await;
    let ask = |file| ["--model", "local/m1", "-p", "look", file];
    fails(&user, &ask("@missing"), 1, "Error: File not found: HOME/missing").await;
    fails(&user, &ask("@agent"), 1, "Error: not a file: HOME/agent").await;
    user.write("binary", "ELF\0\u{1}");
    fails(&user, &ask("@binary"), 1, "Error: HOME/binary is a binary file, and only text and images can be sent").await;
    if std::path::Path::new("/proc/kmsg").exists() {
        let ran = tokio::time::timeout(Duration::from_secs(10), user.run(&ask("@/proc/kmsg"))).await.unwrap();
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{}", ran.err);
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let secret = user.write("secret", "x");
        std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o000)).unwrap();
        // The superuser may read everything.
        if std::fs::read(&secret).is_err() {
            let text = "Error: cannot read HOME/secret: Permission denied (os error 13)";
            fails(&user, &ask("@secret"), 1, text).await;
        }
    }
}

#[tokio::test]
async fn a_file_that_is_not_a_session_is_not_changed() {
    let user = TestUser::new().await;
    let notes = user.write("notes.jsonl", "just notes\n");
    let text = "Error: Session file is not a valid pi session: HOME/notes.jsonl";
    fails(&user, &["--model", "local/m1", "--session", "notes.jsonl", "-p", "x"], 1, text).await;
    assert_eq!(std::fs::read_to_string(notes).unwrap(), "just notes\n");
}

#[tokio::test]
async fn a_session_with_a_broken_line_can_be_continued() {
    let user = TestUser::new().await;
    user.answer("one");
    assert_eq!(user.run(&["--model", "local/m1", "--session", "s.jsonl", "-p", "first"]).await.code, Some(0));
    let path = user.path("s.jsonl");
    let mut text = std::fs::read_to_string(&path).unwrap();
    text.push_str("{\"type\":\"message\",\"id\":\"torn");
    std::fs::write(&path, &text).unwrap();
    user.answer("two");
    let ran = user.run(&["--model", "local/m1", "--session", "s.jsonl", "-p", "second"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "two\n"), "{}", ran.err);
    let asked = user.asked().unwrap().to_string();
    assert!(asked.contains("first") && asked.contains("one") && asked.contains("second"), "{asked}");
    let now = std::fs::read_to_string(&path).unwrap();
    assert!(now.starts_with(&text), "what was there stays, the torn line too");
    assert!(now[text.len()..].starts_with('\n'), "what is new begins on a line of its own");
}

#[tokio::test]
async fn an_unwritable_session_directory_is_an_internal_error() {
    let user = TestUser::new().await;
    user.write("notes", "a file, not a folder");
    let text = "Error: cannot create HOME/notes/x: Not a directory (os error 20)";
    fails(&user, &["--model", "local/m1", "--session-dir", "notes/x", "-p", "x"], 4, text).await;
    assert_eq!(user.server.requests().len(), 0, "nothing is asked that could not be kept");
}

#[tokio::test]
async fn a_closed_stdout_ends_the_program() {
    for args in [&["-p", "x"][..], &["--mode", "json", "x"]] {
        let user = TestUser::new().await;
        user.answer("nobody reads this");
        let mut command = user.command(&[&["--model", "local/m1"], args].concat());
        let mut child = command.spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().await.unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            (output.status.code(), &*err),
            (Some(4), "Error: cannot write the output: Broken pipe (os error 32)\n")
        );
        user.server.take_unexpected();
    }
}

#[tokio::test]
async fn a_command_is_not_a_prompt() {
    let user = TestUser::new().await;
    let mcp = "Error: Unknown command \"mcp\". MCP servers are not supported yet\nhint: to send it to the model, use: pinch -- mcp";
    fails(&user, &["--model", "local/m1", "mcp", "list"], 1, mcp).await;
    let login = "Error: Unknown command \"lgoin\". Use: pinch login [PROVIDER]\n\
        hint: to send it to the model, use: pinch -- lgoin";
    fails(&user, &["--model", "local/m1", "lgoin"], 1, login).await;
    assert_eq!(user.server.requests().len(), 0);
    user.answer("sent");
    let ran = user
        .run(&["--model", "local/m1", "--no-mcp", "--tui-mode", "regular", "--use-theme", "dark", "-p", "--", "mcp"])
        .await;
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(0), "sent\n", ""));
    fails(
        &user,
        &["--tui-mode", "x", "-p", "x"],
        1,
        "Error: Invalid TUI mode \"x\". Valid values: regular, fullscreen",
    )
    .await;
    fails(&user, &["--use-theme", "-p", "x"], 1, "Error: --use-theme requires a theme name").await;
}

#[tokio::test]
async fn lists_of_mcp_servers_are_reported_as_ignored() {
    let user = TestUser::new().await;
    user.write("agent/mcp.json", "{}");
    user.write("project/.pi/mcp.json", "{}");
    let ask = async |flags: &[&str]| {
        user.answer("yes");
        let mut command = user.command(&[&["--model", "local/m1", "-p", "x"], flags].concat());
        user.ran(command.current_dir(user.path("project")).output().await.unwrap()).err
    };
    let rest = "ignored, because MCP servers are not supported yet. --no-mcp hides this warning\n";
    assert_eq!(
        ask(&["--approve"]).await,
        format!("Warning: HOME/agent/mcp.json and HOME/project/.pi/mcp.json: {rest}")
    );
    assert!(ask(&["--no-approve"]).await.starts_with(&format!("Warning: HOME/agent/mcp.json: {rest}")));
    assert_eq!(ask(&["--approve", "--no-mcp"]).await, "");
}

#[tokio::test]
async fn unreadable_standard_input_is_an_error() {
    let user = TestUser::new().await;
    let ask = |input: std::fs::File| {
        let mut command = user.command(&["--model", "local/m1", "-p", "x"]);
        command.stdin(input);
        async { user.ran({ command }.output().await.unwrap()) }
    };
    let folder = ask(std::fs::File::open(user.path("agent")).unwrap()).await;
    let text = "Error: cannot read stdin: Is a directory (os error 21)\n";
    assert_eq!((folder.code, folder.err.as_str()), (Some(1), text));
    user.write("agent/settings.json", r#"{"maxInputBytes": 10}"#);
    let long = user.write("long", "12345678901");
    let text = "Error: stdin is longer than 10 bytes\nhint: raise maxInputBytes in settings.json, or name a file for the model to read\n";
    let too_long = ask(std::fs::File::open(&long).unwrap()).await;
    assert_eq!((too_long.code, too_long.err.as_str()), (Some(1), text));
    assert_eq!(user.server.requests().len(), 0);
    user.answer("fits");
    std::fs::write(&long, "1234567890").unwrap();
    assert_eq!(ask(std::fs::File::open(&long).unwrap()).await.out, "fits\n");
}

#[tokio::test]
async fn a_session_file_truncated_during_a_run_is_an_internal_error() {
    let user = TestUser::new().await;
    let path = user.path("s.jsonl");
    user.answer("one");
    assert_eq!(user.run(&["--model", "local/m1", "--session", "s.jsonl", "-p", "first"]).await.code, Some(0));
    let gate = Gate::new();
    let whole = AnthropicResponse::new("msg_2").text("two").stop("end_turn").concat();
    user.server.reply(ServerReply::events().gate(&gate).send(whole));
    let child = user.command(&["--model", "local/m1", "--session", "s.jsonl", "-p", "second"]).spawn().unwrap();
    while user.server.requests().len() < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    std::fs::write(&path, "").unwrap();
    gate.open();
    let ran = user.ran(child.wait_with_output().await.unwrap());
    let text = "Error: Session file was truncated or removed by another program: HOME/s.jsonl\n";
    assert_eq!((ran.code, ran.err.as_str()), (Some(4), text));
}

#[cfg(unix)]
#[tokio::test]
async fn too_few_file_descriptors_are_an_error_and_not_a_panic() {
    let user = TestUser::new().await;
    for limit in 5..16 {
        for mode in ["text", "rpc"] {
            let mut command = tokio::process::Command::new("sh");
            command.args(["-c", &format!("ulimit -n {limit}; exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_pinch")]);
            command.args(["--mode", mode, "--model", "nowhere/m1", "--agent-dir"]).arg(user.path("agent")).arg("x");
            let ran = user.ran(command.stdin(std::process::Stdio::null()).output().await.unwrap());
            assert!(![Some(101), None].contains(&ran.code) && !ran.err.contains("panicked"), "{limit}: {}", ran.err);
        }
    }
}

#[tokio::test]
async fn all_retries_share_the_time_limit_of_a_run() {
    let user = TestUser::new().await;
    let stopped = |limit: &str| {
        let text = format!("Error: the run was stopped after {limit} s\nhint: raise --timeout or runTimeoutMs\n");
        move |ran: CommandOutput| assert_eq!((ran.code, ran.out.as_str(), ran.err), (Some(3), "", text))
    };
    user.write(
        "agent/settings.json",
        r#"{"retry": {"enabled": true, "maxRetries": 50, "baseDelayMs": 100}, "runTimeoutMs": 600}"#,
    );
    let overloaded = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    user.server.reply(ServerReply::json(503, &overloaded)).repeat_last();
    stopped("0.6")(user.run(&["--model", "local/m1", "-p", "x", "y"]).await);
    stopped("1")(user.run(&["--model", "local/m1", "--timeout", "1", "-p", "x"]).await);
    let user = TestUser::new().await;
    user.server.reply(ServerReply::events().gate(&Gate::new()));
    stopped("1")(user.run(&["--model", "local/m1", "--timeout", "1", "-p", "x"]).await);
    let wrong = "Error: Invalid timeout \"0\". Give a number of seconds above 0";
    fails(&user, &["--timeout", "0", "-p", "x"], 1, wrong).await;
    let rpc = "Error: --timeout is not supported in RPC mode\nhint: the client can send abort";
    fails(&user, &["--timeout", "5", "--mode", "rpc"], 1, rpc).await;
}

#[cfg(not(feature = "cloud-code-assist"))]
#[tokio::test]
async fn models_without_a_built_in_wire_format_are_not_listed() {
    let user = TestUser::new().await;
    let models = r#"{"providers": {
        "local": {"baseUrl": "http://127.0.0.1:1", "api": "anthropic-messages", "apiKey": "none", "models": [{"id": "m1"}]},
        "google-gemini-cli": {"baseUrl": "http://127.0.0.1:1", "api": "google-gemini-cli", "apiKey": "none", "models": [{"id": "g1"}]}
    }}"#;
    user.write("agent/models.json", models);
    let ran = user.run(&["--list-models"]).await;
    assert_eq!(ran.code, Some(0));
    assert!(ran.out.contains("m1") && !ran.out.contains("g1"), "{}", ran.out);
    let left_out = "Warning: 1 model of google-gemini-cli not listed: this build lacks the feature cloud-code-assist\n";
    assert_eq!(ran.err, left_out);
}

#[tokio::test]
async fn no_session_starts_with_unreadable_restrictive_settings() {
    for (text, restricts) in [
        (r#"{"defaultTools": ["read"], oops"#, true),
        (r#"{"shellEnvironment": {"inherit": "none"} oops"#, true),
        (r#"{"theme": "dark", oops"#, false),
    ] {
        for mode in [&["-p", "x"][..], &["--mode", "rpc"], &["--mode", "json", "x"]] {
            let user = TestUser::new().await;
            user.answer("hi");
            let path = user.write("agent/settings.json", text);
            let ran = user.run(&[&["--model", "local/m1"], mode].concat()).await;
            if restricts {
                assert_eq!((ran.code, user.server.requests().len()), (Some(2), 0), "{text}: {ran:?}");
                let expected = "settings.json sets defaultTools or shellEnvironment but cannot be read";
                assert!(ran.err.contains(expected), "{}: {ran:?}", path.display());
            } else {
                assert_eq!(ran.code, Some(0), "{text}: {ran:?}");
            }
        }
    }
}
