//! State that an engine reads from its configuration and documents, and reads again when the configuration is replaced.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pinch_coding_agent::auth::Logins;
use pinch_coding_agent::document::Problem;
use pinch_coding_agent::models::ModelRegistry;
use pinch_coding_agent::settings::Settings;
use pinch_ports::HealthStore;
use pinch_stdx::host::Host;

use super::resolve;
use crate::config::Config;
use crate::key;
use crate::lanes::Lanes;
use crate::parts::Parts;
use crate::parts::credentials::{CredentialSources, Credentials};

/// Dependencies for reading documents.
pub(super) struct DocumentSources {
    pub(super) state_dir: PathBuf,
    pub(super) host: Host,
    /// Health store provided by the host.
    pub(super) health: Option<Arc<dyn HealthStore>>,
    pub(super) logins: Arc<Logins>,
}

impl DocumentSources {
    pub(super) fn of(parts: &Parts) -> Self {
        Self {
            state_dir: parts.state_dir.clone(),
            host: parts.host.clone(),
            health: parts.health.clone(),
            logins: Arc::clone(&parts.logins),
        }
    }
}

/// The documents of an agent.
pub(super) struct AgentDocuments {
    pub(super) settings: Settings,
    pub(super) registry: Arc<ModelRegistry>,
    pub(super) profiles: Credentials,
    pub(super) problems: Vec<Problem>,
}

/// Returns the directory that a document of an agent is read from: its own, else the main agent's, else that of command-line sessions.
pub(super) fn document_dir(state_dir: &Path, agent_dir: &Path, main_dir: Option<&Path>, name: &str) -> PathBuf {
    let mut own = std::iter::once(agent_dir).chain(main_dir);
    own.find(|dir| dir.join(name).is_file()).map_or_else(|| state_dir.join("agent"), Path::to_owned)
}

impl AgentDocuments {
    /// Reads the documents; mistakes in them are reported as problems and skipped. `main`: the parts of the main agent, if these are for
    /// another agent.
    pub(super) fn load(from: &DocumentSources, config: &Config, agent_dir: &Path, main: Option<&Parts>) -> Self {
        let main_dir = main.map(|main| main.agent_dir.as_path());
        let document = |name: &str| document_dir(&from.state_dir, agent_dir, main_dir, name).join(name);
        let (settings, mut problems) = Settings::load(&document("settings.json"));
        let (registry, found) = resolve::registry(&document("models.json"), config, from.host.env());
        problems.extend(found);
        let registry = Arc::new(registry);
        let credentials = CredentialSources {
            agent_dir,
            auth_json: &document("auth.json"),
            oauth_json: main.is_none().then(|| from.state_dir.join("credentials/oauth.json")),
            config,
            health: from.health.clone(),
            below: main.map(|main| &main.profiles),
            logins: Arc::clone(&from.logins),
        };
        let (profiles, found) = Credentials::load(credentials, &registry, &from.host);
        problems.extend(found);
        Self { settings, registry, profiles, problems }
    }
}

/// Default number of slots in the lane `subagent`.
const SUBAGENT_SLOTS: usize = 8;

/// Sets the slots of the lanes.
pub(super) fn set_slots(lanes: &Lanes, config: &Config) {
    let defaults = &config.agents.defaults;
    lanes.set_concurrency(key::global_lane(None), defaults.max_concurrent.unwrap_or(config.defaults.main_slots));
    lanes.set_concurrency("subagent", defaults.subagent_limits.max_concurrent.unwrap_or(SUBAGENT_SLOTS));
    lanes.set_concurrency(key::global_lane(Some("cron")), config.max_concurrent_cron_runs.unwrap_or(1));
}
