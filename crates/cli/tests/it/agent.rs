//! `pinch agent`: consecutive embedded runs, as a script would start them.

use pinch_testing::server::{Gate, ServerReply};
use pinch_testing::wires::anthropic::AnthropicResponse;
use serde_json::{Value, json};

use crate::help::{CommandOutput, TestUser, files};

/// Creates a user whose configuration names the scripted server.
async fn user() -> TestUser {
    let user = TestUser::new().await;
    let url = user.server.url();
    configure(
        &user,
        &json!({
            "agents": {"defaults": {"model": "anthropic/claude-sonnet-4-5"}, "list": [{"id": "main"}, {"id": "ops"}]},
            "models": {"providers": {"anthropic": {"baseUrl": url, "apiKey": "none"}}},
        }),
    );
    user
}

fn configure(user: &TestUser, document: &Value) {
    user.write(".pinch/pinch.json", &document.to_string());
}

async fn agent(user: &TestUser, args: &[&str]) -> CommandOutput {
    user.run_program(&[&["agent"], args].concat()).await
}

/// Checks that the run prints `err`, no output, and exits with `code`.
async fn fails(user: &TestUser, args: &[&str], code: i32, err: &str) {
    let wanted = CommandOutput { code: Some(code), out: String::new(), err: format!("{err}\n") };
    assert_eq!(agent(user, args).await, wanted, "pinch agent {}", args.join(" "));
}

/// Returns the output of a successful run.
fn prints(out: &str) -> CommandOutput {
    CommandOutput { code: Some(0), out: out.to_owned(), err: String::new() }
}

