//! Validated definitions of providers and their models, from models.json or an extension, ready to be applied to the catalog.

use std::path::Path;

use pinch_llm::catalog::{Catalog, canonical_provider};
use pinch_llm::ids::ProviderId;
use serde_json::{Map, Value};

use super::{compat_rules, schema};
use crate::document::Problem;

/// The definition of a provider. Its model records are parsed when they are used.
#[derive(Clone, Debug, Default)]
pub(super) struct Definition {
    pub(super) name: Option<String>,
    pub(super) base_url: Option<String>,
    pub(super) api_key: Option<String>,
    pub(super) api: Option<String>,
    pub(super) auth_header: Option<bool>,
    pub(super) headers: Map<String, Value>,
    pub(super) compat: Option<Map<String, Value>>,
    /// The provider's additional models; each has an id and, possibly from the provider, an api.
    pub(super) models: Vec<Map<String, Value>>,
    pub(super) overrides: Map<String, Value>,
}

/// The kind of a problem: pi words each kind differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FindingKind {
    /// The document cannot be read.
    Document,
    /// A value has the wrong shape.
    Shape,
    /// A value is missing or invalid.
    Rule(ProviderId),
    /// The value is used nevertheless.
    Warning,
}

/// A problem in a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ModelProblem {
    pub(super) sort: FindingKind,
    pub(super) problem: Problem,
}

/// Collects problems.
pub(super) struct ModelProblems<'a> {
    pub(super) file: &'a Path,
    pub(super) all: Vec<ModelProblem>,
}

impl ModelProblems<'_> {
    pub(super) fn note(&mut self, sort: FindingKind, at: &str, what: String, remedy: &str) {
        let problem = Problem::new(self.file, what).at(at).remedy(remedy);
        self.all.push(ModelProblem { sort, problem });
    }

    /// Adds misfits; returns whether there were any.
    fn misfits(&mut self, misfits: Vec<schema::Misfit>, remedy: &str) -> bool {
        let any = !misfits.is_empty();
        for (at, what) in misfits {
            self.note(FindingKind::Shape, &at, what, remedy);
        }
        any
    }
}

/// Parses all providers of a document. Invalid ones are reported and skipped.
pub(super) fn read_document(
    root: Value,
    catalog: Option<&Catalog>,
    findings: &mut ModelProblems<'_>,
) -> Vec<(ProviderId, Definition)> {
    const REMEDY: &str = "Write {\"providers\": {\"name\": {…}}}";
    let Value::Object(mut root) = root else {
        findings.note(FindingKind::Shape, "root", "must be object".into(), REMEDY);
        return Vec::new();
    };
    match root.shift_remove("providers") {
        None => {
            findings.note(FindingKind::Shape, "providers", "must have required properties providers".into(), REMEDY)
        }
        Some(Value::Object(providers)) => {
            let read = providers.into_iter().filter_map(|(name, config)| {
                let id = ProviderId::new(canonical_provider(&name));
                let is_built_in = catalog.is_some_and(|catalog| catalog.n_models(&name) > 0);
                Definition::read(&id, &format!("providers.{name}"), config, is_built_in, findings)
                    .map(|definition| (id, definition))
            });
            return read.collect();
        }
        Some(_) => findings.note(FindingKind::Shape, "providers", "must be object".into(), REMEDY),
    }
    Vec::new()
}

impl Definition {
    /// Parses a document's definition of one provider. Returns `None` if nothing in it is usable.
    pub(super) fn read(
        id: &ProviderId,
        at: &str,
        config: Value,
        is_built_in: bool,
        findings: &mut ModelProblems<'_>,
    ) -> Option<Self> {
        let Value::Object(config) = config else {
            findings.note(FindingKind::Shape, at, "must be object".into(), "The provider is ignored");
            return None;
        };
        let mut misfits = Vec::new();
        schema::provider(at, &config, &mut misfits);
        if findings.misfits(misfits, "The provider is ignored") {
            return None;
        }
        let (mut definition, models) = Self::of(config);
        definition.check_overrides(at, findings);
        let says_something = !models.is_empty()
            || definition.base_url.is_some()
            || !definition.headers.is_empty()
            || definition.compat.is_some()
            || !definition.overrides.is_empty();
        if !says_something {
            let what = format!(
                "Provider {id}: must specify \"baseUrl\", \"headers\", \"compat\", \"modelOverrides\", or \"models\"."
            );
            findings.note(FindingKind::Rule(id.clone()), at, what, "Its key still applies, if it has one");
            return definition.api_key.is_some().then_some(definition);
        }
        let lacks_url = |model: &Value| model.get("baseUrl").is_none();
        if !is_built_in && definition.base_url.is_none() && models.iter().any(lacks_url) {
            let what = format!("Provider {id}: \"baseUrl\" is required when defining custom models.");
            findings.note(FindingKind::Rule(id.clone()), at, what, "Set the server's URL");
            return None;
        }
        definition.compat_warnings(at, findings);
        definition.add_models(id, at, models, is_built_in, findings);
        Some(definition)
    }

