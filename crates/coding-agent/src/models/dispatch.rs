//! A provider for all models of a registry: each request goes to its model's provider.

use std::sync::Arc;

use pinch_llm::error::{LlmError, LlmErrorKind};
use pinch_llm::event::EventStream;
use pinch_llm::provider::{Provider, ProviderRegistry};
use pinch_llm::request::Request;
use pinch_stdx::cancel::Cancel;

use super::ModelRegistry;

/// Forwards each request to the implementation that an extension registered for its model, or else to the model's wire format.
pub struct Dispatch {
    registry: Arc<ModelRegistry>,
    formats: ProviderRegistry,
}

impl Dispatch {
    /// Creates a dispatcher with the built-in wire formats and the registry's additions.
    pub fn new(registry: Arc<ModelRegistry>) -> Self {
        Self::with_formats(registry, ProviderRegistry::builtin())
    }

    /// Creates a dispatcher with other wire formats.
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
