//! What sessions of one working directory share: folders, settings, models, credentials.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pinch_agent_core::queue::{QueueKind, QueueMode};
use pinch_llm::model::Model;
use pinch_llm::thinking::ThinkingLevel;
use pinch_stdx::host::Host;
use serde_json::Value;

use crate::models::{ModelRegistry, RegistryAuth};
use crate::settings::Settings;
use crate::tools::bash::BashTool;

/// What sessions of one working directory share.
pub struct Services {
    /// Clock, ids and environment.
    pub host: Host,
    /// The working directory.
    pub cwd: PathBuf,
    /// The folder of a user's documents.
    pub agent_dir: PathBuf,
    /// What the user wants.
    pub settings: Settings,
    /// All models.
    pub models: Arc<ModelRegistry>,
    /// Who has credentials for them.
    pub auth: Arc<RegistryAuth>,
    /// Runs commands of the user.
    pub shell: Arc<BashTool>,
}

impl Services {
    /// Clock, ids and environment.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The working directory.
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// Models that somebody has credentials for, in the registry's order.
    pub fn available_models(&self) -> Vec<Arc<Model>> {
        self.models.available(&|provider| self.auth.is_configured(provider))
    }

    /// What can be written after a `/`.
    pub fn commands(&self) -> Vec<Value> {
        Vec::new()
    }

    /// Keeps how waiting messages are taken.
    pub fn remember_queue_mode(&self, _kind: QueueKind, _mode: QueueMode) {}
    /// Keeps whether conversations are compacted by themselves.
    pub fn remember_auto_compaction(&self, _on: bool) {}
    /// Keeps whether failed answers are repeated.
    pub fn remember_auto_retry(&self, _on: bool) {}
    /// Keeps the model for new sessions.
    pub fn remember_model(&self, _model: &Model) {}
    /// Keeps the thinking level for new sessions.
    pub fn remember_thinking(&self, _model: &Model, _level: ThinkingLevel) {}
}
