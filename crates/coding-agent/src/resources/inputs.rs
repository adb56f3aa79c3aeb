//! What resources are loaded from: plain values.

use std::path::{Path, PathBuf};

use super::info::ResourceKind;
use super::trust::Project;
use crate::packages::PackageEntry;

/// What settings say about resources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceSettings {
    /// Those of the user.
    pub user: ScopeSettings,
    /// Those of the project; they count only when it is trusted.
    pub project: ScopeSettings,
}

/// What the settings of one scope say: packages, and by type paths and overrides.
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

/// Paths that the command line names; they come before everything else.
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

/// Paths that an extension brings; they come after everything else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtraPaths {
    /// The extension's name.
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

/// What is not looked for; paths of the command line load all the same.
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

/// What resources are loaded from.
#[derive(Clone, Debug)]
pub struct ResourceInputs {
    /// The working directory.
    pub cwd: PathBuf,
    /// The user's directory of settings; `None`: the user has no files.
    pub agent_dir: Option<PathBuf>,
    /// The user's home directory.
    pub home: Option<PathBuf>,
    /// Whether the project's own things count: see [`super::trust`].
    pub trusted: bool,
    /// Whether someone has said so: then links of the project may lead out of it. A project without anything that needs trust is used without
    /// that.
    pub links_lead_out: bool,
    /// What settings say.
    pub settings: ResourceSettings,
    /// What the command line names.
    pub command_line: CommandLinePaths,
    /// What is not looked for.
    pub without: Without,
    /// Takes the place of `SYSTEM.md`: a text, or the path of a file.
    pub system_prompt: Option<String>,
    /// Takes the place of `APPEND_SYSTEM.md`: texts, or paths of files.
    pub append_system_prompt: Vec<String>,
    project: Project,
}

impl ResourceInputs {
    /// A working directory of a user with default settings; the project is not trusted.
    pub fn new(cwd: impl Into<PathBuf>, agent_dir: impl Into<PathBuf>, home: Option<&Path>) -> Self {
        let cwd = cwd.into();
        let project = Project::look(&cwd, home);
        Self::of_project(cwd, agent_dir, home, project)
    }

    /// The same with a project that was looked up already.
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

    /// A working directory of which nothing is looked up: only what is named explicitly is loaded.
    pub fn nothing(cwd: impl Into<PathBuf>) -> Self {
        let cwd = cwd.into();
        let project = Project::none(&cwd);
        let without = Without { extensions: true, skills: true, prompts: true, themes: true, context_files: true };
        Self { agent_dir: None, without, ..Self::of_project(cwd, PathBuf::new(), None, project) }
    }

    /// Looks the project up again.
    pub(super) fn refresh(&mut self) {
        if self.agent_dir.is_some() {
            self.project = Project::look(&self.cwd, self.home.as_deref());
        }
    }

    /// The project.
    pub(super) fn project(&self) -> &Project {
        &self.project
    }

    /// The project's directory of settings; the user's own is none.
    fn project_dir(&self) -> Option<&Path> {
        self.project.dir().filter(|dir| self.agent_dir.as_deref() != Some(*dir))
    }

    /// Whether things of the project are left out.
    pub(super) fn leaves_out_project(&self) -> bool {
        !self.trusted && self.project_dir().is_some() && self.project.needs_trust()
    }

    /// The project's directory of settings, when the project is trusted.
    pub(super) fn trusted_project_dir(&self) -> Option<&Path> {
        self.project_dir().filter(|_| self.trusted)
    }
}
