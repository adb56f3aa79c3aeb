//! Executors for the areas of the llm-providers suite that need no server: keys, catalog, levels, prices.

use std::path::Path;

use pinch_llm::catalog::Catalog;
use pinch_llm::keys;
use pinch_llm::message::Message;
use pinch_llm::model::Model;
use pinch_llm::model::thinking::{clamp_word, supported};
use pinch_llm::stdx::host::Env;
use pinch_testing::cases::compare::same;
use serde_json::{Map, Value, json};

use super::{named_members, wanted};
use crate::cases::{Case, CaseOutcome};

/// Runs a case of one of these areas.
pub(super) fn execute(case: &Case<'_>) -> CaseOutcome {
    let (given, expect) = (&case.case["given"], wanted(&case.case["expect"]));
    match case.kind {
        "env-key" => env_key(given).and_then(|actual| named_members(expect, &actual)).into(),
        "catalog" => catalog(given, expect).into(),
        "thinking-levels" => levels(given).and_then(|actual| same(expect, &actual)).into(),
        "cost" => cost(given).and_then(|actual| named_members(expect, &actual)).into(),
        _ => CaseOutcome::NotImplemented,
    }
}

fn text_of(value: &Value) -> Result<&str, String> {
    value.as_str().ok_or_else(|| format!("the case should have a text here: {value}"))
}

fn env_key(given: &Value) -> Result<Value, String> {
    let provider = text_of(&given["provider"])?;
    let vars = given["env"].as_object().into_iter().flatten();
    let env: Env = vars.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect();
    let mut key = keys::api_key(provider, &env).map(|key| key.reveal().to_owned());
    if key.is_none() && provider == "google-vertex" {
        let home = env.non_empty("HOME").map(Path::new);
        key = keys::google_credentials_file(&env, home).filter(|file| file.exists()).map(|_| keys::AMBIENT.to_owned());
    }
    let found = keys::found_vars(provider, &env);
    let found = if found.is_empty() { Value::Null } else { json!(found) };
    Ok(json!({"apiKey": key, "foundEnvVars": found}))
}

fn catalog(given: &Value, expect: &Value) -> Result<(), String> {
    let catalog = Catalog::built_in();
    let Some(provider) = given["provider"].as_str() else {
        let counts: Map<String, Value> =
            catalog.providers().map(|p| (p.to_string(), json!(catalog.n_models(p.as_str())))).collect();
        let n_models: usize = catalog.providers().map(|p| catalog.models(p.as_str()).len()).sum();
        let actual = json!({"providers": counts.len(), "models": n_models, "perProvider": counts});
        return named_members(expect, &actual);
    };
    if expect.get("modelsOfUnknownProvider").is_some() {
        let ids: Vec<String> = catalog.models(provider).iter().map(|model| model.id.to_string()).collect();
        return named_members(expect, &json!({"modelsOfUnknownProvider": ids}));
    }
    let model = given["model"].as_str().and_then(|id| catalog.find(provider, id));
    let Some(model) = model else {
        let ids: Vec<String> = catalog.models(provider).iter().map(|model| model.id.to_string()).collect();
        // Without a model, the provider is looked up; an unknown one has no models.
        return named_members(expect, &json!({"model": null, "models": ids, "count": ids.len()}));
    };
    if expect.get("model").is_some_and(Value::is_null) {
        return Err(format!("{} should not be there", model.id));
    }
    let mut record = model.to_record();
    record["priceKnown"] = model.has_known_price().into();
    record["cost"] = model.rates.counted().to_record();
    named_members(expect, &record)
}

fn find<'a>(catalog: &'a Catalog, provider: &Value, id: &Value) -> Result<&'a Model, String> {
    let (provider, id) = (text_of(provider)?, text_of(id)?);
    catalog.find(provider, id).map(|model| &**model).ok_or_else(|| format!("the catalog has no {provider}/{id}"))
}

fn levels(given: &Value) -> Result<Value, String> {
    let catalog = Catalog::built_in();
    let one = |item: &Value| {
        if let Some((provider, id)) = item.as_str().and_then(|name| name.split_once('/')) {
            let model = find(&catalog, &provider.into(), &id.into())?;
            return Ok(supported(model).into_iter().map(|level| level.as_str()).collect::<Value>());
        }
        let model = find(&catalog, &item["provider"], &item["model"])?;
        Ok(clamp_word(model, text_of(&item["requested"])?).as_str().into())
    };
    given.as_array().ok_or("a list was expected")?.iter().map(one).collect()
}

fn cost(given: &Value) -> Result<Value, String> {
    let catalog = Catalog::built_in();
    let model = find(&catalog, &given["provider"], &given["model"])?;
    let message = json!({"role": "assistant", "content": [], "usage": given["usage"]});
    let message = Message::from_value(&message).map_err(|error| error.to_string())?;
    let usage = message.as_assistant().ok_or("no assistant message")?.usage;
    let cost = model.rates.cost(&usage);
    Ok(json!({"cost": {"input": cost.input, "output": cost.output, "cacheRead": cost.cache_read,
        "cacheWrite": cost.cache_write, "total": cost.total}}))
}
