//! Client tools: the run stops for them, and continues with their results.

use std::sync::Arc;

use pinch_agent_core::tool::{FnTool, JsonObject, ToolOutput, ToolSpec};
use pinch_embed::run::client_tools::ClientToolResult;
use pinch_embed::run::{RunRequest, RunResult};
use pinch_llm::schema::Schema;
use pinch_testing::server::ServerReply;
use pinch_testing::wires::anthropic::AnthropicResponse;
use serde_json::{Value, json};

use crate::cli_agents::{Shouting, echo_backend, robot};
use crate::world::{World, answer, payload_texts, refusal, stream, within};

fn lookup() -> ToolSpec {
    let schema = json!({"type": "object", "properties": {"q": {"type": "integer"}}, "required": ["q"]});
    ToolSpec::new("lookup", "Look something up", Schema::new(schema))
}

fn calls(calls: &[(&str, &str, Value)]) -> ServerReply {
    let mut response = AnthropicResponse::new("m1").text("Let me look.");
    for (id, name, input) in calls {
        response = response.tool_call(id, name, &input.to_string());
    }
    stream(response.stop("tool_use"))
}

/// Creates a world whose engine has a tool of its own.
async fn world() -> (World, pinch_embed::Engine) {
    let world = World::new().await;
    let spec = ToolSpec::new("probe", "Probes", Schema::new(json!({"type": "object"})));
    let probe = FnTool::new(spec, |_: JsonObject, _| async { Ok(ToolOutput::text("probed")) });
    let engine = world.built(|builder| builder.tool(probe));
    (world, engine)
}

fn request(engine: &pinch_embed::Engine, prompt: &str) -> RunRequest {
    let mut request = engine.request("s1", None, None, prompt);
    request.client_tools = vec![lookup()];
    request
}

async fn run(engine: &pinch_embed::Engine, request: RunRequest) -> RunResult {
    within(engine.run(request).finish()).await.unwrap()
}

/// Returns the content of the messages in the last request, as `role: kind of block, …`.
fn last_sent(world: &World) -> Vec<String> {
    let body = world.server.requests().last().unwrap().json();
    let shape = |message: &Value| {
        let blocks = message["content"].as_array().unwrap().iter();
        let kinds: Vec<String> = blocks
            .map(|block| match block["type"].as_str().unwrap() {
                "tool_result" => format!("{}={}", block["tool_use_id"].as_str().unwrap(), block["content"]),
                "tool_use" => format!("call {}", block["id"].as_str().unwrap()),
                _ => block["text"].as_str().unwrap_or("?").to_owned(),
            })
            .collect();
        format!("{}: {}", message["role"].as_str().unwrap(), kinds.join(", "))
    };
    body["messages"].as_array().unwrap().iter().map(shape).collect()
}

