//! Finding a model by what a person types.
//!
//! An exact name always beats a similar one, and what fits several models equally well is an error that lists them.

use std::cmp::Ordering;
use std::sync::Arc;

use pinch_llm::ids::ProviderId;
use pinch_llm::model::Model;
use pinch_llm::thinking::ThinkingLevel;

use super::ModelRegistry;

/// A model that was found, with the level that stood behind a colon.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The model.
    pub model: Arc<Model>,
    /// The level, when one was named.
    pub thinking: Option<ThinkingLevel>,
    /// What should be said about it.
    pub warning: Option<String>,
}

/// No model fits, or too many do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotFound {
    /// Nobody knows the provider.
    #[error("Unknown provider \"{provider}\". Use --list-models to see available providers/models.")]
    Provider {
        /// What was typed.
        provider: String,
    },
    /// Nothing fits.
    #[error("Model \"{pattern}\" not found. Use --list-models to see available models.")]
    Model {
        /// What was typed.
        pattern: String,
    },
    /// Several fit equally well.
    #[error("Model \"{pattern}\" is ambiguous: {}. Name the provider.", candidates.join(", "))]
    Ambiguous {
        /// What was typed.
        pattern: String,
        /// What it could mean, eight at most.
        candidates: Vec<String>,
    },
}

/// Candidates that an error lists at most.
const MAX_LISTED: usize = 8;

/// Finds the model a command line names. `has_auth` tells which providers could be asked right away: they come first.
///
/// # Errors
/// [`NotFound`].
pub fn resolve(
    registry: &ModelRegistry,
    provider: Option<&str>,
    pattern: &str,
    has_auth: &dyn Fn(&ProviderId) -> bool,
) -> Result<Found, NotFound> {
    let pattern = pattern.trim();
    let known = |name: &str| registry.providers().into_iter().find(|id| id.as_str().eq_ignore_ascii_case(name));
    match provider {
        Some(name) => {
            let provider = known(name).ok_or_else(|| NotFound::Provider { provider: name.to_owned() })?;
            let own = pattern.split_once('/').filter(|(before, _)| before.eq_ignore_ascii_case(name));
            let pattern = own.map_or(pattern, |(_, rest)| rest);
            within(registry, &provider, pattern).map_or_else(|| custom(registry, &provider, pattern), Ok)
        }
        None => {
            let named = pattern.split_once('/').and_then(|(before, rest)| Some((known(before)?, rest)));
            if let Some((provider, rest)) = &named
                && let Some(found) = within(registry, provider, rest)
            {
                return Ok(found);
            }
            match anywhere(registry, pattern, has_auth)? {
                Some(found) => Ok(found),
                None => match named {
                    Some((provider, rest)) => custom(registry, &provider, rest),
                    None => Err(NotFound::Model { pattern: pattern.to_owned() }),
                },
            }
        }
    }
}

fn within(registry: &ModelRegistry, provider: &ProviderId, pattern: &str) -> Option<Found> {
    let models = registry.models(provider);
    with_level(pattern, &|pattern| best(&models, pattern).first().cloned())
}

fn anywhere(
    registry: &ModelRegistry,
    pattern: &str,
    has_auth: &dyn Fn(&ProviderId) -> bool,
) -> Result<Option<Found>, NotFound> {
    let all: Vec<Arc<Model>> = registry.providers().iter().flat_map(|provider| registry.models(provider)).collect();
    let mut ambiguous = None;
    let found = with_level_mut(pattern, &mut |pattern| {
        let mut hits = best(&all, pattern);
        if hits.iter().any(|model| has_auth(&model.provider)) {
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

fn with_level(pattern: &str, find: &dyn Fn(&str) -> Option<Arc<Model>>) -> Option<Found> {
    with_level_mut(pattern, &mut |pattern| find(pattern))
}

/// Tries the whole text first, then what stands before a colon that a thinking level follows.
fn with_level_mut(pattern: &str, find: &mut dyn FnMut(&str) -> Option<Arc<Model>>) -> Option<Found> {
    if let Some(model) = find(pattern) {
        return Some(Found { model, thinking: None, warning: None });
    }
    let (before, level) = pattern.rsplit_once(':')?;
    let thinking = ThinkingLevel::parse(level)?;
    find(before).map(|model| Found { model, thinking: Some(thinking), warning: None })
}

/// The models that fit best: those of that very name, else the newest of those that contain the text. Several only when they share a name.
fn best(models: &[Arc<Model>], pattern: &str) -> Vec<Arc<Model>> {
    if pattern.is_empty() {
        return Vec::new();
    }
    let wanted = pattern.to_lowercase();
    let exact = |name: &str| name.to_lowercase() == wanted;
    for is_it in
        [&(|model: &Model| exact(model.id.as_str())) as &dyn Fn(&Model) -> bool, &|model: &Model| exact(&model.name)]
    {
        let hits: Vec<Arc<Model>> = models.iter().filter(|model| is_it(model)).cloned().collect();
        if !hits.is_empty() {
            return hits;
        }
    }
    let contains = |text: &str| text.to_lowercase().contains(&wanted);
    let hits: Vec<&Arc<Model>> =
        models.iter().filter(|model| contains(model.id.as_str()) || contains(&model.name)).collect();
    let (aliases, dated): (Vec<&Arc<Model>>, Vec<_>) = hits.into_iter().partition(|m| is_alias(m.id.as_str()));
    let group = if aliases.is_empty() { dated } else { aliases };
    let Some(newest) = group.iter().max_by(|a, b| by_version(a.id.as_str(), b.id.as_str())) else {
        return Vec::new();
    };
    let id = newest.id.clone();
    group.into_iter().filter(|model| model.id == id).cloned().collect()
}

/// Ids with a date at their end are snapshots; the others move on.
fn is_alias(id: &str) -> bool {
    id.ends_with("-latest") || without_date(id) == id
}

fn without_date(id: &str) -> &str {
    match id.rsplit_once('-') {
        Some((before, date)) if date.len() == 8 && date.bytes().all(|b| b.is_ascii_digit()) => before,
        _ => id,
    }
}

/// Compares ids with numbers as numbers, so that 4-10 is newer than 4-9; dates count last.
fn by_version(a: &str, b: &str) -> Ordering {
    let key = |id: &str| -> Vec<(u8, u64, String)> {
        let mut parts: Vec<(u8, u64, String)> = Vec::new();
        for c in without_date(id).chars() {
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

/// A model nobody has listed, of a provider that is known: a copy of one of its models under the new name.
fn custom(registry: &ModelRegistry, provider: &ProviderId, pattern: &str) -> Result<Found, NotFound> {
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
    Ok(Found { model: Arc::new(model), thinking, warning: Some(warning) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_numbers() {
        assert_eq!(by_version("claude-opus-4-10", "claude-opus-4-9"), Ordering::Greater);
        assert_eq!(by_version("claude-opus-4-1-20250805", "claude-opus-4-20250514"), Ordering::Greater);
    }

    fn registry() -> ModelRegistry {
        let document = serde_json::json!({"providers": {
            "a": {"baseUrl": "http://a", "apiKey": "k", "api": "openai-completions",
                  "models": [{"id": "text-2000"}, {"id": "text-200000"}, {"id": "own"}]},
            "b": {"baseUrl": "http://b", "apiKey": "k", "api": "openai-completions", "models": [{"id": "own"}]},
        }});
        let (registry, problems) = ModelRegistry::from_document(document.as_object().unwrap(), "m".as_ref());
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
    fn exact_names_win_and_doubtful_ones_are_listed() {
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
    }
}
