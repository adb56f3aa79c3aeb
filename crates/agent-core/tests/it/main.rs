//! The loop's behaviour, driven through its public API with a scripted provider.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod front_door;
mod gateways;
mod hooks;
mod laws;
mod proxy;
mod tools;

use std::sync::Arc;

use futures::StreamExt;
use pinch_agent_core::tool::ToolSet;
use pinch_agent_core::{Agent, AgentEvent, Tool};
use pinch_llm::message::Message;
use pinch_llm::model::Model;
use pinch_llm::provider::scripted::{ScriptedProvider, ScriptedReply, ScriptedStep};
use pinch_stdx::cancel::Cancel;
use pinch_stdx::host::Host;
use serde_json::{Map, Value, json};

fn agent(
    replies: impl IntoIterator<Item = ScriptedReply>,
    tools: Vec<Arc<dyn Tool>>,
) -> (Agent, Arc<ScriptedProvider>) {
    let record = json!({"id": "m", "api": "scripted", "provider": "p", "baseUrl": "http://x", "reasoning": true});
    let provider = Arc::new(ScriptedProvider::new(replies));
    let model = Arc::new(Model::from_record(&record).unwrap());
    let mut agent = Agent::new(Host::system(), model, provider.clone());
    agent.tools = tools.into_iter().collect::<ToolSet>();
    (agent, provider)
}

fn calls(list: &[(&str, &str)]) -> ScriptedReply {
    let step = |(id, name): &(&str, &str)| ScriptedStep::ToolCall {
        id: (*id).into(),
        name: (*name).into(),
        arguments: Map::<String, Value>::new(),
    };
    ScriptedReply { steps: list.iter().map(step).collect(), ..ScriptedReply::default() }
}

async fn run(agent: &mut Agent, cancel: &Cancel) -> Vec<AgentEvent> {
    let input = vec![Arc::new(Message::user("go", 1))];
    agent.run(input, cancel.clone()).unwrap().collect().await
}

/// Returns the results in a conversation: id, whether it failed, text.
fn results(agent: &Agent) -> Vec<(String, bool, String)> {
    let result = |message: &Arc<Message>| match &**message {
        Message::ToolResult(result) => Some((
            result.tool_call_id.to_string(),
            result.is_error,
            pinch_llm::message::block::join_text(&result.content, ""),
        )),
        _ => None,
    };
    agent.messages.iter().filter_map(result).collect()
}
