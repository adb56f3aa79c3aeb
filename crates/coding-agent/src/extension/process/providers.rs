//! Providers whose answers come from a process.

use std::sync::{Arc, Weak};

use futures::Stream;
use pinch_agent_core::proxy;
use pinch_llm::error::{LlmError, LlmErrorKind};
use pinch_llm::event::EventStream;
use pinch_llm::ids::ProviderId;
use pinch_llm::provider::Provider;
use pinch_llm::request::Request;
use pinch_stdx::cancel::Cancel;
use pinch_stdx::pull;
use serde_json::{Map, Value, json};

use super::link::Link;
use super::models::credentials;
use super::points::{member, needed};
use crate::extension::error::ExtensionError;
use crate::models::ProviderDefinition;

/// Reads the name and the definition of a provider. With `streams`, the process serves its models.
pub(super) fn definition(link: &Arc<Link>, from: &Value) -> Result<(String, ProviderDefinition), ExtensionError> {
    let name: String = needed(from, "name")?;
    let mut definition = ProviderDefinition::from(needed::<Map<String, Value>>(from, "config")?);
    if member(from, "streams")?.unwrap_or(false) {
        definition.stream = Some(Arc::new(ProcessProvider { link: Arc::downgrade(link), name: name.clone() }));
    }
    Ok((name, definition))
}

/// Asks a process for the answers of its models.
///
/// It gets the request as a server does, which [`proxy`] describes, and in addition the credentials; its events are those of such a server.
struct ProcessProvider {
    link: Weak<Link>,
    name: String,
}

impl Provider for ProcessProvider {
    fn stream(&self, request: Request, cancel: Cancel) -> EventStream {
        let Some(link) = self.link.upgrade() else {
            let text = format!("The extension that serves {} has ended", self.name);
            let error = LlmError::new(request.model.provider.clone(), LlmErrorKind::InvalidRequest, text);
            return EventStream::failed(&request.model, request.host.now_ms(), error);
        };
        let mut params = proxy::body(&request);
        params["provider"] = self.name.as_str().into();
        params["model"]["headers"] = json!(request.model.headers);
        params["auth"] = credentials(&request.auth);
        proxy::read(&request, events(link, request.model.provider.clone(), params), cancel)
    }
}

/// Asks for an answer. Dropping the stream tells the process that the answer is no longer needed.
fn events(
    link: Arc<Link>,
    provider: ProviderId,
    mut params: Value,
) -> impl Stream<Item = Result<Value, LlmError>> + Send + 'static {
    pull::pulled(async move |emitter: pull::Emitter<Result<Value, LlmError>>| {
        let (id, mut events) = link.streams.begin();
        let _open = OpenStream { link: &link, id: &id };
        params["stream"] = id.as_str().into();
        let mut asked = std::pin::pin!(link.request("provider/stream", params));
        let failure = loop {
            tokio::select! {
                biased;
                Some(event) = events.recv() => emitter.emit(Ok(event)).await,
                answer = &mut asked => break answer.err(),
            }
        };
        // What arrived before the answer to the request still counts.
        link.streams.end(&id);
        while let Some(event) = events.recv().await {
            emitter.emit(Ok(event)).await;
        }
        if let Some(error) = failure {
            emitter.emit(Err(LlmError::refused(provider, None, None, error.to_string()))).await;
        }
    })
}

/// A stream that is closed when it is dropped.
struct OpenStream<'a> {
    link: &'a Link,
    id: &'a str,
}

impl Drop for OpenStream<'_> {
    fn drop(&mut self) {
        self.link.streams.end(self.id);
    }
}
