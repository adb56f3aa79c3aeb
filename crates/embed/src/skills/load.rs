//! Finds the skills of an agent in their directories.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pinch_coding_agent::document::Problem;
use pinch_coding_agent::resources::skills::{self, SkillFolder};
use pinch_stdx::fs::read_regular;

use super::head::{SkillHead, SkillInvocation};
use super::metadata::SkillMetadata;
use crate::config::skills::SkillLimits;

/// Where a skill comes from. Of several skills with the same name, the last of these takes precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SkillOrigin {
    /// A configured directory, or one of a plugin.
    Extra,
    /// Bundled with the program.
    Bundled,
    /// Installed for all agents: `skills` in the state directory.
    Managed,
    /// The user's, for all programs: `~/.agents/skills`.
    Personal,
    /// The project's, for all programs: `.agents/skills` in the workspace.
    Project,
    /// The agent's: `skills` in the workspace.
    Workspace,
}

impl SkillOrigin {
    /// Returns OpenClaw's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Extra => "openclaw-extra",
            Self::Bundled => "openclaw-bundled",
            Self::Managed => "openclaw-managed",
            Self::Personal => "agents-skills-personal",
            Self::Project => "agents-skills-project",
            Self::Workspace => "openclaw-workspace",
        }
    }

    /// Parses OpenClaw's name.
    pub fn parse(name: &str) -> Option<Self> {
        let all = [Self::Extra, Self::Bundled, Self::Managed, Self::Personal, Self::Project, Self::Workspace];
        all.into_iter().find(|origin| origin.as_str() == name)
    }
}

/// A loaded skill.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadedSkill {
    /// Its name.
    pub name: String,
    /// When it is useful.
    pub description: String,
    /// Path of its `SKILL.md`.
    pub path: PathBuf,
    /// Where it comes from.
    pub origin: SkillOrigin,
    /// Its declared requirements.
    pub metadata: SkillMetadata,
    /// Who may invoke it.
    pub invocation: SkillInvocation,
    /// The tool that its command calls, without asking the model (`command-dispatch: tool`, `command-tool`).
    pub called_tool: Option<String>,
}

/// Loads the skills of these directories, by name. Of several with the same name, that of the last directory takes precedence. Links may
/// lead to `link_targets`, which are resolved paths.
pub(super) fn load(
    roots: &[(SkillOrigin, PathBuf)],
    link_targets: &[PathBuf],
    limits: &SkillLimits,
) -> (Vec<LoadedSkill>, Vec<Problem>) {
    let (mut skills, mut problems) = (BTreeMap::new(), Vec::new());
    for (origin, root) in roots {
        let Ok(real_root) = root.canonicalize() else { continue };
        let allowed: Vec<&Path> = std::iter::once(&real_root).chain(link_targets).map(PathBuf::as_path).collect();
        let mut n_loaded = 0;
        for file in skills::find(root, SkillFolder::FoldersOnly).iter().take(limits.candidates) {
            if n_loaded == limits.per_source {
                problems.push(Problem::new(root, format!("has more than {n_loaded} skills; the others are ignored")));
                break;
            }
            match read(&file.path, &allowed, *origin, limits.file_bytes) {
                Ok(skill) => {
                    n_loaded += 1;
                    skills.insert(skill.name.clone(), skill);
                }
                Err(why) => problems.push(Problem::new(&file.path, why)),
            }
        }
    }
    (skills.into_values().collect(), problems)
}

fn read(path: &Path, allowed: &[&Path], origin: SkillOrigin, max_bytes: u64) -> Result<LoadedSkill, String> {
    let real = path.canonicalize().map_err(|error| format!("cannot be read: {error}"))?;
    if !allowed.iter().any(|dir| real.starts_with(dir)) {
        return Err("is a link that leads out of the skill directory, and its target is not in skills.load.allowSymlinkTargets; it was ignored".to_owned());
    }
    let bytes = read_regular(&real, max_bytes).map_err(|error| match error.kind() {
        std::io::ErrorKind::FileTooLarge => format!("is larger than {max_bytes} bytes and was ignored"),
        _ => format!("cannot be read: {error}"),
    })?;
    let head = SkillHead::parse(&String::from_utf8_lossy(&bytes));
    let folder = path.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    let name = head.get("name").map(str::to_owned).or(folder).unwrap_or_default();
    let description = head.get("description").ok_or("has no description; it was ignored")?.to_owned();
    Ok(LoadedSkill {
        name,
        description,
        path: path.to_owned(),
        origin,
        metadata: head.metadata().unwrap_or_default(),
        invocation: head.invocation(),
        called_tool: head.called_tool().map(str::to_owned),
    })
}
