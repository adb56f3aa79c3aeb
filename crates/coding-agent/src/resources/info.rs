//! Where a resource comes from, and what is wrong with one.

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::document::Problem;

/// The types of resources that settings and packages list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ResourceKind {
    /// Programs that take part in a session.
    Extension,
    /// Instructions for a kind of work.
    Skill,
    /// Prompt templates.
    Prompt,
    /// Colours.
    Theme,
}

impl ResourceKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Extension, Self::Skill, Self::Prompt, Self::Theme];

    /// The word in diagnostics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Extension => "extension",
            Self::Skill => "skill",
            Self::Prompt => "prompt",
            Self::Theme => "theme",
        }
    }

    /// The name of its directory, its setting and its member of a package's manifest.
    pub fn folder(self) -> &'static str {
        match self {
            Self::Extension => "extensions",
            Self::Skill => "skills",
            Self::Prompt => "prompts",
            Self::Theme => "themes",
        }
    }
}

/// Whom a resource belongs to.
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

/// How a resource came to be where it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResourceOrigin {
    /// In a package.
    Package,
    /// By itself.
    #[default]
    TopLevel,
}

/// Where a resource comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceInfo {
    /// The file.
    pub path: PathBuf,
    /// `local` (named by settings), `auto` (found), `cli`, `builtin`, `sdk`, `extension:<name>`, or the source of its package.
    pub source: String,
    /// Whom it belongs to.
    pub scope: ResourceScope,
    /// Whether it is part of a package.
    pub origin: ResourceOrigin,
    /// The directory that relative patterns of settings are taken from.
    pub base_dir: Option<PathBuf>,
}

impl SourceInfo {
    /// As the protocol has it.
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

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DiagnosticKind {
    /// The resource counts in part or not at all.
    Warning,
    /// It cannot be used.
    Error,
    /// Another one of its name is used.
    Collision,
}

/// Two resources of one name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Collision {
    /// What they are.
    pub kind: ResourceKind,
    /// Their name.
    pub name: String,
    /// The one that is used.
    pub winner: PathBuf,
    /// The one that is not.
    pub loser: PathBuf,
}

/// What is wrong with a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostic {
    /// How bad it is.
    pub kind: DiagnosticKind,
    /// What is wrong.
    pub message: String,
    /// The file or directory.
    pub path: PathBuf,
    /// The two of one name.
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
    /// A warning.
    pub fn warning(path: &Path, message: impl Into<String>) -> Self {
        Self { kind: DiagnosticKind::Warning, message: message.into(), path: path.to_owned(), collision: None }
    }

    /// A name that is taken.
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

    /// As the protocol has it.
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
