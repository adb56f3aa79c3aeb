use futures::StreamExt as _;
use pinch_agent_core::tool::{FnTool, JsonObject, Tool, ToolError, ToolSpec};
use pinch_agent_core::{Agent, AgentEvent};
use pinch_llm::model::Model;
use pinch_llm::provider::scripted::{ScriptedProvider, ScriptedReply, ScriptedStep};
use pinch_llm::schema::Schema;
use pinch_stdx::cancel::Cancel;
use pinch_stdx::host::Host;

use super::*;

/// Runs an agent that answers with these tool calls, one message per line, and returns the results.
async fn results(guard: LoopGuard, messages: &[&[&str]]) -> Vec<String> {
    let reply = |(n, tools): (usize, &&[&str])| ScriptedReply {
        steps: tools
            .iter()
            .enumerate()
            .map(|(at, tool)| ScriptedStep::ToolCall {
                id: format!("{n}-{at}"),
                name: (*tool).into(),
                arguments: JsonObject::new(),
            })
            .collect(),
        ..ScriptedReply::default()
    };
    let replies: Vec<ScriptedReply> =
        messages.iter().enumerate().map(reply).chain([ScriptedReply::text("done")]).collect();
    let record = json!({"id": "m", "api": "scripted", "provider": "p", "baseUrl": "http://x"});
    let model = Arc::new(Model::from_record(&record).unwrap());
    let mut agent = Agent::new(Host::system(), model, Arc::new(ScriptedProvider::new(replies)));
    let tool = |name: &str| -> Arc<dyn Tool> {
        let spec = ToolSpec::new(name, "", Schema::new(json!({"type": "object", "properties": {}})));
        Arc::new(FnTool::new(spec, |_: JsonObject, _| async move { Ok::<_, ToolError>("same") }))
    };
    agent.tools = ["look", "touch"].into_iter().map(tool).collect();
    guard.begin_run("run-1");
    agent.hooks = Arc::new(guard);
    let input = vec![Arc::new(Message::user("go", 1))];
    let _: Vec<AgentEvent> = agent.run(input, Cancel::new()).unwrap().collect().await;
    let mut results: Vec<String> = agent
        .messages
        .iter()
        .filter_map(|message| match &**message {
            Message::ToolResult(result) => Some(text_of(&result.content)),
            _ => None,
        })
        .collect();
    let last = agent.messages.last().unwrap();
    results.push(last.role().to_owned());
    results
}

#[tokio::test]
async fn the_model_is_warned_at_the_eleventh_identical_call() {
    let found = results(LoopGuard::new(LoopConfig::default()), &[&["look"][..]; 11]).await;
    assert!(found[..10].iter().all(|text| text == "same"), "{found:?}");
    let warning = "same\n\nWARNING: look was called 10 times with identical arguments. \
                   Repeated identical tool call detected, please try a different approach.";
    assert_eq!(found[10], warning);
    assert_eq!(found[11], "assistant");
}

#[tokio::test]
async fn a_loop_blocks_the_whole_batch_and_then_ends_the_run() {
    let mut messages = vec![&["look"][..]; 20];
    messages.extend([&["touch", "look", "touch"][..], &["touch"][..], &["look"][..], &["look"][..]]);
    let found = results(LoopGuard::new(LoopConfig::default()), &messages).await;
    assert!(found[20..23].iter().all(|text| text.starts_with("CRITICAL: look was called 20 times")), "{found:?}");
    assert_eq!(found[23], "same", "another call is one more chance");
    assert!(found[24].starts_with("CRITICAL"));
    assert_eq!((found.len(), found[25].as_str()), (26, "toolResult"), "the run is over");
}

#[tokio::test]
async fn calling_a_nonexistent_tool_ends_the_run() {
    let found = results(LoopGuard::new(LoopConfig::default()), &[&["lobster"][..]; 20]).await;
    assert_eq!((found.len(), found[12].as_str()), (13, "toolResult"), "{found:?}");
}
