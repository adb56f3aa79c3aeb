//! Finding a model by user input.
//!
//! An exact name always beats a similar one; several equally good matches are an error that lists them.

use std::cmp::Ordering;
use std::sync::Arc;

use pinch_llm::ids::ProviderId;
use pinch_llm::model::Model;
use pinch_llm::thinking::ThinkingLevel;

use super::ModelRegistry;

/// A matching model, with the level given after a colon.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelMatch {
    /// The model.
    pub model: Arc<Model>,
    /// The level, if given.
    pub thinking: Option<ThinkingLevel>,
    /// A warning to show.
    pub warning: Option<String>,
}

/// Why no model was found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotFound {
    /// The provider is unknown.
    #[error("Unknown provider \"{provider}\". Use --list-models to see available providers/models.")]
    Provider {
        /// The user's input.
        provider: String,
    },
    /// No model matches.
    #[error("Model \"{pattern}\" not found. Use --list-models to see available models.")]
    Model {
        /// The user's input.
        pattern: String,
    },
    /// Several models match equally well.
    #[error("Model \"{pattern}\" is ambiguous: {}. Name the provider.", candidates.join(", "))]
    Ambiguous {
        /// The user's input.
        pattern: String,
        /// Up to eight candidates.
        candidates: Vec<String>,
    },
}

/// Maximum candidates listed in an error.
const MAX_LISTED: usize = 8;

/// Finds the model for a pattern. `has_auth` returns whether a provider has credentials; such providers are preferred.
///
/// # Errors
/// [`NotFound`].
pub fn resolve(
    registry: &ModelRegistry,
    provider: Option<&str>,
    pattern: &str,
    has_auth: &dyn Fn(&ProviderId) -> bool,
) -> Result<ModelMatch, NotFound> {
    let pattern = pattern.trim();
    if let Some(name) = provider {
        let provider = registry.provider(name).ok_or_else(|| NotFound::Provider { provider: name.to_owned() })?;
        let own = pattern.split_once('/').filter(|(before, _)| before.eq_ignore_ascii_case(name));
        let models = registry.models(&provider);
        // An id may start with its provider's name.
        let found = own.and_then(|_| with_level(pattern, |pattern| by_id(&models, pattern)));
        let pattern = own.map_or(pattern, |(_, rest)| rest);
        return found
            .or_else(|| with_level(pattern, |pattern| best(&models, pattern, &|_| true).first().cloned()))
            .map_or_else(|| custom(registry, &provider, pattern), Ok);
    }
    let named = pattern.split_once('/').and_then(|(before, rest)| Some((registry.provider(before)?, rest)));
    let models = named.as_ref().map(|(provider, _)| registry.models(provider)).unwrap_or_default();
    let rest = named.as_ref().map_or("", |(_, rest)| *rest);
    if let Some(found) = with_level(rest, |rest| by_id(&models, rest)) {
        return Ok(found);
    }
    let all = registry.all();
    // What looks like a provider prefix may be part of the id.
    if named.is_some()
        && let Some(found) = narrowed(pattern, &all, by_ids, has_auth)?
    {
        return Ok(found);
    }
    if let Some(found) = with_level(rest, |rest| best(&models, rest, &|_| true).first().cloned()) {
        return Ok(found);
    }
    match (narrowed(pattern, &all, |models, pattern| best(models, pattern, has_auth), has_auth)?, named) {
        (Some(found), _) => Ok(found),
        (None, Some((provider, rest))) => custom(registry, &provider, rest),
        (None, None) => Err(NotFound::Model { pattern: pattern.to_owned() }),
    }
}

/// Finds the model for a reference: `provider/id`, or an id that only one provider has. Case-insensitive.
pub fn exact(models: &[Arc<Model>], reference: &str) -> Option<Arc<Model>> {
    let wanted = reference.trim().to_lowercase();
    if wanted.is_empty() {
        return None;
    }
    let is_whole = |model: &&Arc<Model>| format!("{}/{}", model.provider, model.id).to_lowercase() == wanted;
    let is_id = |model: &&Arc<Model>| model.id.as_str().to_lowercase() == wanted;
    only(models.iter().filter(is_whole)).or_else(|| only(models.iter().filter(is_id))).cloned()
}

fn only<'a>(mut all: impl Iterator<Item = &'a Arc<Model>>) -> Option<&'a Arc<Model>> {
    let first = all.next();
    if all.next().is_some() { None } else { first }
}

