//! `skills-frontmatter`, `skills-eligibility`, `skills-command`.

use std::path::Path;

use pinch_embed::config::Config;
use pinch_embed::skills::{SkillHead, SkillMetadata, SkillNeeds, SkillOrigin, SkillWorld, check, command_name};
use serde_json::{Map, Value, json};

use super::super::Case;
use super::{only, texts};

pub(super) fn head(input: &Value, _: &Case<'_>) -> Result<Value, String> {
    only(input, &["content"])?;
    let head = SkillHead::parse(input["content"].as_str().ok_or("no content")?);
    let members: Map<String, Value> = head.iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
    let invocation = head.invocation();
    Ok(json!({
        "frontmatter": members,
        "metadata": head.metadata().map(|metadata| shown(&metadata)),
        "invocation": {"userInvocable": invocation.by_user, "disableModelInvocation": !invocation.by_model},
    }))
}

/// In the form that cases use, where empty values are absent.
fn shown(metadata: &SkillMetadata) -> Value {
    let listed = |list: &[String]| if list.is_empty() { Value::Null } else { json!(list) };
    let install: Vec<Value> = (metadata.install.iter())
        .map(|installer| {
            let mut members = installer.what.clone();
            members.insert("kind".into(), installer.kind.as_str().into());
            members.insert("id".into(), json!(installer.id));
            members.insert("label".into(), json!(installer.label));
            members.insert("bins".into(), listed(&installer.bins));
            members.insert("os".into(), listed(&installer.os));
            Value::Object(members)
        })
        .collect();
    json!({
        "always": metadata.always,
        "emoji": metadata.emoji,
        "homepage": metadata.homepage,
        "skillKey": metadata.skill_key,
        "primaryEnv": metadata.primary_env,
        "os": listed(&metadata.os),
        "requires": metadata.requires.as_ref().map(|requires| json!({
            "bins": requires.bins, "anyBins": requires.any_bins, "env": requires.env, "config": requires.config,
        })),
        "install": if install.is_empty() { Value::Null } else { json!(install) },
    })
}

pub(super) fn eligible(input: &Value, _: &Case<'_>) -> Result<Value, String> {
    only(input, &["skill", "source", "metadata", "config", "env", "binsOnPath", "platform"])?;
    let origin = input["source"].as_str().unwrap_or("openclaw-workspace");
    let origin = SkillOrigin::parse(origin).ok_or_else(|| format!("no origin is called {origin:?}"))?;
    let metadata = input["metadata"].as_object().map(|_| SkillMetadata::read(&input["metadata"])).unwrap_or_default();
    let document = input["config"].as_object().cloned().unwrap_or_default();
    let (config, _) = Config::from_document(document, Path::new("openclaw.json"));
    let bins = texts(&input["binsOnPath"]);
    let has_variable = |name: &str| input["env"][name].as_str().is_some_and(|value| !value.is_empty());
    let has_program = |name: &str| bins.iter().any(|bin| bin == name);
    let platform = input["platform"].as_str().unwrap_or("linux");
    let world = SkillWorld::new(platform, &has_variable, &has_program, &config.skills, &config.document);
    let name = input["skill"].as_str().unwrap_or("demo");
    Ok(json!({"eligible": check(&SkillNeeds { name, origin, metadata: &metadata }, &world).is_ok()}))
}

pub(super) fn command(input: &Value, _: &Case<'_>) -> Result<Value, String> {
    only(input, &["name", "used"])?;
    let used = texts(&input["used"]);
    let is_taken = |name: &str| used.iter().any(|used| used.eq_ignore_ascii_case(name));
    Ok(json!({"command": command_name(input["name"].as_str().ok_or("no name")?, is_taken)}))
}
