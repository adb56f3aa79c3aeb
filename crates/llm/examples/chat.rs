//! Two turns of a conversation, streamed as they arrive.
//!
//! ```sh
//! cargo run -p pinch-llm --example chat -- --base-url http://localhost:8080/v1
//! ```

#![expect(clippy::print_stdout, reason = "an example prints to the terminal")]

#[path = "support/args.rs"]
mod args;

use std::io::Write;

use futures::StreamExt;
use pinch_llm::Reply;
use pinch_llm::event::StreamEvent;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut chat = args::Args::read()?.chat().system("You answer in one sentence.");
    for question in ["What is a crab?", "And how many legs does it have?"] {
        println!("> {question}");
        chat = chat.user(question);
        let mut events = chat.stream();
        while let Some(event) = events.next().await {
            match event {
                StreamEvent::Delta { text, .. } => {
                    print!("{text}");
                    std::io::stdout().flush()?;
                }
                StreamEvent::End(finished) => {
                    let reply = Reply::from_finished(finished)?;
                    println!("\n({} tokens)", reply.usage.total_tokens);
                    // The answer is part of the next question.
                    chat = chat.message(reply.message);
                }
                _ => {}
            }
        }
    }
    Ok(())
}
