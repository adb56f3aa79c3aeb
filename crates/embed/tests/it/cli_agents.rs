//! Command-line agents in place of a model, played by shell scripts that behave in every possible way.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use pinch_coding_agent::extension::{Extension, HandlerFuture, Points};
use pinch_embed::engine::{Engine, RunTarget};
use pinch_embed::plugin::{BeforeMessageWrite, HookContext, MessageWrite, Plugin};
use pinch_embed::ports::{BoxError, GuardedCall, Guardrail, GuardrailDecision};
use pinch_embed::run::RunError;
use pinch_llm::message::{Block, Content, Image, Message, block};

use pinch_stdx::cancel::CancelReason;
use pinch_stdx::host::{Env, Host};
use serde_json::{Value, json};

use crate::world::{FALLBACK, World, answer, fallback_answer, payload_texts, refusal, stream, within};

const KEY: &str = "agent:main:chat";

/// Creates a world whose first model is the agent `robot`, played by the script. `$DIR` is the world's directory.
pub(crate) async fn robot(script: &str, backend: Value, change: impl FnOnce(&mut Value)) -> World {
    let mut world = World::with(|config| {
        config["agents"]["defaults"]["model"] = json!({"primary": "robot/fast"});
        config["agents"]["defaults"]["cliBackends"] = json!({"robot": backend});
        change(config);
    })
    .await;
    let program = world.path("robot");
    let script = format!("#!/bin/sh\nDIR='{}'\n{script}\n", world.path("").display());
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
    world.change(|config| config["agents"]["defaults"]["cliBackends"]["robot"]["command"] = json!(program));
    assert!(world.engine.problems().is_empty(), "{:?}", world.engine.problems());
    world
}

async fn ask(engine: &Engine, text: &str) -> Result<Vec<String>, RunError> {
    let request = engine.message(KEY, text).await.unwrap();
    within(engine.run(request).finish()).await.map(|result| payload_texts(&result))
}

fn arguments(world: &World) -> Vec<String> {
    let lines = std::fs::read_to_string(world.path("arguments")).unwrap();
    lines.lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn an_agent_takes_over_from_a_model_that_failed() {
    let world = robot(ECHO, echo_backend(), |config| {
        let model = format!("anthropic/{}", crate::world::MODEL);
        config["agents"]["defaults"]["model"] = json!({"primary": model, "fallbacks": ["robot/fast"]});
    })
    .await;
    world.server.answer_with(|_| Some(refusal(404, "not_found_error", "model: unknown")));
    assert_eq!(ask(&world.engine, "hello").await.unwrap(), ["You said: hello"]);
    let session = world.engine.sessions("main").await.unwrap()[KEY].session_id.clone();
    let transcript = world.transcript(&session);
    let messages = transcript.of_type("message");
    let roles: Vec<&str> = messages.iter().filter_map(|entry| entry["message"]["role"].as_str()).collect();
    assert_eq!(roles.iter().filter(|role| **role == "user").count(), 1, "the prompt is there once: {roles:?}");
}

#[tokio::test]
async fn an_agent_whose_tools_would_not_follow_the_policy_is_not_started() {
    let restrictions = [
        (json!({"deny": ["exec"]}), "exec is denied by tools.deny (exec)"),
        (json!({"allow": ["read"]}), "write is not in tools.allow"),
        (json!({"profile": "messaging"}), "read is not in tools.profile"),
    ];
    for (tools, why) in restrictions {
        let world = robot(ECHO, echo_backend(), |config| config["tools"] = tools.clone()).await;
        let error = ask(&world.engine, "hello").await.unwrap_err();
        assert!(matches!(&error, RunError::Config(_)) && error.to_string().contains(why), "{tools}: {error}");
        assert!(!world.path("arguments").exists());
    }
    let world = robot(ECHO, echo_backend(), |config| config["tools"] = json!({"deny": ["message", "process"]})).await;
    assert_eq!(ask(&world.engine, "hello").await.unwrap(), ["You said: hello"]);
}

#[tokio::test]
async fn an_agent_is_not_started_where_its_calls_would_need_a_decision() {
    for exec in
        [json!({"mode": "allowlist"}), json!({"security": "full", "ask": "always"}), json!({"strictInlineEval": true})]
    {
        let world = robot(ECHO, echo_backend(), |config| config["tools"] = json!({"exec": exec.clone()})).await;
        let error = ask(&world.engine, "hello").await.unwrap_err();
        assert!(error.to_string().contains("tools, which tools.exec does not see"), "{exec}: {error}");
        assert!(!world.path("arguments").exists());
    }
    let world = robot(ECHO, echo_backend(), |config| config["tools"] = json!({"exec": {"mode": "full"}})).await;
    assert_eq!(ask(&world.engine, "hello").await.unwrap(), ["You said: hello"]);
    let engine = world.built(|builder| builder.guardrail(Arc::new(AllowsAll)));
    let error = ask(&engine, "hello again").await.unwrap_err();
    assert!(error.to_string().contains("which the guardrail does not see"), "{error}");
}

/// Allows every call.
struct AllowsAll;

impl Guardrail for AllowsAll {
    fn check<'a>(&'a self, _: &'a GuardedCall) -> BoxFuture<'a, Result<GuardrailDecision, BoxError>> {
        Box::pin(async { Ok(GuardrailDecision::Allow) })
    }
}

/// Writes each message in capitals.
pub(crate) struct Shouting;

impl Extension for Shouting {
    fn name(&self) -> &str {
        "shouting"
    }

    fn points(&self) -> Points {
        Points::of([])
    }
}

impl Plugin for Shouting {
    fn before_message_write<'a>(
        &'a self,
        event: &'a BeforeMessageWrite,
        _: &'a HookContext,
    ) -> HandlerFuture<'a, MessageWrite> {
        let mut message = Message::clone(&event.message);
        match &mut message {
            Message::User(user) => user.content = Content::Text(user.content.text("").to_uppercase()),
            Message::ToolResult(result) => {
                result.content = vec![Block::text(block::join_text(&result.content, "").to_uppercase())]
            }
            _ => {}
        }
        Box::pin(async move { Ok(MessageWrite::Replace(Arc::new(message))) })
    }
}

