//! Which model answers: the one that is named, the session's own, the configured one, one that a key is there for, or a local server's.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method};
use pinch_embed::coding_agent::models::pattern::{self, NotFound};
use pinch_embed::coding_agent::models::{ModelRegistry, RegistryAuth};
use pinch_embed::coding_agent::session_log::Context;
use pinch_embed::coding_agent::settings::Settings;
use pinch_embed::llm::catalog;
use pinch_embed::llm::http::{HttpClient, Outgoing};
use pinch_embed::llm::ids::ProviderId;
use pinch_embed::llm::model::Model;
use pinch_embed::llm::thinking::ThinkingLevel;
use pinch_embed::stdx::host::Host;
use serde_json::{Value, json};

use crate::exit::{Failure, warn};

/// A model that can be asked.
pub(crate) struct Choice {
    pub(crate) model: Arc<Model>,
    pub(crate) thinking: Option<ThinkingLevel>,
    /// It is a local server's: no key is needed.
    pub(crate) keyless: bool,
}

/// What the choice is made from.
pub(crate) struct Wishes<'a> {
    pub(crate) provider: Option<&'a str>,
    pub(crate) model: Option<&'a str>,
    pub(crate) settings: &'a Settings,
    /// The session that is taken up.
    pub(crate) context: Option<&'a Context>,
    /// The agent directory, for the ways on.
    pub(crate) agent_dir: &'a Path,
}

/// Local servers that speak OpenAI's format, and where they usually listen.
const LOCAL_SERVERS: [(&str, u16); 3] = [("ollama", 11434), ("llama.cpp", 8080), ("lmstudio", 1234)];
/// How long a local server may take to say which models it has.
const PROBE: Duration = Duration::from_millis(400);

/// Chooses a model.
///
/// # Errors
/// An unknown or ambiguous name is the user's mistake; no model at all is one of the configuration, and the text names the ways on.
pub(crate) async fn find(
    wishes: &Wishes<'_>,
    registry: &ModelRegistry,
    auth: &(dyn Fn(&ProviderId) -> bool + Sync),
    host: &Host,
) -> Result<Choice, Failure> {
    let keyed = |model: Arc<Model>| Choice { model, thinking: None, keyless: false };
    if let Some(pattern) = wishes.model {
        let found = pattern::resolve(registry, wishes.provider, pattern, auth)
            .map_err(|error| not_found(&error, wishes.agent_dir))?;
        if let Some(text) = &found.warning {
            warn(text);
        }
        return Ok(Choice { model: found.model, thinking: found.thinking, keyless: false });
    }
    if let Some(saved) = wishes.context.and_then(|context| context.model.as_ref()) {
        match registry.find(&saved.provider, saved.model_id.as_str()) {
            Some(model) if auth(&model.provider) => return Ok(keyed(model)),
            _ => warn(&format!("Could not restore model {}/{}", saved.provider, saved.model_id)),
        }
    }
    if let (Some(provider), Some(id)) = (&wishes.settings.default_provider, &wishes.settings.default_model) {
        match registry.find(&provider.as_str().into(), id) {
            Some(model) if auth(&model.provider) => return Ok(keyed(model)),
            Some(model) => warn(&format!("No API key for the default model {}/{}", model.provider, model.id)),
            None => warn(&format!("The default model {provider}/{id} of settings.json does not exist")),
        }
    }
    let preferred = catalog::default_ids().map(|(provider, _)| ProviderId::new(provider));
    for provider in preferred.chain(registry.providers()) {
        if auth(&provider)
            && let Some(model) = registry.default_model(&provider)
        {
            return Ok(keyed(model));
        }
    }
    if let Some(model) = local_server(host).await {
        return Ok(Choice { model: Arc::new(model), thinking: None, keyless: true });
    }
    Err(no_model(wishes.agent_dir))
}

/// No model at all, with the ways on. `documents` is the folder of models.json.
pub(crate) fn no_model(documents: &Path) -> Failure {
    Failure::configuration(format!(
        "No model to ask. Three ways on:\n  \
         1. Set a provider's key, e.g. export ANTHROPIC_API_KEY=… (or OPENAI_API_KEY, GEMINI_API_KEY, OPENROUTER_API_KEY, …).\n  \
         2. Start a local server: ollama (port 11434), llama.cpp (port 8080) or LM Studio (port 1234).\n  \
         3. Name a server of your own in {}, and use it with --model provider/id.\n\
         To see pinch work without any of them: pinch demo",
        documents.join("models.json").display()
    ))
}

/// A name that fits nothing, with the way on that this program has.
pub(crate) fn not_found(error: &NotFound, documents: &Path) -> Failure {
    let what = match error {
        NotFound::Provider { provider } => format!("Unknown provider \"{provider}\"."),
        NotFound::Model { pattern } => format!("Model \"{pattern}\" not found."),
        NotFound::Ambiguous { .. } => return Failure::user(error.to_string()),
    };
    let models = documents.join("models.json");
    let way_on = format!("Name one as provider/id; models of your own go into {}", models.display());
    Failure::user(format!("{what} {way_on}"))
}

/// Whether a registry's credentials know a provider.
pub(crate) fn knows(auth: &RegistryAuth) -> impl Fn(&ProviderId) -> bool + '_ {
    |provider| auth.is_configured(provider)
}

/// The first model of the first local server that answers.
pub(crate) async fn local_server(host: &Host) -> Option<Model> {
    let client = HttpClient::new();
    let probes = LOCAL_SERVERS.map(|(name, port)| probe(&client, host, name, port));
    futures::future::join_all(probes).await.into_iter().flatten().next()
}

async fn probe(client: &HttpClient, host: &Host, name: &str, port: u16) -> Option<Model> {
    let base_url = format!("http://127.0.0.1:{port}/v1");
    let request = Outgoing {
        method: Method::GET,
        url: format!("{base_url}/models"),
        headers: HeaderMap::new(),
        body: Bytes::new(),
    };
    let answer = async {
        let mut incoming = client.send(request, host.env(), Some(PROBE)).await.ok()?;
        let status = incoming.status();
        let body = incoming.text_up_to(1024 * 1024).await;
        status.is_success().then(|| serde_json::from_slice::<Value>(&body).ok())?
    };
    let list = tokio::time::timeout(PROBE, answer).await.ok()??;
    let id = list["data"].as_array()?.iter().find_map(|model| model["id"].as_str())?;
    let record =
        json!({"id": id, "provider": name, "api": "openai-completions", "baseUrl": base_url, "input": ["text"]});
    Model::from_record(&record).ok()
}
