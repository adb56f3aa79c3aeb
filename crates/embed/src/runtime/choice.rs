//! Which runtime carries out the attempts with a model.

use std::sync::Arc;

use pinch_llm::model::Model;

use super::AttemptRuntime;
use crate::config::cli::CliBackends;

/// The runtimes of a run.
#[derive(Clone)]
pub(crate) struct RuntimeChoice {
    /// The one that the request or the configuration names, for all models.
    pub(crate) named: Option<Arc<dyn AttemptRuntime>>,
    /// Without a named one, that of models.
    pub(crate) native: Arc<dyn AttemptRuntime>,
    /// Without a named one, that of providers that are command-line agents.
    pub(crate) cli: Arc<dyn AttemptRuntime>,
    pub(crate) backends: CliBackends,
}

impl RuntimeChoice {
    /// The runtime for a model.
    pub(crate) fn of(&self, model: &Model) -> Arc<dyn AttemptRuntime> {
        let derived = || match self.backends.get(model.provider.as_str()) {
            Some(_) => &self.cli,
            None => &self.native,
        };
        Arc::clone(self.named.as_ref().unwrap_or_else(derived))
    }
}
