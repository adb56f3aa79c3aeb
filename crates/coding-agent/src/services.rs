//! Services: what the sessions of a working directory share, such as settings, models, credentials and resources.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pinch_agent_core::queue::{QueueKind, QueueMode};
use pinch_llm::ids::ProviderId;
use pinch_llm::model::Model;
use pinch_stdx::host::Host;
use pinch_stdx::secret::Secret;
use serde_json::{Map, Value, json};

use crate::auth::AuthStorage;
use crate::document::{ChangeError, Problem};
use crate::extension::Extensions;
use crate::models::{ModelRegistry, RegistryAuth};
use crate::resources::sandboxed;
use crate::resources::themes::Theme;
use crate::resources::trust::{TrustDecision, TrustStore};
use crate::resources::{Commands, ExtraPaths, ResourceLoader, Resources};
use crate::settings::SettingsManager;
use crate::tools::file_queue::FileQueue;

mod options;
mod directory;
mod installing;

pub use directory::DirectorySettings;
pub use options::{Announce, ResourceOptions, ResourceSource, ServiceOptions};

/// What the sessions of a working directory share.
pub struct Services {
    directory: DirectorySettings,
    models: Arc<ModelRegistry>,
    auth: Arc<RegistryAuth>,
    resources: Mutex<ResourceLoader>,
    /// Serializes changes to each file across sessions.
    files: FileQueue,
    problems: Mutex<Vec<String>>,
}

impl Services {
    /// Loads everything for a working directory. Problems in documents are not fatal: see [`Services::take_problems`].
    pub fn load(options: &ServiceOptions, cwd: &Path) -> Self {
        Self::load_with(options, || DirectorySettings::read(options, cwd))
    }

    /// Like [`Services::load`], with settings already read, and the problems found in them.
    pub fn load_directory(directory: DirectorySettings, problems: Vec<String>) -> Self {
        let options = directory.options.clone();
        Self::load_with(&options, || (directory, problems))
    }

    fn load_with(options: &ServiceOptions, directory: impl FnOnce() -> (DirectorySettings, Vec<String>)) -> Self {
        let models_json = options.agent_dir.as_ref().map(|dir| dir.join("models.json"));
        let file = match (&options.models, models_json) {
            (Some(given), _) => return Self::load_beside(directory, || (given.clone(), Vec::new())),
            (None, None) => return Self::load_beside(directory, || (ModelRegistry::builtin(), Vec::new())),
            (None, Some(file)) => file,
        };
        let read_models = || ModelRegistry::load(&file);
        // A long document takes as long as everything else together; a short one is not worth a thread.
        if !is_long(&file) {
            return Self::load_beside(directory, read_models);
        }
        std::thread::scope(|threads| {
            let models = threads.spawn(read_models);
            Self::load_beside(directory, || models.join().unwrap_or_else(|why| std::panic::resume_unwind(why)))
        })
    }

    /// Loads everything except the models, which are needed last.
    fn load_beside(
        directory: impl FnOnce() -> (DirectorySettings, Vec<String>),
        models: impl FnOnce() -> (ModelRegistry, Vec<Problem>),
    ) -> Self {
        let (directory, mut problems) = directory();
        let options = &directory.options;
        let resources = load_resources(&directory);
        let (storage, of_auth) = match (&options.auth, &options.agent_dir) {
            (Some(given), _) => (given.clone(), given.drain_problems()),
            (None, Some(dir)) => AuthStorage::load(&dir.join("auth.json")),
            (None, None) => (AuthStorage::in_memory(Map::new()), Vec::new()),
        };
        let (models, of_models) = models();
        problems.extend(of_models.iter().chain(&of_auth).map(ToString::to_string));
        let models = Arc::new(models);
        let auth = Arc::new(RegistryAuth::new(Arc::clone(&models), storage, None, options.host.clone()));
        problems.extend(resources.resources().diagnostics.iter().map(ToString::to_string));
        Self {
            directory,
            models,
            auth,
            resources: Mutex::new(resources),
            files: FileQueue::default(),
            problems: Mutex::new(problems),
        }
    }

    /// Returns whether to ask extensions about trusting the project: it has resources that require trust, and there is no decision yet for
    /// this run.
    pub(crate) fn needs_trust(&self) -> bool {
        self.directory.options.trust.is_none() && self.directory.project.needs_trust()
    }

    /// Stores a decision about the project of this directory in `trust.json`. Takes effect when everything is reloaded.
    ///
    /// # Errors
    /// [`ChangeError`]; nothing was written. Without an agent directory nothing is written either.
    pub(crate) fn remember_trust(&self, trusted: bool) -> Result<(), ChangeError> {
        let Some(dir) = self.agent_dir() else { return Ok(()) };
        let (mut store, _) = TrustStore::load(&dir.join("trust.json"));
        sandboxed::note_decision(dir, self.cwd(), self.host())?;
        store.decide(self.cwd(), Some(trusted), self.host())
    }

