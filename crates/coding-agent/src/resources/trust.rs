//! Project trust: whether a project's own settings, skills, prompts, themes, extensions and packages are used.
//!
//! They can make the agent run programs, so they are ignored until the user trusts the project. Context files are always used, since they
//! are data.

use std::path::{Path, PathBuf};

use pinch_stdx::fs::Access;
use pinch_stdx::host::Host;
use serde_json::{Map, Value};

use crate::document::{self, ChangeError, Problem, change_object};

/// Names in a project's settings directory that require trust.
pub(super) const IN_PROJECT_DIR: [&str; 8] =
    ["settings.json", "mcp.json", "extensions", "skills", "prompts", "themes", "SYSTEM.md", "APPEND_SYSTEM.md"];

/// The user's decisions about which projects to trust.
#[derive(Clone, Debug, Default)]
pub struct TrustStore {
    /// The file with the decisions; `None` keeps them in memory.
    path: Option<PathBuf>,
    entries: Map<String, Value>,
    /// A directory whose decision does not count, because it changed.
    doubted: Option<PathBuf>,
}

impl TrustStore {
    /// Creates an empty store in memory.
    pub fn in_memory() -> Self {
        Self::default()
    }

    /// Loads a `trust.json`. A damaged file counts as empty and is reported.
    pub fn load(path: &Path) -> (Self, Vec<Problem>) {
        let (entries, problems) = match document::read_object(path) {
            Ok(entries) => (entries, Vec::new()),
            Err(problem) => (Map::new(), vec![problem]),
        };
        (Self { path: Some(path.to_owned()), entries, doubted: None }, problems)
    }

    /// Returns the decision for a directory, or that of its nearest parent. Links in the path are resolved first.
    pub fn decision(&self, folder: &Path) -> Option<bool> {
        self.nearest(&real(folder))
    }

    /// Returns the nearest decision from a directory upwards, whose path has no links.
    fn nearest(&self, real: &Path) -> Option<bool> {
        if self.doubts(real) {
            return None;
        }
        real.ancestors().find_map(|folder| decided(self.entries.get(&*folder.to_string_lossy())?))
    }

    fn doubts(&self, real: &Path) -> bool {
        self.doubted.as_deref() == Some(real)
    }

    /// Ignores the decision about a directory, until there is a new one.
    pub(super) fn doubt(&mut self, real: &Path) {
        self.doubted = Some(real.to_owned());
    }

    /// Stores a decision about a directory; `None` removes an earlier one. The file is re-read first, its other content is kept, and only
    /// the user can read it.
    ///
    /// # Errors
    /// [`ChangeError`]; nothing was written.
    pub fn decide(&mut self, folder: &Path, trusted: Option<bool>, host: &Host) -> Result<(), ChangeError> {
        let key = real(folder).to_string_lossy().into_owned();
        let mut kept = self.entries.clone();
        match &self.path {
            None => set(&mut kept, key, trusted, host),
            Some(path) => {
                change_object(path, Access::Private, host, |entries| {
                    set(entries, key, trusted, host);
                    kept.clone_from(entries);
                    Ok(true)
                })?;
            }
        }
        self.entries = kept;
        self.doubted = None;
        Ok(())
    }
}

fn set(entries: &mut Map<String, Value>, key: String, trusted: Option<bool>, host: &Host) {
    match trusted {
        None => drop(entries.shift_remove(&key)),
        Some(trusted) => match entries.get_mut(&key) {
            // An entry may be an object with members of other programs, which are kept.
            Some(Value::Object(members)) if members.contains_key("trusted") => {
                members.insert("trusted".into(), trusted.into());
                members.insert("at".into(), host.now_iso().into());
            }
            _ => drop(entries.insert(key, trusted.into())),
        },
    }
}

/// Returns the decision in an entry: `true`, `false`, or an object with `trusted`; `null` is no decision.
fn decided(entry: &Value) -> Option<bool> {
    entry.as_bool().or_else(|| entry.get("trusted")?.as_bool())
}

