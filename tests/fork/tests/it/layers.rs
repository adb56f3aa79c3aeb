//! Machine, tools and extension used in the layers they are made for.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use pinch_agent_core::{Agent, Tool};
use pinch_coding_agent::extension::{Extension, Extensions};
use pinch_coding_agent::session::{AgentSession, Prompt, SessionParts};
use pinch_coding_agent::session_log::{NewSession, SessionLog};
use pinch_fork::extension::NoDeletions;
use pinch_fork::machine::MemoryMachine;
use pinch_fork::tools::word_count;
use pinch_llm::message::{Message, block::join_text};
use pinch_llm::provider::scripted::{ScriptedProvider, ScriptedReply, ScriptedStep};
use pinch_llm::stdx::host::Host;
use pinch_machine::{FileKind, Machine};
use serde_json::{Value, json};

fn call(name: &str, arguments: Value) -> ScriptedReply {
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    ScriptedReply {
        steps: vec![ScriptedStep::ToolCall { id: "c1".into(), name: name.into(), arguments }],
        ..ScriptedReply::default()
    }
}

/// The tool results in a conversation: whether they failed, and their texts.
fn results(messages: &[Arc<Message>]) -> Vec<(bool, String)> {
    let result = |message: &Arc<Message>| match &**message {
        Message::ToolResult(result) => Some((result.is_error, join_text(&result.content, ""))),
        _ => None,
    };
    messages.iter().filter_map(result).collect()
}

#[tokio::test]
async fn a_tool_of_the_fork_runs_in_the_loop() {
    let provider =
        Arc::new(ScriptedProvider::new([call("word_count", json!({"text": "one two"})), ScriptedReply::text("Two.")]));
    let agent = Agent::builder(ScriptedProvider::model("scripted")).provider(provider).tool(word_count());
    let mut agent = agent.build().unwrap();
    assert_eq!(agent.prompt("How many words has \"one two\"?").await.unwrap().text(), "Two.");
    assert_eq!(results(&agent.messages), [(false, "2".to_owned())]);
    assert_eq!(word_count().spec().parameters.raw()["required"], json!(["text"]));
}

#[tokio::test]
async fn an_extension_of_the_fork_brings_tools_and_denies_calls() {
    let host = Host::builder().build();
    let replies = [
        call("word_count", json!({"text": "a b c"})),
        call("delete", json!({"path": "/"})),
        ScriptedReply::text("Done."),
    ];
    let provider = Arc::new(ScriptedProvider::new(replies));
    let log = SessionLog::in_memory(&host, NewSession::in_directory("/w"));
    let model = Arc::new(ScriptedProvider::model("scripted"));
    let extensions = Extensions::load(&host, [Arc::new(NoDeletions) as Arc<dyn Extension>]);
    let mut parts = SessionParts::new(host, log, model, provider);
    parts.extensions = extensions;
    let mut session = AgentSession::start(parts).await.unwrap();
    let mut run = session.prompt(Prompt::text("count, then delete"));
    while let Some(event) = run.next().await {
        event.unwrap();
    }
    drop(run);
    let expected = [(false, "3".to_owned()), (true, "deletions are forbidden".to_owned())];
    assert_eq!(results(&session.messages()), expected);
}

#[tokio::test]
async fn a_machine_of_the_fork_reads_writes_and_refuses_commands() {
    let machine: Arc<dyn Machine> = Arc::new(MemoryMachine::with([("/w/a.txt", "alpha")]));
    machine.write(Path::new("/w/b/c.txt"), Bytes::from_static(b"gamma")).await.unwrap();
    assert_eq!(machine.read(Path::new("/w/b/c.txt"), 100).await.unwrap(), "gamma");
    assert_eq!(machine.read(Path::new("/w/a.txt"), 1).await.unwrap_err().code, "EFBIG");
    assert_eq!(machine.list(Path::new("/w")).await.unwrap(), ["a.txt", "b"]);
    assert_eq!(machine.stat(Path::new("/w/b")).await.unwrap().kind, FileKind::Directory);
    assert_eq!(
        machine.stat(Path::new("/x")).await.unwrap_err().to_string(),
        "ENOENT: no such file or directory, stat '/x'"
    );
}