#[tokio::test]
async fn plugins_see_what_an_agent_adds_to_the_conversation() {
    let world = robot(ECHO, echo_backend(), |_| {}).await;
    let engine = world.built(|builder| builder.hooks(Arc::new(Shouting)));
    assert_eq!(ask(&engine, "hello").await.unwrap(), ["You said: hello"]);
    let session = engine.sessions("main").await.unwrap()[KEY].session_id.clone();
    let messages = world.transcript(&session).messages();
    assert_eq!(messages, ["user: HELLO", "assistant(stop): You said: hello"]);
}

#[tokio::test]
async fn an_argument_that_is_too_long_is_an_error_that_says_so() {
    let world = robot(ECHO, echo_backend(), |_| {}).await;
    let mut request = world.engine.message(KEY, "hello").await.unwrap();
    request.extra_system_prompt = Some("x".repeat(200_000));
    let error = within(world.engine.run(request).finish()).await.unwrap_err();
    assert!(error.to_string().contains("the arguments of robot are too long: one has"), "{error}");
}

#[tokio::test]
async fn an_agent_does_not_inherit_keys_of_providers() {
    let script = r#"env > "$DIR/variables"; printf '{"result": "ok"}'"#;
    for (passed, expect) in [(json!([]), ""), (json!(["GEMINI_API_KEY"]), "GEMINI_API_KEY=key-g\n")] {
        let mut backend = echo_backend();
        backend["passEnv"] = passed;
        let world = robot(script, backend, |_| {}).await;
        let variables = [("ANTHROPIC_API_KEY", "key-a"), ("GEMINI_API_KEY", "key-g"), ("PLAIN", "x")];
        let host = Host::builder().home(world.path("")).temp(world.path("")).env(Env::from_iter(variables)).build();
        let engine = world.configured(&world.document()).host(host).build();
        assert_eq!(ask(&engine, "hello").await.unwrap(), ["ok"]);
        let seen = std::fs::read_to_string(world.path("variables")).unwrap();
        let keys: String = seen.lines().filter(|line| line.contains("key-")).map(|line| format!("{line}\n")).collect();
        assert_eq!(keys, expect);
        assert!(seen.contains("PLAIN=x"), "{seen}");
    }
}

