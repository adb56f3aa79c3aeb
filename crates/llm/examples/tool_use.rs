//! A tool: the model asks for it, this program runs it, the model goes on with the result.
//!
//! The loop here is the smallest there is; `pinch-agent-core` has one with hooks, parallel tools and steering.
//!
//! ```sh
//! cargo run -p pinch-llm --example tool_use -- --base-url http://localhost:8080/v1
//! ```

#![expect(clippy::print_stdout, reason = "an example talks to a person")]

#[path = "support/args.rs"]
mod args;

use std::sync::Arc;

use pinch_llm::message::{Message, ToolDecl, ToolResult};
use pinch_llm::provider::ProviderRegistry;
use pinch_llm::schema::{Schema, validate_tool_call};
use pinch_llm::stdx::cancel::Cancel;
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let schema = Schema::new(json!({
        "type": "object", "required": ["a", "b"],
        "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
    }));
    let mut request = args::Args::read()?.request("You calculate with tools, never by yourself.")?;
    request.tools = Arc::new([ToolDecl {
        name: "add".into(),
        description: "Adds two numbers.".into(),
        parameters: Arc::clone(schema.raw()),
        constrained_sampling: None,
    }]);
    request.messages.push(Arc::new(Message::user("How much is 17 + 25?", request.host.now_ms())));
    let provider = ProviderRegistry::builtin().get(&request.model.api)?;
    for _turn in 0..5 {
        let finished = provider.stream(request.clone(), Cancel::new()).collect_end().await;
        if let Some(error) = finished.error {
            return Err(error.text.clone().into());
        }
        let answer = finished.message;
        request.messages.push(Arc::new(Message::Assistant(Arc::clone(&answer))));
        if answer.tool_calls().next().is_none() {
            println!("{}", answer.text(""));
            return Ok(());
        }
        for call in answer.tool_calls() {
            // Models make mistakes: what does not fit the schema goes back to them as a text they can learn from.
            let (text, is_error) = match validate_tool_call(&schema, call) {
                Ok(given) => {
                    (given["a"].as_f64().zip(given["b"].as_f64()).map_or(0.0, |(a, b)| a + b).to_string(), false)
                }
                Err(error) => (error.text, true),
            };
            println!("add {} -> {text}", serde_json::to_string(&call.arguments)?);
            let result = ToolResult::text(call, text, is_error, request.host.now_ms());
            request.messages.push(Arc::new(Message::ToolResult(result)));
        }
    }
    Err("the model does not come to an end".into())
}
