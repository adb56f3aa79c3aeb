//! Two turns of a conversation, streamed as they arrive.
//!
//! ```sh
//! cargo run -p pinch-llm --example chat -- --base-url http://localhost:8080/v1
//! ```

#![expect(clippy::print_stdout, reason = "an example talks to a person")]

#[path = "support/args.rs"]
mod args;

use std::io::Write;
use std::sync::Arc;

use futures::StreamExt;
use pinch_llm::event::StreamEvent;
use pinch_llm::message::Message;
use pinch_llm::provider::ProviderRegistry;
use pinch_llm::stdx::cancel::Cancel;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut request = args::Args::read()?.request("You answer in one sentence.")?;
    let registry = ProviderRegistry::builtin(); // one for the whole program: it keeps the connections
    let provider = registry.get(&request.model.api)?;
    for question in ["What is a crab?", "And how many legs has it?"] {
        println!("> {question}");
        request.messages.push(Arc::new(Message::user(question, request.host.now_ms())));
        let mut events = provider.stream(request.clone(), Cancel::new());
        while let Some(event) = events.next().await {
            match event {
                StreamEvent::Delta { text, .. } => {
                    print!("{text}");
                    std::io::stdout().flush()?;
                }
                StreamEvent::End(finished) => {
                    println!();
                    if let Some(error) = finished.error {
                        return Err(error.text.clone().into());
                    }
                    println!("({} tokens)", finished.message.usage.total_tokens);
                    // The answer is part of the next question.
                    request.messages.push(Arc::new(Message::Assistant(finished.message)));
                }
                _ => {}
            }
        }
    }
    Ok(())
}