    /// Splits a provider into its well-formed members and its unchecked models.
    pub(super) fn of(mut config: Map<String, Value>) -> (Self, Vec<Value>) {
        let mut text = |name: &str| match config.shift_remove(name) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        let (name, base_url, api_key, api) = (text("name"), text("baseUrl"), text("apiKey"), text("api"));
        let mut map = |name: &str| match config.shift_remove(name) {
            Some(Value::Object(map)) => Some(map),
            _ => None,
        };
        let (headers, compat, overrides) = (map("headers"), map("compat"), map("modelOverrides"));
        let models = match config.shift_remove("models") {
            Some(Value::Array(models)) => models,
            _ => Vec::new(),
        };
        let definition = Self {
            name,
            base_url,
            api_key,
            api,
            auth_header: config.get("authHeader").and_then(Value::as_bool),
            headers: headers.unwrap_or_default(),
            compat,
            models: Vec::new(),
            overrides: overrides.unwrap_or_default(),
        };
        (definition, models)
    }

    /// Adds the valid models.
    pub(super) fn add_models(
        &mut self,
        id: &ProviderId,
        at: &str,
        models: Vec<Value>,
        is_lent: bool,
        findings: &mut ModelProblems<'_>,
    ) {
        const LEFT_OUT: &str = "The model is ignored";
        self.models.reserve(models.len());
        for (n, model) in models.into_iter().enumerate() {
            let place = || format!("{at}.models.{n}");
            let mut misfits = Vec::new();
            schema::model(&place, &model, &mut misfits);
            if findings.misfits(misfits, LEFT_OUT) {
                continue;
            }
            let Value::Object(model) = model else { continue };
            match broken_rule(id, &model, is_lent || self.api.is_some()) {
                Some(what) => findings.note(FindingKind::Rule(id.clone()), &place(), what, LEFT_OUT),
                None => {
                    if let Some(compat) = model.get("compat").and_then(Value::as_object) {
                        warn_of(&format!("{}.compat", place()), compat, findings);
                    }
                    self.models.push(model);
                }
            }
        }
    }

    fn check_overrides(&mut self, at: &str, findings: &mut ModelProblems<'_>) {
        self.overrides.retain(|id, over| {
            let place = format!("{at}.modelOverrides.{id}");
            let mut misfits = Vec::new();
            schema::model_override(&|| place.clone(), over, &mut misfits);
            let is_broken = findings.misfits(misfits, "The override is ignored");
            if let Some(compat) = over.get("compat").and_then(Value::as_object).filter(|_| !is_broken) {
                warn_of(&format!("{place}.compat"), compat, findings);
            }
            !is_broken
        });
    }

    fn compat_warnings(&self, at: &str, findings: &mut ModelProblems<'_>) {
        if let Some(compat) = &self.compat {
            warn_of(&format!("{at}.compat"), compat, findings);
        }
    }
}

/// Returns why a well-formed model is invalid.
fn broken_rule(provider: &ProviderId, model: &Map<String, Value>, has_api: bool) -> Option<String> {
    let id = model.get("id").and_then(Value::as_str).unwrap_or_default();
    if !has_api && !model.contains_key("api") {
        return Some(format!("Provider {provider}, model {id}: no \"api\" specified. Set at provider or model level."));
    }
    let is_none = |name: &&str| model.get(*name).and_then(Value::as_f64).is_some_and(|n| n <= 0.0);
    let name = ["contextWindow", "maxTokens"].into_iter().find(is_none)?;
    Some(format!("Provider {provider}, model {id}: invalid {name}"))
}

fn warn_of(at: &str, compat: &Map<String, Value>, findings: &mut ModelProblems<'_>) {
    for (at, what) in compat_rules::check(at, compat) {
        findings.note(FindingKind::Warning, &at, what, "The model is used without it");
    }
}

/// Returns everything that prevents something from being used, in pi's words; `None` if there is nothing.
pub(super) fn error_text(findings: &[ModelProblem], file: &Path) -> Option<String> {
    let mut parts = Vec::new();
    let mut shapes = Vec::new();
    for ModelProblem { sort, problem } in findings {
        let at = problem.at.as_deref().unwrap_or_default();
        match sort {
            FindingKind::Document => {
                parts.push(format!("Failed to parse models.json: {} {at}\n\nFile: {}", problem.what, file.display()));
            }
            FindingKind::Shape => shapes.push(format!("\n  - {at}: {}", problem.what)),
            FindingKind::Rule(provider) => parts.push(format!("Provider \"{provider}\": {}", problem.what)),
            FindingKind::Warning => {}
        }
    }
    if !shapes.is_empty() {
        parts.insert(0, format!("Invalid models.json schema:{}\n\nFile: {}", shapes.concat(), file.display()));
    }
    (!parts.is_empty()).then(|| parts.join("\n"))
}