/// Writes its arguments to a file, one per line, and answers with the last one.
const ECHO: &str = r#"printf '%s\n' "$@" > "$DIR/arguments"
for last in "$@"; do :; done
printf '{"result": "You said: %s", "session_id": "c-7", "usage": {"input_tokens": 3, "output_tokens": 2}}' "$last""#;

pub(crate) fn echo_backend() -> Value {
    json!({
        "command": "robot", "args": ["--json"], "resumeArgs": ["--json", "--resume", "{sessionId}"],
        "modelArg": "--model", "systemPromptArg": "--system", "sessionArg": "--session",
        "imageArg": "--image", "modelAliases": {"fast": "quick-1"},
    })
}

#[tokio::test]
async fn an_agent_answers_and_its_conversation_is_resumed() {
    let world = robot(ECHO, echo_backend(), |_| {}).await;
    let mut request = world.engine.message(KEY, "hello").await.unwrap();
    let session = request.session_id.clone();
    request.images = vec![Image { data: "iVBORw0KGgo=".into(), mime_type: "image/png".into() }];
    let result = within(world.engine.run(request.system_prompt("Be brief.")).finish()).await.unwrap();
    assert_eq!(payload_texts(&result), ["You said: hello"]);
    let agent = &result.meta.agent;
    assert_eq!((agent.provider.as_str(), agent.model.as_str(), agent.runtime.as_str()), ("robot", "fast", "cli"));
    assert_eq!((agent.session_id.as_str(), agent.usage.input, agent.usage.output), ("c-7", 3, 2));
    let args = arguments(&world);
    assert_eq!(args[..5], ["--json", "--model", "quick-1", "--system", "Be brief."].map(str::to_owned));
    let image = args.iter().position(|arg| arg == "--image").unwrap() + 1;
    assert!(args[image].ends_with("image-1.png") && !std::path::Path::new(&args[image]).exists(), "{args:?}");
    assert!(args.iter().any(|arg| arg.contains("tools of this conversation are disabled")), "{args:?}");
    let entry = serde_json::to_value(&world.engine.sessions("main").await.unwrap()[KEY]).unwrap();
    assert_eq!(entry["cliSessionIds"], json!({"robot": "c-7"}));

    assert_eq!(ask(&world.engine, "more").await.unwrap(), ["You said: more"]);
    assert_eq!(arguments(&world), ["--json", "--resume", "c-7", "more"]);
    let transcript = world.transcript(&session);
    assert_eq!(transcript.of_type("message").len(), 4, "two prompts with their answers");

    // The conversation continues with a model.
    world.server.reply(stream(answer("m", "Indeed.")));
    let mut request = world.engine.message(KEY, "and now?").await.unwrap();
    (request.provider, request.model) = (Some("anthropic".into()), Some(crate::world::MODEL.into()));
    let result = within(world.engine.run(request).finish()).await.unwrap();
    assert_eq!(payload_texts(&result), ["Indeed."]);
    assert!(world.server.requests()[0].json()["messages"].to_string().contains("You said: more"));
}

#[tokio::test]
async fn a_conversation_lost_by_the_agent_is_restarted() {
    let script =
        format!("case \"$*\" in *--resume*) echo 'No conversation found with session ID' >&2; exit 1;; esac\n{ECHO}");
    let world = robot(&script, echo_backend(), |_| {}).await;
    assert_eq!(ask(&world.engine, "one").await.unwrap(), ["You said: one"]);
    assert_eq!(ask(&world.engine, "two").await.unwrap(), ["You said: two"]);
    assert!(arguments(&world).contains(&"--session".to_owned()));
}