/// Finds the model for a list pattern. An invalid level after a colon is reported, and the model is found nevertheless.
pub fn parse(models: &[Arc<Model>], pattern: &str) -> Option<ModelMatch> {
    let hit = exact(models, pattern).or_else(|| best(models, pattern.trim(), &|_| true).into_iter().next());
    if let Some(model) = hit {
        return Some(ModelMatch { model, thinking: None, warning: None });
    }
    let (before, suffix) = pattern.rsplit_once(':')?;
    let found = parse(models, before)?;
    match ThinkingLevel::parse(suffix) {
        Some(_) if found.warning.is_some() => Some(found),
        Some(level) => Some(ModelMatch { thinking: Some(level), ..found }),
        None => {
            let text = format!("Invalid thinking level \"{suffix}\" in pattern \"{pattern}\". Using default instead.");
            Some(ModelMatch { thinking: None, warning: Some(text), ..found })
        }
    }
}

/// Searches all providers, preferring those with credentials; several matches are an error.
fn narrowed(
    pattern: &str,
    all: &[Arc<Model>],
    find: impl Fn(&[Arc<Model>], &str) -> Vec<Arc<Model>>,
    has_auth: &dyn Fn(&ProviderId) -> bool,
) -> Result<Option<ModelMatch>, NotFound> {
    let mut ambiguous = None;
    let found = with_level(pattern, |pattern| {
        let mut hits = find(all, pattern);
        if hits.len() > 1 && hits.iter().any(|model| has_auth(&model.provider)) {
            hits.retain(|model| has_auth(&model.provider));
        }
        if hits.len() > 1 {
            let names = hits.iter().take(MAX_LISTED).map(|model| format!("{}/{}", model.provider, model.id));
            ambiguous = Some(NotFound::Ambiguous { pattern: pattern.to_owned(), candidates: names.collect() });
        }
        hits.into_iter().next()
    });
    match (found, ambiguous) {
        (Some(_), Some(ambiguous)) => Err(ambiguous),
        (found, _) => Ok(found),
    }
}

/// Tries the whole text first, then the part before a colon followed by a thinking level.
fn with_level(pattern: &str, mut find: impl FnMut(&str) -> Option<Arc<Model>>) -> Option<ModelMatch> {
    if let Some(model) = find(pattern) {
        return Some(ModelMatch { model, thinking: None, warning: None });
    }
    let (before, level) = pattern.rsplit_once(':')?;
    let thinking = ThinkingLevel::parse(level)?;
    find(before).map(|model| ModelMatch { model, thinking: Some(thinking), warning: None })
}

fn by_id(models: &[Arc<Model>], id: &str) -> Option<Arc<Model>> {
    by_ids(models, id).into_iter().next()
}

fn by_ids(models: &[Arc<Model>], id: &str) -> Vec<Arc<Model>> {
    if id.is_empty() {
        return Vec::new();
    }
    let wanted = id.to_lowercase();
    models.iter().filter(|model| model.id.as_str().to_lowercase() == wanted).cloned().collect()
}

/// Returns the best matches: the models with this ID, or else the newest model with this name, or else the newest that contains the text.
/// Those of usable providers are preferred. Returns several only if they share an ID.
fn best(models: &[Arc<Model>], pattern: &str, is_usable: &dyn Fn(&ProviderId) -> bool) -> Vec<Arc<Model>> {
    if pattern.is_empty() {
        return Vec::new();
    }
    let wanted = pattern.to_lowercase();
    let of_id = by_ids(models, pattern);
    if !of_id.is_empty() {
        return of_id;
    }
    let mut hits: Vec<&Arc<Model>> = models.iter().filter(|model| model.name.to_lowercase() == wanted).collect();
    if hits.is_empty() {
        let contains = |text: &str| text.to_lowercase().contains(&wanted);
        hits = models.iter().filter(|model| contains(model.id.as_str()) || contains(&model.name)).collect();
    }
    // Before the newest is chosen, which some gateway without credentials may have.
    if hits.iter().any(|model| is_usable(&model.provider)) {
        hits.retain(|model| is_usable(&model.provider));
    }
    let (aliases, dated): (Vec<&Arc<Model>>, Vec<_>) = hits.into_iter().partition(|m| is_alias(m.id.as_str()));
    let group = if aliases.is_empty() { dated } else { aliases };
    let Some(newest) = group.iter().max_by(|a, b| by_version(a.id.as_str(), b.id.as_str())) else {
        return Vec::new();
    };
    let id = newest.id.clone();
    group.into_iter().filter(|model| model.id == id).cloned().collect()
}

/// Returns whether an id is an alias, rather than a snapshot that ends with a date.
fn is_alias(id: &str) -> bool {
    id.ends_with("-latest") || without_date(id) == id
}

fn without_date(id: &str) -> &str {
    match id.rsplit_once('-') {
        Some((before, date)) if date.len() == 8 && date.bytes().all(|b| b.is_ascii_digit()) => before,
        _ => id,
    }
}

