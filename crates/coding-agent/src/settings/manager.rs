//! Reading, changing and writing the settings of a user in a project.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pinch_stdx::host::{Env, Host};
use serde_json::{Map, Value};

use super::keys::{self, ValueType};
use super::layer::{Layer, SettingsProblem, SettingsScope, lay_over};
use super::values::Settings;
use super::write::{self, PendingValues};
use crate::document::{ChangeError, Problem};
use crate::resources::ScopeSettings;

/// Keys that can be set for a project.
const OF_PROJECTS: [&str; 5] = ["packages", "extensions", "skills", "prompts", "themes"];

/// The paths of the documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsFiles {
    /// The user's own.
    pub global: PathBuf,
    /// The project's; `None` if it is not trusted.
    pub project: Option<PathBuf>,
}

/// Why a setting could not be set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetError {
    /// The key does not exist.
    #[error("there is no setting \"{key}\"")]
    Unknown {
        /// The given key.
        key: String,
    },
    /// The value is invalid.
    #[error("the setting \"{key}\" must be {wanted}")]
    Wrong {
        /// The setting.
        key: String,
        /// The expected value.
        wanted: String,
    },
    /// The key is for user settings only.
    #[error("the setting \"{key}\" cannot be set for a project")]
    NotOfProjects {
        /// The setting.
        key: String,
    },
}

/// The settings of a user in a project. Clones share the same settings.
///
/// Changes apply immediately; [`SettingsManager::flush`] writes them. Other programs may write the same files, so only the changed keys are
/// updated in them.
#[derive(Clone, Debug)]
pub struct SettingsManager(Arc<SettingsShared>);

#[derive(Debug)]
struct SettingsShared {
    state: Mutex<SettingsState>,
    /// Serializes writes.
    writing: tokio::sync::Mutex<()>,
    host: Host,
}

#[derive(Debug)]
struct SettingsState {
    global: SettingsDocument,
    project: Option<SettingsDocument>,
    overrides: Map<String, Value>,
    /// The merged documents, with defaults.
    effective: Map<String, Value>,
    settings: Arc<Settings>,
    problems: Vec<SettingsProblem>,
}

/// A document, and its unwritten changes.
#[derive(Debug)]
struct SettingsDocument {
    layer: Layer,
    marks: PendingValues,
}

impl SettingsManager {
    /// Reads the documents. An unreadable one counts as empty, is reported by [`SettingsManager::drain_problems`], and is not written.
    pub fn load(files: &SettingsFiles, host: &Host) -> Self {
        let (global, broken) = Layer::read(&files.global);
        let manager = Self::of(global, None, host);
        manager.state().note_broken(SettingsScope::Global, broken);
        if let Some(project) = &files.project {
            manager.add_project(project);
        }
        manager
    }

    /// Reads a user's settings from an agent directory like [`SettingsManager::load`], without a project's.
    pub fn of_user(agent_dir: &Path, host: &Host) -> Self {
        Self::load(&SettingsFiles { global: agent_dir.join("settings.json"), project: None }, host)
    }

    /// Reads the document of a project that is now trusted, like [`SettingsManager::load`].
    pub(crate) fn add_project(&self, path: &Path) {
        let (layer, broken) = Layer::read(path);
        let mut state = self.state();
        let says_something = !layer.raw.is_empty();
        state.project = Some(SettingsDocument { layer, marks: PendingValues::new() });
        state.note_broken(SettingsScope::Project, broken);
        if says_something {
            let problems = state.merge(self.0.host.env());
            state.note(problems);
        }
    }

    /// Creates settings in memory.
    pub fn in_memory(global: Map<String, Value>, project: Map<String, Value>, host: &Host) -> Self {
        Self::of(Layer::in_memory(global), Some(Layer::in_memory(project)), host)
    }

    fn of(global: Layer, project: Option<Layer>, host: &Host) -> Self {
        let part = |layer| SettingsDocument { layer, marks: PendingValues::new() };
        let mut state = SettingsState {
            global: part(global),
            project: project.map(part),
            overrides: Map::new(),
            effective: Map::new(),
            settings: Arc::default(),
            problems: Vec::new(),
        };
        let problems = state.merge(host.env());
        state.note(problems);
        Self(Arc::new(SettingsShared {
            state: Mutex::new(state),
            writing: tokio::sync::Mutex::default(),
            host: host.clone(),
        }))
    }

