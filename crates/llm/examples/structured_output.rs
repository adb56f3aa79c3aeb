//! An answer of a fixed shape: one tool whose schema is the shape, and a model that must call it.
//!
//! ```sh
//! cargo run -p pinch-llm --example structured_output -- --base-url http://localhost:8080/v1
//! ```

#![expect(clippy::print_stdout, reason = "an example talks to a person")]

#[path = "support/args.rs"]
mod args;

use std::sync::Arc;

use pinch_llm::message::{Message, ToolDecl};
use pinch_llm::provider::ProviderRegistry;
use pinch_llm::schema::{Schema, validate_tool_call};
use pinch_llm::stdx::cancel::Cancel;
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let shape = Schema::new(json!({
        "type": "object", "required": ["name", "legs"], "additionalProperties": false,
        "properties": {"name": {"type": "string"}, "legs": {"type": "integer", "minimum": 0}},
    }));
    let mut request = args::Args::read()?.request("You fill in forms about animals.")?;
    request.tools = Arc::new([ToolDecl {
        name: "animal".into(),
        description: "Takes the finished form.".into(),
        parameters: Arc::clone(shape.raw()),
        constrained_sampling: None,
    }]);
    // Each wire format has its own word for "must".
    let must = match request.model.api.as_str() {
        "anthropic-messages" | "bedrock-converse-stream" | "google-generative-ai" | "google-vertex" => "any",
        _ => "required",
    };
    request.options.tool_choice = Some(must.into());
    request.messages.push(Arc::new(Message::user("The common crab.", request.host.now_ms())));
    let provider = ProviderRegistry::builtin().get(&request.model.api)?;
    let finished = provider.stream(request, Cancel::new()).collect_end().await;
    if let Some(error) = finished.error {
        return Err(error.text.clone().into());
    }
    let call = finished.message.tool_calls().next().ok_or("the model did not fill the form in")?;
    let form = validate_tool_call(&shape, call)?;
    println!("{} has {} legs", form["name"], form["legs"]);
    Ok(())
}
