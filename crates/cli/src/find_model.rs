//! What is said when there is no model to ask, with the ways on.

use std::path::Path;

use pinch_embed::coding_agent::models::pattern::NotFound;
use pinch_embed::llm::ids::ProviderId;

use crate::exit::Failure;

/// No model at all, with the ways on. `documents` is the folder of models.json.
pub(crate) fn no_model(documents: &Path) -> Failure {
    Failure::configuration(format!(
        "No model to ask. Three ways on:\n  \
         1. Set a provider's key, e.g. export ANTHROPIC_API_KEY=… (or OPENAI_API_KEY, GEMINI_API_KEY, OPENROUTER_API_KEY, …).\n  \
         2. Start a local server: ollama (port 11434), llama.cpp (port 8080) or LM Studio (port 1234).\n  \
         3. Name a server of your own in {}, and use it with --model provider/id.\n\
         To see pinch work without any of them: pinch demo",
        documents.join("models.json").display()
    ))
}

/// A name that fits nothing, or too much.
pub(crate) fn not_found(error: &NotFound) -> Failure {
    Failure::user(error.to_string())
}

/// No key for a provider that was named.
pub(crate) fn no_key(provider: &ProviderId, agent_dir: &Path) -> Failure {
    let file = agent_dir.join("auth.json");
    let rest = match pinch_embed::llm::keys::remedy(provider.as_str()) {
        Some(remedy) => format!("{remedy}, put one into {}, or give --api-key", file.display()),
        None => format!("Put one into {}, or give --api-key", file.display()),
    };
    Failure::configuration(format!("No API key found for {provider}. {rest}"))
}
