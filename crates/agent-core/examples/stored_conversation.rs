//! A conversation in a file of your own: messages sent during a run, a run that is stopped, and a later agent that continues.
//!
//! ```sh
//! cargo run -p pinch-agent-core --example stored_conversation
//! ```

#![expect(clippy::print_stdout, reason = "an example prints to the terminal")]

use std::sync::Arc;

use futures::StreamExt;
use pinch_agent_core::queue::QueueKind;
use pinch_agent_core::{Agent, AgentEvent};
use pinch_llm::message::Message;
use pinch_llm::provider::scripted::{ScriptedProvider, ScriptedReply};
use pinch_llm::stdx::cancel::{Cancel, CancelReason};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let provider = Arc::new(ScriptedProvider::new([
        ScriptedReply::text("Paris, then Rome."),
        ScriptedReply::text("Berlin is too far."),
        ScriptedReply::text("You asked about three cities."),
    ]));
    let new_agent = || Agent::builder(ScriptedProvider::model("scripted")).provider(Arc::clone(&provider) as Arc<_>);
    let mut agent = new_agent().system("You plan journeys.").build()?;

    // A steering message joins the run at its next turn; any task can send one, here it is sent before the run starts.
    agent.queues().push(QueueKind::Steering, Message::user("And Rome.", 0));
    let mut run = agent.run(vec![Arc::new(Message::user("I want to see Paris.", 0))], Cancel::new())?;
    while let Some(event) = run.next().await {
        if let AgentEvent::MessageEnd { message, .. } = event {
            println!("{}", message.role());
        }
    }
    drop(run);

    // Once it is cancelled, the run ends with an aborted answer, so the conversation can be continued.
    let cancel = Cancel::new();
    let mut run = agent.run(vec![Arc::new(Message::user("How far is Berlin?", 0))], cancel.clone())?;
    while let Some(event) = run.next().await {
        match event {
            AgentEvent::MessageUpdate(_) => cancel.cancel(CancelReason::User),
            AgentEvent::AgentEnd(end) => println!("ended: {:?}", end.reason),
            _ => {}
        }
    }
    drop(run);

    // Messages convert to JSON values and back, so a store can be anything that holds lines.
    let lines: Vec<String> = agent.messages.iter().map(|message| message.to_value().to_string()).collect();
    let messages = lines.iter().map(|line| Message::from_json(line).map(Arc::new)).collect::<Result<_, _>>()?;
    let mut later = new_agent().messages(messages).build()?;
    println!("{}", later.prompt("What did I ask about?").await?.text());
    Ok(())
}
