//! Chooses the runtime for the attempts with a model.

use std::sync::Arc;

use pinch_llm::model::Model;

use super::AttemptRuntime;
use crate::config::cli::CliBackends;

/// The runtimes of a run.
#[derive(Clone)]
pub(crate) struct RuntimeChoice {
    /// The runtime named by the request or the configuration, for all models.
    pub(crate) named: Option<Arc<dyn AttemptRuntime>>,
    /// Otherwise, the runtime for models.
    pub(crate) native: Arc<dyn AttemptRuntime>,
    /// Otherwise, the runtime for providers that are command-line agents.
    pub(crate) cli: Arc<dyn AttemptRuntime>,
    pub(crate) backends: CliBackends,
}

impl RuntimeChoice {
    /// Returns the runtime for a model.
    pub(crate) fn of(&self, model: &Model) -> Arc<dyn AttemptRuntime> {
        let derived = || match self.backends.get(model.provider.as_str()) {
            Some(_) => &self.cli,
            None => &self.native,
        };
        Arc::clone(self.named.as_ref().unwrap_or_else(derived))
    }
}
