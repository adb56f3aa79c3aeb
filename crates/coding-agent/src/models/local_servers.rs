//! Local model servers that need no key.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use pinch_llm::http::{HttpClient, Outgoing};
use pinch_llm::model::Model;
use pinch_stdx::host::Host;
use serde_json::json;

use super::{ModelRegistry, ProviderDefinition};
use crate::web::json_answer;

/// Servers with an OpenAI-compatible API and their default ports.
pub const LOCAL_SERVERS: [(&str, u16); 3] = [("ollama", 11434), ("llama.cpp", 8080), ("lmstudio", 1234)];

/// Timeout for listing a server's models while the user waits.
const PROBE: Duration = Duration::from_millis(400);

/// A running server and its models.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LocalServer {
    /// Its name.
    pub name: &'static str,
    /// Its base URL.
    pub base_url: String,
    /// Its models.
    pub models: Vec<Arc<Model>>,
}

impl LocalServer {
    /// Asks one of [`LOCAL_SERVERS`] for its models; `None` if it does not list any within `limit`.
    pub async fn probe(host: &Host, (name, port): (&'static str, u16), limit: Duration) -> Option<Self> {
        let base_url = format!("http://127.0.0.1:{port}/v1");
        let request = Outgoing::get(format!("{base_url}/models"), HeaderMap::new());
        let list = json_answer(&HttpClient::new(), request, host, limit, 1024 * 1024).await?;
        let ids = list["data"].as_array()?.iter().filter_map(|model| model["id"].as_str());
        let models: Vec<Arc<Model>> = ids.filter_map(|id| model(name, &base_url, id)).collect();
        (!models.is_empty()).then_some(Self { name, base_url, models })
    }

    /// Returns the name for people.
    pub fn title(&self) -> &'static str {
        match self.name {
            "ollama" => "Ollama",
            "lmstudio" => "LM Studio",
            name => name,
        }
    }

    /// Adds the models to a registry and returns the first one, or `None` if the registry refuses them.
    pub(crate) fn register(&self, registry: &ModelRegistry) -> Option<Arc<Model>> {
        let models: Vec<serde_json::Value> = self.models.iter().map(|model| model.to_record()).collect();
        let document = json!({
            "baseUrl": self.base_url, "api": "openai-completions", "apiKey": "none", "models": models,
        });
        let config = ProviderDefinition { document: document.as_object().cloned()?, ..ProviderDefinition::default() };
        registry.register_provider(self.name, config).ok()?;
        registry.find(&self.name.into(), self.models.first()?.id.as_str())
    }
}

/// Returns the servers that respond, in the order of [`LOCAL_SERVERS`]. Probes them in parallel, for at most 400 ms.
pub async fn find(host: &Host) -> Vec<LocalServer> {
    let probes = LOCAL_SERVERS.map(|server| LocalServer::probe(host, server, PROBE));
    futures::future::join_all(probes).await.into_iter().flatten().collect()
}

fn model(server: &str, base_url: &str, id: &str) -> Option<Arc<Model>> {
    let record =
        json!({"id": id, "provider": server, "api": "openai-completions", "baseUrl": base_url, "input": ["text"]});
    Model::from_record(&record).ok().map(Arc::new)
}