#[tokio::test]
async fn the_next_run_continues_the_same_session() {
    let user = user().await;
    user.answer("one");
    assert_eq!(agent(&user, &["--session-id", "s1", "--message", "first"]).await, prints("one\n"));
    user.answer("two");
    assert_eq!(agent(&user, &["--session-id", "s1", "-m", "- second"]).await, prints("two\n"));
    let asked = user.asked().unwrap();
    let texts: Vec<&str> =
        asked.as_array().unwrap().iter().map(|m| m["content"][0]["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["first", "one", "- second"]);
    user.answer("three");
    assert_eq!(agent(&user, &["--session-id", "s2", "--message", "other"]).await, prints("three\n"));
    assert_eq!(user.asked().unwrap().as_array().unwrap().len(), 1, "another session knows nothing of the first");
    let sessions = ["s1.jsonl", "s2.jsonl"].map(|name| user.path(".pinch/agents/main/sessions").join(name));
    assert_eq!(files(&user.path(".pinch/agents")), sessions);
    let first = ["AGENTS.md", "BOOTSTRAP.md", "SOUL.md"].map(|name| user.path(".pinch/workspace").join(name));
    assert!(first.iter().all(|file| file.is_file()), "a new agent has the first files of its workspace");
}

#[tokio::test]
async fn a_run_may_apply_patches_unless_configured_otherwise() {
    let user = user().await;
    let tools = async || {
        user.answer("one");
        assert_eq!(agent(&user, &["--session-id", "s1", "--message", "first"]).await, prints("one\n"));
        let body = user.server.requests().last().unwrap().json();
        let names = body["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(tools().await, ["read", "bash", "edit", "write", "apply_patch"]);
    let mut document: Value = serde_json::from_slice(&std::fs::read(user.path(".pinch/pinch.json")).unwrap()).unwrap();
    document["tools"] = json!({"exec": {"applyPatch": {"enabled": false}}});
    configure(&user, &document);
    assert_eq!(tools().await, ["read", "bash", "edit", "write"]);
}

#[tokio::test]
async fn the_settings_of_a_session_apply_and_its_limit_can_only_be_tightened() {
    let user = user().await;
    let tools = async |key: &str, args: &[&str]| {
        user.answer("one");
        assert_eq!(agent(&user, &[&["--session-key", key, "-m", "x"], args].concat()).await, prints("one\n"));
        let body = user.server.requests().last().unwrap().json();
        let names = body["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned());
        (body["model"].as_str().unwrap().to_owned(), names.collect::<Vec<_>>())
    };
    let (model, all) = tools("chat", &[]).await;
    assert!(model == "claude-sonnet-4-5" && all.contains(&"write".to_owned()), "{model} {all:?}");
    assert_eq!(tools("chat", &["--permission-mode", "read-only"]).await.1, ["read"]);
    let path = user.path(".pinch/agents/main/sessions/sessions.json");
    let mut index: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let entry = &mut index["agent:main:chat"];
    entry["permissionMode"] = json!("read-only");
    (entry["providerOverride"], entry["modelOverride"]) = (json!("anthropic"), json!("claude-opus-4-5"));
    std::fs::write(&path, index.to_string()).unwrap();
    for args in [&[][..], &["--permission-mode", "full"]] {
        assert_eq!(tools("chat", args).await, ("claude-opus-4-5".to_owned(), vec!["read".to_owned()]), "{args:?}");
    }
    assert_eq!(tools("agent:main:chat:thread:1", &[]).await.1, ["read"], "a thread has the limit of its chat");
    index["agent:main:chat"]["permissionMode"] = json!("some");
    std::fs::write(&path, index.to_string()).unwrap();
    let unknown = "Error: the session has the unknown permissionMode \"some\"; expected one of read-only, guarded, workspace, full";
    fails(&user, &["--session-key", "chat", "-m", "x"], 2, unknown).await;
    let invalid = "Error: Invalid permission mode \"some\". Valid values: read-only, guarded, workspace, full";
    fails(&user, &["--session-id", "s", "-m", "x", "--permission-mode", "some"], 1, invalid).await;
}

#[tokio::test]
async fn json_is_one_object_and_nothing_else() {
    let user = user().await;
    user.answer("one");
    let ran = agent(&user, &["--session-id", "s1", "--message", "first", "--json", "--local"]).await;
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let mut printed: Value = serde_json::from_str(&ran.out).unwrap();
    assert!(ran.out.starts_with("{\n  \"payloads\": [\n"), "{}", ran.out);
    assert!(ran.out.ends_with("\n}\n"), "{}", ran.out);
    for duration in ["/meta/durationMs", "/meta/attempts/0/durationMs", "/meta/executionTrace/attempts/0/elapsedMs"] {
        assert!(printed.pointer_mut(duration).unwrap().take().is_u64());
    }
    assert!(printed.pointer_mut("/meta/agentMeta/costUsd").unwrap().take().as_f64().is_some_and(|cost| cost > 0.0));
    // The length of the prompt depends on the machine.
    let report = printed["meta"].as_object_mut().and_then(|meta| meta.shift_remove("systemPromptReport")).unwrap();
    assert!(report["systemPrompt"]["chars"].as_u64() > Some(1_000) && report["sessionId"] == "s1", "{report}");
    // A new run has a new id.
    assert!(printed.pointer_mut("/meta/agentMeta/terminalReceipt/runId").unwrap().take().is_string());
    let usage = json!({"input": 10, "output": 5, "total": 15});
    let (provider, model) = ("anthropic", "claude-sonnet-4-5");
    assert_eq!(
        printed,
        json!({
            "payloads": [{"text": "one", "mediaUrl": null}],
            "meta": {
                "durationMs": null,
                "aborted": false,
                "stopReason": "stop",
                "agentMeta": {
                    "sessionId": "s1", "provider": provider, "model": model,
                    "usage": usage, "lastCallUsage": usage, "promptTokens": 10,
                    "agentHarnessId": "native", "assistantTurns": 1,
                    "contextTokens": 200_000, "contextTokensSource": "model",
                    "contextBudgetStatus": {
                        "route": "fits", "shouldCompact": false, "estimatedPromptTokens": 15, "contextTokenBudget": 200_000,
                        "promptBudgetBeforeReserve": 200_000, "reserveTokens": 20_000, "effectiveReserveTokens": 20_000,
                        "remainingPromptBudgetTokens": 179_985, "overflowTokens": 0,
                    },
                    "costUsd": null,
                    "terminalReceipt": {
                        "runId": null, "sessionId": "s1", "turnId": "msg_1",
                        "requested": {"provider": provider, "model": model},
                        "effective": {"provider": provider, "model": model},
                        "successfulToolNames": [], "rerouted": false,
                    },
                },
                "attempts": [
                    {"provider": provider, "model": model, "outcome": "ok", "action": "finish", "durationMs": null},
                ],
                "executionTrace": {
                    "winnerProvider": provider, "winnerModel": model,
                    "attempts": [{"provider": provider, "model": model, "result": "success", "elapsedMs": null}],
                    "fallbackUsed": false, "runner": "embedded",
                },
                "requestShaping": {
                    "thinking": "off", "reasoning": "off", "verbose": "off", "blockStreaming": false,
                    "fallbackEligible": false,
                },
                "completion": {"stopReason": "stop", "finishReason": "end_turn"},
                "finalPromptText": "first",
                "finalAssistantVisibleText": "one",
                "finalAssistantRawText": "one",
                "replayInvalid": false,
                "livenessState": "working",
            },
        })
    );
}

#[tokio::test]
async fn invalid_requests_are_usage_errors() {
    let user = user().await;
    fails(&user, &["--session-id", "s1"], 1, "Error: Message (--message) is required").await;
    fails(&user, &["--session-id", "s1", "--message", " "], 1, "Error: Message (--message) is required").await;
    let whose = "Error: Pass --to <E.164>, --session-id, --session-key, or --agent to choose a session";
    fails(&user, &["--message", "x"], 1, whose).await;
    fails(&user, &["--message", "x", "--session-id", ""], 1, whose).await;
    let number = "Error: --to: not a phone number: home\nhint: write it as in +15551234567";
    fails(&user, &["--message", "x", "--to", "home"], 1, number).await;
    user.write("blank.txt", "\n");
    let blank = "Error: cannot read the message in HOME/blank.txt: the file is empty";
    fails(&user, &["--session-id", "s1", "--message-file", "~/blank.txt"], 1, blank).await;
    let runtime = "Error: unknown runtime \"theirs\"; registered: cli, native";
    let ran = agent(&user, &["--session-id", "s1", "--message", "x", "--runtime", "theirs"]).await;
    assert_eq!((ran.code, ran.err.lines().next()), (Some(2), Some(runtime)));
    std::fs::remove_file(user.path("blank.txt")).unwrap();
    let level = "Error: Invalid thinking level \"much\". Valid values: off, minimal, low, medium, adaptive, high, xhigh, max, ultra";
    fails(&user, &["--session-id", "s1", "--message", "x", "--thinking", "much"], 1, level).await;
    let level = "Error: Invalid verbose level \"much\". Valid values: on, full, off";
    fails(&user, &["--session-id", "s1", "--message", "x", "--verbose", "much"], 1, level).await;
    let nobody = "Error: Unknown agent id \"../x\". Available agents: main, ops";
    fails(&user, &["--agent", "../x", "--message", "x"], 1, nobody).await;
    let other = "Error: Agent id \"ops\" does not match the agent \"main\" of the session key";
    fails(&user, &["--agent", "ops", "--session-key", "agent:main:main", "--message", "x"], 1, other).await;
    let unknown = "Error: Unknown model: nope/m\nhint: `pinch --list-models` lists models; agents.defaults.model and models.providers in pinch.json \
         configure others";
    fails(&user, &["--session-id", "s1", "--message", "x", "--model", "nope/m"], 1, unknown).await;
    assert_eq!(files(&user.path(".pinch")), [user.path(".pinch/pinch.json")], "a mistake leaves nothing behind");
}

#[tokio::test]
async fn a_session_key_cannot_escape_the_state_directory() {
    let user = user().await;
    user.answer("fine");
    let ran = agent(&user, &["--session-key", "agent:../../../ops:main", "--session-id", "../../s", "-m", "x"]).await;
    assert_eq!(ran, prints("fine\n"));
    assert_eq!(files(&user.path(".pinch/agents")), [user.path(".pinch/agents/ops/sessions/.._.._s-2c214402.jsonl")]);
}

#[tokio::test]
async fn missing_keys_and_models_are_configuration_errors() {
    let user = TestUser::new().await;
    let no_key = "Error: No API key found for anthropic. Set ANTHROPIC_API_KEY, or give the key as \"apiKey\" of a profile under \
         auth.profiles in pinch.json.";
    let ask = ["--session-id", "s1", "--message", "x"];
    fails(&user, &[&ask[..], &["--model", "anthropic/claude-sonnet-4-5"]].concat(), 2, no_key).await;
    configure(&user, &json!({"agents": {"defaults": {"model": "nope/m"}}}));
    let unknown = "Error: Unknown model: nope/m\nhint: `pinch --list-models` lists models; agents.defaults.model and models.providers in pinch.json \
         configure others";
    fails(&user, &ask, 2, unknown).await;
    fails(&user, &[&ask[..], &["--config", "gone.json"]].concat(), 2, "Error: configuration file not found: gone.json")
        .await;
}

#[tokio::test]
async fn without_any_model_the_error_says_how_to_add_one() {
    let user = TestUser::new().await;
    let ask = ["--session-id", "s1", "--message", "x"];
    for port in [11434, 8080, 1234] {
        if tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
            // A machine with a local server has a model.
            return;
        }
    }
    let hints = "Error: no model is configured\n\
         hint: to add one, do one of these:\n  \
         - log in to a provider: pinch auth login\n  \
         - set an API key, e.g. export ANTHROPIC_API_KEY=… (or OPENAI_API_KEY, GEMINI_API_KEY, OPENROUTER_API_KEY, …)\n  \
         - start a local server: Ollama (port 11434), llama.cpp (port 8080) or LM Studio (port 1234)\n  \
         - add a server of your own to HOME/.pinch/agent/models.json, and use it with --model provider/id\n\
         hint: to see a run without a model, use: pinch demo";
    fails(&user, &ask, 2, hints).await;
    assert!(!user.path(".pinch").exists(), "a run that nobody can carry out leaves nothing behind");
}

#[tokio::test]
async fn a_broken_configuration_is_reported_and_not_changed() {
    let user = TestUser::new().await;
    let broken = "{\n  agents: {";
    let path = user.write(".pinch/openclaw.json", broken);
    let ask = ["--session-id", "s1", "--message", "x", "--model", "anthropic/claude-sonnet-4-5"];
    let no_key = "Error: No API key found for anthropic. Set ANTHROPIC_API_KEY, or give the key as \"apiKey\" of a profile under \
         auth.profiles in pinch.json.";
    let place = "Error: HOME/.pinch/openclaw.json:2:11: is not valid JSON5: EOF parsing object. Correct it there; until \
         then the file is unusable";
    fails(&user, &ask, 2, place).await;
    assert_eq!(std::fs::read_to_string(&path).unwrap(), broken);

    user.write(".pinch/openclaw.json", r#"{models: {providers: {mine: {baseUrl: 5}}}}"#);
    let place =
        "Warning: HOME/.pinch/openclaw.json:models.providers.mine.baseUrl: must be string. The provider is ignored";
    fails(&user, &ask, 2, &format!("{place}\n{no_key}")).await;
}

#[tokio::test]
async fn the_providers_rejection_is_reported() {
    let user = user().await;
    let refused = |kind: &str, text: &str| json!({"type": "error", "error": {"type": kind, "message": text}});
    user.server.reply(ServerReply::json(401, &refused("authentication_error", "invalid x-api-key")));
    let text = "Error: anthropic/claude-sonnet-4-5: invalid x-api-key (HTTP 401)";
    fails(&user, &["--session-id", "s1", "--message", "x"], 3, text).await;
    // The session is not harmed.
    user.answer("back again");
    assert_eq!(agent(&user, &["--session-id", "s1", "--message", "y"]).await, prints("back again\n"));
}

#[tokio::test]
async fn json_has_one_shape_for_every_failure() {
    let user = user().await;
    let refused = |kind: &str, text: &str| json!({"type": "error", "error": {"type": kind, "message": text}});
    let failure = async |args: &[&str], code: i32| {
        let ran = agent(&user, &[&["--session-id", "s1", "--json"], args].concat()).await;
        assert_eq!(ran.code, Some(code), "{ran:?}");
        let printed: Value = serde_json::from_str(&ran.out).unwrap();
        let members: Vec<&String> = printed.as_object().unwrap().keys().collect();
        assert_eq!(members, ["ok", "error", "payloads", "meta"], "{printed}");
        assert_eq!((&printed["ok"], printed["payloads"].is_array()), (&json!(false), true), "{printed}");
        assert!(printed["error"]["message"].as_str().is_some_and(|text| !text.is_empty()), "{printed}");
        printed["error"]["kind"].as_str().unwrap().to_owned()
    };
    assert_eq!(failure(&["-m", " "], 1).await, "user");
    assert_eq!(failure(&["-m", "x", "--config", "gone.json"], 2).await, "config");
    assert_eq!(failure(&["-m", "x", "--model", "nope/m"], 1).await, "model_not_found");
    user.server.reply(ServerReply::json(401, &refused("authentication_error", "invalid x-api-key")));
    assert_eq!(failure(&["-m", "x"], 3).await, "auth");
    let usage = json!({"input_tokens": 40, "output_tokens": 5});
    let read = AnthropicResponse::with_usage("r", &usage).tool_call("toolu_r", "read", r#"{"path": "gone.md"}"#);
    user.server.reply(ServerReply::sse(read.stop("tool_use").concat()));
    user.server.reply(ServerReply::json(401, &refused("authentication_error", "invalid x-api-key")));
    let ran = agent(&user, &["--session-id", "paid", "--json", "-m", "x"]).await;
    let printed: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(printed["meta"]["agentMeta"]["usage"], json!({"input": 40, "output": 5, "total": 45}), "{printed}");
    let never = Gate::new();
    user.server.reply(ServerReply::events().gated(&never, AnthropicResponse::new("m").text("late").stop("end_turn")));
    assert_eq!(failure(&["-m", "x", "--timeout", "1"], 3).await, "timeout");
    user.server.reply(ServerReply::json(
        400,
        &refused("invalid_request_error", "prompt is too long: 300000 tokens > 200000 maximum"),
    ));
    user.server.reply(ServerReply::json(400, &refused("invalid_request_error", "prompt is too long"))).repeat_last();
    assert_eq!(failure(&["-m", "x"], 3).await, "overflow");
}

#[tokio::test]
async fn an_answer_that_times_out_is_a_failure() {
    let user = user().await;
    let never = Gate::new();
    user.server.reply(ServerReply::events().gated(&never, AnthropicResponse::new("m").text("late").stop("end_turn")));
    let ran = agent(&user, &["--session-id", "s1", "--message", "x", "--timeout", "1"]).await;
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.out.contains("timed out"), "{ran:?}");
}

#[tokio::test]
async fn unusable_directories_are_errors() {
    let user = user().await;
    user.write("notes", "a file, not a folder");
    let ask = ["--session-id", "s1", "--message", "x"];
    let no_folder = "Error: not a directory: HOME/notes";
    fails(&user, &[&ask[..], &["--state-dir", "notes"]].concat(), 1, no_folder).await;
    user.write(".pinch/agents/ops/sessions", "a file, not a folder");
    let no_lock = "Error: cannot lock the session file HOME/.pinch/agents/ops/sessions/s1.jsonl: HOME/.pinch/agents/ops/sessions exists and is not a directory";
    fails(&user, &[&ask[..], &["--agent", "ops"]].concat(), 4, no_lock).await;
    std::fs::create_dir_all(user.path(".pinch/agents/main/sessions/s1.jsonl")).unwrap();
    let no_file = "Error: cannot read HOME/.pinch/agents/main/sessions/s1.jsonl: not a regular file";
    fails(&user, &ask, 4, no_file).await;
    assert_eq!(user.server.requests().len(), 0, "nothing is asked that could not be kept");
}

#[tokio::test]
async fn a_closed_stdout_ends_the_run_with_an_error() {
    for args in [&["--json"][..], &[]] {
        let user = user().await;
        let begun = Gate::new();
        user.server
            .reply(ServerReply::events().gated(&begun, AnthropicResponse::new("m").text("unread").stop("end_turn")));
        let mut command = user.program(&[&["agent", "--session-id", "s1", "--message", "x"], args].concat());
        let mut child = command.spawn().unwrap();
        drop(child.stdout.take());
        begun.open_times(usize::from(u8::MAX));
        let ran = user.ran(child.wait_with_output().await.unwrap());
        assert_eq!(
            (ran.code, ran.err.as_str()),
            (Some(4), "Error: cannot write the output: Broken pipe (os error 32)\n")
        );
    }
}

#[cfg(unix)]
#[tokio::test]
async fn ctrl_c_ends_the_run_and_leaves_the_session_valid() {
    let user = user().await;
    let gate = Gate::new();
    let frames = AnthropicResponse::new("m").with_chunks(2).text("half of it").stop("end_turn");
    // The gate comes after the first half of the text.
    let (before, after) = frames.split_at(3);
    user.server.reply(ServerReply::sse(before.concat()).gated(&gate, after.to_vec()));
    let child = user.program(&["agent", "--session-id", "s1", "--message", "long", "--json"]).spawn().unwrap();
    gate.reached(1).await;
    crate::help::interrupt(&child).await;
    let ran = user.ran(child.wait_with_output().await.unwrap());
    assert_eq!((ran.code, ran.err.as_str()), (Some(130), ""));
    let printed: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&printed["meta"]["aborted"], &printed["meta"]["stopReason"]), (&json!(true), &json!("aborted")));

    let file = std::fs::read_to_string(user.path(".pinch/agents/main/sessions/s1.jsonl")).unwrap();
    let entries: Vec<Value> = file.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = entries.iter().rfind(|entry| entry["type"] == "message").unwrap();
    assert_eq!(last["message"]["stopReason"], "aborted");
    user.answer("here I am");
    assert_eq!(agent(&user, &["--session-id", "s1", "--message", "still there?"]).await, prints("here I am\n"));
    let asked = user.asked().unwrap().to_string();
    assert!(asked.contains("long") && asked.contains("still there?"), "{asked}");
}

#[tokio::test]
async fn an_answer_that_fails_after_some_text_is_a_failure() {
    let user = user().await;
    let broken = || {
        let frames = AnthropicResponse::new("m").text("half of it").stop("end_turn");
        let error = json!({"type": "error", "error": {"type": "invalid_request_error", "message": "no more"}});
        let end = frames.len() - 2;
        ServerReply::sse(format!("{}event: error\ndata: {error}\n\n", frames[..end].concat()))
    };
    user.server.reply(broken());
    let ran = agent(&user, &["--session-id", "s1", "--message", "x"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(3), "half of it\n"), "{}", ran.err);
    assert!(ran.err.starts_with("Error: ") && ran.err.contains("no more"), "{}", ran.err);
    user.server.reply(broken());
    let ran = agent(&user, &["--session-id", "s2", "--message", "x", "--json"]).await;
    let printed: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(ran.code, Some(3));
    assert!(ran.err.contains("no more"), "{}", ran.err);
    assert_eq!(printed["meta"]["delivered"], json!({"complete": false, "payloads": 1, "characters": 10}));
}

#[tokio::test]
async fn a_session_key_means_the_same_session_until_a_new_one_is_started() {
    let user = user().await;
    let asked = |user: &TestUser| user.asked().unwrap().as_array().unwrap().len();
    for (text, n_messages) in [("one", 1), ("two", 3), ("/new three", 1)] {
        user.answer("fine");
        assert_eq!(agent(&user, &["--session-key", "chat", "-m", text]).await, prints("fine\n"));
        assert_eq!(asked(&user), n_messages, "{text}");
    }
    user.answer("fine");
    assert_eq!(agent(&user, &["--agent", "ops", "-m", "one"]).await, prints("fine\n"));
    let index = |agent: &str| -> Value {
        let path = user.path(".pinch/agents").join(agent).join("sessions/sessions.json");
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    };
    assert!(index("main")["agent:main:chat"]["sessionId"].is_string());
    assert!(index("ops")["agent:ops:main"]["sessionId"].is_string());
    fails(
        &user,
        &["--session-key", "agent:ops", "-m", "x"],
        2,
        "Error: malformed session key \"agent:ops\": expected agent:<id>:<name>, or a name alone",
    )
    .await;
}

#[tokio::test]
async fn the_state_directory_of_openclaw_is_used_if_pinch_has_none() {
    let user = user().await;
    user.write("claw/openclaw.json", &std::fs::read_to_string(user.path(".pinch/pinch.json")).unwrap());
    user.answer("fine");
    let mut command = user.program(&["agent", "--session-id", "s1", "-m", "x"]);
    command.env("OPENCLAW_STATE_DIR", user.path("claw"));
    assert_eq!(user.ran(command.output().await.unwrap()), prints("fine\n"));
    assert_eq!(files(&user.path("claw/agents")), [user.path("claw/agents/main/sessions/s1.jsonl")]);
}

#[tokio::test]
async fn a_message_is_read_from_a_file() {
    let user = user().await;
    user.write("message.txt", "\u{feff}- first line\nsecond line\n");
    user.answer("one");
    assert_eq!(agent(&user, &["--session-id", "s1", "--message-file", "~/message.txt"]).await, prints("one\n"));
    assert_eq!(user.asked().unwrap()[0]["content"][0]["text"], "- first line\nsecond line");
    user.write("long.txt", &"x".repeat(4 * 1024 * 1024 + 1));
    let long = "Error: cannot read the message in HOME/long.txt: the file is too long";
    fails(&user, &["--session-id", "s1", "--message-file", "~/long.txt"], 1, long).await;
    let both = agent(&user, &["--session-id", "s1", "-m", "x", "--message-file", "~/message.txt"]).await;
    assert_ne!(both.code, Some(0));
    assert_eq!(user.server.requests().len(), 1);
}

#[tokio::test]
async fn a_phone_number_names_the_session_of_its_direct_chats() {
    let user = user().await;
    let ask = async |scope: &str, args: &[&str]| {
        user.answer("one");
        let mut document: Value =
            serde_json::from_slice(&std::fs::read(user.path(".pinch/pinch.json")).unwrap()).unwrap();
        document["session"] = json!({"dmScope": scope});
        configure(&user, &document);
        agent(&user, &[args, &["-m", "x"]].concat()).await
    };
    let keys = |agent: &str| {
        let index = std::fs::read(user.path(&format!(".pinch/agents/{agent}/sessions/sessions.json"))).unwrap();
        let index: Value = serde_json::from_slice(&index).unwrap();
        index.as_object().unwrap().keys().cloned().collect::<Vec<_>>()
    };
    assert_eq!(ask("main", &["--to", "+1 (555) 123-4567"]).await, prints("one\n"));
    assert_eq!(keys("main"), ["agent:main:main"]);
    assert_eq!(ask("per-peer", &["--to", "15551234567", "--agent", "ops"]).await, prints("one\n"));
    assert_eq!(keys("ops"), ["agent:ops:direct:+15551234567"]);
    let ran = ask("per-channel-peer", &["--to", "+15551234567"]).await;
    assert!(ran.code == Some(1) && ran.err.contains("--session-key"), "{ran:?}");
}

#[tokio::test]
async fn the_runtime_of_a_run_can_be_chosen() {
    let user = user().await;
    let mut document: Value = serde_json::from_slice(&std::fs::read(user.path(".pinch/pinch.json")).unwrap()).unwrap();
    document["agents"]["defaults"]["runtime"] = json!("theirs");
    configure(&user, &document);
    user.answer("one");
    assert_eq!(agent(&user, &["--session-id", "s1", "-m", "x", "--runtime", "pi"]).await, prints("one\n"));
}
