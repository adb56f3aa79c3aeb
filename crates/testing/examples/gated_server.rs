//! A real HTTP server that holds back the second half of an answer until the client has received the first half.
//!
//! ```sh
//! cargo run -p pinch-testing --features llm --example gated_server
//! ```

use std::io::Write as _;

use futures::StreamExt as _;
use pinch_llm::Client;
use pinch_llm::event::StreamEvent;
use pinch_llm::ids::ApiId;
use pinch_testing::server::{Gate, Server, ServerReply};
use pinch_testing::wires::anthropic::AnthropicResponse;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut frames = AnthropicResponse::new("msg_1").with_chunks(2).text("Crabs walk sideways.").stop("end_turn");
    // The message and its text begin, and half of the text follows.
    let rest = frames.split_off(3);
    let (server, gate) = (Server::start().await?, Gate::new());
    server.reply(ServerReply::sse(frames.concat()).gate(&gate).send(rest.concat()));

    let client = Client::builder().server("local", server.url(), ApiId::ANTHROPIC_MESSAGES).build();
    let mut events = client.chat("local/any-model").user("How do crabs walk?").stream();
    let mut out = std::io::stdout();
    while let Some(event) = events.next().await {
        if let StreamEvent::Delta { text, .. } = event {
            writeln!(out, "{text:?}")?;
            gate.open();
        }
    }
    writeln!(out, "the server received {}", server.requests()[0].json()["messages"])?;
    Ok(())
}
