//! A tool: the model calls it, this program runs it, and the model continues with the result.
//!
//! The loop here is the smallest possible; `pinch-agent-core` has one with hooks, parallel tools and steering.
//!
//! ```sh
//! cargo run -p pinch-llm --features schema --example tool_use -- --base-url http://localhost:8080/v1
//! ```

#![expect(clippy::print_stdout, reason = "an example prints to the terminal")]

#[path = "support/args.rs"]
mod args;

use pinch_llm::message::{ToolDecl, ToolResult};
use pinch_llm::schema::Schema;
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let schema = Schema::new(json!({
        "type": "object", "required": ["a", "b"],
        "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
    }));
    let add = ToolDecl::new("add", "Add two numbers.", schema.clone());
    let chat = args::Args::read()?.chat().system("You calculate with tools, never by yourself.").tool(add);
    let mut chat = chat.user("How much is 17 + 25?");
    for _turn in 0..5 {
        let reply = chat.send().await?;
        if reply.tool_calls().next().is_none() {
            println!("{}", reply.text());
            return Ok(());
        }
        chat = chat.message(reply.message.clone());
        for call in reply.tool_calls() {
            // Models make mistakes: arguments that do not match the schema are returned as an error that the model can learn from.
            let (text, is_error) = match call.validated_arguments(&schema) {
                Ok(args) => (args["a"].as_f64().zip(args["b"].as_f64()).map_or(0.0, |(a, b)| a + b).to_string(), false),
                Err(error) => (error.text, true),
            };
            println!("add {} -> {text}", serde_json::to_string(&call.arguments)?);
            chat = chat.message(ToolResult::text(call, text, is_error, 0));
        }
    }
    Err("the model did not finish after 5 turns".into())
}
