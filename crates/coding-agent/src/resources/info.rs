//! Sources of resources, and diagnostics.

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::document::Problem;

/// The types of resources in settings and packages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ResourceKind {
    /// Programs that take part in a session.
    Extension,
    /// Instructions for a kind of task.
    Skill,
    /// Prompt templates.
    Prompt,
    /// Color themes.
    Theme,
}

impl ResourceKind {
    /// All types.
    pub const ALL: [Self; 4] = [Self::Extension, Self::Skill, Self::Prompt, Self::Theme];

    /// Returns the name used in diagnostics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Extension => "extension",
            Self::Skill => "skill",
            Self::Prompt => "prompt",
            Self::Theme => "theme",
        }
    }

    /// Returns the name of its directory, its setting and its manifest member.
    pub fn folder(self) -> &'static str {
        match self {
            Self::Extension => "extensions",
            Self::Skill => "skills",
            Self::Prompt => "prompts",
            Self::Theme => "themes",
        }
    }
}

/// The owner of a resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResourceScope {
    /// The user.
    User,
    /// The project.
    Project,
    /// This run of the program.
    #[default]
    Temporary,
}

/// How a resource is provided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResourceOrigin {
    /// As part of a package.
    Package,
    /// On its own.
    #[default]
    TopLevel,
}

/// Where a resource comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceInfo {
    /// Path of the file.
    pub path: PathBuf,
    /// `local` (named in settings), `auto` (discovered), `cli`, `builtin`, `sdk`, `extension:<name>`, or the source of its package.
    pub source: String,
    /// The owner.
    pub scope: ResourceScope,
    /// Whether it is part of a package.
    pub origin: ResourceOrigin,
    /// Base directory of relative patterns in settings.
    pub base_dir: Option<PathBuf>,
}

impl SourceInfo {
    /// Serializes the value for the protocol.
    pub fn to_value(&self) -> Value {
        let scope = match self.scope {
            ResourceScope::User => "user",
            ResourceScope::Project => "project",
            ResourceScope::Temporary => "temporary",
        };
        let origin = match self.origin {
            ResourceOrigin::Package => "package",
            ResourceOrigin::TopLevel => "top-level",
        };
        let mut value = json!({
            "path": self.path.to_string_lossy(), "source": self.source, "scope": scope, "origin": origin,
        });
        if let Some(base) = &self.base_dir {
            value["baseDir"] = base.to_string_lossy().into();
        }
        value
    }
}

/// Severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DiagnosticKind {
    /// The resource is used partially or not at all.
    Warning,
    /// The resource cannot be used.
    Error,
    /// Another resource with its name is used.
    Collision,
}

/// Two resources with the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Collision {
    /// Their type.
    pub kind: ResourceKind,
    /// Their name.
    pub name: String,
    /// Path of the resource in use.
    pub winner: PathBuf,
    /// Path of the other one.
    pub loser: PathBuf,
}

/// A problem with a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostic {
    /// Severity.
    pub kind: DiagnosticKind,
    /// What is wrong.
    pub message: String,
    /// The file or directory.
    pub path: PathBuf,
    /// Both resources, for a name collision.
    pub collision: Option<Collision>,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.message)?;
        match &self.collision {
            Some(collision) => write!(f, ". {} is used", collision.winner.display()),
            None => Ok(()),
        }
    }
}

impl Diagnostic {
    /// Creates a warning.
    pub fn warning(path: &Path, message: impl Into<String>) -> Self {
        Self { kind: DiagnosticKind::Warning, message: message.into(), path: path.to_owned(), collision: None }
    }

    /// Creates a diagnostic for a taken name.
    pub fn collision(kind: ResourceKind, name: &str, winner: &Path, loser: &Path) -> Self {
        let slash = if kind == ResourceKind::Prompt { "/" } else { "" };
        Self {
            kind: DiagnosticKind::Collision,
            message: format!("name \"{slash}{name}\" collision"),
            path: loser.to_owned(),
            collision: Some(Collision {
                kind,
                name: name.to_owned(),
                winner: winner.to_owned(),
                loser: loser.to_owned(),
            }),
        }
    }

    /// Serializes the value for the protocol.
    pub fn to_value(&self) -> Value {
        let kind = match self.kind {
            DiagnosticKind::Warning => "warning",
            DiagnosticKind::Error => "error",
            DiagnosticKind::Collision => "collision",
        };
        let mut value = json!({"type": kind, "message": self.message, "path": self.path.to_string_lossy()});
        if let Some(collision) = &self.collision {
            value["collision"] = json!({
                "resourceType": collision.kind.as_str(),
                "name": collision.name,
                "winnerPath": collision.winner.to_string_lossy(),
                "loserPath": collision.loser.to_string_lossy(),
            });
        }
        value
    }
}

impl From<Problem> for Diagnostic {
    fn from(problem: Problem) -> Self {
        let at = problem.at.map(|at| format!("{at}: ")).unwrap_or_default();
        let remedy = problem.remedy.map(|remedy| format!(". {remedy}")).unwrap_or_default();
        Self::warning(&problem.file, format!("{at}{}{remedy}", problem.what))
    }
}

impl From<Diagnostic> for Problem {
    fn from(diagnostic: Diagnostic) -> Self {
        let problem = Self::new(&diagnostic.path, diagnostic.message);
        match diagnostic.collision {
            Some(collision) => problem.remedy(format!("{} is used. Rename one of the two", collision.winner.display())),
            None => problem,
        }
    }
}
