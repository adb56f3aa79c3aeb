//! Scoped models: a selection by patterns, which users can cycle through.

use std::sync::Arc;

use globset::{GlobBuilder, GlobMatcher};
use pinch_llm::model::Model;
use pinch_llm::thinking::ThinkingLevel;

use super::pattern::{self, ModelMatch};

/// Returns the models that patterns select, in the order of the patterns and without duplicates, and messages about the patterns.
///
/// A pattern with `*`, `?` or `[` is a glob matched against `provider/id` and the id; `*` stops at slashes, but `provider/*` matches all
/// models of a provider. Any pattern may end with `:level`. The first pattern that matches a model determines its level.
pub fn choose(available: &[Arc<Model>], patterns: &[String]) -> (Vec<ModelMatch>, Vec<String>) {
    let mut chosen: Vec<ModelMatch> = Vec::new();
    let mut warnings = Vec::new();
    for pattern in patterns.iter().map(|pattern| pattern.trim()).filter(|pattern| !pattern.is_empty()) {
        let found = by_pattern(available, pattern);
        if found.is_empty() {
            warnings.push(format!("No models match pattern \"{pattern}\""));
        }
        for one in found {
            warnings.extend(one.warning.clone());
            let is_new =
                |known: &ModelMatch| known.model.provider != one.model.provider || known.model.id != one.model.id;
            if chosen.iter().all(is_new) {
                chosen.push(one);
            }
        }
    }
    (chosen, warnings)
}

fn by_pattern(available: &[Arc<Model>], pattern: &str) -> Vec<ModelMatch> {
    let found = |model: &Arc<Model>, thinking| ModelMatch { model: Arc::clone(model), thinking, warning: None };
    if !pattern.contains(['*', '?', '[']) {
        return pattern::parse(available, pattern).into_iter().collect();
    }
    // Ids may contain brackets.
    if let Some(model) = pattern::exact(available, pattern) {
        return vec![found(&model, None)];
    }
    let (glob, level) = match pattern.rsplit_once(':').map(|(glob, level)| (glob, ThinkingLevel::parse(level))) {
        Some((glob, Some(level))) => (glob, Some(level)),
        _ => (pattern, None),
    };
    if level.is_some()
        && let Some(model) = pattern::exact(available, glob)
    {
        return vec![found(&model, level)];
    }
    let whole_provider = glob.strip_suffix("/*").filter(|provider| !provider.contains(['*', '?', '[', '/', '{']));
    if let Some(provider) = whole_provider {
        let own = available.iter().filter(|model| model.provider.as_str().eq_ignore_ascii_case(provider));
        return own.map(|model| found(model, level)).collect();
    }
    let Some(glob) = compile(glob) else { return Vec::new() };
    let fits = |model: &&Arc<Model>| {
        glob.is_match(format!("{}/{}", model.provider, model.id)) || glob.is_match(model.id.as_str())
    };
    available.iter().filter(fits).map(|model| found(model, level)).collect()
}

fn compile(glob: &str) -> Option<GlobMatcher> {
    let built = GlobBuilder::new(glob).case_insensitive(true).literal_separator(true).build();
    Some(built.ok()?.compile_matcher())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(patterns: &[&str], expected: &[&str], n_warnings: usize) {
        let ids = [("a", "m-1"), ("a", "x/m-1"), ("b", "m-2"), ("b", "big[1m]")];
        let record = |(provider, id)| json!({"id": id, "provider": provider, "api": "x", "baseUrl": ""});
        let models: Vec<Arc<Model>> =
            ids.into_iter().map(record).map(|record| Arc::new(Model::from_record(&record).unwrap())).collect();
        let patterns: Vec<String> = patterns.iter().map(|&pattern| pattern.to_owned()).collect();
        let (chosen, warnings) = choose(&models, &patterns);
        let shown = |one: &ModelMatch| {
            let level = one.thinking.map(|level| format!(":{level}")).unwrap_or_default();
            format!("{}/{}{level}", one.model.provider, one.model.id)
        };
        assert_eq!(chosen.iter().map(shown).collect::<Vec<_>>(), expected);
        assert_eq!(warnings.len(), n_warnings, "{warnings:?}");
    }

    #[test]
    fn patterns_select_models_and_levels() {
        check(&["a/*:low"], &["a/m-1:low", "a/x/m-1:low"], 0);
        check(&["*/m-?"], &["a/m-1", "a/x/m-1", "b/m-2"], 0);
        check(&["*/m-1", "m-1:high"], &["a/m-1", "a/x/m-1"], 0);
        check(&["b/big[1m]"], &["b/big[1m]"], 0);
        check(&["big[1m]:high", "M-2:odd"], &["b/big[1m]:high", "b/m-2"], 1);
        check(&["[", "zzz", " "], &[], 2);
        check(&["{a,b}/m-[12]"], &["a/m-1", "b/m-2"], 0);
    }
}