    /// Returns the current merged settings.
    pub fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.state().settings)
    }

    /// Returns the resource settings in one document; relative paths refer to its directory.
    pub fn resources(&self, scope: SettingsScope) -> ScopeSettings {
        Settings::of(&self.document(scope)).resources
    }

    /// Returns the merged value of a key, e.g. `terminal.showImages`; includes unknown keys, which extensions may use.
    pub fn value(&self, key: &str) -> Option<Value> {
        keys::get(&self.state().effective, key).cloned()
    }

    /// Returns a document, migrated to the current format.
    pub fn document(&self, scope: SettingsScope) -> Map<String, Value> {
        let state = self.state();
        let part = match scope {
            SettingsScope::Global => Some(&state.global),
            SettingsScope::Project => state.project.as_ref(),
        };
        part.map(|part| part.layer.raw.clone()).unwrap_or_default()
    }

    /// Sets a user setting; `null` removes it. The project's value still takes precedence. Out-of-range numbers are clamped.
    ///
    /// # Errors
    /// [`SetError`]; nothing has changed.
    pub fn set(&self, key: &str, value: Value) -> Result<(), SetError> {
        self.set_in(SettingsScope::Global, key, &value)
    }

    /// Sets a project setting: only packages, extensions, skills, prompts and themes.
    ///
    /// # Errors
    /// [`SetError`]; nothing has changed.
    pub fn set_for_project(&self, key: &str, value: Value) -> Result<(), SetError> {
        let is_known = OF_PROJECTS.contains(&key) && self.state().project.is_some();
        if !is_known {
            return Err(SetError::NotOfProjects { key: key.to_owned() });
        }
        self.set_in(SettingsScope::Project, key, &value)
    }

    fn set_in(&self, scope: SettingsScope, key: &str, value: &Value) -> Result<(), SetError> {
        let marks = marks_of(key, value)?;
        let mut state = self.state();
        let Some(part) = state.part(scope) else { return Ok(()) };
        write::apply(&mut part.layer.raw, &marks);
        part.marks.extend(marks);
        state.merge(self.0.host.env());
        Ok(())
    }

    /// Overrides values of all documents, for this process only.
    pub fn apply_overrides(&self, overrides: &Map<String, Value>) {
        let mut state = self.state();
        lay_over(&mut state.overrides, overrides);
        state.merge(self.0.host.env());
    }

    /// Writes the changes. A document that cannot be written is reported by [`SettingsManager::drain_problems`], and its changes are
    /// retried next time. Dropping the future leaves every document intact.
    pub async fn flush(&self) {
        let _alone = self.0.writing.lock().await;
        for scope in [SettingsScope::Global, SettingsScope::Project] {
            self.flush_one(scope).await;
        }
    }

    async fn flush_one(&self, scope: SettingsScope) {
        let (path, marks) = {
            let mut state = self.state();
            let Some(part) = state.part(scope).filter(|part| !part.marks.is_empty()) else { return };
            let Some(path) = part.layer.path.clone() else {
                part.marks.clear();
                return;
            };
            (path, part.marks.clone())
        };
        let written = write::write(scope, &path, &marks, &self.0.host).await;
        let mut state = self.state();
        let Some(part) = state.part(scope) else { return };
        match written {
            Ok(raw) => {
                part.layer.raw = raw;
                part.layer.is_broken = false;
                part.marks.retain(|place, value| marks.get(place) != Some(value));
                // Reapply what was set meanwhile.
                write::apply(&mut part.layer.raw, &part.marks);
            }
            // This was reported when it was read.
            Err(ChangeError::Damaged(_)) if part.layer.is_broken => {}
            Err(error) => {
                part.layer.is_broken = matches!(error, ChangeError::Damaged(_));
                let problem = error.into_problem();
                state.note(vec![SettingsProblem { scope, problem, is_fatal: true }]);
            }
        }
        state.merge(self.0.host.env());
    }

    /// Writes changes and reloads the documents. An unreadable one keeps its old values.
    pub async fn reload(&self) {
        self.flush().await;
        let mut state = self.state();
        for scope in [SettingsScope::Global, SettingsScope::Project] {
            let Some(part) = state.part(scope) else { continue };
            let Some(path) = part.layer.path.clone() else { continue };
            let (layer, broken) = Layer::read(&path);
            if broken.is_some() {
                part.layer.is_broken = true;
                state.note_broken(scope, broken);
            } else {
                *part = SettingsDocument { layer, marks: PendingValues::new() };
            }
        }
        let problems = state.merge(self.0.host.env());
        state.note(problems);
    }

    /// Returns a document that is unreadable and mentions restrictions: without it, sessions could do more than allowed.
    pub fn unread_restriction(&self) -> Option<PathBuf> {
        let state = self.state();
        let layers = std::iter::once(&state.global).chain(&state.project).map(|part| &part.layer);
        layers.filter(|layer| layer.may_restrict).find_map(|layer| layer.path.clone())
    }

    /// Returns the problems with documents and with writing them, each once.
    pub fn drain_problems(&self) -> Vec<SettingsProblem> {
        std::mem::take(&mut self.state().problems)
    }

    fn state(&self) -> MutexGuard<'_, SettingsState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SettingsState {
    fn part(&mut self, scope: SettingsScope) -> Option<&mut SettingsDocument> {
        match scope {
            SettingsScope::Global => Some(&mut self.global),
            SettingsScope::Project => self.project.as_mut(),
        }
    }

    /// Merges the documents again. Returns invalid values in them.
    fn merge(&mut self, env: &Env) -> Vec<SettingsProblem> {
        let mut all = keys::defaults();
        lay_over(&mut all, &of_env(env));
        let (global, mut problems) = self.global.layer.checked(SettingsScope::Global);
        lay_over(&mut all, &global);
        if let Some(project) = &self.project {
            let (project, more) = project.layer.checked(SettingsScope::Project);
            problems.extend(more);
            lay_over(&mut all, &project);
        }
        let (overrides, _) = Layer::in_memory(self.overrides.clone()).checked(SettingsScope::Global);
        lay_over(&mut all, &overrides);
        if let Some(on) = flag_of(env, "TELEMETRY") {
            keys::put(&mut all, "enableInstallTelemetry", on.into());
        }
        self.settings = Arc::new(Settings::of(&all));
        self.effective = all;
        problems
    }

    /// Keeps problems until they are drained, each once.
    fn note(&mut self, problems: Vec<SettingsProblem>) {
        for problem in problems {
            if !self.problems.contains(&problem) {
                self.problems.push(problem);
            }
        }
    }

    fn note_broken(&mut self, scope: SettingsScope, broken: Option<Problem>) {
        self.note(broken.into_iter().map(|problem| SettingsProblem { scope, problem, is_fatal: true }).collect());
    }
}

