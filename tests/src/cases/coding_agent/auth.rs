//! Credentials: stored ones, values in configuration files, and what requests receive.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use pinch_agent_core::llm::model::Model;
use pinch_agent_core::llm::request::Auth;
use pinch_coding_agent::auth::{AuthError, AuthStorage, KeyLookup, config_value};
use pinch_coding_agent::models::{ModelRegistry, RegistryAuth};
use pinch_stdx::host::{Env, Host};
use pinch_stdx::secret::Secret;
use pinch_testing::cases::compare::same;
use serde_json::{Map, Value, json};

use crate::cases::{Case, CaseOutcome};

/// Runs a case; `None` if it is of another kind.
pub(super) fn run(case: &Case<'_>) -> Option<CaseOutcome> {
    let input = &case.case["input"];
    let ours = &case.case["ours"];
    let wanted = if ours.is_null() { &case.case["expect"] } else { ours };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return Some(CaseOutcome::Failed(error.to_string())),
    };
    let done = match case.kind {
        "config_value" => runtime.block_on(async {
            let value = config_value::resolve(input["value"].as_str().unwrap_or_default(), &env(input)).await.ok();
            same(wanted, &json!({"ok": true, "value": value.filter(|value| !value.is_empty())}))
        }),
        "auth" if !input["fallback"].is_null() => return Some(CaseOutcome::NotImplemented),
        "auth" => runtime.block_on(stored(input, wanted)),
        "auth_file" => runtime.block_on(file(input, wanted)),
        "request_auth" => runtime.block_on(request(input, wanted)),
        "provider_auth_status" => status(input, wanted),
        _ => return None,
    };
    Some(done.into())
}

/// The environment of a case. Commands need programs, so the search path is kept.
fn env(input: &Value) -> Env {
    let vars = input["env"].as_object().into_iter().flatten();
    let vars = vars.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
    std::iter::once(("PATH".to_owned(), "/usr/bin:/bin".to_owned())).chain(vars).collect()
}

fn registry_auth(input: &Value, storage: AuthStorage, given: Option<(&str, &str)>) -> Result<RegistryAuth, String> {
    let registry = match &input["modelsJson"] {
        Value::Object(document) => ModelRegistry::from_document(document.clone(), Path::new("models.json")).0,
        _ => ModelRegistry::builtin(),
    };
    let given = given.map(|(provider, key)| (provider.into(), Secret::new(key)));
    let host = Host::builder().env(env(input)).build();
    Ok(RegistryAuth::new(Arc::new(registry), storage, given, host))
}

async fn stored(input: &Value, wanted: &Value) -> Result<(), String> {
    let entries = input["authJson"].as_object().cloned().unwrap_or_default();
    let storage = AuthStorage::in_memory(entries);
    let name = input["provider"].as_str().unwrap_or_default();
    let provider = name.into();
    let overrides = input.get("runtime").or_else(|| input.get("runtimeOverrides")).unwrap_or(&Value::Null);
    let given = overrides.as_str().or_else(|| overrides[name].as_str()).map(|key| (name, key));
    let auth = registry_auth(input, storage.clone(), given)?;
    for (member, wanted) in wanted.as_object().into_iter().flatten() {
        let found = match member.as_str() {
            "key" | "noFallback" => {
                let found = auth.key(&provider, KeyLookup::Value).await.ok().flatten();
                json!(found.and_then(|found| found.key).map(|key| key.reveal().to_owned()))
            }
            "status" => status_of(&auth, name),
            "has" => json!(storage.has(&provider)),
            "hasAuth" => json!(auth.is_configured(&provider)),
            other => return Err(format!("nobody knows what {other} is")),
        };
        same(wanted, &found).map_err(|why| format!("{member}{why}"))?;
    }
    Ok(())
}

fn status_of(auth: &RegistryAuth, provider: &str) -> Value {
    let status = auth.status(&provider.into());
    let mut shown = json!({"configured": status.is_configured()});
    if let Some(source) = status.source {
        shown["source"] = source.as_str().into();
    }
    if let Some(label) = status.label {
        shown["label"] = label.into();
    }
    shown
}