    /// Reloads everything with a decision about the project, optionally storing it; a failure to store it is reported as a problem.
    pub(crate) async fn decided(mut self, trusted: bool, remember: bool) -> Self {
        let kept = if remember { self.remember_trust(trusted) } else { Ok(()) };
        let decided = if self.trust().is_trusted() == trusted {
            self.directory.trust = TrustDecision::Decided(trusted);
            self
        } else {
            let DirectorySettings { options, cwd, .. } = self.directory;
            Self::load_installing(&ServiceOptions { trust: Some(trusted), ..options }, &cwd).await
        };
        if let Err(error) = kept {
            decided.report([error.to_string()]);
        }
        decided
    }

    /// Adds an API key for one provider, which is not stored.
    #[must_use]
    pub fn with_key(self, provider: ProviderId, key: Secret) -> Self {
        let storage = self.auth.storage().clone();
        let auth = RegistryAuth::new(Arc::clone(&self.models), storage, Some((provider, key)), self.host().clone());
        Self { auth: Arc::new(auth), ..self }
    }

    /// Returns the host.
    pub fn host(&self) -> &Host {
        &self.directory.options.host
    }

    /// Returns the working directory.
    pub fn cwd(&self) -> &Path {
        &self.directory.cwd
    }

    /// Returns the directory of the user's files, if there is one.
    pub fn agent_dir(&self) -> Option<&Path> {
        self.directory.options.agent_dir.as_deref()
    }

    /// Returns the settings.
    pub fn settings(&self) -> &SettingsManager {
        &self.directory.settings
    }

    /// Returns all models.
    pub fn models(&self) -> &Arc<ModelRegistry> {
        &self.models
    }

    /// Returns the credentials for the models.
    pub fn auth(&self) -> &Arc<RegistryAuth> {
        &self.auth
    }

    fn loader(&self) -> MutexGuard<'_, ResourceLoader> {
        self.resources.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the current instructions, skills, prompts and themes.
    pub fn resources(&self) -> Arc<Resources> {
        Arc::clone(self.loader().resources())
    }

    /// Loads the resources of extensions, replacing earlier ones. New problems are added to the others.
    pub fn extend_resources(&self, paths: Vec<ExtraPaths>) {
        let (before, now) = {
            let mut loader = self.loader();
            let before = Arc::clone(loader.resources());
            loader.extend_resources(paths);
            (before, Arc::clone(loader.resources()))
        };
        let new = now.diagnostics.iter().filter(|problem| !before.diagnostics.contains(problem));
        self.report(new.map(ToString::to_string));
    }

    /// Returns the slash commands, including skills unless the settings disable that.
    pub fn slash_commands(&self) -> Commands {
        let mut commands = self.resources().commands.clone();
        if !self.directory.settings.settings().skill_commands {
            commands.skills.clear();
        }
        commands
    }

    /// Returns the trust decision for the project.
    pub fn trust(&self) -> TrustDecision {
        self.directory.trust
    }

    /// Returns the queue that serializes changes to each file.
    pub fn files(&self) -> &FileQueue {
        &self.files
    }

    /// Returns and clears the problems found in documents, as sentences for people.
    pub fn take_problems(&self) -> Vec<String> {
        std::mem::take(&mut *self.known_problems())
    }

    /// Returns the problems found in documents, without clearing them.
    pub fn problems(&self) -> Vec<String> {
        self.known_problems().clone()
    }

    /// Adds problems.
    fn report(&self, problems: impl IntoIterator<Item = String>) {
        self.problems.lock().unwrap_or_else(PoisonError::into_inner).extend(problems);
    }

