//! The context of all checks: directories, documents, models, credentials.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pinch_embed::coding_agent::auth::AuthStorage;
use pinch_embed::coding_agent::document::Problem;
use pinch_embed::coding_agent::models::{ModelRegistry, RegistryAuth};
use pinch_embed::coding_agent::resources::trust;
use pinch_embed::coding_agent::services::{ServiceOptions, Services};
use pinch_embed::stdx::host::Host;

use crate::exit::CommandFailure;
use crate::folders::Folders;
use crate::open_log;
use pinch_cli::options::CliOptions;

/// Context of the checks.
pub(super) struct DoctorContext {
    pub(super) host: Host,
    pub(super) folders: Folders,
    /// The project's settings directory, if any.
    pub(super) project_dir: Option<PathBuf>,
    /// The session directory.
    pub(super) session_dir: PathBuf,
    pub(super) services: Services,
    pub(super) registry: Arc<ModelRegistry>,
    pub(super) auth: RegistryAuth,
    /// Problems in auth.json.
    pub(super) of_auth: Vec<Problem>,
}

impl DoctorContext {
    /// Loads everything without starting or changing anything.
    pub(super) fn look(agent_dir: Option<&Path>, host: &Host) -> Result<Self, CommandFailure> {
        let folders = Folders::find(agent_dir, host)?;
        let services = Services::load(&ServiceOptions::new(host.clone(), &folders.agent_dir), &folders.cwd);
        let settings = services.settings().settings();
        let session_dir = open_log::session_folder(&CliOptions::default(), host)
            .or_else(|| open_log::folder_of_settings(&settings, host))
            .map_or_else(|| folders.agent_dir.join("sessions"), |dir| folders.cwd.join(dir));
        // Problems are collected later: all of them, including those that a start does not look for.
        let (registry, _) = ModelRegistry::load(&folders.agent_dir.join("models.json"));
        let (storage, of_auth) = AuthStorage::load(&folders.agent_dir.join("auth.json"));
        let registry = Arc::new(registry);
        let auth = RegistryAuth::new(Arc::clone(&registry), storage, None, host.clone());
        Ok(Self {
            project_dir: trust::project_dir(&folders.cwd, host.home()).filter(|dir| dir.is_dir()),
            host: host.clone(),
            folders,
            session_dir,
            services,
            registry,
            auth,
            of_auth,
        })
    }
}
