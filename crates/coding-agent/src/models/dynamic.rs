//! Providers registered at run time.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use pinch_llm::ids::ProviderId;
use pinch_llm::oauth::OAuthFlow;
use pinch_llm::provider::Provider;
use serde_json::{Map, Value};

use super::definition::{Definition, FindingKind, ModelProblems};
use super::schema;

/// A provider as defined by an extension.
#[derive(Clone, Default)]
pub struct ProviderDefinition {
    /// Its definition as in models.json: `name`, `baseUrl`, `apiKey`, `api`, `headers`, `authHeader`, `compat`, `models`.
    pub document: Map<String, Value>,
    /// Serves its models, instead of the wire format named in `api`.
    pub stream: Option<Arc<dyn Provider>>,
    /// The sign-in flow.
    pub oauth: Option<Arc<dyn OAuthFlow>>,
}

impl From<Map<String, Value>> for ProviderDefinition {
    fn from(document: Map<String, Value>) -> Self {
        Self { document, ..Self::default() }
    }
}

impl fmt::Debug for ProviderDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The document may contain a key.
        let members: Vec<&String> = self.document.keys().collect();
        f.debug_struct("ProviderConfig").field("document", &members).finish_non_exhaustive()
    }
}

/// An invalid provider definition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct RegisterError {
    /// The provider.
    pub provider: ProviderId,
    /// What is wrong.
    pub text: String,
}

/// A registered provider.
#[derive(Clone, Debug, Default)]
pub(super) struct DynamicProvider {
    /// The merged definitions.
    pub(super) config: ProviderDefinition,
    pub(super) definition: Definition,
    /// Whether its models replace all others of this provider.
    pub(super) replaces: bool,
}

impl DynamicProvider {
    /// Merges a definition into an earlier one and validates the result.
    pub(super) fn new(
        id: &ProviderId,
        before: Option<&Self>,
        config: ProviderDefinition,
    ) -> Result<Self, RegisterError> {
        let fail = |text: String| RegisterError { provider: id.clone(), text };
        let mut merged = before.map(|before| before.config.clone()).unwrap_or_default();
        merged.document.extend(config.document);
        merged.stream = config.stream.or(merged.stream);
        merged.oauth = config.oauth.or(merged.oauth);
        let mut misfits = Vec::new();
        schema::provider("config", &merged.document, &mut misfits);
        if let Some((at, what)) = misfits.first() {
            return Err(fail(format!("Provider {id}: {at} {what}")));
        }
        let (mut definition, models) = Definition::of(merged.document.clone());
        if merged.stream.is_some() && definition.api.is_none() {
            return Err(fail(format!("Provider {id}: \"api\" is required when registering streamSimple.")));
        }
        let lacks_api = |model: &&Value| definition.api.is_none() && model.is_object() && model.get("api").is_none();
        if let Some(model) = models.iter().find(lacks_api) {
            let model = model["id"].as_str().unwrap_or_default();
            return Err(fail(format!(
                "Provider {id}, model {model}: no \"api\" specified. Set at provider or model level."
            )));
        }
        let lacks_url = |model: &Value| model.get("baseUrl").is_none();
        if definition.base_url.is_none() && models.iter().any(lacks_url) {
            return Err(fail(format!("Provider {id}: \"baseUrl\" is required when defining custom models.")));
        }
        let replaces = !models.is_empty();
        let mut findings = ModelProblems { file: Path::new("config"), all: Vec::new() };
        definition.add_models(id, "config", models, true, &mut findings);
        let broken = findings.all.into_iter().find(|finding| finding.sort != FindingKind::Warning);
        match broken {
            None => Ok(Self { config: merged, definition, replaces }),
            Some(finding) => {
                let place = match &finding.sort {
                    FindingKind::Rule(_) => String::new(),
                    _ => format!("Provider {id}: {} ", finding.problem.at.as_deref().unwrap_or_default()),
                };
                Err(fail(place + &finding.problem.what))
            }
        }
    }
}
