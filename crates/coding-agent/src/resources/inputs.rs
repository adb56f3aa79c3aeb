//! The inputs of resource loading, as plain values.

use std::path::{Path, PathBuf};

use super::info::ResourceKind;
use super::trust::Project;
use crate::packages::PackageEntry;

/// Resource settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceSettings {
    /// Settings of the user.
    pub user: ScopeSettings,
    /// Settings of the project, used only if it is trusted.
    pub project: ScopeSettings,
}

/// The resource settings of one scope: packages, and paths and overrides by type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScopeSettings {
    /// `packages`.
    pub packages: Vec<PackageEntry>,
    /// `extensions`.
    pub extensions: Vec<String>,
    /// `skills`.
    pub skills: Vec<String>,
    /// `prompts`.
    pub prompts: Vec<String>,
    /// `themes`.
    pub themes: Vec<String>,
}

impl ScopeSettings {
    pub(super) fn of(&self, kind: ResourceKind) -> &[String] {
        pick(kind, [&self.extensions, &self.skills, &self.prompts, &self.themes])
    }
}

/// Paths from the command line, which take precedence over everything else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandLinePaths {
    /// `--extension`.
    pub extensions: Vec<String>,
    /// `--skill`.
    pub skills: Vec<String>,
    /// `--prompt-template`.
    pub prompts: Vec<String>,
    /// `--theme`.
    pub themes: Vec<String>,
}

impl CommandLinePaths {
    pub(super) fn of(&self, kind: ResourceKind) -> &[String] {
        pick(kind, [&self.extensions, &self.skills, &self.prompts, &self.themes])
    }
}

/// Paths from an extension, which come last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtraPaths {
    /// Name of the extension.
    pub extension: String,
    /// Skills.
    pub skills: Vec<PathBuf>,
    /// Prompt templates.
    pub prompts: Vec<PathBuf>,
    /// Themes.
    pub themes: Vec<PathBuf>,
}

impl ExtraPaths {
    pub(super) fn of(&self, kind: ResourceKind) -> &[PathBuf] {
        pick(kind, [&[], &self.skills, &self.prompts, &self.themes])
    }
}

fn pick<T>(kind: ResourceKind, [extensions, skills, prompts, themes]: [&[T]; 4]) -> &[T] {
    match kind {
        ResourceKind::Extension => extensions,
        ResourceKind::Skill => skills,
        ResourceKind::Prompt => prompts,
        ResourceKind::Theme => themes,
    }
}

/// Types of resources that are not discovered; command-line paths load nevertheless.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Without {
    /// `--no-extensions`.
    pub extensions: bool,
    /// `--no-skills`.
    pub skills: bool,
    /// `--no-prompt-templates`.
    pub prompts: bool,
    /// `--no-themes`.
    pub themes: bool,
    /// `--no-context-files`.
    pub context_files: bool,
}

impl Without {
    pub(super) fn is_without(self, kind: ResourceKind) -> bool {
        match kind {
            ResourceKind::Extension => self.extensions,
            ResourceKind::Skill => self.skills,
            ResourceKind::Prompt => self.prompts,
            ResourceKind::Theme => self.themes,
        }
    }
}

/// The inputs of resource loading.
#[derive(Clone, Debug)]
pub struct ResourceInputs {
    /// The working directory.
    pub cwd: PathBuf,
    /// The user's settings directory; `None` if the user has no files.
    pub agent_dir: Option<PathBuf>,
    /// The user's home directory.
    pub home: Option<PathBuf>,
    /// Whether the project's own resources are used: see [`super::trust`].
    pub trusted: bool,
    /// Whether trust was given explicitly: then links in the project may lead out of it. A project that needs no trust is used without
    /// that.
    pub links_lead_out: bool,
    /// Resource settings.
    pub settings: ResourceSettings,
    /// Command-line paths.
    pub command_line: CommandLinePaths,
    /// Types that are not discovered.
    pub without: Without,
    /// Replaces `SYSTEM.md`: a text, or the path of a file.
    pub system_prompt: Option<String>,
    /// Replaces `APPEND_SYSTEM.md`: texts, or paths of files.
    pub append_system_prompt: Vec<String>,
    project: Project,
}

impl ResourceInputs {
    /// Creates inputs for a working directory with default settings and an untrusted project.
    pub fn new(cwd: impl Into<PathBuf>, agent_dir: impl Into<PathBuf>, home: Option<&Path>) -> Self {
        let cwd = cwd.into();
        let project = Project::look(&cwd, home);
        Self::of_project(cwd, agent_dir, home, project)
    }

    /// Like [`Self::new`], with a project already inspected.
    pub fn of_project(
        cwd: impl Into<PathBuf>,
        agent_dir: impl Into<PathBuf>,
        home: Option<&Path>,
        project: Project,
    ) -> Self {
        Self {
            project,
            cwd: cwd.into(),
            agent_dir: Some(agent_dir.into()),
            home: home.map(Path::to_owned),
            trusted: false,
            links_lead_out: false,
            settings: ResourceSettings::default(),
            command_line: CommandLinePaths::default(),
            without: Without::default(),
            system_prompt: None,
            append_system_prompt: Vec::new(),
        }
    }

    /// Creates inputs that discover nothing: only explicitly named resources are loaded.
    pub fn nothing(cwd: impl Into<PathBuf>) -> Self {
        let cwd = cwd.into();
        let project = Project::none(&cwd);
        let without = Without { extensions: true, skills: true, prompts: true, themes: true, context_files: true };
        Self { agent_dir: None, without, ..Self::of_project(cwd, PathBuf::new(), None, project) }
    }

    /// Inspects the project again.
    pub(super) fn refresh(&mut self) {
        if self.agent_dir.is_some() {
            self.project = Project::look(&self.cwd, self.home.as_deref());
        }
    }

    /// Returns the project.
    pub(super) fn project(&self) -> &Project {
        &self.project
    }

    /// Returns the project's settings directory, unless it is the user's own.
    fn project_dir(&self) -> Option<&Path> {
        self.project.dir().filter(|dir| self.agent_dir.as_deref() != Some(*dir))
    }

    /// Returns whether resources of the project are skipped.
    pub(super) fn leaves_out_project(&self) -> bool {
        !self.trusted && self.project_dir().is_some() && self.project.needs_trust()
    }

    /// Returns the project's settings directory if the project is trusted.
    pub(super) fn trusted_project_dir(&self) -> Option<&Path> {
        self.project_dir().filter(|_| self.trusted)
    }
}
