//! Requirements for catalog records: plausible prices and limits.

use std::collections::BTreeSet;

use pinch_llm::ids::ApiId;
use pinch_llm::keys;
use pinch_llm::model::Model;
use pinch_llm::provider::{ProviderRegistry, UnknownApi};
use serde_json::Value;

/// A price, in dollars per million tokens, that no model reaches: above it, a price was multiplied once too often.
const MAX_PRICE: f64 = 2_000.0;
/// Number of tokens larger than any context window.
const MAX_WINDOW: u64 = 100_000_000;
/// Providers whose credentials do not come from an environment variable of their own.
const OTHER_CREDENTIALS: [&str; 4] = ["amazon-bedrock", "openai-codex", "radius", "typesafe"];

/// The wire format of the gateway by pi's makers, which is listed but not supported.
const UNSPOKEN: &str = "pi-messages";

/// Results of the checks.
#[derive(Debug, Default)]
pub(super) struct CatalogFindings {
    /// Errors in the catalog.
    pub(super) errors: Vec<String>,
    /// Oddities that are kept as the catalog's source has them.
    pub(super) notes: Vec<String>,
}

/// Checks the records of a provider.
pub(super) fn check(provider: &str, records: &[Value], findings: &mut CatalogFindings) {
    let mut seen = BTreeSet::new();
    for record in records {
        let id = record["id"].as_str().unwrap_or("?");
        let name = format!("{provider}/{id}");
        // The same ID may exist once for each model type.
        if !seen.insert((id.to_owned(), record["type"].as_str().unwrap_or("chat").to_owned())) {
            findings.errors.push(format!("{name}: there twice"));
        }
        match Model::from_record(record) {
            Ok(model) => check_model(&name, provider, record, &model, findings),
            Err(why) => findings.errors.push(format!("{name}: {why}")),
        }
    }
    if !records.is_empty() && keys::variables(provider).is_empty() && !OTHER_CREDENTIALS.contains(&provider) {
        findings.errors.push(format!("{provider}: no variable of the environment holds its key; name one in keys.rs"));
    }
}

fn check_model(name: &str, provider: &str, record: &Value, model: &Model, findings: &mut CatalogFindings) {
    let CatalogFindings { errors, notes } = findings;
    if model.provider != *provider {
        errors.push(format!("{name}: says that its provider is {}", model.provider));
    }
    check_prices(name, &record["cost"], errors, notes);
    let mut above = 0;
    for tier in record["cost"]["tiers"].as_array().into_iter().flatten() {
        check_prices(name, tier, errors, notes);
        match tier["inputTokensAbove"].as_u64() {
            Some(threshold) if threshold > above => above = threshold,
            other => errors.push(format!("{name}: tiers must rise, after {above} comes {other:?}")),
        }
    }
    if model.context_window > MAX_WINDOW || model.max_tokens > MAX_WINDOW {
        errors.push(format!("{name}: {} and {} tokens are too many", model.context_window, model.max_tokens));
    }
    if model.context_window > 0 && model.max_tokens > model.context_window {
        notes.push(format!("{name}: answers of {} in a window of {}", model.max_tokens, model.context_window));
    }
    let needs_url = model.api != *ApiId::AZURE_RESPONSES && provider != "azure";
    if !(model.base_url.starts_with("https://") || (model.base_url.is_empty() && !needs_url)) {
        errors.push(format!("{name}: {:?} is no https URL", model.base_url));
    }
    let known = ProviderRegistry::builtin().get(&model.api);
    if let (Err(UnknownApi::Unknown { .. }), true) = (known, model.api != *UNSPOKEN) {
        errors.push(format!("{name}: nobody speaks {}", model.api));
    }
}

fn check_prices(name: &str, prices: &Value, errors: &mut Vec<String>, notes: &mut Vec<String>) {
    for (what, price) in prices.as_object().into_iter().flatten() {
        let Some(price) = price.as_f64().filter(|_| what != "inputTokensAbove") else { continue };
        if price < 0.0 {
            notes.push(format!("{name}: {what} {price} means unknown"));
        } else if price > MAX_PRICE {
            errors.push(format!("{name}: {what} costs {price} dollars a million tokens"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn findings(more: Value) -> CatalogFindings {
        let mut record = json!({
            "id": "m", "api": "openai-completions", "provider": "groq", "baseUrl": "https://api.groq.com/openai/v1",
            "contextWindow": 1000, "maxTokens": 100, "cost": {"input": 1, "output": 2, "cacheRead": 0, "cacheWrite": 0},
        });
        if let (Some(record), Some(more)) = (record.as_object_mut(), more.as_object()) {
            record.extend(more.clone());
        }
        let mut findings = CatalogFindings::default();
        check("groq", &[record], &mut findings);
        findings
    }

    #[test]
    fn a_good_record_is_good() {
        let CatalogFindings { errors, notes } = findings(json!({}));
        assert!(errors.is_empty() && notes.is_empty(), "{errors:?} {notes:?}");
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (more, what) in [
            (json!({"provider": "x"}), "says that its provider is x"),
            (json!({"cost": {"input": 3e6}}), "input costs 3000000 dollars"),
            (json!({"cost": {"tiers": [{"inputTokensAbove": 5}, {"inputTokensAbove": 5}]}}), "tiers must rise"),
            (json!({"contextWindow": 1_000_000_000}), "too many"),
            (json!({"baseUrl": "ftp://x"}), "no https URL"),
            (json!({"api": "smoke-signals"}), "nobody speaks smoke-signals"),
        ] {
            let found = findings(more).errors;
            assert!(found.len() == 1 && found[0].contains(what), "{what}: {found:?}");
        }
        assert!(findings(json!({"cost": {"input": -1}})).notes[0].contains("means unknown"));
        assert!(findings(json!({"maxTokens": 2000})).notes[0].contains("answers of 2000"));
        let mut twice = CatalogFindings::default();
        let record = json!({"id": "m", "api": "openai-completions", "provider": "groq", "baseUrl": "https://x"});
        check("groq", &[record.clone(), record], &mut twice);
        assert_eq!(twice.errors, ["groq/m: there twice"]);
        let mut unknown = CatalogFindings::default();
        check(
            "nobody",
            &[json!({"id": "m", "api": "openai-completions", "provider": "nobody", "baseUrl": "https://x"})],
            &mut unknown,
        );
        assert!(unknown.errors[0].contains("keys.rs"), "{:?}", unknown.errors);
    }
}
