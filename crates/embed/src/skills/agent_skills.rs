//! The skills of one agent: which exist, which it may use, and why not the others.

use std::cell::LazyCell;
use std::fmt;
use std::path::{Path, PathBuf};

use pinch_coding_agent::document::Problem;
use pinch_stdx::fs::{is_executable, real_path};
use pinch_stdx::host::Host;

use super::commands::{RESERVED, command_name};
use super::eligible::{Ineligible, SkillNeeds, SkillWorld, check};
use super::environment;
use super::listing::{self, SkillListing};
use super::load::{self, LoadedSkill, SkillOrigin};
use crate::config::Config;
use crate::config::paths::expand_home;
use crate::key::AgentId;

/// Where to look for the skills of an agent.
pub(crate) struct SkillPlaces<'a> {
    pub(crate) host: &'a Host,
    pub(crate) config: &'a Config,
    pub(crate) agent: &'a AgentId,
    pub(crate) state_dir: &'a Path,
    pub(crate) workspace: &'a Path,
    /// Directories of plugins.
    pub(crate) of_plugins: Vec<PathBuf>,
}

/// The skills of an agent at one time. The engine makes it; requests can carry it.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct AgentSkills {
    /// All skills found, by name.
    pub skills: Vec<SkillStatus>,
    /// Problems of unusable files.
    pub problems: Vec<Problem>,
    /// Section of the system prompt about usable skills.
    pub prompt: String,
    /// Skills in that section, and the size of each.
    pub(crate) listed: Vec<(String, usize)>,
    /// Variables that commands get because of these skills.
    pub(crate) variables: Vec<(String, String)>,
    /// Programs that these skills require, except skills in the workspace.
    pub(crate) programs: Vec<String>,
}

impl fmt::Debug for AgentSkills {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Variables may hold secrets.
        let names: Vec<&str> = self.skills.iter().map(|status| status.skill.name.as_str()).collect();
        f.debug_struct("AgentSkills").field("skills", &names).finish_non_exhaustive()
    }
}

/// A skill, and whether the agent may use it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SkillStatus {
    /// The skill.
    pub skill: LoadedSkill,
    /// Why it may not be used, if it may not.
    pub ineligible: Option<Ineligible>,
    /// Slash command for people, if they may use it.
    pub command: Option<String>,
}

impl AgentSkills {
    pub(crate) fn load(places: &SkillPlaces<'_>) -> Self {
        let SkillPlaces { host, config, agent, .. } = *places;
        let targets = config.skills.link_targets.iter().map(|dir| real_path(&expand_home(Path::new(dir), host.home())));
        let targets: Vec<PathBuf> = targets.collect();
        let (loaded, problems) = load::load(&roots(places), &targets, &config.skills.limits);
        let has_variable = |name: &str| host.env().get(name).is_some_and(|value| !value.is_empty());
        let path = host.env().get("PATH").unwrap_or_default();
        let has_program = |name: &str| is_program(path, name);
        let world = SkillWorld::new(platform(), &has_variable, &has_program, &config.skills, &config.document);
        let own = config.agents.get(agent).and_then(|agent| agent.skills.as_ref());
        let allowed = own.or(config.agents.defaults.skills.as_ref());
        let mut skills: Vec<SkillStatus> = Vec::new();
        for skill in loaded {
            let needs = SkillNeeds { name: &skill.name, origin: skill.origin, metadata: &skill.metadata };
            let is_allowed = allowed.is_none_or(|names| names.contains(&skill.name));
            let checked = check(&needs, &world).and(if is_allowed { Ok(()) } else { Err(Ineligible::NotOfAgent) });
            let is_taken = |name: &str| {
                RESERVED.contains(&name) || skills.iter().any(|other| other.command.as_deref() == Some(name))
            };
            let is_command = checked.is_ok() && skill.invocation.by_user;
            let command = is_command.then(|| command_name(&skill.name, is_taken));
            skills.push(SkillStatus { ineligible: checked.err(), command, skill });
        }
        let usable = || skills.iter().filter(|status| status.ineligible.is_none()).map(|status| &status.skill);
        let SkillListing { text: prompt, sizes: listed } =
            listing::listing(usable(), &config.skills.limits, host.home());
        let variables = environment::variables(usable(), &config.skills, host.env());
        // What an agent can write itself must not allow programs.
        let trusted =
            LazyCell::new(|| places.trusted_directories().iter().map(|dir| real_path(dir)).collect::<Vec<_>>());
        let is_trusted = |skill: &&LoadedSkill| {
            let real = real_path(&skill.path);
            trusted.iter().any(|dir| real.starts_with(dir))
        };
        let requiring = usable().filter(|skill| required_programs(skill).next().is_some());
        let programs = requiring.filter(is_trusted).flat_map(required_programs).cloned().collect();
        Self { prompt, listed, variables, programs, problems, skills }
    }
}

/// Returns the programs that a skill requires.
fn required_programs(skill: &LoadedSkill) -> impl Iterator<Item = &String> {
    skill.metadata.requires.iter().flat_map(|requires| requires.bins.iter().chain(&requires.any_bins))
}

impl SkillPlaces<'_> {
    /// Returns the directories of skills that share nothing with the workspace.
    pub(crate) fn trusted_directories(&self) -> Vec<PathBuf> {
        let workspace = real_path(self.workspace);
        let is_apart = |dir: &PathBuf| {
            let real = real_path(dir);
            !real.starts_with(&workspace) && !workspace.starts_with(&real)
        };
        places_of(self).into_iter().map(|(_, dir)| dir).filter(is_apart).collect()
    }
}

/// Returns the existing skill directories, in order of precedence.
fn roots(places: &SkillPlaces<'_>) -> Vec<(SkillOrigin, PathBuf)> {
    places_of(places).into_iter().filter(|(_, dir)| dir.is_dir()).collect()
}

/// Returns all skill directories, in order of precedence.
fn places_of(places: &SkillPlaces<'_>) -> Vec<(SkillOrigin, PathBuf)> {
    let (home, workspace) = (places.host.home(), places.workspace);
    let extra = places.config.skills.extra_dirs.iter();
    let extra = extra.map(|dir| expand_home(Path::new(dir), home)).chain(places.of_plugins.iter().cloned());
    let extra = extra.map(|dir| (SkillOrigin::Extra, dir));
    let bundled = places.host.env().get("OPENCLAW_BUNDLED_SKILLS_DIR").filter(|dir| !dir.trim().is_empty());
    let others = [
        bundled.map(|dir| (SkillOrigin::Bundled, PathBuf::from(dir))),
        Some((SkillOrigin::Managed, places.state_dir.join("skills"))),
        home.map(|home| (SkillOrigin::Personal, home.join(".agents/skills"))),
        Some((SkillOrigin::Project, workspace.join(".agents/skills"))),
        Some((SkillOrigin::Workspace, workspace.join("skills"))),
    ];
    extra.chain(others.into_iter().flatten()).collect()
}

/// Returns the name that skills use for this system.
pub(super) fn platform() -> &'static str {
    match std::env::consts::OS {
        "macos" => "darwin",
        "windows" => "win32",
        other => other,
    }
}

/// Returns whether a `PATH` has a program.
pub(super) fn is_program(path: &str, name: &str) -> bool {
    // A name with a separator would be a path, which skills may not name.
    let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    !name.is_empty()
        && !name.contains(['/', '\\'])
        && std::env::split_paths(path).any(|dir| is_executable(&dir.join(&file)))
}
