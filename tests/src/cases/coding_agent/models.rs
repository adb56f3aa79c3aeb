//! Models: documents, names, selection.

use std::sync::Arc;

use pinch_agent_core::llm::ids::ProviderId;
use pinch_agent_core::llm::model::Model;
use pinch_agent_core::llm::provider::scripted::ScriptedProvider;
use pinch_agent_core::llm::thinking::ThinkingLevel;
use pinch_coding_agent::auth::{AuthStorage, RequestAuth};
use pinch_coding_agent::models::pattern::{self, ModelMatch};
use pinch_coding_agent::models::{ModelRegistry, ProviderDefinition, RegistryAuth, initial, scope};
use pinch_stdx::cancel::Cancel;
use pinch_stdx::host::Host;
use pinch_stdx::secret::Secret;
use pinch_testing::cases::compare::{contains, same};
use serde_json::{Map, Value, json};

use super::auth::headers_of;
use crate::cases::{Case, CaseOutcome};

/// The provider in the fixture that has no credentials.
const WITHOUT_AUTH: &str = "cerebras";

/// Runs a case; `None` if it is of another kind.
pub(super) fn run(case: &Case<'_>) -> Option<CaseOutcome> {
    let input = &case.case["input"];
    let ours = &case.case["ours"];
    let wanted = if ours.is_null() { &case.case["expect"] } else { ours };
    let models = fixture(case, input);
    let available: Vec<Arc<Model>> = models.iter().filter(|model| model.provider != *WITHOUT_AUTH).cloned().collect();
    let text = |name: &str| input[name].as_str().unwrap_or_default();
    let value = match case.kind {
        "model_reference_exact" => json!(pattern::exact(&models, text("reference")).map(|model| name_of(&model))),
        "model_pattern_scope_mode" => {
            let found = pattern::parse(&models, text("pattern"));
            json!({
                "model": found.as_ref().map(|found| name_of(&found.model)),
                "thinkingLevel": found.as_ref().and_then(|found| found.thinking).map(ThinkingLevel::as_str),
                "warning": found.and_then(|found| found.warning),
            })
        }
        "model_cli_resolution" => resolve(&models, input),
        "model_scope" => {
            let (chosen, warnings) = scope::choose(&available, &texts(&input["patterns"]));
            let shown = |found: &ModelMatch| json!({"model": name_of(&found.model), "thinkingLevel": found.thinking.map(ThinkingLevel::as_str)});
            let warnings: Vec<String> = warnings.iter().map(|warning| format!("Warning: {warning}")).collect();
            json!({"models": chosen.iter().map(shown).collect::<Vec<_>>(), "warnings": warnings})
        }
        "initial_model" => begin(&models, &available, input),
        "models_json" => return Some(document(input, wanted).into()),
        "register_provider" => return Some(register(input, wanted).into()),
        _ => return None,
    };
    Some(same(wanted, &json!({"ok": true, "value": value})).into())
}

