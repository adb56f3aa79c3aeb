//! What extensions can do with models: look them up, and call them with the session's credentials.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;
use pinch_llm::event::EventStream;
use pinch_llm::ids::{ModelId, ProviderId};
use pinch_llm::model::Model;
use pinch_llm::provider::Provider;
use pinch_llm::request::{Auth, CallOptions, Request};
use pinch_llm::thinking::ThinkingLevel;
use pinch_stdx::cancel::Cancel;
use pinch_stdx::copy_on_write::CopyOnWrite;
use pinch_stdx::host::Host;

use super::control::SessionControl;
use super::models::ScopedModel;
use crate::auth::KeyLookup;
use crate::extension::models::KnownModels;
use crate::extension::{ExtensionError, ProviderChange};
use crate::models::RegisterError;
use crate::services::Services;

/// Calls of extensions: like those of the session, but apart from its conversation.
pub(super) struct ExtensionCalls {
    /// The provider of the session, which may change.
    provider: Mutex<Arc<dyn Provider>>,
    options: CopyOnWrite<CallOptions>,
    host: Host,
}

impl ExtensionCalls {
    /// `options` are those of the session's calls.
    pub(super) fn new(provider: Arc<dyn Provider>, options: CopyOnWrite<CallOptions>, host: Host) -> Self {
        Self { provider: Mutex::new(provider), options, host }
    }

    fn provider(&self) -> MutexGuard<'_, Arc<dyn Provider>> {
        self.provider.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_provider(&self, provider: Arc<dyn Provider>) {
        *self.provider() = provider;
    }

    /// Returns the options that a call has unless the extension changes them.
    pub(super) fn options(&self) -> CallOptions {
        // Nothing of the conversation: neither its id nor what observes it.
        let mut options = CallOptions::clone(&self.options);
        options.session_id = None;
        options.observer = None;
        options
    }

    pub(super) fn start(&self, request: Request, cancel: Cancel) -> EventStream {
        let provider = Arc::clone(&self.provider());
        provider.stream(request.with_host(self.host.clone()), cancel)
    }
}

/// The models of services.
pub(super) struct ServiceModels {
    services: Arc<Services>,
    scope: Vec<ScopedModel>,
}

impl ServiceModels {
    pub(super) fn new(services: Arc<Services>, scope: Vec<ScopedModel>) -> Self {
        Self { services, scope }
    }
}

impl KnownModels for ServiceModels {
    fn all(&self) -> Vec<Arc<Model>> {
        self.services.models().all()
    }

    fn find(&self, provider: &ProviderId, id: &ModelId) -> Option<Arc<Model>> {
        self.services.models().find(provider, id.as_str())
    }

    fn is_configured(&self, provider: &ProviderId) -> bool {
        self.services.auth().is_configured(provider)
    }

    fn is_using_oauth(&self, provider: &ProviderId) -> bool {
        self.services.auth().is_using_oauth(provider)
    }

    fn display_name(&self, provider: &ProviderId) -> String {
        self.services.models().display_name(provider)
    }

    fn scoped(&self) -> Vec<(Arc<Model>, Option<ThinkingLevel>)> {
        self.scope.iter().map(|scoped| (Arc::clone(&scoped.model), scoped.thinking)).collect()
    }

    fn change(&self, change: &ProviderChange) -> Result<bool, ExtensionError> {
        change_provider(&self.services, change).map(|()| true).map_err(|error| ExtensionError::new(error.to_string()))
    }

    fn credentials<'a>(&'a self, model: &'a Model) -> BoxFuture<'a, Result<Option<Auth>, ExtensionError>> {
        Box::pin(async {
            let found = self.services.auth().key_and_headers(model, KeyLookup::Value).await;
            found.map_err(|error| ExtensionError::new(error.to_string()))
        })
    }
}

/// Applies what an extension registers or removes.
pub(super) fn change_provider(services: &Services, change: &ProviderChange) -> Result<(), RegisterError> {
    match change {
        ProviderChange::Register { name, config } => services.models().register_provider(name, config.clone()),
        ProviderChange::Unregister { name } => {
            services.models().unregister_provider(name);
            Ok(())
        }
    }
}

/// The models of a session that was not told of any others: its own. Its credentials are the owner's.
pub(super) struct OwnModel(pub(super) SessionControl);

impl OwnModel {
    fn model(&self) -> Arc<Model> {
        self.0.peek(|state| Arc::clone(&state.now.model))
    }
}

impl KnownModels for OwnModel {
    fn all(&self) -> Vec<Arc<Model>> {
        vec![self.model()]
    }

    fn find(&self, provider: &ProviderId, id: &ModelId) -> Option<Arc<Model>> {
        Some(self.model()).filter(|model| model.provider == *provider && model.id == *id)
    }

    fn is_configured(&self, provider: &ProviderId) -> bool {
        self.model().provider == *provider
    }

    fn is_using_oauth(&self, _: &ProviderId) -> bool {
        false
    }

    fn display_name(&self, provider: &ProviderId) -> String {
        provider.to_string()
    }

    fn scoped(&self) -> Vec<(Arc<Model>, Option<ThinkingLevel>)> {
        Vec::new()
    }

    fn change(&self, _: &ProviderChange) -> Result<bool, ExtensionError> {
        Ok(false)
    }

    fn credentials<'a>(&'a self, _: &'a Model) -> BoxFuture<'a, Result<Option<Auth>, ExtensionError>> {
        Box::pin(async { Err(ExtensionError::refused("The credentials of this session are not for extensions")) })
    }
}
