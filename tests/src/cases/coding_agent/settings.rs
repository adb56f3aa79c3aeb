//! Settings: documents, steps and their results.

use std::path::Path;

use pinch_coding_agent::settings::{SettingsFiles, SettingsManager, SettingsScope};
use pinch_stdx::host::Host;
use pinch_testing::cases::compare::{contains, same};
use serde_json::{Map, Value, json};

use crate::cases::{Case, CaseOutcome};

/// Runs a case.
pub(super) fn run(case: &Case<'_>) -> CaseOutcome {
    let ours = &case.case["ours"];
    let wanted = if ours.is_null() { &case.case["expect"] } else { ours };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return CaseOutcome::Failed(error.to_string()),
    };
    runtime.block_on(play(&case.case["input"], wanted)).into()
}

async fn play(input: &Value, wanted: &Value) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let home = folder.path().join("home");
    let files = SettingsFiles {
        global: folder.path().join("agent/settings.json"),
        project: Some(folder.path().join("cwd/.pi/settings.json")),
    };
    write(&files.global, &input["global"])?;
    if let Some(project) = &files.project {
        write(project, &input["project"])?;
    }
    let manager = SettingsManager::load(&files, &Host::builder().home(&home).build());
    for step in input["steps"].as_array().into_iter().flatten() {
        if let Some(key) = step["set"].as_str() {
            manager.set(key, step["value"].clone()).map_err(|error| error.to_string())?;
            manager.flush().await;
        } else if step.get("writeGlobalFile").is_some() {
            write(&files.global, &step["writeGlobalFile"])?;
        } else {
            return Err(format!("no such step: {step}"));
        }
    }
    manager.flush().await;
    let problems = manager.drain_problems();
    let errors: Vec<Value> = problems.iter().filter(|p| p.is_fatal).map(|p| json!(p.scope.to_string())).collect();
    for (name, wanted) in wanted.as_object().into_iter().flatten() {
        let found = match name.as_str() {
            "values" => {
                let keys = wanted.as_object().into_iter().flatten();
                keys.map(|(key, _)| (key.clone(), manager.value(key).unwrap_or_default())).collect::<Map<_, _>>().into()
            }
            "global" => Value::Object(manager.document(SettingsScope::Global)),
            "project" => Value::Object(manager.document(SettingsScope::Project)),
            "errors" => Value::Array(errors.clone()),
            "file" => read(&files.global, wanted)?,
            other => return Err(format!("nobody knows what {other} is")),
        };
        let compared = match name == "values" {
            true => contains(&expanded(wanted, &folder, &home), &expanded(&found, &folder, &home)),
            false => same(wanted, &found),
        };
        compared.map_err(|why| format!("{name}{why}"))?;
    }
    if wanted.get("errors").is_none() && !errors.is_empty() {
        return Err(format!("nobody expected errors of {errors:?}"));
    }
    Ok(())
}

/// Paths as they are used, with the home directory and other directories filled in.
fn expanded(value: &Value, folder: &tempfile::TempDir, home: &Path) -> Value {
    let place = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    match value {
        Value::String(text) => {
            let home = home.to_string_lossy();
            let text =
                text.replace("$HOME", &home).replace("$CWD", &place("cwd")).replace("$AGENT_DIR", &place("agent"));
            match text.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/')) {
                Some(rest) => format!("{home}{rest}").into(),
                None => text.into(),
            }
        }
        Value::Array(items) => items.iter().map(|item| expanded(item, folder, home)).collect(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| (name.clone(), expanded(value, folder, home))).collect()
        }
        other => other.clone(),
    }
}

/// Writes an object or a text to a file; does nothing for null.
fn write(path: &Path, content: &Value) -> Result<(), String> {
    let text = match content {
        Value::Null => return Ok(()),
        Value::String(text) => text.clone(),
        object => object.to_string(),
    };
    let folder = path.parent().ok_or("a file without a folder")?;
    std::fs::create_dir_all(folder).and_then(|()| std::fs::write(path, text)).map_err(|error| error.to_string())
}

/// The file in the form that a case uses: text, or parsed value.
fn read(path: &Path, like: &Value) -> Result<Value, String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    if like.is_string() { Ok(text.into()) } else { serde_json::from_str(&text).map_err(|error| error.to_string()) }
}
