//! Agents from the builder, prompts, and tools made from functions.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;

use pinch_agent_core::agent::AgentBuilder;
use pinch_agent_core::tool::{ToolEffect, ToolMode};
use pinch_agent_core::{Agent, FnTool, Tool, ToolSpec};
use pinch_llm::client::Client;
use pinch_llm::error::LlmErrorKind;
use pinch_llm::message::{Message, StopReason};
use pinch_llm::model::Model;
use pinch_llm::provider::scripted::{ScriptedProvider, ScriptedReply, ScriptedStep};
use pinch_llm::request::Auth;
use pinch_llm::schema::Schema;
use pinch_testing::server::{Server, ServerReply};
use pinch_testing::wires::completions::CompletionsServer;
use pinch_testing::wires::{Answer, AnswerPart, Wire};
use serde_json::{Value, json};
use tokio::process::Command;

use super::results;

fn call(name: &str, arguments: Value) -> ScriptedReply {
    let arguments = arguments.as_object().unwrap().clone();
    ScriptedReply {
        steps: vec![ScriptedStep::ToolCall { id: "c1".into(), name: name.into(), arguments }],
        ..ScriptedReply::default()
    }
}

fn scripted(replies: impl IntoIterator<Item = ScriptedReply>) -> (AgentBuilder, Arc<ScriptedProvider>) {
    let provider = Arc::new(ScriptedProvider::new(replies));
    (Agent::builder(ScriptedProvider::model("scripted")).provider(provider.clone()), provider)
}

fn spec(name: &str) -> ToolSpec {
    ToolSpec::new(name, "", Schema::new(json!({"type": "object", "properties": {"n": {"type": "integer"}}})))
}

#[tokio::test]
async fn a_prompt_runs_the_tools_and_returns_the_last_answer() {
    let (builder, provider) = scripted([call("double", json!({"n": 21})), ScriptedReply::text("It is 42.")]);
    let double = FnTool::new(spec("double"), |args: Value, cx| async move {
        assert_eq!(cx.call.as_str(), "c1");
        Ok((args["n"].as_i64().unwrap_or_default() * 2).to_string())
    });
    let mut agent = builder.system("Be brief.").tool(double).auth(Auth::key("k")).build().unwrap();
    let reply = agent.prompt("Twice 21?").await.unwrap();
    assert_eq!((reply.text().as_str(), reply.stop_reason), ("It is 42.", StopReason::Stop));
    assert_eq!(results(&agent), [("c1".into(), false, "42".into())]);
    let request = &provider.requests()[0];
    assert_eq!(request.auth.key.as_ref().unwrap().reveal(), "k");
    let Message::System(prompt) = &*request.messages[0] else { panic!("{:?}", request.messages) };
    assert_eq!((prompt.content.text(""), prompt.tools_added[0].name.as_str()), ("Be brief.".into(), "double"));
    assert_eq!(request.messages.len(), 2, "the prompt declares the tools: {:?}", request.messages);
}

#[tokio::test]
async fn errors_and_wrong_argument_types_of_a_tool_function_become_results() {
    #[derive(serde::Deserialize)]
    struct Args {
        n: u8,
    }
    let replies = [call("f", json!({"n": 1})), call("f", json!({"n": 1000})), ScriptedReply::text("ok")];
    let (builder, _) = scripted(replies);
    let f =
        FnTool::new(
            spec("f"),
            |args: Args, _cx| async move { Ok("x".parse::<u8>()?.to_string() + &args.n.to_string()) },
        );
    let mut agent = builder.tool(f).build().unwrap();
    agent.prompt("go").await.unwrap();
    let results = results(&agent);
    assert_eq!(results[0], ("c1".into(), true, "invalid digit found in string".into()));
    assert!(
        results[1].1 && results[1].2.starts_with("invalid arguments: invalid value: integer `1000`"),
        "{results:?}"
    );
}

#[tokio::test]
async fn a_failed_answer_is_the_error_of_the_prompt() {
    let (builder, _) = scripted([ScriptedReply::refused(http::StatusCode::UNAUTHORIZED, "invalid key")]);
    let error = builder.build().unwrap().prompt("go").await.unwrap_err();
    assert_eq!((error.kind, error.text.as_str()), (LlmErrorKind::Auth, "invalid key"));
}