/// Compares ids with numbers as numbers, so that 4-10 is newer than 4-9; dates come last.
fn by_version(a: &str, b: &str) -> Ordering {
    let key = |id: &str| -> Vec<(u8, u64, String)> {
        let mut parts: Vec<(u8, u64, String)> = Vec::new();
        for c in without_date(id).to_lowercase().chars() {
            match (c.to_digit(10), parts.last_mut()) {
                (Some(digit), Some((1, number, _))) => *number = number.saturating_mul(10).saturating_add(digit.into()),
                (Some(digit), _) => parts.push((1, digit.into(), String::new())),
                (None, Some((0, _, text))) => text.push(c),
                (None, _) => parts.push((0, 0, c.into())),
            }
        }
        parts
    };
    key(a).cmp(&key(b)).then_with(|| a.cmp(b))
}

/// Creates an unlisted model of a known provider: a copy of one of its models under the new name.
fn custom(registry: &ModelRegistry, provider: &ProviderId, pattern: &str) -> Result<ModelMatch, NotFound> {
    let missing = || NotFound::Model { pattern: pattern.to_owned() };
    if pattern.is_empty() {
        return Err(missing());
    }
    let (id, thinking) = match pattern.rsplit_once(':') {
        Some((id, level)) if ThinkingLevel::parse(level).is_some() => (id, ThinkingLevel::parse(level)),
        _ => (pattern, None),
    };
    let like = registry.default_model(provider).ok_or_else(missing)?;
    let mut model = (*like).clone();
    model.id = id.into();
    model.name = id.to_owned();
    let warning = format!("Model \"{id}\" not found for provider \"{provider}\". Using custom model id.");
    Ok(ModelMatch { model: Arc::new(model), thinking, warning: Some(warning) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_as_numbers() {
        assert_eq!(by_version("claude-opus-4-10", "claude-opus-4-9"), Ordering::Greater);
        assert_eq!(by_version("claude-opus-4-1-20250805", "claude-opus-4-20250514"), Ordering::Greater);
    }

    fn registry() -> ModelRegistry {
        let document = serde_json::json!({"providers": {
            "a": {"baseUrl": "http://a", "apiKey": "k", "api": "openai-completions",
                  "models": [{"id": "text-2000"}, {"id": "text-200000"}, {"id": "own"}, {"id": "novel-8"},
                             {"id": "alias-1-20250101", "name": "Same Name"}, {"id": "alias-1", "name": "Same Name"}]},
            "b": {"baseUrl": "http://b", "apiKey": "k", "api": "openai-completions", "models": [{"id": "own"}]},
            "c": {"baseUrl": "http://c", "apiKey": "k", "api": "openai-completions", "models": [{"id": "a/text"}, {"id": "vendor/novel-9"}]},
        }});
        let (registry, problems) = ModelRegistry::from_document(document.as_object().unwrap().clone(), "m".as_ref());
        assert_eq!(problems, []);
        registry
    }

    #[track_caller]
    fn check(provider: Option<&str>, pattern: &str, auth: &[&str], expected: &str) {
        let has_auth = |id: &ProviderId| auth.contains(&id.as_str());
        let got = match resolve(&registry(), provider, pattern, &has_auth) {
            Ok(found) => format!(
                "{}/{}{}",
                found.model.provider,
                found.model.id,
                found.thinking.map_or(String::new(), |level| format!(":{level}"))
            ),
            Err(error) => error.to_string(),
        };
        assert_eq!(got, expected);
    }

    #[test]
    fn similar_names_are_looked_for_at_usable_providers_first() {
        check(None, "novel", &[], "c/vendor/novel-9");
        check(None, "novel", &["a"], "a/novel-8");
        check(None, "novel", &["b"], "c/vendor/novel-9");
        check(None, "same name", &["a"], "a/alias-1");
    }

    #[test]
    fn exact_names_win_and_ambiguous_ones_are_listed() {
        check(Some("a"), "text-2000", &[], "a/text-2000");
        check(None, "a/text-2000:high", &[], "a/text-2000:high");
        check(None, "own", &[], "Model \"own\" is ambiguous: a/own, b/own. Name the provider.");
        check(None, "own", &["b"], "b/own");
        check(
            Some("zzz"),
            "own",
            &[],
            "Unknown provider \"zzz\". Use --list-models to see available providers/models.",
        );
        check(
            None,
            "no-such-model-anywhere",
            &[],
            "Model \"no-such-model-anywhere\" not found. Use --list-models to see available models.",
        );
        check(Some("a"), "a/new:low", &[], "a/new:low");
        // The whole text is the id of another provider's model; the part after the slash only resembles one of this provider.
        check(None, "a/text", &[], "c/a/text");
        check(None, "a/text:low", &[], "c/a/text:low");
        check(None, "A/TEXT-2000", &[], "a/text-2000");
    }
}
