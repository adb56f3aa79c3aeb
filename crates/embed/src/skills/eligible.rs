//! Checks whether a skill may be used here.

use std::fmt;

use serde_json::{Map, Value};

use super::load::SkillOrigin;
use super::metadata::{SkillMetadata, SkillRequirements};
use crate::config::skills::{SkillEntry, SkillsConfig};

/// The environment in which a skill would be used.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct SkillWorld<'a> {
    /// The system: `linux`, `darwin` or `win32`.
    pub platform: &'a str,
    /// Returns whether a variable is set and not empty.
    pub has_variable: &'a dyn Fn(&str) -> bool,
    /// Returns whether a program is on the `PATH`.
    pub has_program: &'a dyn Fn(&str) -> bool,
    /// The settings of skills.
    pub config: &'a SkillsConfig,
    /// The whole configuration.
    pub document: &'a Map<String, Value>,
}

impl<'a> SkillWorld<'a> {
    /// Creates an environment with this configuration.
    pub fn new(
        platform: &'a str,
        has_variable: &'a dyn Fn(&str) -> bool,
        has_program: &'a dyn Fn(&str) -> bool,
        config: &'a SkillsConfig,
        document: &'a Map<String, Value>,
    ) -> Self {
        Self { platform, has_variable, has_program, config, document }
    }
}

impl fmt::Debug for SkillWorld<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SkillWorld").field("platform", &self.platform).finish_non_exhaustive()
    }
}

/// Properties of a skill that decide whether it may be used.
#[derive(Clone, Copy, Debug)]
pub struct SkillNeeds<'a> {
    /// Its name.
    pub name: &'a str,
    /// Where it comes from.
    pub origin: SkillOrigin,
    /// Its declared requirements.
    pub metadata: &'a SkillMetadata,
}

impl SkillNeeds<'_> {
    /// Returns the key of its settings.
    pub(super) fn key(&self) -> &str {
        self.metadata.skill_key.as_deref().unwrap_or(self.name)
    }

    pub(super) fn entry<'c>(&self, config: &'c SkillsConfig) -> Option<&'c SkillEntry> {
        config.entries.get(self.key())
    }
}

/// Why a skill cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Ineligible {
    /// It is disabled in the configuration.
    #[error("disabled by skills.entries.{0}.enabled")]
    Disabled(String),
    /// It is bundled, but not on the allow list.
    #[error("not listed in skills.allowBundled")]
    NotAllowed,
    /// It is not among the agent's skills.
    #[error("not among the skills of this agent")]
    NotOfAgent,
    /// It is for other systems.
    #[error("for {} only", .0.join(", "))]
    OtherSystem(Vec<String>),
    /// Programs are missing.
    #[error("needs the program{} {}", if .0.len() == 1 { "" } else { "s" }, .0.join(", "))]
    Programs(Vec<String>),
    /// None of several alternative programs is available.
    #[error("needs one of the programs {}", .0.join(", "))]
    AnyProgram(Vec<String>),
    /// Variables are missing.
    #[error("needs the variable{} {}", if .0.len() == 1 { "" } else { "s" }, .0.join(", "))]
    Variables(Vec<String>),
    /// Members of the configuration are missing.
    #[error("needs {} in the configuration", .0.join(", "))]
    Settings(Vec<String>),
}

/// Checks whether a skill may be used.
///
/// # Errors
/// The first reason why it may not.
pub fn check(skill: &SkillNeeds<'_>, world: &SkillWorld<'_>) -> Result<(), Ineligible> {
    let entry = skill.entry(world.config);
    if entry.and_then(|entry| entry.enabled) == Some(false) {
        return Err(Ineligible::Disabled(skill.key().to_owned()));
    }
    let allowed = &world.config.allow_bundled;
    let is_listed = |name: &str| allowed.iter().any(|listed| listed.trim() == name);
    if skill.origin == SkillOrigin::Bundled && !allowed.is_empty() && !is_listed(skill.key()) && !is_listed(skill.name)
    {
        return Err(Ineligible::NotAllowed);
    }
    let os = &skill.metadata.os;
    if !os.is_empty() && !os.iter().any(|name| name == world.platform) {
        return Err(Ineligible::OtherSystem(os.clone()));
    }
    match &skill.metadata.requires {
        Some(requires) if skill.metadata.always != Some(true) => requirements(skill, requires, entry, world),
        _ => Ok(()),
    }
}

fn requirements(
    skill: &SkillNeeds<'_>,
    requires: &SkillRequirements,
    entry: Option<&SkillEntry>,
    world: &SkillWorld<'_>,
) -> Result<(), Ineligible> {
    let missing = |names: &[String], is_there: &dyn Fn(&str) -> bool| -> Vec<String> {
        names.iter().filter(|name| !is_there(name)).cloned().collect()
    };
    let programs = missing(&requires.bins, &|name| (world.has_program)(name));
    if !programs.is_empty() {
        return Err(Ineligible::Programs(programs));
    }
    if !requires.any_bins.is_empty() && !requires.any_bins.iter().any(|name| (world.has_program)(name)) {
        return Err(Ineligible::AnyProgram(requires.any_bins.clone()));
    }
    let is_set = |name: &str| {
        let is_main = skill.metadata.primary_env.as_deref() == Some(name);
        let configured = |entry: &SkillEntry| {
            entry.env.get(name).is_some_and(|value| !value.is_empty()) || (is_main && entry.api_key.is_some())
        };
        (world.has_variable)(name) || entry.is_some_and(configured)
    };
    let variables = missing(&requires.env, &is_set);
    if !variables.is_empty() {
        return Err(Ineligible::Variables(variables));
    }
    let settings = missing(&requires.config, &|path| is_on(world.document, path));
    if settings.is_empty() { Ok(()) } else { Err(Ineligible::Settings(settings)) }
}

/// Returns whether a member of the configuration is set.
fn is_on(document: &Map<String, Value>, path: &str) -> bool {
    /// Members that are on unless configured otherwise.
    const ON: [&str; 2] = ["browser.enabled", "browser.evaluateEnabled"];
    let mut names = path.split('.').map(str::trim).filter(|name| !name.is_empty());
    let first = names.next().and_then(|name| document.get(name));
    let value = names.fold(first, |value, name| value.and_then(|value| value.get(name)));
    match value {
        None | Some(Value::Null) => ON.contains(&path),
        Some(Value::Bool(on)) => *on,
        Some(Value::Number(number)) => number.as_f64() != Some(0.0),
        Some(Value::String(text)) => !text.trim().is_empty(),
        Some(Value::Array(_) | Value::Object(_)) => true,
    }
}