#[tokio::test]
async fn an_agent_takes_host_credentials_and_provider_from_a_client() {
    let server = Server::start().await.unwrap();
    server.reply(ServerReply::sse(CompletionsServer.frames(&Answer::of([AnswerPart::text("hello")])).concat()));
    let client = Client::builder().server("local", server.url(), "openai-completions").key("local", "secret").build();
    let model = client.model("local/m").unwrap();
    let mut agent = Agent::builder(model).client(&client).unwrap().build().unwrap();
    assert_eq!(agent.prompt("hi").await.unwrap().text(), "hello");
    assert_eq!(server.requests()[0].header("authorization"), Some("Bearer secret"));
}

#[test]
fn a_model_without_a_provider_is_an_error_of_the_builder() {
    let record = json!({"id": "m", "api": "unheard-of", "provider": "p", "baseUrl": "http://x"});
    let error = Agent::builder(Model::from_record(&record).unwrap()).build().unwrap_err();
    assert_eq!(error.to_string(), "No API provider registered for api: unheard-of");
}

#[test]
fn a_tool_function_keeps_its_mode_and_effect() {
    let tool = FnTool::new(spec("f"), |_: Value, _cx| async move { Ok("") });
    let tool = tool.mode(ToolMode::Sequential).effect(ToolEffect::Reads);
    assert_eq!((tool.spec().mode, tool.spec().effect), (ToolMode::Sequential, ToolEffect::Reads));
}

#[cfg(feature = "schemars")]
#[tokio::test]
async fn the_schema_of_a_tool_function_is_derived_from_its_arguments() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Args {
        /// A city.
        city: String,
    }
    let (builder, provider) =
        scripted([call("time", json!({"city": "Rome"})), call("time", json!({})), ScriptedReply::text("ok")]);
    let time = pinch_agent_core::tool_fn("time", "Tell the time.", |args: Args, _cx| async move {
        Ok(json!({"city": args.city, "hour": 12}))
    });
    let mut agent = builder.tool(time).build().unwrap();
    agent.prompt("go").await.unwrap();
    let results = results(&agent);
    assert_eq!(results[0], ("c1".into(), false, r#"{"city":"Rome","hour":12}"#.into()));
    assert!(results[1].1 && results[1].2.contains("city"), "missing arguments are refused: {results:?}");
    let Message::System(declared) = &*provider.requests()[0].messages[0] else { panic!("no tools declared") };
    let schema = json!({
        "type": "object", "properties": {"city": {"description": "A city.", "type": "string"}}, "required": ["city"],
    });
    assert_eq!(**declared.tools_added[0].parameters.raw(), schema);
}

/// Returns what an example prints if the server gives these answers.
async fn run_example(name: &str, answers: impl IntoIterator<Item = Answer>) -> String {
    let server = Server::start().await.unwrap();
    for answer in answers {
        server.reply(ServerReply::sse(CompletionsServer.frames(&answer).concat()));
    }
    let mut path: PathBuf = std::env::current_exe().unwrap();
    path.pop(); // deps
    path.pop();
    let mut command = Command::new(path.join("examples").join(name));
    command.args(["--base-url", &server.url(), "--key", "k"]).stdin(Stdio::null()).env_clear();
    let output = command.output().await.unwrap_or_else(|why| panic!("{name} is not built: {why}"));
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn calls(name: &str, arguments: &[&str]) -> Answer {
    let call = |(idx, arguments): (usize, &&str)| AnswerPart::call(&format!("call_{idx}"), name, arguments);
    Answer::of(arguments.iter().enumerate().map(call))
}

#[cfg(feature = "schemars")]
#[tokio::test]
async fn the_example_with_a_tool_function_runs() {
    let printed = run_example(
        "tool_function",
        [
            calls("weather", &[r#"{"city":"Rome"}"#]),
            Answer::of([AnswerPart::text("24 degrees.")]),
            calls("weather", &[r#"{"city":"Atlantis"}"#]),
            Answer::of([AnswerPart::text("Nobody knows.")]),
        ],
    );
    assert_eq!(printed.await, "> How warm is it in Rome?\n24 degrees.\n> And in Atlantis?\nNobody knows.\n");
}

#[cfg(feature = "schemars")]
#[tokio::test]
async fn the_example_with_hooks_and_a_provider_runs() {
    let answers =
        [calls("delete", &[r#"{"path":"/"}"#, r#"{"path":"/tmp/a.txt"}"#]), Answer::of([AnswerPart::text("Done.")])];
    let printed = run_example("hooks_and_provider", answers).await;
    assert!(printed.contains("delete failed: the root directory must stay"), "{printed}");
    assert!(printed.contains("delete succeeded: deleted /tmp/a.txt"), "{printed}");
    assert!(printed.ends_with("Done.\n(2 requests)\n"), "{printed}");
}
