//! The crate `rig-core`.

use futures::{Stream, StreamExt};
use rig_core::completion::CompletionRequest;
use rig_core::error::ProviderError;
use rig_core::providers::anthropic::AnthropicConfig;
use rig_core::providers::gemini::GeminiConfig;
use rig_core::providers::openai::OpenAIConfig;
use rig_core::streaming::{Item, StreamEvent};

use crate::{EventCount, PeerFormat};

pub(crate) async fn stream(format: PeerFormat, base_url: &str) -> anyhow::Result<EventCount> {
    let request = CompletionRequest::new("hello").max_tokens(8192);
    let openai = || OpenAIConfig::new("none").with_base_url(format!("{base_url}/v1")).client();
    match format {
        PeerFormat::Anthropic => {
            let client = AnthropicConfig::new("none").with_base_url(base_url).client();
            read(client.completion("m").stream(request)?).await
        }
        PeerFormat::Completions => read(openai().chat("m").stream(request)?).await,
        PeerFormat::Responses => read(openai().responses("m").stream(request)?).await,
        PeerFormat::Google => {
            let client = GeminiConfig::new("none").with_base_url(base_url).client();
            read(client.completion("m").stream(request)?).await
        }
    }
}

async fn read(
    mut events: impl Stream<Item = Result<Item<StreamEvent>, ProviderError>> + Unpin,
) -> anyhow::Result<EventCount> {
    let mut count = EventCount::default();
    while let Some(item) = events.next().await {
        if let Item::Event(StreamEvent::Text { text, .. }) = item? {
            count.add(&text);
        }
    }
    Ok(count)
}