fn real(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Returns a project's settings directory: `.pinch` if it exists, or else `.pi`. The user's home directory is not a project.
pub fn project_dir(cwd: &Path, home: Option<&Path>) -> Option<PathBuf> {
    settings_dir(cwd, &real(cwd), home)
}

fn settings_dir(cwd: &Path, real_cwd: &Path, home: Option<&Path>) -> Option<PathBuf> {
    if home.is_some_and(|home| home == cwd || real(home) == real_cwd) {
        return None;
    }
    let own = cwd.join(".pinch");
    Some(if own.is_dir() { own } else { cwd.join(".pi") })
}

/// The project resources of a working directory and its parents, as of the last inspection. Inspecting takes many system calls, so it is
/// done once and the result is passed on.
#[derive(Clone, Debug)]
pub struct Project {
    real_cwd: PathBuf,
    dir: Option<PathBuf>,
    repositories: Vec<PathBuf>,
    agents_skills: Vec<PathBuf>,
    needs_trust: bool,
}

impl Project {
    /// Creates a project that is not inspected: without settings, repository or skills.
    pub fn none(cwd: &Path) -> Self {
        let (repositories, agents_skills) = (Vec::new(), Vec::new());
        Self { real_cwd: cwd.to_owned(), dir: None, repositories, agents_skills, needs_trust: false }
    }

    /// Inspects a project on disk.
    pub fn look(cwd: &Path, home: Option<&Path>) -> Self {
        let real_cwd = real(cwd);
        let dir = settings_dir(cwd, &real_cwd, home);
        let has_git = |folder: &&Path| folder.join(".git").symlink_metadata().is_ok();
        let repositories: Vec<PathBuf> = cwd.ancestors().filter(has_git).map(Path::to_owned).collect();
        let agents_skills = agents_skills(cwd, repositories.first().map(PathBuf::as_path), home);
        let has = |dir: &Path| IN_PROJECT_DIR.iter().any(|name| dir.join(name).symlink_metadata().is_ok());
        let needs_trust = !agents_skills.is_empty() || dir.as_deref().is_some_and(|dir| dir.is_dir() && has(dir));
        Self { real_cwd, dir, repositories, agents_skills, needs_trust }
    }

    /// Returns the working directory with links resolved; unchanged if it does not exist.
    pub fn real_cwd(&self) -> &Path {
        &self.real_cwd
    }

    /// Returns the settings directory, which need not exist; see [`project_dir`].
    pub fn dir(&self) -> Option<&Path> {
        self.dir.as_deref()
    }

    /// Returns the directories with a `.git`, from the working directory up to the root of the file system.
    pub fn repositories(&self) -> &[PathBuf] {
        &self.repositories
    }

    /// Returns the `.agents/skills` directories of the working directory and its parents, up to the root of the repository or the file
    /// system, except the user's own.
    pub fn agents_skills(&self) -> &[PathBuf] {
        &self.agents_skills
    }

    /// Returns whether the project has anything that requires trust.
    pub fn needs_trust(&self) -> bool {
        self.needs_trust
    }
}

fn agents_skills(cwd: &Path, repository: Option<&Path>, home: Option<&Path>) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in cwd.ancestors() {
        let skills = folder.join(".agents/skills");
        if skills.is_dir() {
            found.push(skills);
        }
        if Some(folder) == repository {
            break;
        }
    }
    if !found.is_empty()
        && let Some(of_user) = home.map(|home| real(&home.join(".agents/skills")))
    {
        found.retain(|skills| real(skills) != of_user);
    }
    found
}

/// The default for projects without a decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DefaultTrust {
    /// Ask the user; without one, do not trust.
    #[default]
    Ask,
    /// Trust.
    Always,
    /// Do not trust.
    Never,
}

impl DefaultTrust {
    /// Parses the setting `defaultProjectTrust`.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "ask" => Some(Self::Ask),
            "always" => Some(Self::Always),
            "never" => Some(Self::Never),
            _ => None,
        }
    }
}

/// The inputs of a trust decision.
#[derive(Clone, Copy, Debug)]
pub struct TrustInputs<'a> {
    /// The project.
    pub project: &'a Project,
    /// The command line's decision.
    pub given: Option<bool>,
    /// An extension's decision.
    pub extension: Option<bool>,
    /// The default.
    pub default: DefaultTrust,
}

/// Whether a project is trusted, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TrustDecision {
    /// The project has nothing that requires trust.
    NotNeeded,
    /// The project is trusted or not.
    Decided(bool),
    /// There is no decision yet: ask, or treat as untrusted.
    Ask,
}

impl TrustDecision {
    /// Returns whether the project is trusted without asking.
    pub fn is_trusted(self) -> bool {
        matches!(self, Self::NotNeeded | Self::Decided(true))
    }
}

/// Decides by the command line, then an extension, then a stored decision, then the user's default. A stored refusal applies even if
/// nothing requires trust yet.
pub fn decide(question: &TrustInputs<'_>, store: &TrustStore) -> TrustDecision {
    let explicit = question.given.or(question.extension);
    if let Some(trusted) = explicit.or_else(|| store.nearest(&question.project.real_cwd)) {
        return TrustDecision::Decided(trusted);
    }
    if !question.project.needs_trust {
        return TrustDecision::NotNeeded;
    }
    match question.default {
        _ if store.doubts(&question.project.real_cwd) => TrustDecision::Ask,
        DefaultTrust::Ask => TrustDecision::Ask,
        DefaultTrust::Always => TrustDecision::Decided(true),
        DefaultTrust::Never => TrustDecision::Decided(false),
    }
}
