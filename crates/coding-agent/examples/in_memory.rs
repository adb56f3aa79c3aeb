//! A session without files: every part is an in-memory value, and a scripted provider replaces the model. Useful as a template for tests.
//!
//! ```sh
//! cargo run -p pinch-coding-agent --example in_memory
//! ```

#![expect(clippy::print_stdout, reason = "an example prints its answer")]

use std::sync::Arc;

use futures::StreamExt;
use pinch_coding_agent::agent_core::AgentEvent;
use pinch_coding_agent::event::SessionEvent;
use pinch_coding_agent::llm::provider::scripted::{ScriptedProvider, ScriptedReply};
use pinch_coding_agent::resources::{ResourceLoader, Resources};
use pinch_coding_agent::session::Prompt;
use pinch_coding_agent::store::SessionRef;
use pinch_coding_agent::{AgentSessionOptions, Host, create_agent_session};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let replies = [
        ScriptedReply::text("Two."),
        ScriptedReply::text("A new session."),
        ScriptedReply::text("Four, because there were two."),
    ];
    let resources = Resources { system_prompt: Some("You add numbers.".into()), ..Resources::default() };
    let options = AgentSessionOptions::in_memory(Host::builder().build(), "/work")
        .model(ScriptedProvider::model("scripted"))
        .provider(Arc::new(ScriptedProvider::new(replies)))
        .resources(ResourceLoader::in_memory(resources));
    let mut agent = create_agent_session(options).await?;
    let first = agent.session().log().id().to_owned();
    println!("{}", agent.ask("What is 1 + 1?").await?);

    agent.new_session(None).await?;
    println!("{}", agent.ask("Where are we?").await?);

    agent.switch_session(&SessionRef::Id(first)).await?;
    let mut run = agent.session_mut().prompt(Prompt::text("And twice that?"));
    while let Some(event) = run.next().await {
        if let SessionEvent::Agent(AgentEvent::MessageEnd { message, .. }) = event? {
            println!("{message:?}");
        }
    }
    Ok(())
}
