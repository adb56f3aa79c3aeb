//! Checks documents: problems, their positions and remedies.

use std::path::Path;

use pinch_embed::coding_agent::document::{self, Problem};
use pinch_embed::coding_agent::resources::trust::TrustStore;
use pinch_embed::coding_agent::settings::{SettingsFiles, SettingsManager, SettingsScope};
use serde_json::Value;

use super::context::DoctorContext;
use super::report::{DoctorSection, FindingStatus};
use crate::commands::agent;

/// Checks the documents.
pub(super) fn look(context: &DoctorContext) -> DoctorSection {
    let mut section = DoctorSection::new("Configuration files");
    settings(&mut section, context);
    let agent_dir = &context.folders.agent_dir;
    let path = agent_dir.join("models.json");
    add_document(&mut section, "models.json", &path, document::read_object(&path).err(), context.registry.problems());
    let path = agent_dir.join("auth.json");
    add_document(&mut section, "auth.json", &path, document::read_object(&path).err(), context.of_auth.clone());
    let path = agent_dir.join("trust.json");
    let broken = TrustStore::load(&path).1.into_iter().next();
    add_document(&mut section, "trust.json", &path, broken, Vec::new());
    keybindings(&mut section, &agent_dir.join("keybindings.json"));
    embedded(&mut section, context);
    for problem in &context.services.resources().diagnostics {
        section.add(FindingStatus::Warn, "resources", problem.to_string());
    }
    section
}

/// Adds a finding for a document that is missing, valid, broken as a whole, or wrong in places.
fn add_document(section: &mut DoctorSection, name: &str, path: &Path, broken: Option<Problem>, wrong: Vec<Problem>) {
    if let Some(problem) = broken {
        return section.add(FindingStatus::Fail, name, problem.to_string());
    }
    if wrong.is_empty() {
        let (mark, text) = match std::fs::metadata(path) {
            Ok(meta) => (FindingStatus::Ok, format!("{} bytes", meta.len())),
            Err(_) => (FindingStatus::Note, "not present".to_owned()),
        };
        return section.add(mark, name, text);
    }
    wrong.iter().for_each(|problem| section.add(FindingStatus::Warn, name, problem.to_string()));
}

fn settings(section: &mut DoctorSection, context: &DoctorContext) {
    let global = context.folders.agent_dir.join("settings.json");
    // A project's settings are checked even if they are not used: the user may be about to trust them.
    let project = context.project_dir.as_ref().map(|dir| dir.join("settings.json")).filter(|path| path.is_file());
    let files = SettingsFiles { global: global.clone(), project: project.clone() };
    let problems = SettingsManager::load(&files, &context.host).drain_problems();
    for (scope, name, path) in [
        (SettingsScope::Global, "settings.json", Some(global)),
        (SettingsScope::Project, "project's settings", project),
    ] {
        let Some(path) = path else { continue };
        let of_scope = || problems.iter().filter(|one| one.scope == scope);
        let broken = of_scope().find(|one| one.is_fatal).map(|one| one.problem.clone());
        add_document(section, name, &path, broken, of_scope().map(|one| one.problem.clone()).collect());
    }
}

/// Checks keybindings: action names with a key or a list of keys each.
fn keybindings(section: &mut DoctorSection, path: &Path) {
    let read = document::read_object(path);
    let is_keys =
        |value: &Value| value.is_string() || value.as_array().is_some_and(|all| all.iter().all(Value::is_string));
    let (broken, wrong) = match read {
        Err(problem) => (Some(problem), Vec::new()),
        Ok(all) => {
            let wrong = all.iter().filter(|(_, value)| !is_keys(value)).map(|(name, _)| {
                Problem::new(path, "must be a key or a list of keys").at(name.as_str()).remedy("It is ignored")
            });
            (None, wrong.collect())
        }
    };
    add_document(section, "keybindings.json", path, broken, wrong);
}

/// Checks the configuration of embedded runs, if there is one.
fn embedded(section: &mut DoctorSection, context: &DoctorContext) {
    let Ok(state_dir) = agent::state_dir(None, &context.host) else { return };
    match agent::load_config(None, &state_dir, &context.host) {
        Err(failure) => section.add(FindingStatus::Fail, "pinch.json", failure.text),
        Ok((config, problems)) => {
            let Some(file) = &config.file else { return };
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            // If nothing could be read, all of it is broken.
            let mut problems = problems;
            let is_broken = config.document.is_empty() && !problems.is_empty();
            let broken = is_broken.then(|| problems.swap_remove(0));
            add_document(section, &name, file, broken, problems);
            for key in &config.ignored {
                section.add(FindingStatus::Note, &name, format!("{key} has no effect in this version"));
            }
        }
    }
}
