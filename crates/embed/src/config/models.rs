//! `models`: configured providers and their models.

use pinch_coding_agent::document::Problem;
use pinch_llm::ids::ProviderId;
use serde_json::{Map, Value};

use super::node::Node;

/// The configured providers.
#[derive(Clone, Debug, Default)]
pub struct ModelsConfig {
    /// What happens to the providers in `models.json`.
    pub mode: ModelsMode,
    /// The providers.
    pub providers: Vec<ProviderConfig>,
}

/// What happens to the providers in `models.json` (`models.mode`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ModelsMode {
    /// They are kept, unless the configuration has a provider of the same name.
    #[default]
    Merge,
    /// They are not used.
    Replace,
}

/// One configured provider.
#[derive(Clone, Debug)]
pub struct ProviderConfig {
    /// Its name, normalised.
    pub id: ProviderId,
    /// Its models, with the members that the runner uses.
    pub models: Vec<ModelConfig>,
    /// The complete entry, in the format of models.json.
    pub entry: Map<String, Value>,
}

/// One model of a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelConfig {
    /// Its name.
    pub id: String,
    /// Its context window in tokens.
    pub context_window: Option<u64>,
}

impl ModelsConfig {
    pub(super) fn read(node: &Node<'_>, problems: &mut Vec<Problem>) -> Self {
        node.object(problems);
        let mode = node.get("mode").word(problems, &["merge", "replace"], |word| match word {
            "merge" => Some(ModelsMode::Merge),
            "replace" => Some(ModelsMode::Replace),
            _ => None,
        });
        let mut providers = Vec::new();
        for (name, entry) in node.get("providers").members(problems) {
            // The model registry reads the rest of the entry.
            let Some(Value::Object(object)) = entry.value() else {
                entry.object(problems);
                continue;
            };
            let models = (entry.get("models").items(problems).iter())
                .filter_map(|model| {
                    model.object(problems)?;
                    let id = model.get("id").text(problems)?;
                    let window = model.get("contextWindow").number(problems);
                    let context_window = window.filter(|n| n.is_finite() && *n >= 1.0).map(|n| n as u64);
                    Some(ModelConfig { id, context_window })
                })
                .collect();
            providers.push(ProviderConfig { id: normalise_provider(name), models, entry: object.clone() });
        }
        Self { mode: mode.unwrap_or_default(), providers }
    }

    /// Returns the configured context window of a model, in tokens.
    pub fn window(&self, provider: &ProviderId, model: &str) -> Option<u64> {
        let provider = normalise_provider(provider.as_str());
        let entry = self.providers.iter().find(|entry| entry.id == provider)?;
        entry.models.iter().find(|entry| entry.id == model)?.context_window
    }
}

/// Returns the canonical spelling of a provider's name.
pub fn normalise_provider(name: &str) -> ProviderId {
    let lower = name.trim().to_lowercase();
    ProviderId::new(match lower.as_str() {
        "z.ai" | "z-ai" => "zai",
        "opencode-zen" => "opencode",
        "qwen" => "qwen-portal",
        "kimi-code" => "kimi-coding",
        "bedrock" | "aws-bedrock" => "amazon-bedrock",
        "bytedance" | "doubao" => "volcengine",
        other => other,
    })
}

/// Reads a model setting: a reference, or an object with a primary model and fallbacks.
pub(super) fn read_model(node: &Node<'_>, problems: &mut Vec<Problem>) -> (Option<String>, Option<Vec<String>>) {
    match node.is_object() {
        true => (node.get("primary").text(problems), node.get("fallbacks").texts(problems)),
        false => (node.text(problems), None),
    }
}
