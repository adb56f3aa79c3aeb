//! Packages: skills, prompts, themes and extensions that come together from npm, from git or from a directory.
//!
//! The settings of a user and of a project list them ([`PackageEntry`]); [`Packages`] knows where they lie and installs, removes and updates
//! them (feature `packages`; without it those that lie where they belong are used). Nothing is ever installed for a project that is not trusted, and no script of a package is run while it is installed.

use std::path::{Path, PathBuf};
use std::time::Duration;

#[cfg(feature = "packages")]
use pinch_stdx::cancel::Cancel;
use pinch_stdx::host::Host;
use serde_json::Value;

use crate::document::{self, ChangeError, Problem};

pub mod source;
mod list;
mod missing;
#[cfg(feature = "packages")]
pub mod version;
#[cfg(feature = "packages")]
mod run;
#[cfg(feature = "packages")]
mod git;
#[cfg(feature = "packages")]
mod npm;
#[cfg(feature = "packages")]
mod manage;
#[cfg(feature = "packages")]
mod install;

pub use list::{PackageEntry, PackageFilter, change_list};
#[cfg(feature = "packages")]
pub use manage::ConfiguredPackage;
pub use missing::Missing;
#[cfg(feature = "packages")]
pub use run::PackageToolError;
use source::{NpmSource, PackageSource, SourceError, absolute, without_passwords};

/// Whose settings name a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PackageScope {
    /// The user's.
    User,
    /// The project's.
    Project,
}

/// The directories of one user in one project, and what programs are started with.
#[derive(Clone, Debug)]
pub struct Packages {
    /// The environment of programs.
    pub host: Host,
    /// The working directory.
    pub cwd: PathBuf,
    /// The directory of the user's settings.
    pub agent_dir: PathBuf,
    /// The directory of the project's settings; it need not exist.
    pub project_dir: PathBuf,
    /// Whether the project's settings count.
    pub trusted: bool,
    /// The program that replaces `npm`, with its first arguments; `None`: `npm` itself.
    pub npm_command: Option<Vec<String>>,
    /// The longest time that one program may take.
    pub time_limit: Duration,
}

/// Why packages could not be changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PackageError {
    /// It names no package.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// There is nothing there.
    #[error("Path does not exist: {}", path.display())]
    MissingPath {
        /// The path.
        path: PathBuf,
    },
    /// Settings have no such package.
    #[error("No matching package found for {}{}", without_passwords(.source_text), did_you_mean(.similar.as_deref()))]
    NotFound {
        /// What was requested.
        source_text: String,
        /// What may have been meant.
        similar: Option<String>,
    },
    /// The project has to be trusted first.
    #[error(
        "This project is not trusted: its packages stay as they are. Use --approve for this command, or trust the project"
    )]
    Untrusted,
    /// The settings could not be changed.
    #[error(transparent)]
    Settings(#[from] ChangeError),
    /// A program failed.
    #[cfg(feature = "packages")]
    #[error(transparent)]
    Run(#[from] PackageToolError),
    /// A directory is a link to somewhere else; nothing was done there.
    #[error("{} is not beneath {}", path.display(), root.display())]
    Outside {
        /// The directory.
        path: PathBuf,
        /// Where it should be.
        root: PathBuf,
    },
    /// The disk refused.
    #[error("cannot write {}", path.display())]
    Io {
        /// What was to be written or removed.
        path: PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
}

fn did_you_mean(similar: Option<&str>) -> String {
    similar.map(|similar| format!(". Did you mean {}?", without_passwords(similar))).unwrap_or_default()
}

/// Where the package of a source lies once it is installed, beside the settings that name it.
pub fn place(source: &PackageSource, settings_dir: &Path, home: Option<&Path>) -> PathBuf {
    match source {
        PackageSource::Local(path) => absolute(path, settings_dir, home),
        PackageSource::Npm(NpmSource { name, .. }) => settings_dir.join("npm/node_modules").join(name),
        PackageSource::Git(git) => settings_dir.join("git").join(&git.host).join(&git.path),
    }
}

impl Packages {
    /// A user in a project, with `npm` and ten minutes for each program.
    pub fn new(host: Host, cwd: PathBuf, agent_dir: PathBuf, project_dir: PathBuf, trusted: bool) -> Self {
        let time_limit = Duration::from_secs(600);
        Self { host, cwd, agent_dir, project_dir, trusted, npm_command: None, time_limit }
    }

    /// The directory of the settings.
    pub fn settings_dir(&self, scope: PackageScope) -> &Path {
        match scope {
            PackageScope::User => &self.agent_dir,
            PackageScope::Project => &self.project_dir,
        }
    }

    /// The settings file.
    pub fn settings_file(&self, scope: PackageScope) -> PathBuf {
        self.settings_dir(scope).join("settings.json")
    }

    /// The packages that settings list. Those of a project that is not trusted do not count.
    pub fn entries(&self, scope: PackageScope) -> (Vec<PackageEntry>, Vec<Problem>) {
        if scope == PackageScope::Project && !self.trusted {
            return (Vec::new(), Vec::new());
        }
        let file = self.settings_file(scope);
        match document::read_object(&file) {
            Ok(object) => PackageEntry::list(object.get("packages").unwrap_or(&Value::Null), &file),
            Err(problem) => (Vec::new(), vec![problem]),
        }
    }

    /// Where the package of a source lies once it is installed.
    pub fn place(&self, source: &PackageSource, scope: PackageScope) -> PathBuf {
        place(source, self.settings_dir(scope), self.host.home())
    }

    #[cfg(feature = "packages")]
    fn npm_root(&self, scope: PackageScope) -> PathBuf {
        self.settings_dir(scope).join("npm")
    }

    #[cfg(feature = "packages")]
    fn git_root(&self, scope: PackageScope) -> PathBuf {
        self.settings_dir(scope).join("git")
    }

    fn identity(&self, source: &PackageSource, base: &Path) -> String {
        source.identity(base, self.host.home())
    }

    #[cfg(feature = "packages")]
    fn runner<'a>(&'a self, cancel: &'a Cancel) -> run::PackageTools<'a> {
        run::PackageTools { host: &self.host, cancel, time_limit: self.time_limit }
    }
}