#[tokio::test]
async fn lines_are_shown_as_they_arrive_and_long_prompts_are_passed_on_stdin() {
    let script = r#"echo '{"thread_id": "t"}'
echo '{"item": {"type": "agent_message", "text": "First."}}'
read line
printf '{"item": {"type": "agent_message", "text": "%s"}}\n' "$line"
echo '{"usage": {"input_tokens": 1, "output_tokens": 1}}'"#;
    let backend =
        json!({"command": "robot", "output": "jsonl", "sessionIdFields": ["thread_id"], "maxPromptArgChars": 3});
    let world = robot(script, backend, |_| {}).await;
    assert_eq!(ask(&world.engine, "long prompt").await.unwrap(), ["First.\nlong prompt"]);
}

#[tokio::test]
async fn failures_fall_back_to_a_model() {
    for script in ["echo '429 rate limit' >&2; exit 1", "exit 3", "sleep 60"] {
        let world = robot(
            script,
            json!({"command": "robot", "reliability": {"watchdog": {"fresh": {"noOutputTimeoutMs": 1_000}}}}),
            |config| config["agents"]["defaults"]["model"]["fallbacks"] = json!([FALLBACK]),
        )
        .await;
        world.server.reply(stream(fallback_answer("Here I am.")));
        assert_eq!(ask(&world.engine, "hello").await.unwrap(), ["Here I am."], "{script}");
        let body = world.server.requests()[0].json();
        assert_eq!(body["messages"].to_string().matches("hello").count(), 1, "{body}");
        let session = world.engine.sessions("main").await.unwrap()[KEY].session_id.clone();
        let transcript = world.transcript(&session).messages();
        assert_eq!(transcript.iter().filter(|line| line.starts_with("user:")).count(), 1, "{transcript:?}");
    }
}

#[tokio::test]
async fn a_message_survives_the_failure_of_its_agent() {
    let world = robot("exit 3", json!({"command": "robot"}), |_| {}).await;
    ask(&world.engine, "remember the milk").await.unwrap_err();
    let session = world.engine.sessions("main").await.unwrap()[KEY].session_id.clone();
    let transcript = world.transcript(&session).messages();
    assert!(
        transcript[0] == "user: remember the milk" && transcript[1].starts_with("assistant(error)"),
        "{transcript:?}"
    );
    // The agent gets the same text again if the user repeats it, and a model gets both.
    ask(&world.engine, "remember the milk").await.unwrap_err();
    assert_eq!(world.transcript(&session).messages().len(), 4);
    world.server.reply(stream(answer("m", "Noted.")));
    let mut request = world.engine.message(KEY, "what?").await.unwrap();
    (request.provider, request.model) = (Some("anthropic".into()), Some(crate::world::MODEL.into()));
    within(world.engine.run(request).finish()).await.unwrap();
    let messages = world.server.requests()[0].json()["messages"].to_string();
    assert_eq!(messages.matches("remember the milk").count(), 2, "{messages}");
}

#[tokio::test]
async fn a_missing_program_ends_the_run_with_an_error_that_names_it() {
    let mut world = robot("", json!({"command": "robot"}), |_| {}).await;
    let mut document = world.document();
    document["agents"]["defaults"]["cliBackends"]["robot"]["command"] = json!("/nowhere/robot");
    world.engine = world.configured(&document).build();
    let error = ask(&world.engine, "hello").await.unwrap_err();
    assert!(error.to_string().contains("/nowhere/robot"), "{error}");
}

#[tokio::test]
async fn a_stopped_run_stops_its_program_and_all_descendants() {
    let world = robot(r#"sleep 300 & echo $! > "$DIR/child"; wait"#, json!({"command": "robot"}), |_| {}).await;
    let began = Instant::now();
    let run = world.engine.run(world.engine.message(KEY, "hello").await.unwrap());
    let child = world.path("child");
    let (result, ()) = within(async {
        tokio::join!(run.finish(), async {
            while !std::fs::read_to_string(&child).is_ok_and(|text| text.ends_with('\n')) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            assert_eq!(world.engine.abort(RunTarget::Session(KEY), CancelReason::User), 1);
        })
    })
    .await;
    assert!(result.unwrap().meta.aborted);
    assert!(began.elapsed() < Duration::from_secs(20));
    let pid: u32 = std::fs::read_to_string(&child).unwrap().trim().parse().unwrap();
    for _ in 0..200 {
        if !pinch_stdx::process::is_alive(pid) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the child of the program is still there");
}
