//! What tools may know of the session they work for.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use pinch_llm::model::{ImageLimits, Model};
use pinch_llm::thinking::ThinkingLevel;

/// Variables that tell a command about its session. Those of a parent process are never passed on.
pub const SESSION_VARIABLES: [&str; 5] =
    ["PI_SESSION_ID", "PI_SESSION_FILE", "PI_PROVIDER", "PI_MODEL", "PI_REASONING_LEVEL"];

/// Facts of a session that are known once it has started. Clones share them, so that tools built before learn them too.
#[derive(Clone, Debug, Default)]
pub struct SessionFacts(Arc<RwLock<Option<SessionDetails>>>);

/// The facts.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SessionDetails {
    /// The session's id.
    pub session_id: String,
    /// Its file, when it has one.
    pub session_file: Option<PathBuf>,
    /// The model.
    pub model: Arc<Model>,
    /// How hard it thinks.
    pub thinking: ThinkingLevel,
}

impl SessionFacts {
    /// Puts facts in the place of older ones.
    pub fn set(&self, facts: SessionDetails) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(facts);
    }

    /// The facts, when there are any yet.
    pub fn get(&self) -> Option<SessionDetails> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the model is known not to take images.
    pub(super) fn is_blind(&self) -> bool {
        self.get().is_some_and(|facts| !facts.model.images)
    }

    /// What the model takes of an image; the usual while no model is known.
    pub(super) fn image_limits(&self) -> ImageLimits {
        self.get().map(|facts| facts.model.image_limits()).unwrap_or_default()
    }

    /// The variables for a command.
    pub(super) fn variables(&self) -> Vec<(String, String)> {
        let Some(facts) = self.get() else { return Vec::new() };
        let file = facts.session_file.map(|file| file.to_string_lossy().into_owned());
        let values = [
            Some(facts.session_id),
            file,
            Some(facts.model.provider.to_string()),
            Some(facts.model.id.to_string()),
            Some(facts.thinking.as_str().to_owned()),
        ];
        let named = SESSION_VARIABLES.iter().zip(values);
        named.filter_map(|(name, value)| Some(((*name).to_owned(), value?))).collect()
    }
}
