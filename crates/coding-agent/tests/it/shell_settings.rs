//! Settings for commands and tools: which variables commands see, and which tools exist.

use std::sync::Arc;

use pinch_coding_agent::runtime::{AgentSessionOptions, SessionRuntime, SessionTarget, create_agent_session};
use pinch_coding_agent::session::Prompt;
use pinch_llm::message::Message;
use pinch_llm::provider::scripted::{ScriptedProvider, ScriptedReply};
use pinch_stdx::cancel::Cancel;
use pinch_stdx::host::{Env, Host};
use serde_json::{Value, json};

use crate::session::follow;

/// Creates a session with settings, and a model that runs one command.
async fn runtime(settings: Value, dir: &tempfile::TempDir) -> (SessionRuntime, Arc<ScriptedProvider>) {
    let agent = dir.path().join("agent");
    std::fs::create_dir_all(&agent).unwrap();
    std::fs::write(agent.join("settings.json"), settings.to_string()).unwrap();
    let models = json!({"providers": {"own": {"baseUrl": "http://127.0.0.1:1", "api": "openai-completions",
        "apiKey": "$OWN_SERVER_PASS", "models": [{"id": "m"}]}}});
    std::fs::write(agent.join("models.json"), models.to_string()).unwrap();
    let command = json!({"command": "env"}).as_object().unwrap().clone();
    let replies = [ScriptedReply::call("c1", "bash", command), ScriptedReply::text("done")];
    let env: Env = [
        ("PATH", std::env::var("PATH").unwrap()),
        ("HOME", dir.path().display().to_string()),
        ("OPENAI_API_KEY", "key-1".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "key-2".to_owned()),
        ("OWN_SERVER_PASS", "key-3".to_owned()),
        ("GITHUB_TOKEN", "of another program".to_owned()),
    ]
    .into_iter()
    .collect();
    let host = Host::builder().seed(1).home(dir.path()).temp(dir.path()).env(env).build();
    let provider = Arc::new(ScriptedProvider::new(replies));
    let options = AgentSessionOptions::new(host, dir.path(), agent)
        .open(SessionTarget::InMemory)
        .model(ScriptedProvider::model("scripted"))
        .provider(Arc::clone(&provider) as Arc<_>);
    let runtime = create_agent_session(options).await.unwrap();
    (runtime, provider)
}

/// Returns the names of variables seen by the model's and the user's commands, which are the same.
async fn seen(settings: Value) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let (mut runtime, _) = runtime(settings, &dir).await;
    let names = |text: &str| {
        let wanted = ["HOME", "PATH", "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "OWN_SERVER_PASS", "GITHUB_TOKEN"];
        let is_set = |name: &&str| text.lines().any(|line| line.starts_with(&format!("{name}=")));
        wanted.into_iter().filter(is_set).map(str::to_owned).collect::<Vec<_>>()
    };
    let shell = Arc::clone(runtime.shell());
    let of_person = shell.run_for_user("env", &mut |_| {}, &Cancel::new()).await.unwrap().output;
    follow(runtime.session_mut().prompt(Prompt::text("go")), |_| {}).await;
    let text = |message: &Arc<Message>| match &**message {
        Message::ToolResult(result) => result.content[0].as_text().unwrap().to_owned(),
        _ => String::new(),
    };
    let of_model: String = runtime.session().messages().iter().map(text).collect();
    assert_eq!(names(&of_model), names(&of_person), "{of_model}");
    assert!(of_person.contains("PI_CODING_AGENT=true"));
    names(&of_person)
}

#[tokio::test]
async fn commands_see_no_credentials_unless_configured() {
    assert_eq!(seen(json!({})).await, ["HOME", "PATH", "GITHUB_TOKEN"]);
    let all = ["HOME", "PATH", "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "OWN_SERVER_PASS", "GITHUB_TOKEN"];
    assert_eq!(seen(json!({"shellEnvironment": {"inherit": "all"}})).await, all);
    assert_eq!(seen(json!({"shellEnvironment": {"inherit": "core"}})).await, ["HOME", "PATH"]);
    let chosen = json!({"shellEnvironment": {"exclude": ["GITHUB_*"], "include": ["OWN_*"]}});
    assert_eq!(seen(chosen).await, ["HOME", "PATH", "OWN_SERVER_PASS"]);
    assert_eq!(seen(json!({"shellEnvironment": {"inherit": "none", "include": ["PATH"]}})).await, ["PATH"]);
}

#[tokio::test]
async fn default_tools_never_exceed_the_requested_ones() {
    let tools = async |list: Value| {
        let dir = tempfile::tempdir().unwrap();
        let (mut runtime, _) = runtime(json!({ "defaultTools": list }), &dir).await;
        let notes = runtime.take_notes().join("\n");
        follow(runtime.session_mut().prompt(Prompt::text("go")), |_| {}).await;
        let mut names: Vec<String> = Vec::new();
        for message in runtime.session().messages() {
            if let Message::System(system) = &**message {
                names.extend(system.tools_added.iter().map(|tool| tool.name.clone()));
            }
        }
        (names.join(" "), notes)
    };
    let (names, notes) = tools(json!(["read", "codemode"])).await;
    assert_eq!(names, "read");
    assert!(notes.contains("Unknown tool name: codemode"), "{notes}");
    let (names, notes) = tools(json!(["-bash", "+codemode"])).await;
    assert_eq!(names, "read edit write");
    assert!(notes.contains("codemode"), "{notes}");
    assert_eq!(tools(json!(["codemode"])).await.0, "");
    assert_eq!(tools(json!(["read", 1])).await.0, "read");
    assert_eq!(tools(json!("read")).await.0, "read");
    assert_eq!(tools(json!({"read": true})).await.0, "");
    assert_eq!(tools(json!(["+ls"])).await, ("read bash edit write ls".to_owned(), String::new()));
}

#[tokio::test]
async fn the_configured_transport_reaches_the_request() {
    for (settings, expected) in [
        (json!({}), None),
        (json!({"transport": "sse"}), Some("sse")),
        (json!({"transport": "websocket-cached", "enableAnalytics": true}), Some("websocket-cached")),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let (mut runtime, provider) = runtime(settings, &dir).await;
        assert_eq!(runtime.take_notes(), [""; 0]);
        follow(runtime.session_mut().prompt(Prompt::text("go")), |_| {}).await;
        let requests = provider.requests();
        assert_eq!(requests[0].options.native.get("transport").and_then(Value::as_str), expected);
    }
}