fn status(input: &Value, wanted: &Value) -> Result<(), String> {
    let auth = registry_auth(input, AuthStorage::in_memory(Map::new()), None)?;
    same(wanted, &status_of(&auth, input["provider"].as_str().unwrap_or_default()))
}

async fn request(input: &Value, wanted: &Value) -> Result<(), String> {
    let text = |name: &str| input[name].as_str().unwrap_or_default();
    let auth = registry_auth(input, AuthStorage::in_memory(Map::new()), None)?;
    let registry = match &input["modelsJson"] {
        Value::Object(document) => ModelRegistry::from_document(document.clone(), Path::new("models.json")).0,
        _ => ModelRegistry::builtin(),
    };
    let found = registry.find(&text("provider").into(), text("model"));
    let record = json!({"id": text("model"), "provider": text("provider"), "api": "x"});
    let model = found.map_or_else(|| Model::from_record(&record).map(Arc::new), Ok).map_err(|e| e.to_string())?;
    let found = match auth.key_and_headers(&model, KeyLookup::Value).await {
        Ok(found) => {
            let found = found.unwrap_or_default();
            let mut shown = json!({"ok": true});
            if let Some(key) = &found.key {
                shown["apiKey"] = key.reveal().into();
            }
            if !found.headers.is_empty() {
                shown["headers"] = headers_of(&found);
            }
            shown
        }
        Err(error @ (AuthError::Unresolved { .. } | AuthError::MissingForHeader { .. })) => {
            json!({"ok": false, "error": error.to_string()})
        }
        Err(error) => return Err(error.to_string()),
    };
    same(wanted, &found)
}

/// The headers of credentials as an object; for duplicates, the later one wins.
pub(super) fn headers_of(auth: &Auth) -> Value {
    auth.headers.iter().map(|(name, value)| (name.clone(), json!(value))).collect::<Map<_, _>>().into()
}

async fn file(input: &Value, wanted: &Value) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let agent_dir = folder.path().join("agent");
    let path = agent_dir.join("auth.json");
    let write = |text: String| {
        std::fs::create_dir_all(&agent_dir).and_then(|()| std::fs::write(&path, text)).map_err(|e| e.to_string())
    };
    if let Some(text) = input["fileText"].as_str() {
        write(text.to_owned())?;
    }
    let storage = AuthStorage::file(&path);
    let host = Host::builder().build();
    if !input["writeOutside"].is_null() {
        storage.entries();
        write(input["writeOutside"].to_string())?;
    }
    let (mut n_errors, mut names) = (0, Vec::new());
    for (name, entry) in input["set"].as_object().into_iter().flatten() {
        names.push(name.as_str());
        n_errors += usize::from(storage.set(&name.as_str().into(), entry.clone(), &host).await.is_err());
    }
    for (member, wanted) in wanted.as_object().into_iter().flatten() {
        let text = || std::fs::read_to_string(&path).map_err(|error| error.to_string());
        let mode = |path: &Path| {
            let meta = std::fs::metadata(path).map_err(|error| error.to_string())?;
            Ok::<_, String>(format!("{:o}", meta.permissions().mode() & 0o777))
        };
        let found = match member.as_str() {
            "text" | "fileText" => json!(text()?),
            "fileMode" => json!(mode(&path)?),
            "dirMode" => json!(mode(&agent_dir)?),
            "lockLeft" => json!(agent_dir.join("auth.json.lock").exists()),
            "errors" => json!(n_errors),
            "inMemory" => {
                let entry = names.first().and_then(|name| storage.get(&(*name).into()));
                json!(entry.map(|entry| entry["key"].clone()))
            }
            "keys" => {
                let value: Value = serde_json::from_str(&text()?).map_err(|error| error.to_string())?;
                value.as_object().into_iter().flatten().map(|(name, _)| json!(name)).collect()
            }
            other => return Err(format!("nobody knows what {other} is")),
        };
        same(wanted, &found).map_err(|why| format!("{member}{why}"))?;
    }
    Ok(())
}
