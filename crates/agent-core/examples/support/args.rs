//! Command-line options of the examples: `--base-url URL`, and `--api`, `--model` and `--key` for servers that need them.

use std::sync::Arc;

use pinch_agent_core::Agent;
use pinch_agent_core::agent::AgentBuilder;
use pinch_llm::client::Client;
use pinch_llm::request::Auth;

/// Builds an agent for the model given on the command line.
pub(crate) fn agent() -> Result<AgentBuilder, Box<dyn std::error::Error>> {
    let (mut base_url, mut api, mut model, mut auth) =
        (None, "openai-completions".to_owned(), "any".to_owned(), Auth::keyless());
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        let value = args.next().ok_or_else(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--base-url" => base_url = Some(value),
            "--api" => api = value,
            "--model" => model = value,
            "--key" => auth = Auth::key(value),
            other => return Err(format!("unknown option {other}; known: --base-url, --api, --model, --key").into()),
        }
    }
    let base_url = base_url.ok_or("no server given: use --base-url http://localhost:8080/v1")?;
    let client = Client::builder().server("local", base_url, api).auth("local", auth).build();
    let model: Arc<_> = client.model(&format!("local/{model}"))?;
    Ok(Agent::builder(model).client(&client)?)
}
