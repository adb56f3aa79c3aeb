//! A provider for all models of a registry: each request goes to the provider of its model.

use std::sync::Arc;

use pinch_llm::error::{LlmError, LlmErrorKind};
use pinch_llm::event::EventStream;
use pinch_llm::provider::{Provider, ProviderRegistry};
use pinch_llm::request::Request;
use pinch_stdx::cancel::Cancel;

use super::ModelRegistry;

/// Hands every request to the provider that a registered extension brought for its model, else to the wire format that its model names.
pub struct Dispatch {
    registry: Arc<ModelRegistry>,
    formats: ProviderRegistry,
}

impl Dispatch {
    /// The built-in wire formats, and what the registry knows beyond them.
    pub fn new(registry: Arc<ModelRegistry>) -> Self {
        Self::with_formats(registry, ProviderRegistry::builtin())
    }

    /// Other wire formats in place of the built-in ones.
    pub fn with_formats(registry: Arc<ModelRegistry>, formats: ProviderRegistry) -> Self {
        Self { registry, formats }
    }
}

impl Provider for Dispatch {
    fn stream(&self, request: Request, cancel: Cancel) -> EventStream {
        let model = &request.model;
        if let Some(provider) = self.registry.stream_of(&model.provider) {
            return provider.stream(request, cancel);
        }
        match self.formats.get(&model.api) {
            Ok(provider) => provider.stream(request, cancel),
            Err(error) => {
                let text = format!("{error}. The model {}/{} needs it", model.provider, model.id);
                let error = LlmError::new(model.provider.clone(), LlmErrorKind::InvalidRequest, text);
                EventStream::failed(model, request.host.now_ms(), error)
            }
        }
    }
}
