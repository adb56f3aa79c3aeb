//! The models that extensions look up, and their credentials.

use std::sync::Arc;

use futures::future::BoxFuture;
use pinch_llm::ids::{ModelId, ProviderId};
use pinch_llm::model::Model;
use pinch_llm::request::Auth;
use pinch_llm::thinking::ThinkingLevel;

use super::error::ExtensionError;
use super::register::ProviderChange;

/// The models that a session can use, as seen by its extensions.
pub trait KnownModels: Send + Sync {
    /// Returns all models.
    fn all(&self) -> Vec<Arc<Model>>;

    /// Returns the model with this name.
    fn find(&self, provider: &ProviderId, id: &ModelId) -> Option<Arc<Model>>;

    /// Returns whether a provider has credentials, without running commands or contacting servers.
    fn is_configured(&self, provider: &ProviderId) -> bool;

    /// Returns whether requests to a provider use the access token of a login.
    fn is_using_oauth(&self, provider: &ProviderId) -> bool;

    /// Returns the name of a provider for people.
    fn display_name(&self, provider: &ProviderId) -> String;

    /// Returns the models that the user cycles through, and their thinking levels, if any have been chosen.
    fn scoped(&self) -> Vec<(Arc<Model>, Option<ThinkingLevel>)>;

    /// Registers, changes or removes a provider. Returns false if that is up to the owner of the session.
    ///
    /// # Errors
    /// Fails if the definition is invalid.
    fn change(&self, change: &ProviderChange) -> Result<bool, ExtensionError>;

    /// Returns the credentials for a model, or `None` if there are none.
    ///
    /// # Errors
    /// Fails if a configured value cannot be resolved, or a login cannot be refreshed.
    fn credentials<'a>(&'a self, model: &'a Model) -> BoxFuture<'a, Result<Option<Auth>, ExtensionError>>;
}
