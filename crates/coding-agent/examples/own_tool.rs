//! A session with the user's own settings, keys and models, plus one more tool.
//!
//! ```sh
//! cargo run -p pinch-coding-agent --example own_tool -- anthropic/claude-sonnet-4-5
//! ```

#![expect(clippy::print_stdout, reason = "an example prints its answer")]

use futures::future::BoxFuture;
use pinch_coding_agent::agent_core::tool::{JsonObject, Tool, ToolCx, ToolError, ToolOutput, ToolSpec};
use pinch_coding_agent::llm::schema::Schema;
use pinch_coding_agent::{AgentSessionOptions, Host, create_agent_session};
use serde_json::json;

/// Looks up an order. A real program would query its database.
struct OrderStatus(ToolSpec);

impl Tool for OrderStatus {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn run<'a>(&'a self, input: JsonObject, _: &'a ToolCx<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let status = match input.get("order").and_then(|order| order.as_u64()) {
                Some(order) if order % 2 == 0 => "shipped",
                Some(_) => "being packed",
                None => "unknown order",
            };
            Ok(ToolOutput::text(status))
        })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let host = Host::system();
    let agent_dir = host.home().ok_or("there is no home directory")?.join(".pinch/agent");
    let parameters = json!({"type": "object", "properties": {"order": {"type": "integer"}}, "required": ["order"]});
    let spec = ToolSpec::new("order_status", "Look up the status of an order", Schema::new(parameters));
    let mut options = AgentSessionOptions::new(host, "/tmp", agent_dir).tool(OrderStatus(spec));
    if let Some(model) = std::env::args().nth(1) {
        options = options.model_named(model);
    }
    let mut agent = create_agent_session(options).await?;
    println!("{}", agent.ask("Where is my order 1042?").await?);
    agent.close().await;
    Ok(())
}
