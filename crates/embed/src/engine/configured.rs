//! What an engine reads from its configuration and its documents; read again when the configuration is replaced.

use std::path::Path;
use std::sync::Arc;

use pinch_coding_agent::document::Problem;
use pinch_coding_agent::models::ModelRegistry;
use pinch_coding_agent::settings::Settings;
use pinch_ports::HealthStore;
use pinch_stdx::host::Host;

use super::resolve;
use crate::config::Config;
use crate::key;
use crate::lanes::Lanes;
use crate::parts::credentials::Credentials;

/// A configuration with the documents that complete it.
pub(super) struct Configured {
    pub(super) config: Arc<Config>,
    pub(super) settings: Settings,
    pub(super) registry: Arc<ModelRegistry>,
    pub(super) profiles: Credentials,
    pub(super) problems: Vec<Problem>,
}

impl Configured {
    /// Reads the documents. Mistakes in them are problems; everything else is used.
    pub(super) fn load(
        config: Arc<Config>,
        state_dir: &Path,
        agent_dir: &Path,
        host: &Host,
        health: Option<Arc<dyn HealthStore>>,
    ) -> Self {
        let shared = state_dir.join("agent");
        // The agent's own documents take precedence over those of the command line's sessions.
        let document = |name: &str| {
            let own = agent_dir.join(name);
            if own.is_file() { own } else { shared.join(name) }
        };
        let (settings, mut problems) = Settings::load(&document("settings.json"));
        let (registry, found) = resolve::registry(&document("models.json"), &config);
        problems.extend(found);
        let registry = Arc::new(registry);
        let (profiles, found) = Credentials::load(agent_dir, &document("auth.json"), &config, &registry, health, host);
        problems.extend(found);
        Self { config, settings, registry, profiles, problems }
    }
}

/// Slots of the lane `subagent` without a configuration.
const SUBAGENT_SLOTS: usize = 8;

/// Sets the slots of the lanes.
pub(super) fn set_slots(lanes: &Lanes, config: &Config) {
    let defaults = &config.agents.defaults;
    lanes.set_concurrency(
        key::global_lane(None),
        defaults.max_concurrent.unwrap_or_else(|| config.preset.values().main_slots),
    );
    lanes.set_concurrency("subagent", defaults.max_concurrent_subagents.unwrap_or(SUBAGENT_SLOTS));
    lanes.set_concurrency(key::global_lane(Some("cron")), config.max_concurrent_cron_runs.unwrap_or(1));
}
