//! The crate `genai`.

use futures::StreamExt;
use genai::Client;
use genai::adapter::AdapterKind;
use genai::chat::{ChatMessage, ChatRequest, ChatStreamEvent};
use genai::resolver::{AuthData, Endpoint};

use crate::{EventCount, PeerFormat};

pub(crate) async fn stream(format: PeerFormat, base_url: &str) -> anyhow::Result<EventCount> {
    let kind = match format {
        PeerFormat::Anthropic => AdapterKind::Anthropic,
        PeerFormat::Completions => AdapterKind::OpenAI,
        PeerFormat::Responses => AdapterKind::OpenAIResp,
        PeerFormat::Google => AdapterKind::Gemini,
    };
    let endpoint = Endpoint::from_owned(format!("{base_url}/v1/"));
    let client = Client::builder()
        .with_adapter_kind(kind)
        .append_provider_config(kind, (endpoint, AuthData::from_single("none")))
        .build()?;
    let request = ChatRequest::new(vec![ChatMessage::user("hello")]);
    let mut events = client.exec_chat_stream("m", request, None).await?.stream;
    let (mut count, mut ended) = (EventCount::default(), false);
    while let Some(event) = events.next().await {
        match event? {
            ChatStreamEvent::Chunk(chunk) => count.add(&chunk.content),
            ChatStreamEvent::End(_) => ended = true,
            _ => {}
        }
    }
    anyhow::ensure!(ended, "no end came");
    Ok(count)
}