fn name_of(model: &Model) -> String {
    format!("{}/{}", model.provider, model.id)
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The models that a case names. They support thinking, at all levels except the last two.
fn fixture(case: &Case<'_>, input: &Value) -> Vec<Arc<Model>> {
    let list = input["fixture"].as_str().map_or(&Value::Null, |name| &case.file["fixtures"][name]);
    let records = list.as_array().into_iter().flatten().map(|model| {
        let mut record = model.clone();
        record["api"] = "openai-completions".into();
        record["baseUrl"] = "http://fixture".into();
        record["reasoning"] = true.into();
        record["thinkingLevelMap"] = json!({"xhigh": null});
        record
    });
    records.filter_map(|record| Model::from_record(&record).ok().map(Arc::new)).collect()
}

fn resolve(models: &[Arc<Model>], input: &Value) -> Value {
    let registry = ModelRegistry::of_models(models.iter().cloned());
    let pattern = input["cliModel"].as_str().unwrap_or_default();
    match pattern::resolve(&registry, input["cliProvider"].as_str(), pattern, &|_: &ProviderId| false) {
        Ok(found) => json!({
            "model": name_of(&found.model), "name": found.model.name,
            "thinkingLevel": found.thinking.map(ThinkingLevel::as_str), "warning": found.warning, "error": null,
        }),
        Err(error) => json!({
            "model": null, "name": null, "thinkingLevel": null, "warning": null, "error": error.to_string(),
        }),
    }
}

fn begin(models: &[Arc<Model>], available: &[Arc<Model>], input: &Value) -> Value {
    let level = |value: &Value| value.as_str().and_then(ThinkingLevel::parse);
    let scope: Vec<ModelMatch> = (input["scopedModels"].as_array().into_iter().flatten())
        .filter_map(|one| {
            let model = pattern::exact(models, one["model"].as_str()?)?;
            Some(ModelMatch { model, thinking: level(&one["thinkingLevel"]), warning: None })
        })
        .collect();
    let default = input["defaultProvider"].as_str().zip(input["defaultModelId"].as_str());
    let wishes = initial::InitialModelOptions {
        scope: &scope,
        is_continued: input["isContinuing"] == true,
        default,
        default_thinking: level(&input["defaultThinkingLevel"]),
        ..initial::InitialModelOptions::default()
    };
    let chosen = initial::choose(available, &wishes);
    json!({"model": chosen.model.map(|model| name_of(&model)), "thinkingLevel": chosen.thinking.as_str()})
}

/// Loads a document and checks the result.
fn document(input: &Value, wanted: &Value) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let path = folder.path().join("models.json");
    let text = input["documentText"].as_str().map_or_else(|| input["document"].to_string(), str::to_owned);
    std::fs::write(&path, text).map_err(|error| error.to_string())?;
    let (registry, problems) = ModelRegistry::load(&path);
    let error = registry.error().map(|error| error.replace(&path.display().to_string(), "$MODELS_JSON"));
    same(&wanted["accepted"], &json!(error.is_none())).map_err(|why| format!("accepted{why}: {error:?}"))?;
    if let Some(text) = wanted["error"].as_str() {
        same_error(text, error.as_deref().unwrap_or_default())?;
    }
    if wanted["warning"] == true && problems.is_empty() {
        return Err("nothing was warned of".to_owned());
    }
    if wanted["builtInModelsKept"] == true && registry.find(&"anthropic".into(), "claude-opus-4-6").is_none() {
        return Err("the built-in models are gone".to_owned());
    }
    for model in wanted["models"].as_array().into_iter().flatten() {
        let (provider, id) = (model["provider"].as_str().unwrap_or_default(), model["id"].as_str().unwrap_or_default());
        let list = input["document"]["providers"].as_object();
        let provider = match (provider, list.and_then(|list| list.keys().next())) {
            ("", Some(first)) => first,
            _ => provider,
        };
        let found = registry.find(&provider.into(), id).ok_or_else(|| format!("there is no {provider}/{id}"))?;
        contains(model, &found.to_record())?;
    }
    for name in texts(&wanted["absent"]) {
        let (provider, id) = name.split_once('/').unwrap_or_default();
        if registry.find(&provider.into(), id).is_some() {
            return Err(format!("{name} is there"));
        }
    }
    if let Some(model) = wanted["models"].get(0).filter(|_| wanted["requestHeaders"].is_object()) {
        let provider = ProviderId::from(model["provider"].as_str().unwrap_or_default());
        let found = registry.find(&provider, model["id"].as_str().unwrap_or_default()).ok_or("the model is gone")?;
        let given = Some((provider, Secret::new("k")));
        let host = Host::builder().build();
        let auth = RegistryAuth::new(Arc::new(registry), AuthStorage::in_memory(Map::new()), given, host);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let cancel = Cancel::new();
        let found = runtime.map_err(|error| error.to_string())?.block_on(auth.for_model(&found, &cancel));
        let headers = headers_of(&found.map_err(|error| error.to_string())?);
        same(&wanted["requestHeaders"], &headers).map_err(|why| format!("requestHeaders{why}"))?;
    }
    Ok(())
}

/// Compares errors as the file prescribes: only the frame of parser messages, and the set of places of validation errors.
fn same_error(wanted: &str, found: &str) -> Result<(), String> {
    let differ = || format!("expected {wanted:?}, found {found:?}");
    if let Some(frame) = wanted.split_once("models.json: ").filter(|(frame, _)| *frame == "Failed to parse ") {
        let is_same = found.starts_with(frame.0) && found.ends_with("\n\nFile: $MODELS_JSON");
        return if is_same { Ok(()) } else { Err(differ()) };
    }
    if wanted.starts_with("Invalid models.json schema:") {
        let places = |text: &str| {
            let lines = text.lines().filter_map(|line| line.strip_prefix("  - ")?.split_once(": "));
            let mut places: Vec<String> = lines.map(|(at, _)| at.to_owned()).collect();
            places.sort();
            places.dedup();
            places
        };
        let frame = found.starts_with("Invalid models.json schema:\n") && found.ends_with("\n\nFile: $MODELS_JSON");
        return if frame && places(wanted) == places(found) { Ok(()) } else { Err(differ()) };
    }
    if wanted == found { Ok(()) } else { Err(differ()) }
}

fn register(input: &Value, wanted: &Value) -> Result<(), String> {
    let registry = ModelRegistry::builtin();
    let name = input["name"].as_str().unwrap_or_default();
    let config = &input["config"];
    let document = config.as_object().cloned().unwrap_or_default();
    // A host function replaces a stream or a login.
    let stream = config.get("streamSimple").is_some().then(|| Arc::new(ScriptedProvider::new([])) as _);
    let config = ProviderDefinition { document, stream, oauth: None };
    match registry.register_provider(name, config) {
        Ok(()) => {
            same(&wanted["ok"], &json!(true))?;
            let all = registry.models(&name.into());
            let expected = wanted["models"].as_array().map_or(&[][..], Vec::as_slice);
            if all.len() < expected.len() {
                return Err(format!("{} models, and {} were expected", all.len(), expected.len()));
            }
            expected.iter().zip(all.iter()).try_for_each(|(expected, model)| contains(expected, &model.to_record()))
        }
        Err(error) => same(&wanted["error"], &json!(error.to_string())),
    }
}
