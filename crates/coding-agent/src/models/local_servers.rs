//! Model servers on this machine that need no key.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use pinch_llm::http::{HttpClient, Outgoing};
use pinch_llm::model::Model;
use pinch_stdx::host::Host;
use serde_json::json;

use crate::web::json_answer;

/// Servers that speak OpenAI's format, and where they usually listen.
pub const LOCAL_SERVERS: [(&str, u16); 3] = [("ollama", 11434), ("llama.cpp", 8080), ("lmstudio", 1234)];

/// How long a server may take to say which models it has.
const PROBE: Duration = Duration::from_millis(400);

/// The models of one server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LocalServer {
    /// Its name.
    pub name: &'static str,
    /// Where it listens.
    pub base_url: String,
    /// Its models.
    pub models: Vec<Arc<Model>>,
}

/// The servers that answer, in the order of [`LOCAL_SERVERS`]. They are asked all at once, and none is waited for longer than 400 ms.
pub async fn find(host: &Host) -> Vec<LocalServer> {
    let client = HttpClient::new();
    let probes = LOCAL_SERVERS.map(|(name, port)| probe(&client, host, name, port));
    futures::future::join_all(probes).await.into_iter().flatten().collect()
}

async fn probe(client: &HttpClient, host: &Host, name: &'static str, port: u16) -> Option<LocalServer> {
    let base_url = format!("http://127.0.0.1:{port}/v1");
    let request = Outgoing::get(format!("{base_url}/models"), HeaderMap::new());
    let list = json_answer(client, request, host, PROBE, 1024 * 1024).await?;
    let ids = list["data"].as_array()?.iter().filter_map(|model| model["id"].as_str());
    let models: Vec<Arc<Model>> = ids.filter_map(|id| model(name, &base_url, id)).collect();
    (!models.is_empty()).then_some(LocalServer { name, base_url, models })
}

fn model(server: &str, base_url: &str, id: &str) -> Option<Arc<Model>> {
    let record =
        json!({"id": id, "provider": server, "api": "openai-completions", "baseUrl": base_url, "input": ["text"]});
    Model::from_record(&record).ok().map(Arc::new)
}
