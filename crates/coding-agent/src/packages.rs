//! Packages: skills, prompts, themes and extensions distributed together through npm, git or a directory.
//!
//! The settings of a user and of a project list them ([`PackageEntry`]); [`Packages`] locates, installs, removes and updates them (feature
//! `packages`; without it, only packages already in place are used). Nothing is ever installed for an untrusted project, and no package
//! script runs during installation.

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

/// Whose settings list a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PackageScope {
    /// The user's.
    User,
    /// The project's.
    Project,
}

/// The package directories of a user and a project, and how to run the tools.
#[derive(Clone, Debug)]
pub struct Packages {
    /// Environment of the tools.
    pub host: Host,
    /// The working directory.
    pub cwd: PathBuf,
    /// The directory of the user's settings.
    pub agent_dir: PathBuf,
    /// The directory of the project's settings, which need not exist.
    pub project_dir: PathBuf,
    /// Whether the project's settings apply.
    pub trusted: bool,
    /// Replacement for `npm`, with its first arguments; `None` uses `npm`.
    pub npm_command: Option<Vec<String>>,
    /// Timeout of each tool run.
    pub time_limit: Duration,
}

/// Why packages could not be changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PackageError {
    /// The source is invalid.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The path does not exist.
    #[error("Path does not exist: {}", path.display())]
    MissingPath {
        /// The path.
        path: PathBuf,
    },
    /// The package is not in the settings.
    #[error("No matching package found for {}{}", without_passwords(.source_text), did_you_mean(.similar.as_deref()))]
    NotFound {
        /// The requested source.
        source_text: String,
        /// A similar source that may have been meant.
        similar: Option<String>,
    },
    /// The project must be trusted first.
    #[error(
        "This project is not trusted, so its packages are left unchanged. Use --approve for this command, or trust the project"
    )]
    Untrusted,
    /// The settings could not be changed.
    #[error(transparent)]
    Settings(#[from] ChangeError),
    /// A tool failed.
    #[cfg(feature = "packages")]
    #[error(transparent)]
    Run(#[from] PackageToolError),
    /// A directory is a link to an outside location; nothing was changed.
    #[error("{} is not beneath {}", path.display(), root.display())]
    Outside {
        /// The directory.
        path: PathBuf,
        /// The expected parent directory.
        root: PathBuf,
    },
    /// An I/O operation failed.
    #[error("cannot write {}", path.display())]
    Io {
        /// The path to write or remove.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
}

fn did_you_mean(similar: Option<&str>) -> String {
    similar.map(|similar| format!(". Did you mean {}?", without_passwords(similar))).unwrap_or_default()
}

/// Returns the directory of an installed package, relative to the settings that list it.
pub fn place(source: &PackageSource, settings_dir: &Path, home: Option<&Path>) -> PathBuf {
    match source {
        PackageSource::Local(path) => absolute(path, settings_dir, home),
        PackageSource::Npm(NpmSource { name, .. }) => settings_dir.join("npm/node_modules").join(name),
        PackageSource::Git(git) => settings_dir.join("git").join(&git.host).join(&git.path),
    }
}

impl Packages {
    /// Creates a manager for a user and a project, with `npm` and a timeout of ten minutes per run.
    pub fn new(host: Host, cwd: PathBuf, agent_dir: PathBuf, project_dir: PathBuf, trusted: bool) -> Self {
        let time_limit = Duration::from_secs(600);
        Self { host, cwd, agent_dir, project_dir, trusted, npm_command: None, time_limit }
    }

    /// Returns the directory of the settings.
    pub fn settings_dir(&self, scope: PackageScope) -> &Path {
        match scope {
            PackageScope::User => &self.agent_dir,
            PackageScope::Project => &self.project_dir,
        }
    }

    /// Returns the path of the settings file.
    pub fn settings_file(&self, scope: PackageScope) -> PathBuf {
        self.settings_dir(scope).join("settings.json")
    }

    /// Returns the packages listed in the settings. Those of an untrusted project are ignored.
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

    /// Returns the directory of an installed package.
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
