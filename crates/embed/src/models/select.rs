//! Model references: `provider/model`, or an alias.

use std::fmt;

use pinch_llm::ids::{ModelId, ProviderId};

use crate::config::agents::{AgentDefaults, ModelEntry};
use crate::config::normalise_provider;

/// The default provider.
pub const DEFAULT_PROVIDER: &str = "anthropic";

/// The default model.
pub const DEFAULT_MODEL: &str = "claude-opus-4-6";

/// A model of a provider, both names in canonical spelling.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModelRef {
    /// The provider.
    pub provider: ProviderId,
    /// The model.
    pub model: ModelId,
}

impl ModelRef {
    /// Creates a reference; both names are normalised.
    pub fn new(provider: &str, model: &str) -> Self {
        let provider = normalise_provider(provider);
        let model = normalise_model(&provider, model.trim());
        Self { provider, model }
    }

    /// Parses `provider/model`; without a slash, the default provider applies.
    pub fn parse(text: &str, default_provider: &str) -> Option<Self> {
        let text = text.trim();
        let (provider, model) = text.split_once('/').unwrap_or((default_provider, text));
        let (provider, model) = (provider.trim(), model.trim());
        (!provider.is_empty() && !model.is_empty()).then(|| Self::new(provider, model))
    }
}

impl Default for ModelRef {
    fn default() -> Self {
        Self::new(DEFAULT_PROVIDER, DEFAULT_MODEL)
    }
}

impl fmt::Display for ModelRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.provider, self.model)
    }
}

/// Expands short names used by people and old files.
pub(super) fn normalise_model(provider: &ProviderId, model: &str) -> ModelId {
    ModelId::new(match (provider.as_str(), model.to_lowercase().as_str()) {
        ("anthropic", "opus-4.6") => "claude-opus-4-6",
        ("anthropic", "opus-4.5") => "claude-opus-4-5",
        ("anthropic", "sonnet-4.6") => "claude-sonnet-4-6",
        ("anthropic", "sonnet-4.5") => "claude-sonnet-4-5",
        ("google", "gemini-3-pro") => "gemini-3-pro-preview",
        ("google", "gemini-3-flash") => "gemini-3-flash-preview",
        _ => model,
    })
}

/// Configured aliases of models.
#[derive(Clone, Debug, Default)]
pub struct Aliases(Vec<(String, ModelRef)>);

impl Aliases {
    /// Collects aliases with the references they expand to.
    pub fn new<'a>(entries: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let entry = |(alias, target): (&str, &str)| {
            Some((alias.trim().to_lowercase(), ModelRef::parse(target, DEFAULT_PROVIDER)?))
        };
        Self(entries.into_iter().filter_map(entry).collect())
    }

    /// Returns the configured aliases.
    pub fn of(defaults: &AgentDefaults) -> Self {
        let alias = |(name, entry): &'_ (String, ModelEntry)| Some((entry.alias.clone()?, name.clone()));
        let entries: Vec<_> = defaults.models.iter().filter_map(alias).collect();
        Self::new(entries.iter().map(|(alias, name)| (alias.as_str(), name.as_str())))
    }

    /// Resolves an alias or a reference. An alias has no slash.
    pub fn resolve(&self, text: &str) -> Option<ModelRef> {
        let lower = text.trim().to_lowercase();
        let by_alias = self.0.iter().find(|(alias, _)| *alias == lower).filter(|_| !lower.contains('/'));
        by_alias.map(|(_, target)| target.clone()).or_else(|| ModelRef::parse(text, DEFAULT_PROVIDER))
    }
}

/// Returns the first configured model, or the built-in default.
pub fn primary(setting: Option<&str>, aliases: &Aliases) -> ModelRef {
    setting.and_then(|text| aliases.resolve(text)).unwrap_or_default()
}

/// Why a model may not be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("model not allowed: {0}")]
pub struct NotAllowed(pub ModelRef);

/// The models that may be used, if the configuration lists any.
#[derive(Clone, Copy, Debug)]
pub struct Allowed<'a> {
    /// The listed models; if empty, every model is allowed.
    pub models: &'a [ModelRef],
    /// The default model, which is always allowed.
    pub default: &'a ModelRef,
}

impl Allowed<'_> {
    /// Fails if a model is not on the list. A listed model need not be in the catalog.
    ///
    /// # Errors
    /// [`NotAllowed`].
    pub fn check(&self, wanted: &ModelRef) -> Result<(), NotAllowed> {
        let is_allowed = self.models.is_empty() || wanted == self.default || self.models.contains(wanted);
        if is_allowed { Ok(()) } else { Err(NotAllowed(wanted.clone())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_and_aliases_are_resolved() {
        let aliases = Aliases::new([("fast", "groq/llama")]);
        let rows = [
            (" Fast ", Some("groq/llama")),
            ("openrouter/moonshotai/kimi-k2", Some("openrouter/moonshotai/kimi-k2")),
            ("google/gemini-3-pro", Some("google/gemini-3-pro-preview")),
            ("opus-4.6", Some("anthropic/claude-opus-4-6")),
            ("Z.AI/glm", Some("zai/glm")),
            ("openai/", None),
            ("/x", None),
            ("  ", None),
        ];
        for (text, expected) in rows {
            assert_eq!(aliases.resolve(text).map(|r| r.to_string()).as_deref(), expected, "{text}");
        }
    }
}
