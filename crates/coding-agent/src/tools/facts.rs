//! Facts about the session for tools.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use pinch_llm::ids::SessionId;
use pinch_llm::model::{ImageLimits, Model};
use pinch_llm::thinking::ThinkingLevel;

/// Variables that describe the session to commands. They are never inherited from a parent process.
pub const SESSION_VARIABLES: [&str; 5] =
    ["PI_SESSION_ID", "PI_SESSION_FILE", "PI_PROVIDER", "PI_MODEL", "PI_REASONING_LEVEL"];

/// Facts about a session, available once it has started. Clones share them, so that tools created earlier see them too.
#[derive(Clone, Debug, Default)]
pub struct SessionFacts(Arc<RwLock<Option<SessionDetails>>>);

/// The facts about a session.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SessionDetails {
    /// Id of the session.
    pub session_id: SessionId,
    /// Path of its file, if it has one.
    pub session_file: Option<PathBuf>,
    /// The model.
    pub model: Arc<Model>,
    /// The thinking level.
    pub thinking: ThinkingLevel,
}

impl SessionFacts {
    /// Sets the facts, replacing earlier ones.
    pub fn set(&self, facts: SessionDetails) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(facts);
    }

    /// Returns the facts, if available yet.
    pub fn get(&self) -> Option<SessionDetails> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns whether the model is known not to accept images.
    pub(super) fn is_blind(&self) -> bool {
        self.get().is_some_and(|facts| !facts.model.images)
    }

    /// Returns the model's context window in tokens; 0 if unknown.
    pub(super) fn context_window(&self) -> u64 {
        self.get().map_or(0, |facts| facts.model.context_window)
    }

    /// Returns the model's image limits, or the defaults if no model is known.
    pub(super) fn image_limits(&self) -> ImageLimits {
        self.get().map(|facts| facts.model.image_limits()).unwrap_or_default()
    }

    /// Returns the variables for a command.
    pub(super) fn variables(&self) -> Vec<(String, String)> {
        let Some(facts) = self.get() else { return Vec::new() };
        let file = facts.session_file.map(|file| file.to_string_lossy().into_owned());
        let values = [
            Some(facts.session_id.to_string()),
            file,
            Some(facts.model.provider.to_string()),
            Some(facts.model.id.to_string()),
            Some(facts.thinking.as_str().to_owned()),
        ];
        let named = SESSION_VARIABLES.iter().zip(values);
        named.filter_map(|(name, value)| Some(((*name).to_owned(), value?))).collect()
    }
}