    fn known_problems(&self) -> MutexGuard<'_, Vec<String>> {
        let mut problems = self.problems.lock().unwrap_or_else(PoisonError::into_inner);
        problems.extend(self.models.take_new_problems().iter().map(ToString::to_string));
        problems
    }

    /// Returns the models of providers with credentials, in the registry's order.
    pub fn available_models(&self) -> Vec<Arc<Model>> {
        self.models.available(&|provider| self.auth.is_configured(provider))
    }

    /// Returns the slash commands for clients: commands of extensions, then prompt templates, then skills.
    pub fn commands(&self, extensions: &Extensions) -> Vec<Value> {
        let (commands, resources) = (self.slash_commands(), self.resources());
        let one = |name: String, description: &str, source: &str, info: Value| {
            let mut command = json!({"name": name, "description": description, "source": source, "sourceInfo": info});
            if description.is_empty()
                && let Some(members) = command.as_object_mut()
            {
                members.shift_remove("description");
            }
            command
        };
        let templates = commands
            .templates
            .iter()
            .map(|template| one(template.name.clone(), &template.description, "prompt", template.info.to_value()));
        let skills = commands
            .skills
            .iter()
            .map(|skill| one(format!("skill:{}", skill.name), &skill.description, "skill", skill.info.to_value()));
        let of_extensions = extensions.commands().into_iter().map(|found| {
            let entry = resources.extensions.iter().find(|entry| *entry.path.to_string_lossy() == *found.extension);
            let info = entry.map_or_else(|| own_extension(&found.extension), |entry| entry.info.to_value());
            one(found.name.clone(), found.command.description().unwrap_or_default(), "extension", info)
        });
        of_extensions.chain(templates).chain(skills).collect()
    }

    /// Returns the theme for exported pages: the configured one, or else the dark one.
    pub fn theme(&self) -> Option<Theme> {
        let named = self.directory.settings.value("theme");
        let resources = self.resources();
        let themes = &resources.themes;
        let find = |name: &str| themes.iter().find(|theme| theme.name == name);
        named.as_ref().and_then(Value::as_str).and_then(find).or_else(|| find("dark")).or(themes.first()).cloned()
    }

    /// Stores how many queued messages are taken at a time.
    pub fn remember_queue_mode(&self, kind: QueueKind, mode: QueueMode) {
        let key = match kind {
            QueueKind::Steering => "steeringMode",
            QueueKind::FollowUp => "followUpMode",
        };
        self.remember(key, mode.as_str().into());
    }

    /// Stores whether conversations are compacted automatically.
    pub fn remember_auto_compaction(&self, on: bool) {
        self.remember("compaction.enabled", on.into());
    }

    /// Stores whether failed answers are retried.
    pub fn remember_auto_retry(&self, on: bool) {
        self.remember("retry.enabled", on.into());
    }

    /// Returns the maximum retries of a failed answer, if retries are enabled.
    pub fn retry_limit(&self) -> u32 {
        self.directory.settings.settings().retry_limit
    }

    /// Writes changed settings.
    ///
    /// # Errors
    /// Describes why they could not be written; they apply to this run nevertheless.
    pub async fn write_settings(&self) -> Result<(), String> {
        self.directory.settings.flush().await;
        let problems = self.directory.settings.drain_problems();
        let (unwritten, others): (Vec<_>, Vec<_>) = problems.iter().partition(|problem| problem.is_fatal);
        self.report(others.into_iter().map(ToString::to_string));
        match unwritten.first() {
            Some(problem) => Err(problem.to_string()),
            None => Ok(()),
        }
    }

    /// Sets a value, to be written by [`SettingsManager::flush`]; an invalid one is reported as a problem.
    fn remember(&self, key: &str, value: Value) {
        if let Err(error) = self.directory.settings.set(key, value) {
            self.report([error.to_string()]);
        }
    }

    /// Writes changed settings and waits for pending login refreshes. Call it before the program exits.
    pub async fn settle(&self) {
        use crate::auth::RequestAuth as _;
        self.directory.settings.flush().await;
        self.auth.settle().await;
        let problems = self.directory.settings.drain_problems();
        self.report(problems.iter().map(ToString::to_string));
    }
}

impl fmt::Debug for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Services")
            .field("cwd", &self.directory.cwd)
            .field("agent_dir", &self.directory.options.agent_dir)
            .finish_non_exhaustive()
    }
}

/// Returns whether reading a document is worth another thread.
fn is_long(document: &Path) -> bool {
    std::fs::metadata(document).is_ok_and(|meta| meta.len() > 512 * 1024)
}

fn load_resources(directory: &DirectorySettings) -> ResourceLoader {
    let options = match &directory.options.resources {
        ResourceSource::Given(loader) => return (**loader).clone(),
        ResourceSource::Discover(options) => options,
    };
    let names = options.skill_names.clone();
    let adjust = move |resources: &mut Resources| {
        if let Some(names) = &names {
            resources.commands.skills.retain(|skill| names.iter().any(|name| fits(name, &skill.name)));
        }
    };
    ResourceLoader::load_with(directory.resource_inputs(options), Some(Arc::new(adjust)))
}

/// Returns the source info of an extension that is a value of the program.
fn own_extension(name: &str) -> Value {
    json!({"path": format!("<{name}>"), "source": "sdk", "scope": "temporary", "origin": "top-level"})
}

/// Returns whether a name matches a pattern with `*`.
fn fits(pattern: &str, name: &str) -> bool {
    globset::Glob::new(pattern).is_ok_and(|glob| glob.compile_matcher().is_match(name)) || pattern == name
}
