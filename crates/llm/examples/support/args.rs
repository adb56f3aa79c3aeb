//! Command-line options of the examples: `--base-url URL`, and `--api`, `--model` and `--key` for servers that need them.

use pinch_llm::client::{Chat, Client};
use pinch_llm::request::Auth;

/// The server to call, and the model.
pub(crate) struct Args {
    base_url: String,
    api: String,
    model: String,
    key: Option<String>,
}

impl Args {
    /// Parses the command line.
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
            return Err("no server given: use --base-url http://localhost:8080/v1".into());
        }
        Ok(found)
    }

    /// Creates a client that knows the server under the name `local`.
    pub(crate) fn client(&self) -> Client {
        let auth = self.key.as_deref().map_or_else(Auth::keyless, Auth::key);
        Client::builder().server("local", self.base_url.as_str(), self.api.as_str()).auth("local", auth).build()
    }

    /// Creates a request to the model, without messages.
    pub(crate) fn chat(&self) -> Chat {
        self.client().chat(format!("local/{}", self.model))
    }
}
