//! Errors about models and API keys, with remedies.

use std::path::Path;

use pinch_embed::coding_agent::document::read_object;
use pinch_embed::coding_agent::models::pattern::NotFound;
use pinch_embed::llm::ids::ProviderId;

use crate::exit::CommandFailure;

/// Creates the error for no model at all. `documents` is the directory of models.json.
pub(crate) fn no_model(documents: &Path) -> CommandFailure {
    let failure = CommandFailure::configuration(format!(
        "no model is configured\n\
         hint: to add one, do one of these:\n  \
         - log in to a provider: pinch auth login\n  \
         - set an API key, e.g. export ANTHROPIC_API_KEY=… (or OPENAI_API_KEY, GEMINI_API_KEY, OPENROUTER_API_KEY, …)\n  \
         - start a local server: Ollama (port 11434), llama.cpp (port 8080) or LM Studio (port 1234)\n  \
         - add a server of your own to {}, and use it with --model provider/id\n\
         hint: to see a run without a model, use: pinch demo",
        documents.join("models.json").display()
    ));
    CommandFailure { lacks_model: true, ..failure }
}

/// Creates the error for a pattern that matches no model, or several.
pub(crate) fn not_found(error: &NotFound) -> CommandFailure {
    CommandFailure::user(error.to_string())
}

/// Creates the error for a provider without an API key.
pub(crate) fn no_key(provider: &ProviderId, agent_dir: &Path) -> CommandFailure {
    let file = agent_dir.join("auth.json");
    let models = agent_dir.join("models.json");
    let hint = match pinch_embed::llm::keys::remedy(provider.as_str()) {
        Some(remedy) => format!("{}, add one to {}, or use --api-key", lower_first(&remedy), file.display()),
        None => format!("{}add a key to {}, or use --api-key", in_models_json(&models, provider), file.display()),
    };
    CommandFailure::configuration(format!("No API key found for {provider}\nhint: {hint}"))
}

/// Returns the remedy in models.json, followed by a comma, if the provider is defined there.
fn in_models_json(models: &Path, provider: &ProviderId) -> String {
    let document = read_object(models).unwrap_or_default();
    let defined = document.get("providers").and_then(|providers| providers.get(provider.as_str()));
    match defined.map(|defined| defined.get("apiKey").is_some()) {
        Some(true) => format!("set the variable that \"apiKey\" in {} names, ", models.display()),
        Some(false) => format!("set \"apiKey\" of {provider} in {}, ", models.display()),
        None => String::new(),
    }
}

/// Returns a sentence as a part of another one.
fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_lowercase().chain(chars).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hint_about_a_missing_key_names_models_json_only_if_the_provider_is_defined_there() {
        let dir = tempfile::tempdir().unwrap();
        let text = || no_key(&"echo".into(), dir.path()).to_string().replace(&dir.path().display().to_string(), "DIR");
        let elsewhere = "Error: No API key found for echo\nhint: add a key to DIR/auth.json, or use --api-key";
        assert_eq!(text(), elsewhere);
        std::fs::write(dir.path().join("models.json"), r#"{"providers": {"lab": {"apiKey": "$LAB"}}}"#).unwrap();
        assert_eq!(text(), elsewhere);
        std::fs::write(dir.path().join("models.json"), r#"{"providers": {"echo": {"apiKey": "$ECHO"}}}"#).unwrap();
        let defined = "Error: No API key found for echo\nhint: set the variable that \"apiKey\" in DIR/models.json names, \
                       add a key to DIR/auth.json, or use --api-key";
        assert_eq!(text(), defined);
    }
}
