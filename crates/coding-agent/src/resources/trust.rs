//! Whether a project's own settings, skills, prompts, themes, extensions and packages count.
//!
//! They can make the agent run programs, so they do not count until the user says so. Context files always count: they are data.

use std::path::{Path, PathBuf};

use pinch_stdx::fs::Access;
use pinch_stdx::host::Host;
use serde_json::{Map, Value};

use crate::document::{self, ChangeError, Problem, change_object};

/// Names in a project's settings directory that make the question necessary.
const IN_PROJECT_DIR: [&str; 8] =
    ["settings.json", "mcp.json", "extensions", "skills", "prompts", "themes", "SYSTEM.md", "APPEND_SYSTEM.md"];

/// The user's decisions about which projects are trusted.
#[derive(Clone, Debug, Default)]
pub struct TrustStore {
    /// The file the decisions are kept in; `None`: in memory only.
    path: Option<PathBuf>,
    entries: Map<String, Value>,
}

impl TrustStore {
    /// An empty store that is kept in memory only.
    pub fn in_memory() -> Self {
        Self::default()
    }

    /// Reads a `trust.json`. A damaged file counts as empty and is reported.
    pub fn load(path: &Path) -> (Self, Vec<Problem>) {
        let (entries, problems) = match document::read_object(path) {
            Ok(entries) => (entries, Vec::new()),
            Err(problem) => (Map::new(), vec![problem]),
        };
        (Self { path: Some(path.to_owned()), entries }, problems)
    }

    /// The decision about a directory: its own, else that of the nearest directory above it. Links in the path are followed first.
    pub fn decision(&self, folder: &Path) -> Option<bool> {
        self.nearest(&real(folder))
    }

    /// The nearest decision from a directory up, of which the path has no links.
    fn nearest(&self, real: &Path) -> Option<bool> {
        real.ancestors().find_map(|folder| decided(self.entries.get(&*folder.to_string_lossy())?))
    }

    /// Stores a decision about a directory; `None` removes an earlier one. The file is read again first, everything else in it is kept, and
    /// only the user can read it.
    ///
    /// # Errors
    /// [`ChangeError`]; nothing was written then.
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
        Ok(())
    }
}

fn set(entries: &mut Map<String, Value>, key: String, trusted: Option<bool>, host: &Host) {
    match trusted {
        None => drop(entries.shift_remove(&key)),
        Some(trusted) => match entries.get_mut(&key) {
            // An entry may be an object with members of other programs: those are kept.
            Some(Value::Object(members)) if members.contains_key("trusted") => {
                members.insert("trusted".into(), trusted.into());
                members.insert("at".into(), host.now_iso().into());
            }
            _ => drop(entries.insert(key, trusted.into())),
        },
    }
}

/// What an entry says: `true`, `false`, or an object with `trusted`; `null` says nothing.
fn decided(entry: &Value) -> Option<bool> {
    entry.as_bool().or_else(|| entry.get("trusted")?.as_bool())
}

fn real(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// The directory of a project's settings: `.pinch` when it is there, else `.pi`. The user's home directory is not a project.
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

/// What a working directory and the directories above it have of their own, as of the last check. Looking takes many questions to the
/// system, so it is done once and the answer is handed on.
#[derive(Clone, Debug)]
pub struct Project {
    real_cwd: PathBuf,
    dir: Option<PathBuf>,
    repositories: Vec<PathBuf>,
    agents_skills: Vec<PathBuf>,
    needs_trust: bool,
}

impl Project {
    /// A working directory of which nothing is looked up: it has no settings, no repository and no skills of its own.
    pub fn none(cwd: &Path) -> Self {
        let (repositories, agents_skills) = (Vec::new(), Vec::new());
        Self { real_cwd: cwd.to_owned(), dir: None, repositories, agents_skills, needs_trust: false }
    }

    /// Looks the project up on disk.
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

    /// The working directory, without links in its path; as it is when it is not there.
    pub fn real_cwd(&self) -> &Path {
        &self.real_cwd
    }

    /// The directory of its settings, which need not be there; see [`project_dir`].
    pub fn dir(&self) -> Option<&Path> {
        self.dir.as_deref()
    }

    /// The directories that have a `.git`, from the working directory up to the root of the file system.
    pub fn repositories(&self) -> &[PathBuf] {
        &self.repositories
    }

    /// The directories `.agents/skills` of the working directory and of those above it, up to the root of its repository, or of the file system.
    /// Those of the user are none of them.
    pub fn agents_skills(&self) -> &[PathBuf] {
        &self.agents_skills
    }

    /// Whether it has anything that counts only when it is trusted.
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

/// What holds for projects about which nothing was decided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DefaultTrust {
    /// The user is asked; without a user to ask the answer is no.
    #[default]
    Ask,
    /// They are trusted.
    Always,
    /// They are not.
    Never,
}

impl DefaultTrust {
    /// The setting `defaultProjectTrust`.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "ask" => Some(Self::Ask),
            "always" => Some(Self::Always),
            "never" => Some(Self::Never),
            _ => None,
        }
    }
}

/// What a decision is made from.
#[derive(Clone, Copy, Debug)]
pub struct TrustQuestion<'a> {
    /// The project.
    pub project: &'a Project,
    /// What the command line says.
    pub given: Option<bool>,
    /// What an extension says.
    pub extension: Option<bool>,
    /// What holds otherwise.
    pub default: DefaultTrust,
}

/// Whether a project is trusted, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TrustDecision {
    /// It has nothing that would need it.
    NotNeeded,
    /// Its own things count, or do not.
    Decided(bool),
    /// No one has decided yet: ask, or take it for a no.
    Ask,
}

impl TrustDecision {
    /// The answer without a user to ask.
    pub fn is_trusted(self) -> bool {
        matches!(self, Self::NotNeeded | Self::Decided(true))
    }
}

/// Decides: the command line, then an extension, then what was decided before, then the user's default. A kept no stands also where nothing
/// needs trust yet.
pub fn decide(question: &TrustQuestion<'_>, store: &TrustStore) -> TrustDecision {
    let said = question.given.or(question.extension);
    if let Some(trusted) = said.or_else(|| store.nearest(&question.project.real_cwd)) {
        return TrustDecision::Decided(trusted);
    }
    if !question.project.needs_trust {
        return TrustDecision::NotNeeded;
    }
    match question.default {
        DefaultTrust::Ask => TrustDecision::Ask,
        DefaultTrust::Always => TrustDecision::Decided(true),
        DefaultTrust::Never => TrustDecision::Decided(false),
    }
}
