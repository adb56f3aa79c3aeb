//! What the examples take: `--base-url URL`, and `--api`, `--model`, `--key` for servers that want them.

use std::sync::Arc;

use pinch_llm::model::Model;
use pinch_llm::request::{Auth, CallOptions, Request, SystemPrompt};
use pinch_llm::stdx::host::Host;
use serde_json::json;

/// Where to ask, and whom.
pub(crate) struct Args {
    base_url: String,
    api: String,
    model: String,
    key: Option<String>,
}

impl Args {
    /// Reads the command line.
    pub(crate) fn read() -> Result<Self, String> {
        let mut args = std::env::args().skip(1);
        let mut found =
            Self { base_url: String::new(), api: "openai-completions".into(), model: "any".into(), key: None };
        while let Some(name) = args.next() {
            let value = args.next().ok_or_else(|| format!("{name} needs a value"))?;
            match name.as_str() {
                "--base-url" => found.base_url = value,
                "--api" => found.api = value,
                "--model" => found.model = value,
                "--key" => found.key = Some(value),
                other => return Err(format!("unknown option {other}; known: --base-url, --api, --model, --key")),
            }
        }
        if found.base_url.is_empty() {
            return Err("say where a model is served: --base-url http://localhost:8080/v1".into());
        }
        Ok(found)
    }

    /// A request without messages.
    pub(crate) fn request(&self, system: &str) -> Result<Request, Box<dyn std::error::Error>> {
        let model = Model::from_record(&json!({
            "id": self.model, "api": self.api, "provider": "local", "baseUrl": self.base_url,
            "contextWindow": 32_768, "maxTokens": 2_048,
        }))?;
        Ok(Request {
            model: Arc::new(model),
            system: SystemPrompt::text(system),
            messages: Vec::new(),
            tools: Arc::default(),
            options: CallOptions::default(),
            auth: self.key.as_deref().map_or_else(Auth::keyless, Auth::key),
            host: Host::system(),
        })
    }
}