/// Returns the paths that a value sets: its own, or those of a section's members.
fn marks_of(key: &str, value: &Value) -> Result<PendingValues, SetError> {
    if let Some(known) = keys::find(key) {
        let value = match value {
            Value::Null => Value::Null,
            value => known.value_type.write(value).map_err(|wanted| SetError::Wrong { key: key.to_owned(), wanted })?,
        };
        return Ok(PendingValues::from([(key.to_owned(), value)]));
    }
    let prefix = format!("{key}.");
    let members = value.as_object().filter(|_| keys::all().any(|known| known.path.starts_with(&prefix)));
    let Some(members) = members else { return Err(SetError::Unknown { key: key.to_owned() }) };
    let mut marks = PendingValues::new();
    for (name, value) in members {
        marks.extend(marks_of(&format!("{prefix}{name}"), value)?);
    }
    Ok(marks)
}

/// Returns values from the environment, which apply if no document sets them.
fn of_env(env: &Env) -> Map<String, Value> {
    let mut root = Map::new();
    for (variable, key) in [("HARDWARE_CURSOR", "showHardwareCursor"), ("CLEAR_ON_SHRINK", "terminal.clearOnShrink")] {
        debug_assert!(keys::find(key).is_some_and(|key| key.value_type == ValueType::Flag), "{key} is a flag");
        if of_name(env, variable) == Some("1") {
            keys::put(&mut root, key, true.into());
        }
    }
    root
}

/// Returns a variable by pinch's name, or else by pi's.
fn of_name<'a>(env: &'a Env, name: &str) -> Option<&'a str> {
    env.non_empty(&format!("PINCH_{name}")).or_else(|| env.non_empty(&format!("PI_{name}")))
}

fn flag_of(env: &Env, name: &str) -> Option<bool> {
    of_name(env, name).map(|word| ["1", "true", "yes"].contains(&word.to_lowercase().as_str()))
}
