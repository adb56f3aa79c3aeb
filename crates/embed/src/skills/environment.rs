//! Environment variables for commands, set by usable skills. The environment of this process never changes.

use pinch_stdx::host::Env;
use pinch_tools::exec::environment::check_overrides;

use super::eligible::SkillNeeds;
use super::load::LoadedSkill;
use crate::config::skills::SkillsConfig;

/// Substrings that mark variable names as secret.
const SECRETS: [&str; 4] = ["KEY", "TOKEN", "SECRET", "PASSWORD"];

/// Returns the variables from the settings of these skills that the host does not set. Variables that load code into programs are left out,
/// and so are secrets that the skill does not declare.
pub(super) fn variables<'a>(
    skills: impl IntoIterator<Item = &'a LoadedSkill>,
    config: &SkillsConfig,
    env: &Env,
) -> Vec<(String, String)> {
    let mut variables: Vec<(String, String)> = Vec::new();
    for skill in skills {
        let metadata = &skill.metadata;
        let needs = SkillNeeds { name: &skill.name, origin: skill.origin, metadata };
        let Some(entry) = needs.entry(config) else { continue };
        let declares = |name: &str| {
            metadata.primary_env.as_deref() == Some(name)
                || metadata.requires.iter().flat_map(|requires| &requires.env).any(|declared| declared == name)
        };
        let key = metadata.primary_env.as_deref().zip(entry.api_key.as_ref());
        let wanted = entry.env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in wanted.chain(key.map(|(name, key)| (name, key.reveal()))) {
            let is_secret = SECRETS.iter().any(|part| name.to_uppercase().contains(part));
            let is_set = env.get(name).is_some_and(|set| !set.is_empty());
            let is_known = variables.iter().any(|(known, _)| known == name);
            if value.is_empty() || is_set || is_known {
                continue;
            }
            if check_overrides([(name, value)]).is_err() || (is_secret && !declares(name)) {
                tracing::warn!(skill = skill.name, variable = name, "skipping a variable of a skill");
                continue;
            }
            variables.push((name.to_owned(), value.to_owned()));
        }
    }
    variables
}