#[tokio::test]
async fn a_run_stops_for_client_tools_and_continues_with_their_results() {
    let (world, engine) = world().await;
    let all = [("c1", "lookup", json!({"q": 1})), ("c2", "probe", json!({})), ("c3", "lookup", json!({"q": 3}))];
    world.server.reply(calls(&all));
    let first = run(&engine, request(&engine, "hello")).await;
    assert_eq!(first.meta.stop_reason.as_deref(), Some("tool_calls"));
    let pending: Vec<_> =
        first.meta.pending_tool_calls.iter().map(|call| (call.id.as_str(), call.arguments.as_str())).collect();
    assert_eq!(pending, [("c1", r#"{"q":1}"#), ("c3", r#"{"q":3}"#)]);
    assert!(first.failure().is_none() && payload_texts(&first) == ["Let me look."], "{:?}", payload_texts(&first));
    assert_eq!(world.server.requests().len(), 1, "the model is not asked before the results are there");

    world.server.reply(stream(answer("m2", "Four.")));
    let mut second = request(&engine, "");
    second.client_results = vec![ClientToolResult::text("c1", "one"), ClientToolResult::text("c3", "no").failed()];
    let second = run(&engine, second).await;
    assert_eq!((payload_texts(&second), second.meta.pending_tool_calls.len()), (vec!["Four.".to_owned()], 0));
    let sent = last_sent(&world);
    assert_eq!(sent.len(), 3, "{sent:?}");
    for part in ["c1=", "one", "c2=", "probed", "c3=", "no"] {
        assert!(sent[2].contains(part), "{part}: {sent:?}");
    }
}

#[tokio::test]
async fn calls_without_results_count_as_not_run() {
    let (world, engine) = world().await;
    world.server.reply(calls(&[("c1", "lookup", json!({"q": 1})), ("c2", "lookup", json!({"q": 2}))]));
    run(&engine, request(&engine, "hello")).await;
    world.server.reply(stream(answer("m2", "Fine.")));
    let mut next = request(&engine, "never mind");
    next.client_results = vec![ClientToolResult::text("c2", "two")];
    assert_eq!(payload_texts(&run(&engine, next).await), ["Fine."]);
    let sent = last_sent(&world).join("\n");
    assert!(sent.contains("c1=") && sent.contains("two") && sent.ends_with("never mind"), "{sent}");
}

#[tokio::test]
async fn invalid_arguments_are_answered_without_the_caller() {
    let (world, engine) = world().await;
    world.server.reply(calls(&[("c1", "lookup", json!({"q": "x"}))]));
    world.server.reply(stream(answer("m2", "Sorry.")));
    let result = run(&engine, request(&engine, "hello")).await;
    assert_eq!(
        (payload_texts(&result).last().cloned(), result.meta.pending_tool_calls.len()),
        (Some("Sorry.".to_owned()), 0)
    );
}

#[tokio::test]
async fn unsupported_requests_are_refused_with_a_reason() {
    let (world, engine) = world().await;
    let mut clash = request(&engine, "hello");
    clash.client_tools.push(ToolSpec::new("probe", "Another", Schema::new(json!({"type": "object"}))));
    let error = within(engine.run(clash).finish()).await.unwrap_err();
    assert!(error.to_string().contains("\"probe\" has the name of another tool"), "{error}");
    let mut unknown = request(&engine, "");
    unknown.client_results = vec![ClientToolResult::text("c9", "?")];
    let error = within(engine.run(unknown).finish()).await.unwrap_err();
    assert!(error.to_string().contains("no call with the id \"c9\" waits"), "{error}");
    assert!(world.server.requests().is_empty());
}

#[tokio::test]
async fn results_are_limited_and_pass_the_hooks() {
    let world = World::new().await;
    let engine = world.built(|builder| builder.hooks(Arc::new(Shouting)));
    world.server.reply(calls(&[("c1", "lookup", json!({"q": 1}))]));
    run(&engine, request(&engine, "hello")).await;
    world.server.reply(stream(answer("m2", "Four.")));
    let mut second = request(&engine, "");
    second.client_results = vec![ClientToolResult::text("c1", "line\n".repeat(100_000))];
    run(&engine, second).await;
    let sent = world.server.requests().last().unwrap().json()["messages"].to_string();
    assert!(sent.len() < 100_000 && sent.contains("LINE") && sent.contains("WERE LEFT OUT"), "{}", sent.len());
}

#[tokio::test]
async fn results_for_a_runtime_without_client_tools_are_refused() {
    let world = robot("exit 1", echo_backend(), |_| {}).await;
    let mut request = world.engine.request("s1", None, None, "");
    request.client_results = vec![ClientToolResult::text("c1", "one")];
    let error = within(world.engine.run(request).finish()).await.unwrap_err();
    assert!(error.to_string().contains("does not support client tools"), "{error}");
}

#[tokio::test]
async fn results_survive_a_failed_attempt() {
    let (world, engine) = world().await;
    world.server.reply(calls(&[("c1", "lookup", json!({"q": 1}))]));
    run(&engine, request(&engine, "hello")).await;
    world.server.reply(refusal(429, "rate_limit_error", "wait"));
    world.server.reply(stream(answer("m2", "One.")));
    let mut second = request(&engine, "");
    second.client_results = vec![ClientToolResult::text("c1", "one")];
    let second = engine.run(second).finish();
    assert_eq!(payload_texts(&within(second).await.unwrap()), ["One."]);
    assert!(last_sent(&world)[2].matches("c1=").count() == 1, "{:?}", last_sent(&world));
}

#[tokio::test]
async fn no_memories_are_saved_while_calls_wait_for_results() {
    let world = World::new().await;
    let engine = &world.engine;
    let usage = json!({"input_tokens": 178_000, "output_tokens": 1});
    let call = AnthropicResponse::with_usage("long", &usage).tool_call("c1", "lookup", r#"{"q":1}"#);
    world.server.reply(stream(call.stop("tool_use")));
    let key = "agent:main:chat";
    let mut first = engine.message(key, "hello").await.unwrap();
    first.client_tools = vec![lookup()];
    assert_eq!(run(engine, first).await.meta.pending_tool_calls.len(), 1);

    world.server.reply(stream(answer("m2", "One.")));
    let mut second = engine.message(key, "").await.unwrap();
    second.client_tools = vec![lookup()];
    second.client_results = vec![ClientToolResult::text("c1", "one")];
    assert_eq!(payload_texts(&run(engine, second).await), ["One."]);
    assert!(last_sent(&world)[2].contains("c1="), "{:?}", last_sent(&world));
    assert_eq!(world.server.requests().len(), 2);
}
