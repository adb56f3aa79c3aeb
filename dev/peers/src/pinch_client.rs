//! pinch.

use std::sync::Arc;

use futures::StreamExt;
use pinch_llm::event::StreamEvent;
use pinch_llm::message::Message;
use pinch_llm::model::Model;
use pinch_llm::provider::ProviderRegistry;
use pinch_llm::request::{Auth, Request};
use pinch_llm::stdx::cancel::Cancel;
use pinch_llm::stdx::host::Host;
use serde_json::json;

use crate::{EventCount, PeerFormat};

pub(crate) async fn stream(format: PeerFormat, base_url: &str) -> anyhow::Result<EventCount> {
    let api = match format {
        PeerFormat::Anthropic => "anthropic-messages",
        PeerFormat::Completions => "openai-completions",
        PeerFormat::Responses => "openai-responses",
        PeerFormat::Google => "google-generative-ai",
    };
    let model = Model::from_record(&json!({
        "id": "m", "api": api, "provider": "bench", "baseUrl": format!("{base_url}/v1"),
        "contextWindow": 10_000_000, "maxTokens": 8192,
    }))?;
    let request = Request::new(model, vec![Arc::new(Message::user("hello", 0))])
        .with_auth(Auth::key("none"))
        .with_host(Host::system());
    let provider = ProviderRegistry::builtin().get(&request.model.api)?;
    let mut events = provider.stream(request, Cancel::new());
    let mut count = EventCount::default();
    while let Some(event) = events.next().await {
        match event {
            StreamEvent::Delta { text, .. } => count.add(&text),
            StreamEvent::End(finished) => {
                if let Some(error) = finished.error {
                    anyhow::bail!("{}", error.text);
                }
            }
            _ => {}
        }
    }
    Ok(count)
}
